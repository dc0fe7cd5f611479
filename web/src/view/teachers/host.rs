//! The page for teachers about lessons on other pages and servers.

use blockyard_lessons::{PLANS, course};
use leptos::prelude::*;

use super::{choice, cluster, frame, marked, title_of};
use crate::browser;
use crate::link::LinkTarget;
use crate::session::Session;
use crate::view::kit::{button, click};
use crate::view::lessons::summaries;

pub(super) fn host(session: Session) -> Vec<AnyView> {
    let mut content = vec![marked(
        "<h2>A list of links</h2><p>For the page of your course: each lesson with its minutes.</p>"
            .to_owned(),
    )];
    content.push(links(session));
    content.push(marked("<h2>A lesson in a frame</h2><p>A learning platform shows the whole lesson. 640 x 400 pixels are enough.</p>".to_owned()));
    content.push(frames(session));
    content.push(marked(SITE.to_owned()));
    content
}

const SITE: &str = "<h2>A server of your own</h2>
<p><code>blockyard site course mine.md --title \"Memory, week 3\"</code> writes a folder for any web server: this page, your lessons, snapshots and programs, and an index of \
them. <code>python -m http.server -d course</code> shows it. The command comes with the Python package.</p>
<dl class=\"glossary\">
<dt>Offline</dt><dd>A browser that has opened the site once over HTTPS opens it without a network, Python too.</dd>
<dt>Privacy</dt><dd>No account, no server of ours. Answers and progress stay in each reader's browser.</dd>
<dt>License</dt><dd>Page, lessons and figures may be used, changed and passed on under MIT or Apache-2.0.</dd></dl>";

/// The buttons that copy the links to the lessons of a plan, or to all.
fn links(session: Session) -> AnyView {
    let chosen = RwSignal::new(String::new());
    let options = PLANS.iter().map(|plan| (plan.id.to_owned(), plan.title.to_owned()));
    let options: Vec<_> = [(String::new(), "All lessons".to_owned())].into_iter().chain(options).collect();
    let ids = move || -> Vec<String> {
        match PLANS.iter().find(|plan| chosen.with_untracked(|chosen| chosen == plan.id)) {
            Some(plan) => plan.ids(),
            None => course().map(|lesson| lesson.id.to_owned()).collect(),
        }
    };
    let of_form = move |is_html: bool| {
        click(move || {
            browser::copy(&index(&browser::address(), &ids(), is_html));
            session.show_note("The list is copied.");
        })
    };
    cluster(vec![
        choice("index-lessons", "Lessons of the list", options, chosen),
        button("primary large", "copy-index-html", "Copy as HTML", "", of_form(true)),
        button("large", "copy-index-markdown", "Copy as Markdown", "", of_form(false)),
    ])
}

/// Lessons as a list of links for a course page, each with the minutes of a reader.
fn index(address: &str, ids: &[String], is_html: bool) -> String {
    let listed = summaries();
    let line = |id: &String| {
        let link = format!("{address}#{}", LinkTarget::Lesson { id: id.clone(), card: 1 }.hash());
        let title = title_of(id);
        let minutes = listed.iter().find(|lesson| lesson.id == id).and_then(|lesson| lesson.minutes);
        let minutes = minutes.map(|minutes| format!(" ({minutes} min)")).unwrap_or_default();
        if is_html {
            format!("<li><a href=\"{}\">{title}</a>{minutes}</li>\n", link.replace('&', "&amp;"))
        } else {
            format!("1. [{title}]({link}){minutes}\n")
        }
    };
    let lines: String = ids.iter().map(line).collect();
    if is_html { format!("<ol>\n{lines}</ol>\n") } else { lines }
}

/// The button that copies the frame of a lesson.
fn frames(session: Session) -> AnyView {
    let lesson = RwSignal::new(course().next().map_or_else(String::new, |lesson| lesson.id.to_owned()));
    let options = course().map(|lesson| (lesson.id.to_owned(), lesson.title.to_owned())).collect();
    let copy = click(move || {
        let id = lesson.get_untracked();
        let hash = LinkTarget::Lesson { id: id.clone(), card: 1 }.hash();
        browser::copy(&frame(&browser::address(), &hash, title_of(&id)));
        session.show_note("The frame is copied. Paste it where your page takes HTML.");
    });
    cluster(vec![
        choice("embed-lesson", "Lesson of the frame", options, lesson),
        button("primary large", "copy-embed", "Copy the frame", "HTML for your page", copy),
    ])
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn an_index_is_a_list_of_links_in_the_order_of_the_plan() {
        let ids = ["reserved".to_owned(), "tensor".to_owned()];
        assert_eq!(
            index("https://a.example/", &ids, false),
            "1. [Allocated and reserved](https://a.example/#lesson=reserved&card=1) (4 min)\n\
             1. [What a tensor costs](https://a.example/#lesson=tensor&card=1) (10 min)\n"
        );
        let html = index("https://a.example/", &ids, true);
        assert!(
            html.starts_with("<ol>\n<li><a href=\"https://a.example/#lesson=reserved&amp;card=1\">Allocated and reserved</a> (4 min)</li>"),
            "{html}"
        );
    }
}
