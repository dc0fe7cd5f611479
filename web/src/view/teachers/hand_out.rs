//! The page for teachers about sheets, and grades of a class.

use std::collections::BTreeSet;

use blockyard_lessons::lessons;
use blockyard_record::counted;
use leptos::prelude::*;

use super::{card_link, copy_link, marked, title_of};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::grading::grading;
use crate::view::kit::{button, check, click, flag, text};
use crate::view::lessons::{ListedLesson, summaries};

const GRADE: &str = "<h2>Grade</h2><p data-testid=\"give-exercise\">Send the link to an exercise. After Run, a student saves a file or copies a link, and hands it in. \
Drop the files of a class anywhere here: programs, notebooks, links, or a <code>.zip</code> of them; with a lesson of your own also its file (<code>.md</code>). Each is \
run in this browser, for at most 10 s, and nothing is sent. A student's name is that of the file or its folder, up to the first <code>_</code> or <code>-</code>. \
<code>blockyard lesson fragmentation --check FILES --csv grades.csv</code> does the same.</p>";

/// Lessons that are chosen, and the buttons for their sheets and their link; then the grades.
pub(super) fn hand_out(session: Session) -> Vec<AnyView> {
    // The lessons of a common sheet, in the order of the course.
    let chosen = RwSignal::new(BTreeSet::<usize>::new());
    let ids = move || {
        let ids = chosen.get_untracked().into_iter().filter_map(|place| lessons().get(place));
        ids.map(|file| file.id).collect::<Vec<_>>().join(",")
    };
    let is_none_chosen = flag(move || chosen.with(BTreeSet::is_empty));
    let sheet = click(move || session.navigation().go_to(Place::Handout(ids())));
    let link = click(move || copy_link(session, ids()));
    let all = click(move || {
        chosen.update(|chosen| {
            let is_all = chosen.len() == lessons().len();
            *chosen = if is_all { BTreeSet::new() } else { (0..lessons().len()).collect() };
        });
    });
    let rows = summaries().into_iter().enumerate().map(|(number, lesson)| row(number, &lesson, chosen));
    let rows = rows.collect::<Vec<_>>();
    let words = text(move || match chosen.with(BTreeSet::len) {
        0 => "Print sheets and keys: choose lessons".to_owned(),
        count => format!("Print sheets and keys of {}", counted(count, "lesson")),
    });
    let buttons = view! {
        <div class="cluster">
            <button type="button" class="primary large" data-testid="class-sheet" disabled=is_none_chosen on:click=sheet>{words}</button>
            <button type="button" class="large" data-testid="copy-chosen" disabled=is_none_chosen on:click=link>"Copy their link"</button>
            {button("large", "choose-all", "Choose all or none", "", all)}
        </div>
    };
    let list = view! { <ul class="lesson-rows" data-testid="hand-out">{rows}</ul> };
    let mut content = vec![buttons.into_any(), list.into_any(), marked(GRADE.to_owned())];
    content.extend(grading(session));
    content
}

/// A lesson that can be chosen, with the link to its exercise, which is its last card.
fn row(number: usize, lesson: &ListedLesson, chosen: RwSignal<BTreeSet<usize>>) -> AnyView {
    let &ListedLesson { id, minutes, cards, .. } = lesson;
    let title = title_of(id);
    let is_chosen = flag(move || chosen.with(|chosen| chosen.contains(&number)));
    let choose = move |is_on: bool| {
        chosen.update(|chosen| {
            if is_on {
                chosen.insert(number);
            } else {
                chosen.remove(&number);
            }
        });
    };
    let minutes = minutes.map(|minutes| format!("{minutes} min · ")).unwrap_or_default();
    let exercise = card_link(id, cards.saturating_sub(1), "exercise");
    let links = format!("{minutes}{} · {exercise}", card_link(id, 0, "lesson"));
    view! { <li>{check("choose-lesson", title, "For common sheets and a common link", is_chosen, choose)}<span class="quiet" inner_html=links></span></li> }
        .into_any()
}
