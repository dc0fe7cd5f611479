//! Lessons on paper.

use blockyard_lessons::{Handout, Plan};
use blockyard_record::counted;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::{OpenLesson, OpenLessonError};
use crate::session::Session;
use crate::view::kit::{button, click, flag, select, text};

/// What is printed: the name for the style sheet, and the words.
const PARTS: [(&str, &str); 5] = [
    ("short", "Questions and exercises, for the class"),
    ("key", "The answer key, for the teacher"),
    ("cards", "All cards without the answers, for the class"),
    ("answers", "The answers with reasons, for the teacher"),
    ("all", "All cards, and the answers after them"),
];

/// Which lessons of a plan are printed.
const USES: [(&str, &str); 3] =
    [("", "All lessons"), ("class", "Lessons in class"), ("home", "Lessons at home")];

/// The lessons of a plan on paper: every card with its figure, and the answers at the end. An empty text stands
/// for the lesson in the lesson editor.
pub(crate) fn handout(session: Session, text_of_plan: &str) -> AnyView {
    let error_page = |error: String| view! { <main class="page"><p>{error}</p></main> }.into_any();
    let plan = Plan::from_text(text_of_plan);
    if plan.lessons.is_empty() && !text_of_plan.is_empty() {
        return error_page(OpenLessonError::Unknown(text_of_plan.to_owned()).to_string());
    }
    let own = session.lessons().own_text.get_untracked().or_else(|| browser::recall(super::make_lesson::KEY));
    let is_of = |is_at_home: bool| plan.lessons.iter().any(|planned| planned.is_at_home == is_at_home);
    let is_of_one_use = !(is_of(true) && is_of(false));
    let (part, of_use) = (RwSignal::new(PARTS[0].0.to_owned()), RwSignal::new(String::new()));
    let paper = Memo::new(move |_| {
        let of_use = of_use.get();
        let is_printed = |is_at_home| of_use.is_empty() || is_at_home == (of_use == "home");
        let mut plan = plan.clone();
        plan.lessons.retain(|planned| is_printed(planned.is_at_home));
        OpenLesson::handout(&plan, own.as_deref())
    });
    if let Err(error) = paper.get_untracked() {
        return error_page(error);
    }
    let html = move |of: fn(&Handout) -> &str| {
        text(move || paper.with(|paper| paper.as_ref().map_or("", |paper| of(paper)).to_owned()))
    };
    let pages = |html: &str| counted(html.matches("<section class=\"sheet\">").count(), "page");
    let words = text(move || {
        let (short, all) =
            paper.with(|it| it.as_ref().map(|it| (pages(&it.asked), pages(&it.cards))).unwrap_or_default());
        format!(
            "Questions and exercises are {short} for each student; a number that would answer an earlier question, or from which its answer could be computed, is left out there. Answer keys of several lessons share pages. All cards are {all}: a page ends with its question, and the next page shows what happened. Turn the pages together, or hand them out one by one."
        )
    });
    let options = |all: &[(&str, &str)]| {
        Signal::stored(all.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned())).collect())
    };
    view! {
        <main class="page handout" data-paper-part=text(move || part.get())>
            <p class="no-print cluster">
                {select("print-part", "What is printed", options(&PARTS), part.into(), move |value| part.set(value))}
                <span hidden=flag(move || is_of_one_use)>
                    {select("print-lessons", "Which lessons", options(&USES), of_use.into(), move |value| of_use.set(value))}
                </span>
                {button("primary large", "print", "Print", "", click(browser::print))}
            </p>
            <p class="no-print quiet" data-testid="paper-words">{words}</p>
            <div class="sheets" inner_html=html(|paper| &paper.cards)></div>
            <div class="asked" aria-hidden="true" inner_html=html(|paper| &paper.asked)></div>
            <div class="one-page" aria-hidden="true" inner_html=html(|paper| &paper.key)></div>
            <div class="key" inner_html=html(|paper| &paper.answers)></div>
        </main>
    }
    .into_any()
}
