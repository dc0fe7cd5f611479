//! The page for teachers about sheets, and grades of a class.

use blockyard_lessons::PlannedLesson;
use leptos::prelude::*;

use super::{card_link, chosen_plan, class_buttons, class_line, marked};
use crate::session::Session;
use crate::view::kit::text;
use crate::view::learn::lessons::{summaries, use_words};
use crate::view::teach::grading::grading;

const GRADE: &str = "<h2>Grade</h2><p data-testid=\"give-exercise\">Send the link to an exercise. After Run, a student saves a file or copies a link, and hands it in. \
Drop the files of a class anywhere here: programs, the student's lines alone, notebooks, links, mails with links, or a <code>.zip</code> of them; with a lesson of your own also its file (<code>.md</code>). Each is \
run in this browser, for at most 10 s, and nothing is sent. A student's name is that of the file or its folder, up to the first <code>_</code> or <code>-</code>: students put it first, as in \
<code>anna_fragmentation.py</code>. \
<code>blockyard lesson fragmentation --check FILES --csv grades.csv</code> does the same with programs.</p>";

/// The lessons of the plan with the links to their exercises; then the grades.
pub(super) fn hand_out(session: Session) -> Vec<AnyView> {
    let listed = StoredValue::new(summaries());
    let row = move |planned: &PlannedLesson| {
        let lesson = card_link(planned, 0, planned.title());
        let uses = listed.with_value(|listed| use_words(planned, listed));
        format!("<li>{lesson}. {uses}</li>")
    };
    let rows = text(move || chosen_plan(session).lessons.iter().map(row).collect());
    let list = view! { <ul class="bullets" data-testid="hand-out" inner_html=rows></ul> };
    let mut content =
        vec![class_line(session), class_buttons(session), list.into_any(), marked(GRADE.to_owned())];
    content.extend(grading(session));
    content
}
