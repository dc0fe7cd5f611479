//! The four pages for teachers: plan, present, hand out and grade, host.

mod hand_out;
mod host;
mod plan;
mod present;

use blockyard_figure::escaped;
use blockyard_lessons::course;
use leptos::prelude::*;

use crate::browser;
use crate::link::LinkTarget;
use crate::navigation::{Place, TeachersPage};
use crate::session::Session;
use crate::view::kit::{select, text};

/// One of the pages, below the links to all of them.
pub(crate) fn teachers(session: Session, page: TeachersPage) -> AnyView {
    let link = |of: TeachersPage| {
        let hash = LinkTarget::Place(Place::Teachers(of)).hash();
        let here = if of == page { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"#{hash}\"{here}>{}</a>", of.title())
    };
    let links = TeachersPage::ALL.map(link).concat();
    let head = marked(format!(
        "<h1>For teachers</h1><nav class=\"teachers-pages\" aria-label=\"For teachers\">{links}</nav>"
    ));
    let content = match page {
        TeachersPage::Plan => plan::plans(session),
        TeachersPage::Present => present::present(session),
        TeachersPage::HandOut => hand_out::hand_out(session),
        TeachersPage::Host => host::host(session),
    };
    view! { <main class="page teachers" data-testid="teachers">{head}{content}</main> }.into_any()
}

fn title_of(id: &str) -> &'static str {
    course().find(|lesson| lesson.id == id).map_or("", |lesson| lesson.title)
}

/// A text with marks. A view of each element would make the download larger.
pub(super) fn marked(html: String) -> AnyView {
    view! { <div inner_html=html></div> }.into_any()
}

/// Buttons beside each other.
pub(super) fn cluster(buttons: Vec<AnyView>) -> AnyView {
    view! { <div class="cluster">{buttons}</div> }.into_any()
}

/// A choice of one of several names, each with its id.
fn choice(
    id: &'static str,
    label: &'static str,
    options: Vec<(String, String)>,
    chosen: RwSignal<String>,
) -> AnyView {
    select(id, label, Signal::stored(options), text(move || chosen.get()), move |id| chosen.set(id))
}

/// Copies the link to these lessons, by their ids with commas between them.
fn copy_link(session: Session, ids: String) {
    let hash = LinkTarget::Place(Place::Plan(ids)).hash();
    browser::copy(&format!("{}#{hash}", browser::address()));
    session.show_note("The link for students is copied.");
}

/// A part of the page.
fn block(class: &'static str, id: &'static str, content: Vec<AnyView>) -> AnyView {
    view! { <section class=class data-testid=id>{content}</section> }.into_any()
}

/// A link to a card of a lesson, counted from 0, as HTML. The page follows its own addresses.
fn card_link(id: &str, card: usize, words: &str) -> String {
    let hash = LinkTarget::Lesson { id: id.to_owned(), card: card + 1 }.hash();
    format!("<a href=\"#{}\">{}</a>", escaped(&hash), escaped(words))
}

/// The lines that put a lesson into another page.
pub(super) fn frame(address: &str, hash: &str, title: &str) -> String {
    format!(
        "<iframe src=\"{address}?embed=lesson#{hash}\" title=\"{title}\" width=\"100%\" height=\"640\" style=\"border:0\" loading=\"lazy\"></iframe>"
    )
}
