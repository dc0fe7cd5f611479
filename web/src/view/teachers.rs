//! The page for teachers, plans of lectures, and handouts.

use std::collections::BTreeSet;

use blockyard_figure::escaped;
use blockyard_lessons::{
    EXERCISE_MINUTES, FORTY_FIVE_MINUTES, NINETY_MINUTES, PlanPart, PlannedLesson, TWO_HOURS, course, lessons,
};
use blockyard_record::counted;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::OpenLesson;
use crate::link::LinkTarget;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::grading::grading;
use crate::view::kit::{button, check, click, flag, select, text};
use crate::view::lessons::{ListedLesson, summaries};
use crate::view::make_lesson::open_file;

/// The plans of lectures: ways through the lessons with a class, each with its minutes.
fn plans(session: Session) -> Vec<AnyView> {
    let minutes = format!(
        "Minutes with a class: at least one for each card, one more for each question, {EXERCISE_MINUTES} for an exercise. A tenth is left for questions. A lesson follows those that it builds on."
    );
    let plans = vec![
        plan(session, "forty-five-minutes", "A lecture of 45 minutes", &FORTY_FIVE_MINUTES),
        plan(session, "ninety-minutes", "A lecture of 90 minutes", &NINETY_MINUTES),
        plan(session, "two-hours", "A course of two hours", &TWO_HOURS),
    ];
    vec![marked(format!("<p class=\"quiet\">{minutes}</p>")), block("plans", "plans", plans)]
}

fn plan(session: Session, id: &'static str, title: &'static str, stretches: &'static [PlanPart]) -> AnyView {
    let stretch = |stretch: &PlanPart| {
        let lessons = stretch.lessons.iter().map(|PlannedLesson { id, minutes, has_exercise }| {
            let exercise = if *has_exercise { " with its exercise" } else { "" };
            format!("<li>{}, {minutes} min{exercise}</li>", card_link(id, 0, &title_of(id)))
        });
        format!(
            "<dt>{} min</dt><dd><ul class=\"bullets\">{}</ul><p class=\"quiet\">{}</p></dd>",
            stretch.minutes,
            lessons.collect::<String>(),
            escaped(stretch.task)
        )
    };
    let ids = stretches.iter().flat_map(|stretch| stretch.lessons).map(|lesson| lesson.id.to_owned());
    let ids: Vec<String> = ids.collect();
    let (planned, chosen) = (ids.clone(), Signal::stored(ids.clone()));
    let present = click(move || session.lessons().present_plan(planned.clone()));
    let sheet = click(move || session.navigation().go_to(Place::Handout(ids.join(","))));
    let stretches: String = stretches.iter().map(stretch).collect();
    let mut buttons = vec![
        button(
            "primary",
            "present-lecture",
            "Present its lessons",
            "The whole screen; after the last card of a lesson the clicker goes on to the next of this plan",
            present,
        ),
        button("", "lecture-sheet", "Its sheets and keys", "To print", sheet),
    ];
    buttons.extend(index_buttons(session, chosen));
    block("plan", id, vec![marked(format!("<h3>{title}</h3><dl>{stretches}</dl>")), cluster(buttons)])
}

fn title_of(id: &str) -> String {
    course().find(|lesson| lesson.id == id).map_or_else(String::new, |lesson| lesson.title.to_owned())
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

/// The buttons that copy a link to these lessons, and an index of them for a page of the teacher's.
fn index_buttons(session: Session, ids: Signal<Vec<String>>) -> Vec<AnyView> {
    let copied = move |text: String, what: &str| {
        browser::copy(&text);
        session.show_note(format!("{what} copied."));
    };
    let link = click(move || {
        let hash = LinkTarget::Place(Place::Plan(ids.get_untracked().join(","))).hash();
        copied(format!("{}#{hash}", browser::address()), "The link for students is");
    });
    let of_form = move |is_html: bool| {
        click(move || copied(index(&browser::address(), &ids.get_untracked(), is_html), "The index is"))
    };
    vec![
        button("", "copy-plan", "Copy the link for students", "One address that lists these lessons", link),
        button(
            "",
            "copy-index-html",
            "Copy an index (HTML)",
            "A list of links for your course page",
            of_form(true),
        ),
        button(
            "",
            "copy-index-markdown",
            "Copy an index (Markdown)",
            "A list of links for your course page",
            of_form(false),
        ),
    ]
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

/// The part that says how a class gets an exercise and hands it in, as HTML.
const HAND_IN: &str = "<ol class=\"hints\" data-testid=\"give-exercise\">
<li>Send the link to the exercise: the last of the links to a lesson's cards, such as <code>#lesson=fragmentation&amp;card=12</code>.</li>
<li>After Run, a student presses <b>Save it as a file</b> or <b>Copy my solution as a link</b> and hands that in, by the way that your course has for it. A \
link opens the exercise with the student's lines.</li>
<li>Grade all files below. The command does the same: <code>blockyard lesson fragmentation --check FILES --csv grades.csv</code>; its exit status is 0 if \
all pass.</li></ol>";

/// A text with marks. A view of each element would make the download larger.
pub(super) fn marked(html: String) -> AnyView {
    view! { <div inner_html=html></div> }.into_any()
}

/// Buttons beside each other.
pub(super) fn cluster(buttons: Vec<AnyView>) -> AnyView {
    view! { <div class="cluster">{buttons}</div> }.into_any()
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

/// Questions that a teacher asks before the first lecture, each with the answer.
const IN_THE_ROOM: [(&str, &str); 4] = [
    (
        "Present",
        "The button in a lesson gives it the whole screen, in letters for the last row. Page down, Space or a clicker goes on: first the answer to a question, then the next card; after the last card the next lesson of the plan, or of the course.",
    ),
    (
        "Clicker",
        "Page up goes back, also to the lesson before. B, the dark button, makes the screen dark until any key is pressed. Escape ends it. After the last lesson a slide stays.",
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

/// The parts of the page, in the order in which a teacher needs them: the name of the button that leads to
/// the part, the name of the part, its heading.
const PARTS_OF_PAGE: [(&str, &str, &str); 5] = [
    ("to-teach", "teach", "Teach in class"),
    ("to-hand-out", "hand-out", "Hand out"),
    ("to-grade", "grade", "Grade"),
    ("to-own-lesson", "own-lesson", "Make a lesson"),
    ("to-frames", "frames", "Put into your page"),
];

/// A part of the page with its heading, to which the buttons at the top of the page lead.
fn part(number: usize, content: Vec<AnyView>) -> AnyView {
    let (_, id, title) = PARTS_OF_PAGE.get(number).copied().unwrap_or_default();
    let mut all = vec![marked(format!("<h2 tabindex=\"-1\">{title}</h2>"))];
    all.extend(content);
    block("teaching", id, all)
}

/// Buttons that lead to the parts. The page's addresses name places and lessons, so no address names a part.
fn part_buttons() -> AnyView {
    let buttons = PARTS_OF_PAGE.map(|(id, part, title)| {
        let go = click(move || {
            let heading = format!("[data-testid={part}] h2");
            browser::focus_first(&heading);
            browser::scroll_to(&heading);
        });
        button("large", id, title, "", go)
    });
    cluster(buttons.into_iter().collect())
}

pub(crate) fn teachers(session: Session) -> AnyView {
    let listed = summaries();
    let minutes: u32 = listed.iter().filter_map(|lesson| lesson.minutes).sum();
    let head = format!(
        "<h1>For teachers</h1><p class=\"lead\">{} of {minutes} minutes for one reader. Everything runs in the reader's browser: no account, nothing is sent anywhere.</p>",
        counted(listed.len(), "lesson")
    );
    let room = IN_THE_ROOM.map(|(name, words)| format!("<dt>{name}</dt><dd>{words}</dd>")).concat();
    let mut teach = vec![offline_line()];
    teach.extend(plans(session));
    teach.push(marked(format!("<dl class=\"glossary\" data-testid=\"in-the-room\">{room}</dl>")));
    let mut grade = vec![marked(HAND_IN.to_owned())];
    grade.extend(grading(session));
    let to_editor = click(move || session.navigation().go_to(Place::MakeLesson));
    let make = vec![
        marked(MAKE.to_owned()),
        cluster(vec![
            button("primary large", "to-make-lesson", "Make a lesson", "", to_editor),
            open_file(session),
        ]),
    ];
    let content = vec![
        marked(head),
        part_buttons(),
        part(0, teach),
        part(1, hand_out(session, listed)),
        part(2, grade),
        part(3, make),
        part(4, embed(session)),
    ];
    view! { <main class="page teachers">{content}</main> }.into_any()
}

const MAKE: &str = "<p>A lesson is a text file (Markdown with workload blocks). The editor checks each number while you type; \"Class sheet and answers\" prints the lesson, \
                    and a link has all of it.</p>";
const EMBED: &str = "<p>A frame shows a whole lesson in a page of your own, such as one of a learning platform. Every figure of the workbench has a Share button: a \
                     link with the text, the settings and the step in it, a frame, and SVG, PNG, CSV.</p>";
const HAND_OUT: &str = "<p>Each lesson has a sheet of questions and its exercise on one page or two, the cards as a script, an answer key, and the answers with \
                        their reasons. Choose several lessons for common sheets and a common link.</p>";

/// The part with sheets and links of lessons: of a single lesson, or of several that are chosen.
fn hand_out(session: Session, listed: Vec<ListedLesson>) -> Vec<AnyView> {
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
    let rows = listed
        .into_iter()
        .enumerate()
        .map(|(number, lesson)| row(session, number, lesson, chosen))
        .collect::<Vec<_>>();
    let sheet = view! {
        <button type="button" class="primary large" data-testid="class-sheet" disabled=is_none_chosen on:click=sheet>
            {text(move || match chosen.with(BTreeSet::len) {
                0 => "Sheets and keys of several lessons: choose them below".to_owned(),
                count => format!("Sheets and keys of {}", counted(count, "lesson")),
            })}
        </button>
    };
    let common = view! { <span hidden=is_none_chosen>{index_buttons(session, chosen_ids)}</span> };
    let buttons = vec![
        sheet.into_any(),
        button("large", "choose-all", "Choose all or none", "For sheets or answer keys of all lessons", all),
        common.into_any(),
    ];
    let list = view! { <ol class="lesson-list is-dense" data-testid="teachers">{rows}</ol> };
    vec![marked(HAND_OUT.to_owned()), cluster(buttons), list.into_any()]
}

/// A frame of a lesson, for a page of the teacher's.
fn embed(session: Session) -> Vec<AnyView> {
    let lesson = RwSignal::new(course().next().map_or_else(String::new, |lesson| lesson.id.to_owned()));
    let options = course().map(|lesson| (lesson.id.to_owned(), lesson.title.to_owned())).collect();
    let copy = click(move || {
        let id = lesson.get_untracked();
        let hash = LinkTarget::Lesson { id: id.clone(), card: 1 }.hash();
        browser::copy(&frame(&browser::address(), &hash, &title_of(&id)));
        session.show_note(
            "The frame is copied. Paste it where your page takes HTML; 640 x 400 pixels are enough.",
        );
    });
    let chosen = text(move || lesson.get());
    vec![
        marked(EMBED.to_owned()),
        cluster(vec![
            select("embed-lesson", "Lesson of the frame", Signal::stored(options), chosen, move |id| {
                lesson.set(id);
            }),
            button("primary large", "copy-embed", "Copy the frame", "HTML for your page", copy),
        ]),
    ]
}

/// A lesson with the links to the papers that a teacher hands out.
fn row(session: Session, number: usize, lesson: ListedLesson, chosen: RwSignal<BTreeSet<usize>>) -> AnyView {
    let ListedLesson { id, title, minutes, cards, .. } = lesson;
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
    let handout = Place::Handout(id.to_owned());
    let time = minutes.map(|minutes| format!("{minutes} min. ")).unwrap_or_default();
    let needs = course().find(|lesson| lesson.id == id).map_or(&[][..], |lesson| lesson.needs);
    let needs: Vec<String> = needs.iter().map(|id| title_of(id)).collect();
    let needs = if needs.is_empty() { String::new() } else { format!("Builds on: {}. ", needs.join(", ")) };
    let links: Vec<String> = (0..cards).map(|card| card_link(id, card, &(card + 1).to_string())).collect();
    let links = links.join(" ");
    let words = format!(
        "<h3>{}</h3><p class=\"quiet\">{time}{}Links to its cards: {links}</p>",
        card_link(id, 0, &title),
        escaped(&needs)
    );
    let buttons = vec![
        button(
            "",
            "handout",
            "Sheets and key",
            "To print",
            click(move || session.navigation().go_to(handout.clone())),
        ),
        check("choose-lesson", "With others", "For common sheets and a common link", is_chosen, choose),
    ];
    view! { <li>{marked(words)}{cluster(buttons)}</li> }.into_any()
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
