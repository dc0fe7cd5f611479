//! Lessons on paper.

use blockyard_record::counted;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::OpenLesson;
use crate::session::Session;
use crate::view::kit::{button, click};

/// Lessons on paper: every card with its figure, and the answers at the end.
pub(crate) fn handout(session: Session, ids: &str) -> AnyView {
    let own = session.lessons().own_text.get_untracked().or_else(|| browser::recall(super::make_lesson::KEY));
    let paper = match OpenLesson::handout(ids, own.as_deref()) {
        Ok(paper) => paper,
        Err(error) => return view! { <main class="page"><p>{error}</p></main> }.into_any(),
    };
    // Which part is printed; empty for all.
    let part = RwSignal::new("");
    let print = move |printed: &'static str| {
        part.set(printed);
        // The page has the part before the browser prints it.
        let _ = browser::after_millis(0, browser::print);
    };
    let count = |html: &str| counted(html.matches("<section class=\"sheet\">").count(), "page");
    let (all, short) = (count(&paper.cards), count(&paper.asked));
    view! {
        <main class="page handout" data-paper-part=move || part.get()>
            <p class="no-print cluster">
                {button("primary large", "print-short", "Print questions and exercises alone", "For the class: the questions and the exercise", click(move || print("short")))}
                {button("large", "print-key", "Print the answer key", "For the teacher: several short keys share a page", click(move || print("key")))}
                {button("large", "print-cards", "Print all cards without the answers", "For the class", click(move || print("cards")))}
                {button("large", "print-answers", "Print the answers with reasons", "For the teacher", click(move || print("answers")))}
                {button("large", "print", "Print cards and answers", "The cards, and the answers on separate pages", click(move || print("")))}
            </p>
            <p class="no-print quiet" data-testid="paper-words">
                {format!("Questions and exercises alone are {short} for each student; a number that would answer an earlier question, or from which its answer could be computed, is left out there. Answer keys of several lessons share pages. All cards are {all}: a page ends with its question, and the next page shows what happened. Turn the pages together, or hand them out one by one.")}
            </p>
            <div class="sheets" inner_html=paper.cards></div>
            <div class="asked" aria-hidden="true" inner_html=paper.asked></div>
            <div class="one-page" aria-hidden="true" inner_html=paper.key></div>
            <div class="key" inner_html=paper.answers></div>
        </main>
    }
    .into_any()
}
