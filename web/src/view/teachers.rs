//! The page for teachers, plans of lectures, and handouts.

use std::collections::BTreeSet;

use blockyard_lessons::{CourseStretch, FORTY_FIVE_MINUTES, NINETY_MINUTES, TWO_HOURS, course, lessons};
use blockyard_record::counted;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::{OpenLesson, lecture_lessons};
use crate::link::Target;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, check, click, flag, text};
use crate::view::lessons::{ListedLesson, place_link, summaries};

/// Ways through the lessons with a class, each folded away.
pub(super) fn plans(session: Session) -> AnyView {
    view! {
        <div>
            {plan(session, "forty-five-minutes", "A lecture of 45 minutes", &FORTY_FIVE_MINUTES)}
            {plan(session, "ninety-minutes", "A lecture of 90 minutes", &NINETY_MINUTES)}
            {plan(session, "two-hours", "A course of two hours", &TWO_HOURS)}
        </div>
    }
    .into_any()
}

fn plan(
    session: Session,
    id: &'static str,
    title: &'static str,
    stretches: &'static [CourseStretch],
) -> AnyView {
    let titled = |id: &str| {
        let lesson = course().find(|lesson| lesson.id == id);
        lesson.map_or_else(String::new, |lesson| lesson.title.to_owned())
    };
    let stretch = |stretch: &CourseStretch| {
        let lessons = stretch.lessons.iter().map(|(id, minutes)| {
            view! { <li>{card_link(session, id, 0, titled(id))}{format!(", {minutes} min")}</li> }.into_any()
        });
        let lessons = lessons.collect::<Vec<_>>();
        view! {
            <dt>{format!("{} minutes", stretch.minutes)}</dt>
            <dd>
                <ul class="bullets">{lessons}</ul>
                <p class="quiet">{stretch.task}</p>
            </dd>
        }
        .into_any()
    };
    let present = click(move || session.lessons().present_lecture(stretches));
    let sheet =
        click(move || session.navigation().go_to(Place::Handout(lecture_lessons(stretches).join(","))));
    let stretches = stretches.iter().map(stretch).collect::<Vec<_>>();
    view! {
        <details data-testid=id>
            <summary>{title}</summary>
            <p class="cluster">
                {button("primary", "present-lecture", "Present its lessons", "The whole screen; after the last card of a lesson the clicker goes on to the next of this plan", present)}
                {button("", "lecture-sheet", "Its class sheet", "To print", sheet)}
            </p>
            <dl class="glossary">{stretches}</dl>
        </details>
    }
    .into_any()
}

/// A link to a card of a lesson, counted from 0.
fn card_link(session: Session, id: &str, card: usize, words: String) -> AnyView {
    let place = Place::Lesson { id: id.to_owned(), card };
    let target = Target::Lesson { id: id.to_owned(), card: card + 1 };
    place_link(session, place, target, words)
}

/// The lines that put a lesson into another page.
pub(super) fn frame(address: &str, hash: &str, title: &str) -> String {
    format!(
        "<iframe src=\"{address}?embed=lesson#{hash}\" title=\"{title}\" width=\"100%\" height=\"640\" style=\"border:0\" loading=\"lazy\"></iframe>"
    )
}

/// What a teacher asks before the first lecture, each with the answer.
const IN_THE_ROOM: [(&str, &str); 5] = [
    (
        "Present",
        "The button in a lesson gives it the whole screen, in letters for the last row. Page down, Space or a clicker goes on: first the answer to a question, then the next card.",
    ),
    (
        "Clicker",
        "Page up goes back, also to the lesson before. B, the dark button, makes the screen dark until any key is pressed. Escape ends it. After the last card one more press opens the next lesson of the plan, or of the course.",
    ),
    (
        "Link",
        "The address of a card is in the address bar: send it, or put the frame of a lesson into your page.",
    ),
    (
        "Offline",
        "A browser that has opened this page once opens it without a network, the lessons and Python with it.",
    ),
    (
        "License",
        "The page, the lessons and their figures may be used, changed and passed on under MIT or Apache-2.0. Answers and progress stay in each reader's browser.",
    ),
];

pub(crate) fn teachers(session: Session) -> AnyView {
    let address = browser::address();
    // The lessons of a common sheet, in the order of the course.
    let chosen = RwSignal::new(BTreeSet::<usize>::new());
    let chosen_ids = move || {
        let ids = chosen.get().into_iter().filter_map(|place| lessons().get(place)).map(|file| file.id);
        ids.collect::<Vec<_>>().join(",")
    };
    let is_none_chosen = flag(move || chosen.with(BTreeSet::is_empty));
    let sheet = click(move || session.navigation().go_to(Place::Handout(untrack(chosen_ids))));
    let all = click(move || {
        chosen.update(|chosen| {
            let is_all = chosen.len() == lessons().len();
            *chosen = if is_all { BTreeSet::new() } else { (0..lessons().len()).collect() };
        });
    });
    let listed = summaries();
    let minutes: u32 = listed.iter().filter_map(|lesson| lesson.minutes).sum();
    let lead = format!(
        "{} of {minutes} minutes for one reader. Everything runs in the reader's browser: no account, nothing is sent anywhere. Present a lesson, link to a card, put a figure or a whole lesson into your course page, or print a class sheet, with the answers on separate pages.",
        counted(listed.len(), "lesson")
    );
    let rows = listed
        .into_iter()
        .enumerate()
        .map(|(number, lesson)| row(session, &address, number, lesson, chosen))
        .collect::<Vec<_>>();
    let room = IN_THE_ROOM.map(|(name, words)| view! { <dt>{name}</dt><dd>{words}</dd> }.into_any());
    view! {
        <main class="page">
            <h1>"For teachers"</h1>
            <p class="lead">{lead}</p>
            {plans(session)}
            <dl class="glossary" data-testid="in-the-room">{room.into_iter().collect::<Vec<_>>()}</dl>
            <p>
                "Every figure has a Share button in the workbench: a link with the text, the settings and the step in it; a frame; SVG, PNG, CSV. A lesson is a text file (Markdown with workload blocks): drop your own on this page to play it, or make one here."
            </p>
            <p class="cluster">
                <button type="button" class="large" data-testid="class-sheet" disabled=is_none_chosen on:click=sheet>
                    {text(move || match chosen.with(BTreeSet::len) {
                        0 => "One sheet for several lessons: choose them below".to_owned(),
                        count => format!("Class sheet of {}", counted(count, "lesson")),
                    })}
                </button>
                {button("large", "choose-all", "Choose all or none", "For a sheet or an answer key of all lessons", all)}
                {button("primary large", "to-make-lesson", "Make a lesson", "", click(move || session.navigation().go_to(Place::MakeLesson)))}
            </p>
            <ol class="lesson-list" data-testid="teachers">{rows}</ol>
        </main>
    }
    .into_any()
}

/// A lesson with what a teacher does with it.
fn row(
    session: Session,
    address: &str,
    number: usize,
    lesson: ListedLesson,
    chosen: RwSignal<BTreeSet<usize>>,
) -> AnyView {
    let ListedLesson { id, title, summary, minutes, cards, .. } = lesson;
    let snippet = frame(address, &Target::Lesson { id: id.to_owned(), card: 1 }.hash(), &title);
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
    let copied = snippet.clone();
    let handout = Place::Handout(id.to_owned());
    let time = minutes.map(|minutes| format!("{minutes} min. ")).unwrap_or_default();
    let cards =
        (0..cards).map(|card| view! { " "{card_link(session, id, card, (card + 1).to_string())} }.into_any());
    let cards = cards.collect::<Vec<_>>();
    view! {
        <li>
            <h2>{card_link(session, id, 0, title)}</h2>
            <p>{summary}</p>
            <p class="quiet">{time}"Links to its cards:"{cards}</p>
            <pre class="code">{snippet}</pre>
            <p class="cluster">
                {button("", "copy-embed", "Copy the frame", "", click(move || browser::copy(&copied)))}
                {button("", "handout", "Class sheet and answers", "To print", click(move || session.navigation().go_to(handout.clone())))}
                {check("choose-lesson", "On a sheet with others", "", is_chosen, choose)}
            </p>
        </li>
    }
    .into_any()
}

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
    view! {
        <main class="page handout" data-paper-part=move || part.get()>
            <p class="no-print cluster">
                {button("primary large", "print", "Print", "The cards, and the answers on a separate page", click(move || print("")))}
                {button("large", "print-cards", "Print without the answers", "For the class", click(move || print("cards")))}
                {button("large", "print-short", "Print questions and exercises alone", "Few pages for each lesson", click(move || print("short")))}
                {button("large", "print-answers", "Print the answers", "For the teacher", click(move || print("answers")))}
            </p>
            <p class="no-print quiet">
                "With all cards, a page ends with its question, and the next page shows what happened: turn the pages together, or hand them out one by one. Questions and exercises alone stand close together, for a class that has seen the lesson: the figure of a question shows the answer to the one before."
            </p>
            <div inner_html=paper.cards></div>
            <div inner_html=paper.answers></div>
        </main>
    }
    .into_any()
}
