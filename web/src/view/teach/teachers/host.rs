//! The page for teachers about lessons on other pages and servers.

use blockyard_lessons::{ExerciseUse, Plan, PlannedLesson, course, title_of};
use leptos::prelude::*;

use super::{card_hash, chosen_plan, class_line, cluster, frame, marked};
use crate::browser;
use crate::link::LinkTarget;
use crate::session::Session;
use crate::view::kit::{button, check, click, select, text};
use crate::view::learn::lessons::{exercise_card, summaries};

pub(super) fn host(session: Session) -> Vec<AnyView> {
    let mut content = vec![marked(
        "<h2>A list of links</h2><p>For the page of your course: each lesson with its minutes and its exercise, and the homework.</p>"
            .to_owned(),
    )];
    content.push(class_line(session));
    content.push(links(session));
    content.push(marked("<h2>A lesson in a frame</h2><p>A learning platform shows the whole lesson. 640 x 400 pixels are enough.</p>".to_owned()));
    content.push(frames(session));
    content.push(marked(SITE.to_owned()));
    content
}

const SITE: &str = "<h2>A server of your own</h2>
<p><code>blockyard site course mine.md --title \"Memory, week 3\"</code> writes a folder for any web server: this page, your lessons, snapshots and programs, and an index of \
them. <code>python -m http.server -d course</code> shows it. The command <code>blockyard</code> is built in a clone of Blockyard: \
<code>cargo build --release -p blockyard-cli -p blockyard-standin</code> writes it to <code>target/release</code>, and <code>cargo xtask build</code> makes the page \
for it. Blockyard's Python package has both.</p>
<dl class=\"glossary\">
<dt>Offline</dt><dd>A browser that has opened the site once over HTTPS opens it without a network, Python too.</dd>
<dt>Privacy</dt><dd>No account, no server of ours. Answers and progress stay in each reader's browser.</dd>
<dt>License</dt><dd>Page, lessons and figures may be used, changed and passed on under MIT or Apache-2.0.</dd></dl>";

/// The buttons that copy the links to the lessons of the class's plan, or to all.
fn links(session: Session) -> AnyView {
    let is_all = RwSignal::new(false);
    let of_form = move |is_html: bool| {
        click(move || {
            let plan = if is_all.get_untracked() {
                let in_class = |planned| PlannedLesson { exercise: ExerciseUse::InClass, ..planned };
                let all = course().filter_map(|lesson| PlannedLesson::of_course(lesson.id));
                Plan { lessons: all.map(in_class).collect() }
            } else {
                untrack(|| chosen_plan(session))
            };
            browser::copy(&index(&browser::address(), &plan, is_html));
            session.show_note("The list is copied.");
        })
    };
    cluster(vec![
        check("index-all", "All lessons", "Else those of your plan", is_all.into(), move |on| is_all.set(on)),
        button("primary large", "copy-index-html", "Copy as HTML", "", of_form(true)),
        button("large", "copy-index-markdown", "Copy as Markdown", "", of_form(false)),
    ])
}

/// Lessons as a list of links for a course page, each with the minutes of a reader and its exercise, and the
/// homework after them.
fn index(address: &str, plan: &Plan, is_html: bool) -> String {
    let listed = summaries();
    let link = |planned: &PlannedLesson, card: usize, words: &str| {
        let link = format!("{address}#{}", card_hash(planned, card));
        if is_html {
            format!("<a href=\"{}\">{words}</a>", link.replace('&', "&amp;"))
        } else {
            format!("[{words}]({link})")
        }
    };
    let item = |planned: &PlannedLesson| {
        let lesson = listed.iter().find(|lesson| lesson.id == planned.id);
        let minutes = lesson.and_then(|lesson| lesson.minutes);
        let minutes = minutes.map(|minutes| format!(" ({minutes} min)")).unwrap_or_default();
        let exercise = || format!(", {}", link(planned, exercise_card(&planned.id, &listed), "exercise"));
        let exercise = (planned.exercise != ExerciseUse::LeftOut).then(exercise).unwrap_or_default();
        let words = format!("{}{minutes}{exercise}", link(planned, 0, planned.title()));
        if is_html { format!("<li>{words}</li>\n") } else { format!("1. {words}\n") }
    };
    let lines: String = plan.lessons.iter().map(item).collect();
    let homework = plan.homework_sentence().unwrap_or_default();
    match (is_html, homework.is_empty()) {
        (true, true) => format!("<ol>\n{lines}</ol>\n"),
        (true, false) => format!("<ol>\n{lines}</ol>\n<p>{homework}</p>\n"),
        (false, true) => lines,
        (false, false) => format!("{lines}\n{homework}\n"),
    }
}

/// The button that copies the frame of a lesson.
fn frames(session: Session) -> AnyView {
    let lesson = RwSignal::new(course().next().map_or_else(String::new, |lesson| lesson.id.to_owned()));
    let options: Vec<_> = course().map(|lesson| (lesson.id.to_owned(), lesson.title.to_owned())).collect();
    let copy = click(move || {
        let id = lesson.get_untracked();
        let hash = LinkTarget::Lesson { id: id.clone(), card: 1 }.hash();
        browser::copy(&frame(&browser::address(), &hash, title_of(&id)));
        session.show_note("The frame is copied. Paste it where your page takes HTML.");
    });
    cluster(vec![
        select(
            "embed-lesson",
            "Lesson of the frame",
            Signal::stored(options),
            text(move || lesson.get()),
            move |id| lesson.set(id),
        ),
        button("primary large", "copy-embed", "Copy the frame", "HTML for your page", copy),
    ])
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn an_index_has_lessons_exercises_and_homework_in_the_order_of_the_plan() {
        let plan = Plan::from_text("tensor,reserved:home");
        assert_eq!(
            index("https://a.example/", &plan, false),
            "1. [What a tensor costs](https://a.example/#lesson=tensor&card=1) (10 min), [exercise](https://a.example/#lesson=tensor&card=10)\n\
             1. [Allocated and reserved](https://a.example/#lesson=reserved&card=1) (4 min), [exercise](https://a.example/#lesson=reserved&card=6)\n\n\
             Homework: exercise of \"What a tensor costs\"; lesson \"Allocated and reserved\".\n"
        );
        let html = index("https://a.example/", &plan, true);
        assert!(
            html.starts_with("<ol>\n<li><a href=\"https://a.example/#lesson=tensor&amp;card=1\">What a tensor costs</a> (10 min), <a")
                && html.ends_with("</ol>\n<p>Homework: exercise of \"What a tensor costs\"; lesson \"Allocated and reserved\".</p>\n"),
            "{html}"
        );
    }
}
