//! The page for teachers, plans of lectures, and handouts.

use std::collections::BTreeSet;

use blockyard_lessons::{
    CourseStretch, EXERCISE_MINUTES, FORTY_FIVE_MINUTES, NINETY_MINUTES, PlannedLesson, TWO_HOURS, course,
    lessons,
};
use blockyard_record::counted;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::OpenLesson;
use crate::link::Target;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, check, click, flag, text};
use crate::view::lessons::{ListedLesson, place_link, summaries};
use crate::view::make_lesson::open_file;

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
    let stretch = |stretch: &CourseStretch| {
        let lessons = stretch.lessons.iter().map(|PlannedLesson { id, minutes, has_exercise }| {
            let exercise = if *has_exercise { " with its exercise" } else { "" };
            let title = title_of(id);
            view! { <li>{card_link(session, id, 0, title)}{format!(", {minutes} min{exercise}")}</li> }
                .into_any()
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
    let ids = stretches.iter().flat_map(|stretch| stretch.lessons).map(|lesson| lesson.id.to_owned());
    let ids: Vec<String> = ids.collect();
    let (planned, chosen) = (ids.clone(), Signal::stored(ids.clone()));
    let present = click(move || session.lessons().present_plan(planned.clone()));
    let sheet = click(move || session.navigation().go_to(Place::Handout(ids.join(","))));
    let minutes = format!(
        "These are minutes with a class: at least one for each card, one more for each question, {EXERCISE_MINUTES} for an exercise. The lists of lessons have the minutes of one reader alone."
    );
    let stretches = stretches.iter().map(stretch).collect::<Vec<_>>();
    view! {
        <details data-testid=id>
            <summary>{title}</summary>
            <p class="cluster">
                {button("primary", "present-lecture", "Present its lessons", "The whole screen; after the last card of a lesson the clicker goes on to the next of this plan", present)}
                {button("", "lecture-sheet", "Its class sheet", "To print", sheet)}
                {index_buttons(session, chosen)}
            </p>
            <dl class="glossary">{stretches}</dl>
            <p class="quiet">{minutes}</p>
        </details>
    }
    .into_any()
}

fn title_of(id: &str) -> String {
    course().find(|lesson| lesson.id == id).map_or_else(String::new, |lesson| lesson.title.to_owned())
}

/// Lessons as a list of links for a course page.
fn index(address: &str, ids: &[String], is_html: bool) -> String {
    let line = |id: &String| {
        let link = format!("{address}#{}", Target::Lesson { id: id.clone(), card: 1 }.hash());
        let title = title_of(id);
        if is_html {
            format!("<li><a href=\"{}\">{title}</a></li>\n", link.replace('&', "&amp;"))
        } else {
            format!("1. [{title}]({link})\n")
        }
    };
    let lines: String = ids.iter().map(line).collect();
    if is_html { format!("<ol>\n{lines}</ol>\n") } else { lines }
}

/// The buttons that copy a link to these lessons, and an index of them for a page of the teacher's.
fn index_buttons(session: Session, ids: Signal<Vec<String>>) -> AnyView {
    let copied = move |text: String, what: &str| {
        browser::copy(&text);
        session.messages().show_note(format!("{what} copied."));
    };
    let link = click(move || {
        let hash = Target::Plan(ids.get_untracked().join(",")).hash();
        copied(format!("{}#{hash}", browser::address()), "The link for students is");
    });
    let of_form = move |is_html: bool| {
        click(move || copied(index(&browser::address(), &ids.get_untracked(), is_html), "The index is"))
    };
    view! {
        {button("", "copy-plan", "Copy the link for students", "One address that lists these lessons", link)}
        {button("", "copy-index-html", "Copy an index (HTML)", "A list of links for your course page", of_form(true))}
        {button("", "copy-index-markdown", "Copy an index (Markdown)", "A list of links for your course page", of_form(false))}
    }
    .into_any()
}

/// Whether the browser has stored the page; `web/offline.js` says so at the root of the page.
fn offline_line() -> AnyView {
    view! {
        <p class="offline" role="status" data-testid="offline">
            <b class="is-ready done">"✓ Ready offline: this browser has stored the page, the lessons and Python."</b>
            <b class="is-storing">"Storing for offline use …"</b>
            <span class="is-none">"This browser does not store the page."</span>
        </p>
    }
    .into_any()
}

/// How a class gets an exercise, and how a teacher sees that it is solved.
fn hand_in() -> AnyView {
    view! {
        <section data-testid="give-exercise">
            <h2>"Give an exercise, see that it is solved"</h2>
            <ol class="hints">
                <li>
                    "Send the link to the exercise: the last of the links to a lesson's cards, such as "<code>"#lesson=fragmentation&card=6"</code>"."
                </li>
                <li>
                    "After Run, a student presses "<b>"Copy my solution as a link"</b>" or "<b>"Save it as a file"</b>" and hands that in, by the way that your course has for it. The lines are in the link: nothing is sent to us."
                </li>
                <li>
                    "A link opens the exercise with the student's lines: Run checks the goals. For a file, "<code>"blockyard lesson fragmentation --check FILE"</code>" says which goals are met; its exit status is 0 if all are, so a script can go through the files of a class."
                </li>
                <li>
                    "The command comes from Blockyard's source with Rust: "<code>"cargo build --release -p blockyard-cli"</code>" makes "<code>"target/release/blockyard"</code>"."
                </li>
            </ol>
        </section>
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
        "Page up goes back, also to the lesson before. B, the dark button, makes the screen dark until any key is pressed. Escape ends it. After the last card one more press opens the next lesson of the plan, or of the course; after the last lesson a slide stays.",
    ),
    (
        "Link",
        "The address of a card is in the address bar: send it, or put the frame of a lesson into your page.",
    ),
    (
        "Offline",
        "A browser that has stored this page, which takes some seconds, opens it without a network, the lessons and Python with it. The line above says how far yours is.",
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
    let chosen_ids = Signal::derive(move || {
        let ids = chosen.get().into_iter().filter_map(|place| lessons().get(place));
        ids.map(|file| file.id.to_owned()).collect::<Vec<_>>()
    });
    let is_none_chosen = flag(move || chosen.with(BTreeSet::is_empty));
    let sheet =
        click(move || session.navigation().go_to(Place::Handout(chosen_ids.get_untracked().join(","))));
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
            {offline_line()}
            {hand_in()}
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
                <span hidden=is_none_chosen>{index_buttons(session, chosen_ids)}</span>
                {open_file(session)}
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
    let count = |html: &str| html.matches("<section class=\"sheet\">").count();
    let (all, short) = (counted(count(&paper.cards), "page"), counted(count(&paper.asked), "page"));
    view! {
        <main class="page handout" data-paper-part=move || part.get()>
            <p class="no-print cluster">
                {button("primary large", "print-short", "Print questions and exercises alone", "For the class: two questions a page", click(move || print("short")))}
                {button("large", "print-cards", "Print all cards without the answers", "For the class", click(move || print("cards")))}
                {button("large", "print-answers", "Print the answers", "For the teacher", click(move || print("answers")))}
                {button("large", "print", "Print cards and answers", "The cards, and the answers on separate pages", click(move || print("")))}
            </p>
            <p class="no-print quiet" data-testid="paper-words">
                {format!("Questions and exercises alone are {short} for each student, two questions a page. A number that answers an earlier question is left out, but questions of a lesson follow from each other: a later one can give a hint about an earlier one. All cards are {all}: a page ends with its question, and the next page shows what happened. Turn the pages together, or hand them out one by one.")}
            </p>
            <div class="sheets" inner_html=paper.cards></div>
            <div class="asked" aria-hidden="true" inner_html=paper.asked></div>
            <div class="key" inner_html=paper.answers></div>
        </main>
    }
    .into_any()
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
            "1. [Allocated and reserved](https://a.example/#lesson=reserved&card=1)\n\
             1. [What a tensor costs](https://a.example/#lesson=tensor&card=1)\n"
        );
        let html = index("https://a.example/", &ids, true);
        assert!(
            html.starts_with("<ol>\n<li><a href=\"https://a.example/#lesson=reserved&amp;card=1\">"),
            "{html}"
        );
    }
}
