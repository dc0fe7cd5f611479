//! The pages of "Learn": the list of lessons and the glossary.

use blockyard_lessons::{
    ExerciseUse, GlossaryEntry, Lesson, LessonFile, PARTS, Plan, PlannedLesson, PlayedLesson, card_figure,
    glossary, lessons, plain,
};
use leptos::prelude::*;

use crate::browser;
use crate::lessons::CardProgress;
use crate::link::{LinkTarget, unpacked};
use crate::navigation::{CardPlace, Place, TeachersPage};
use crate::session::Session;
use crate::view::kit::{button, click, flag, on, text};
use crate::view::prose;
use crate::view::teach::teachers::card_link;

/// The facts about a lesson that lists show.
pub(crate) struct ListedLesson {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) summary: String,
    pub(crate) minutes: Option<u32>,
    pub(crate) cards: usize,
    pub(crate) questions: usize,
}

/// All lessons of the page, in their order. A lesson that cannot be parsed is left out; a test proves that
/// all lessons can be parsed.
pub(crate) fn summaries() -> Vec<ListedLesson> {
    let read = |file: &'static blockyard_lessons::LessonFile| {
        let lesson = Lesson::parse(file.text).ok()?;
        Some(ListedLesson {
            id: file.id,
            title: lesson.title().to_owned(),
            summary: lesson.summary().to_owned(),
            minutes: lesson.minutes(),
            cards: lesson.card_count(),
            questions: lesson.question_count(),
        })
    };
    lessons().iter().filter_map(read).collect()
}

/// A link to a part of the page. A click goes to the part without loading the page again.
pub(crate) fn place_link(session: Session, place: Place, words: String) -> AnyView {
    let href = format!("#{}", LinkTarget::of(place.clone()).hash());
    let go = on(move |event: leptos::ev::MouseEvent| {
        // With one of these keys, the browser opens the link in another tab or window.
        if !(event.ctrl_key() || event.meta_key() || event.shift_key()) {
            event.prevent_default();
            session.navigation().go_to(place.clone());
        }
    });
    view! { <a href=href on:click=go>{words}</a> }.into_any()
}

/// The list of all lessons, or of the lessons of a plan.
pub(crate) fn listed(session: Session, ids: &str) -> AnyView {
    if ids.is_empty() { list(session) } else { planned(session, ids) }
}

/// The lessons of a plan, which follow each other from now on.
fn planned(session: Session, ids: &str) -> AnyView {
    let listed = summaries();
    let plan = Plan::from_text(ids);
    let homework = plan.homework_sentence();
    session.lessons().plan.set(plan.clone());
    let mut rows: Vec<Option<AnyView>> = lesson_rows(session).into_iter().map(Some).collect();
    let rows = plan.lessons.iter().map(|planned| {
        let place = listed.iter().position(|lesson| lesson.id == planned.id && planned.own.is_none());
        let row = place.and_then(|place| rows.get_mut(place)?.take());
        let (row, uses) = (row.unwrap_or_else(|| own_row(planned)), use_words(planned, &listed));
        view! { <li>{row}<p inner_html=uses></p></li> }.into_any()
    });
    let rows = rows.collect::<Vec<_>>();
    view! {
        <main class="page">
            <h1>"Lessons"</h1>
            <p class="lead">"Chosen for you, in this order. Predict what happens, then the real allocator answers."</p>
            <p data-testid="homework">{homework}</p>
            <ol class="lesson-list" data-testid="plan">{rows}</ol>
            <p>{place_link(session, Place::Lessons, "All lessons".to_owned())}</p>
        </main>
    }
    .into_any()
}

/// The content of the row for a lesson of the teacher's own.
fn own_row(planned: &PlannedLesson) -> AnyView {
    let text = planned.own.as_ref().and_then(|own| unpacked(&own.source).ok());
    let lesson = text.and_then(|text| Lesson::parse(&text).ok());
    let (summary, minutes) =
        lesson.map(|lesson| (lesson.summary().to_owned(), lesson.minutes())).unwrap_or_default();
    view! {
        <h3 inner_html=card_link(planned, 0, planned.title())></h3>
        <p>{summary}</p>
        <p class="quiet">{minutes_text(minutes)}</p>
    }
    .into_any()
}

fn minutes_text(minutes: Option<u32>) -> String {
    minutes.map(|minutes| format!("{minutes} min")).unwrap_or_default()
}

/// The card of a lesson's exercise, from 0: the last one. A teacher's own lesson shows its last card for a number
/// that it does not have.
pub(crate) fn exercise_card(id: &str, listed: &[ListedLesson]) -> usize {
    listed.iter().find(|lesson| lesson.id == id).map_or(MAX_CARDS, |lesson| lesson.cards.saturating_sub(1))
}

/// No lesson has as many cards.
const MAX_CARDS: usize = 998;

/// What a class does with a lesson of a plan and where its exercise is, as HTML.
pub(crate) fn use_words(planned: &PlannedLesson, listed: &[ListedLesson]) -> String {
    let exercise = card_link(planned, exercise_card(&planned.id, listed), "exercise");
    match (planned.is_at_home, planned.exercise) {
        (false, ExerciseUse::Homework) => format!("In class. <b>Homework</b>: the {exercise}"),
        (false, ExerciseUse::InClass) => format!("In class, with the {exercise}"),
        (false, ExerciseUse::LeftOut) => "In class".to_owned(),
        (true, ExerciseUse::LeftOut) => "<b>Homework</b>: the lesson without its exercise".to_owned(),
        (true, _) => format!("<b>Homework</b>: the lesson and its {exercise}"),
    }
}

/// The content of a row for each lesson, with the reader's progress in it.
fn lesson_rows(session: Session) -> Vec<AnyView> {
    let rows =
        summaries().into_iter().map(|ListedLesson { id, title, summary, minutes, cards, questions }| {
            let done = text(move || {
                let (seen, passed) = session.lessons().progress.with(|progress| {
                    let of = |done: &&CardProgress| done.lesson == id;
                    let seen = progress.iter().filter(of).filter(|done| !done.is_passed).count();
                    (seen, progress.iter().filter(of).any(|done| done.is_passed))
                });
                let read = match seen {
                    0 => return String::new(),
                    seen if seen < cards => format!("{seen} of {cards} cards read"),
                    _ => "✓ read".to_owned(),
                };
                let answered = match session.lessons().answer_count(id) {
                    0 => String::new(),
                    answered => format!(", {answered} of {questions} questions answered"),
                };
                let passed = if passed { ", ✓ exercise solved" } else { "" };
                format!("{read}{answered}{passed}")
            });
            let place = Place::Lesson { id: id.to_owned(), card: CardPlace::FIRST };
            view! {
                <h3>{place_link(session, place, title)}</h3>
                <p>{summary}</p>
                <p class="quiet">{minutes_text(minutes)}" "<b class="done">{done}</b></p>
            }
            .into_any()
        });
    rows.collect()
}

fn list(session: Session) -> AnyView {
    let mut rows = lesson_rows(session).into_iter();
    let parts = PARTS
        .iter()
        .map(|part| {
            let rows = rows.by_ref().take(part.lessons.len());
            let rows = rows.map(|row| view! { <li>{row}</li> }.into_any()).collect::<Vec<_>>();
            view! {
                <section>
                    <h2>{part.title}</h2>
                    <ol class="lesson-list">{rows}</ol>
                </section>
            }
            .into_any()
        })
        .collect::<Vec<_>>();
    view! {
        <main class="page">
            <h1>"Lessons"</h1>
            <p class="lead">
                "Each is a few cards beside a figure. Predict what happens, then the real allocator answers. What you have done is remembered on this machine, and nowhere else."
            </p>
            <p class="cluster">
                {crate::view::home::continue_button(session, "primary large").or_else(|| start_button(session))}
                {button("large", "to-practice", "Practice", "", click(move || session.navigation().go_to(Place::Practice)))}
                {button("large", "to-glossary", "The words", "", click(move || session.navigation().go_to(Place::Glossary(String::new()))))}
            </p>
            <div class="course" data-testid="lessons">{parts}</div>
            <h2>"With a class"</h2>
            <p>"Plans of 45 minutes, 90 minutes and two hours, sheets to print, answer keys, and grades for the files of a whole class."</p>
            <p class="cluster">
                {button("large", "to-teachers", "For teachers", "", click(move || session.navigation().go_to(Place::Teachers(TeachersPage::Plan))))}
                {button("large", "to-make-lesson", "Make a lesson", "", click(move || session.navigation().go_to(Place::MakeLesson)))}
            </p>
        </main>
    }
    .into_any()
}

/// A button for a reader who has not begun.
fn start_button(session: Session) -> Option<AnyView> {
    let first = blockyard_lessons::course().next()?;
    let go = click(move || {
        session.navigation().go_to(Place::Lesson { id: first.id.to_owned(), card: CardPlace::FIRST });
    });
    Some(button("primary large", "start", "Start with the first lesson", "", go))
}

pub(crate) fn words(session: Session, at: String) -> AnyView {
    let entries = match glossary() {
        Ok(glossary) => glossary.entries,
        Err(error) => return view! { <main class="page"><p>{error.to_string()}</p></main> }.into_any(),
    };
    let sought = RwSignal::new(String::new());
    let texts: Vec<String> = entries.iter().map(text_of).collect();
    let count = texts.len();
    let found = Memo::new(move |_| {
        let wanted = sought.get().trim().to_lowercase();
        let is_found = |text: &String| wanted.split_whitespace().all(|part| text.contains(part));
        texts.iter().map(is_found).collect::<Vec<bool>>()
    });
    let entries = entries.iter().enumerate().map(|(place, entry)| {
        let is_hidden = flag(move || !found.with(|found| found.get(place).copied().unwrap_or(true)));
        word(session, entry, entry.id == at, is_hidden)
    });
    let entries = entries.collect::<Vec<_>>();
    if !at.is_empty() {
        let _ = browser::after_millis(30, move || browser::scroll_to(&format!("[data-entry='{at}']")));
    }
    // The figure of the device shows everything that the first words name, in the colors of the page.
    let lesson = StoredValue::new_local(played("nvidia-smi"));
    let figure = text(move || {
        let theme = session.appearance().shown_theme();
        lesson.with_value(|lesson| card_figure(lesson.as_ref()?, FIGURE_CARD, theme).ok()).unwrap_or_default()
    });
    view! {
        <main class="page">
            <h1>"The words"</h1>
            <p class="lead">"What each means, what PyTorch calls it, and what other texts say."</p>
            {word_filter(sought, text(move || matches(found.with(|found| found.iter().filter(|is| **is).count()), count)))}
            <div class="drawn" inner_html=figure hidden=flag(move || !sought.with(|sought| sought.trim().is_empty()))></div>
            <dl class="glossary" data-testid="glossary">{entries}</dl>
        </main>
    }
    .into_any()
}

/// The field that filters the words by the typed text, and how many words are left.
fn word_filter(sought: RwSignal<String>, count: Signal<String>) -> AnyView {
    let typed = on(move |event: leptos::ev::Event| sought.set(event_target_value(&event)));
    view! {
        <p class="cluster">
            <label for="word-filter">"Find a word"</label>
            <input
                type="search" id="word-filter" class="field" data-testid="word-filter" autocomplete="off"
                placeholder="cached, memory_reserved, split …" prop:value=text(move || sought.get()) on:input=typed
            />
            <span class="quiet" role="status" data-testid="word-count">{count}</span>
        </p>
    }
    .into_any()
}

fn matches(found: usize, count: usize) -> String {
    match found {
        0 => format!("none of {count} words has this"),
        found if found == count => format!("{count} words"),
        found => format!("{found} of {count} words"),
    }
}

/// The whole text of an entry of the glossary, in small letters.
fn text_of(entry: &GlossaryEntry) -> String {
    let words = [&entry.term, &entry.api.join(" "), &plain(&entry.text), &plain(&entry.other_words)];
    words.map(|text| text.to_lowercase()).join(" ")
}

/// The card of the lesson about nvidia-smi, from 0, whose figure is above the words: the CUDA context, a
/// segment, allocated and cached bytes.
const FIGURE_CARD: usize = 3;

/// A lesson of the page with its runs.
fn played(id: &str) -> Option<PlayedLesson> {
    let file = lessons().iter().find(|file| file.id == id)?;
    Lesson::parse(file.text).ok()?.play().ok()
}

/// The first card, from 0, that links to an entry of the glossary, with its lesson.
fn taught_in(entry: &str) -> Option<(&'static LessonFile, usize)> {
    let link = format!("glossary.md#{entry})");
    lessons().iter().find_map(|file| {
        let before = file.text.get(..file.text.find(&link)?)?;
        Some((file, before.matches("\n## ").count().saturating_sub(1)))
    })
}

fn word(session: Session, entry: &GlossaryEntry, is_sought: bool, is_hidden: Signal<bool>) -> AnyView {
    let api =
        entry.api.iter().map(|name| view! { <code>{name.clone()}</code> }.into_any()).collect::<Vec<_>>();
    let has_other = !entry.other_words.is_empty();
    let taught = taught_in(&entry.id).map(|(file, card)| {
        let place = Place::Lesson { id: file.id.to_owned(), card: CardPlace::At(card) };
        let title =
            blockyard_lessons::course().find(|lesson| lesson.id == file.id).map_or("", |lesson| lesson.title);
        view! { <p class="quiet">"In a lesson: "{place_link(session, place, title.to_owned())}</p> }
            .into_any()
    });
    view! {
        <div class:is-sought=is_sought data-entry=entry.id.clone() hidden=is_hidden>
            <dt>{entry.term.clone()}</dt>
            <dd>
                <p class="api">{api}</p>
                <p>{prose::inlines(session, &entry.text)}</p>
                <p class="quiet" hidden=!has_other>"Also: "{prose::inlines(session, &entry.other_words)}</p>
                {taught}
            </dd>
        </div>
    }
    .into_any()
}
