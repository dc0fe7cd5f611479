//! The four pages for teachers: plan, present, hand out and grade, host.

mod hand_out;
mod host;
mod plan;
mod present;

use blockyard_figure::escaped;
use blockyard_lessons::{LECTURES, Plan, PlannedLesson, without_solutions};
use leptos::prelude::*;

use crate::browser;
use crate::link::{Link, LinkTarget, packed, unpacked};
use crate::navigation::{Place, TeachersPage};
use crate::session::Session;
use crate::view::kit::{button, click, flag, text};
use crate::view::teach::present::room_code::is_of_this_machine;

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
        TeachersPage::Plan => plan::plan(session),
        TeachersPage::Present => present::present(session),
        TeachersPage::HandOut => hand_out::hand_out(session),
        TeachersPage::Host => host::host(session),
    };
    view! { <main class="page teachers" data-testid="teachers">{head}{content}</main> }.into_any()
}

/// The plan of the class: that of the address, or else the first lecture. Reads signals.
fn chosen_plan(session: Session) -> Plan {
    let chosen = session.lessons().class_plan.get();
    let first = LECTURES.first().map_or("", |lecture| lecture.plan);
    Plan::from_text(if chosen.is_empty() { first } else { &chosen })
}

/// The lessons of the plan in a line, with the way to change them.
fn class_line(session: Session) -> AnyView {
    let words = text(move || {
        let plan = chosen_plan(session);
        let titles: Vec<_> = plan.presented().map(|planned| escaped(planned.title())).collect();
        let (minutes, homework) = (plan.minutes(), plan.homework_sentence().unwrap_or_default());
        let titles = if titles.is_empty() { "no lesson".to_owned() } else { titles.join("; ") };
        format!(
            "Your plan, {minutes} min: {titles}. {} <a href=\"#teachers\">Change it</a>",
            escaped(&homework)
        )
    });
    view! { <p data-testid="class-line" inner_html=words></p> }.into_any()
}

/// The buttons for the plan: it is presented, printed and given to students.
fn class_buttons(session: Session) -> AnyView {
    let now = move || untrack(|| chosen_plan(session));
    let is_off = flag(move || chosen_plan(session).presented().next().is_none());
    let is_empty = flag(move || chosen_plan(session).lessons.is_empty());
    let sheet = click(move || session.navigation().go_to(Place::Handout(now().to_string())));
    let link = click(move || {
        let address = students_address(&now());
        browser::copy(&address);
        session.show_note(if is_of_this_machine(&address) {
            "The link is copied, but students cannot open it: it is of this machine alone. Open the page from a web server."
        } else {
            "The link for students is copied: lessons, exercises and homework."
        });
    });
    let own_link = click(move || {
        let class_plan = Some(now().to_string());
        let hash =
            Link { class_plan, ..LinkTarget::Place(Place::Teachers(TeachersPage::Plan)).into() }.write();
        browser::copy(&format!("{}#{hash}", browser::address()));
        session.show_note("The link of this plan is copied, for you and other teachers. A lesson of yours is in it with its solutions.");
    });
    let present = click(move || session.lessons().present_plan(now()));
    view! {
        <div class="cluster" data-testid="class-buttons">
            <button type="button" class="primary large" data-testid="present-class" disabled=is_off on:click=present>"Present"</button>
            <button type="button" class="large" data-testid="class-sheet" disabled=is_empty on:click=sheet>"Print …"</button>
            {button("large", "copy-plan", "Copy link for students", "One address, with the lessons, exercises and homework, without solutions", link)}
            {button("large", "copy-own-plan", "Copy link for teachers", "This plan, to be opened and changed on another machine", own_link)}
        </div>
    }
    .into_any()
}

/// A text with marks. A view of each element would make the download larger.
pub(super) fn marked(html: String) -> AnyView {
    view! { <div inner_html=html></div> }.into_any()
}

/// Buttons beside each other.
pub(super) fn cluster(buttons: Vec<AnyView>) -> AnyView {
    view! { <div class="cluster">{buttons}</div> }.into_any()
}

/// The address of a plan for students: without the solutions of the teacher's own lesson.
pub(super) fn students_address(plan: &Plan) -> String {
    let mut plan = plan.clone();
    for own in plan.lessons.iter_mut().filter_map(|planned| planned.own.as_mut()) {
        own.source = unpacked(&own.source).map(|text| packed(&without_solutions(&text))).unwrap_or_default();
    }
    let hash = LinkTarget::Place(Place::Plan(plan.to_string())).hash();
    format!("{}#{hash}", browser::address())
}

/// The hash of a card of a planned lesson, counted from 0, for a class.
pub(super) fn card_hash(planned: &PlannedLesson, card: usize) -> String {
    let text = planned.own.as_ref().and_then(|own| unpacked(&own.source).ok());
    let card = card + 1;
    let target = match text.map(|text| without_solutions(&text)) {
        Some(text) => LinkTarget::LessonText { text, card, is_for_class: true },
        None => LinkTarget::Lesson { id: planned.id.clone(), card },
    };
    target.hash()
}

/// A link to a card of a planned lesson, counted from 0, as HTML. The page follows its own addresses.
pub(crate) fn card_link(planned: &PlannedLesson, card: usize, words: &str) -> String {
    format!("<a href=\"#{}\">{}</a>", escaped(&card_hash(planned, card)), escaped(words))
}

/// The lines that put a lesson into another page.
pub(super) fn frame(address: &str, hash: &str, title: &str) -> String {
    format!(
        "<iframe src=\"{address}?embed=lesson#{hash}\" title=\"{title}\" width=\"100%\" height=\"640\" style=\"border:0\" loading=\"lazy\"></iframe>"
    )
}
