//! The pages behind "Learn": the list of lessons, the glossary, and all questions.

use blockyard_lessons::{Answers, Entry, Lesson, PARTS, QuizItem, glossary, lessons, plain, quiz};
use leptos::prelude::*;

use crate::browser;
use crate::lessons::{CardDone, GivenAnswer};
use crate::link::Target;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, click, flag, on, text};
use crate::view::lesson::{choice_mark, verdict};
use crate::view::prose;
use crate::view::teachers::plans;

/// The facts about a lesson that lists show.
pub(super) struct ListedLesson {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) minutes: Option<u32>,
    pub(super) cards: usize,
}

/// All lessons of the page, in their order. A lesson that cannot be parsed is left out; a test proves that there is none.
pub(super) fn summaries() -> Vec<ListedLesson> {
    let read = |file: &'static blockyard_lessons::LessonFile| {
        let lesson = Lesson::parse(file.text).ok()?;
        Some(ListedLesson {
            id: file.id,
            title: lesson.title().to_owned(),
            summary: lesson.summary().to_owned(),
            minutes: lesson.minutes(),
            cards: lesson.card_count(),
        })
    };
    lessons().iter().filter_map(read).collect()
}

/// A link to a part of the page. A click goes there without loading the page anew.
pub(crate) fn place_link(session: Session, place: Place, target: Target, words: String) -> AnyView {
    let href = format!("#{}", target.hash());
    let go = on(move |event: leptos::ev::MouseEvent| {
        // With one of these keys, the browser opens the link in another tab or window.
        if !(event.ctrl_key() || event.meta_key() || event.shift_key()) {
            event.prevent_default();
            session.navigation().go_to(place.clone());
        }
    });
    view! { <a href=href on:click=go>{words}</a> }.into_any()
}

pub(crate) fn list(session: Session) -> AnyView {
    let mut rows = summaries().into_iter().map(|ListedLesson { id, title, summary, minutes, cards }| {
        let done = text(move || {
            let (seen, passed) = session.lessons().progress.with(|progress| {
                let of = |done: &&CardDone| done.lesson == id;
                let seen = progress.iter().filter(of).filter(|done| !done.is_passed).count();
                (seen, progress.iter().filter(of).any(|done| done.is_passed))
            });
            match (seen, passed) {
                (0, _) => String::new(),
                (seen, false) if seen < cards => format!("{seen} of {cards} cards read"),
                (_, false) => "✓ read".to_owned(),
                (_, true) => "✓ exercise passed".to_owned(),
            }
        });
        let time = minutes.map(|minutes| format!("{minutes} min")).unwrap_or_default();
        let place = Place::Lesson { id: id.to_owned(), card: 0 };
        let target = Target::Lesson { id: id.to_owned(), card: 1 };
        view! {
            <li>
                <h3>{place_link(session, place, target, title)}</h3>
                <p>{summary}</p>
                <p class="quiet">{time}" "<b class="done">{done}</b></p>
            </li>
        }
        .into_any()
    });
    let parts = PARTS
        .iter()
        .map(|part| {
            let rows = rows.by_ref().take(part.lessons.len()).collect::<Vec<_>>();
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
                {crate::view::home::continue_button(session)}
                {button("large", "to-quiz", "All questions in a row", "", click(move || session.navigation().go_to(Place::Quiz)))}
                {button("large", "to-glossary", "The words", "", click(move || session.navigation().go_to(Place::Glossary(String::new()))))}
                {button("large", "to-teachers", "For teachers", "", click(move || session.navigation().go_to(Place::Teachers)))}
                {button("large", "to-make-lesson", "Make a lesson", "", click(move || session.navigation().go_to(Place::MakeLesson)))}
            </p>
            {plans(session)}
            <div class="course" data-testid="lessons">{parts}</div>
        </main>
    }
    .into_any()
}

pub(crate) fn words(session: Session, at: String) -> AnyView {
    let entries = match glossary() {
        Ok(glossary) => glossary.entries,
        Err(error) => return view! { <main class="page"><p>{error.to_string()}</p></main> }.into_any(),
    };
    let entries = entries.iter().map(|entry| word(session, entry, entry.id == at)).collect::<Vec<_>>();
    if !at.is_empty() {
        let _ = browser::after_millis(30, move || browser::scroll_to(&format!("[data-entry='{at}']")));
    }
    view! {
        <main class="page">
            <h1>"The words"</h1>
            <p class="lead">"What each means, what PyTorch calls it, and what other texts say."</p>
            <dl class="glossary" data-testid="glossary">{entries}</dl>
        </main>
    }
    .into_any()
}

fn word(session: Session, entry: &Entry, is_sought: bool) -> AnyView {
    let api =
        entry.api.iter().map(|name| view! { <code>{name.clone()}</code> }.into_any()).collect::<Vec<_>>();
    let has_other = !entry.other_words.is_empty();
    view! {
        <div class:is-sought=is_sought data-entry=entry.id.clone()>
            <dt>{entry.term.clone()}</dt>
            <dd>
                <p class="api">{api}</p>
                <p>{prose::inlines(session, &entry.text)}</p>
                <p class="quiet" hidden=!has_other>"Also: "{prose::inlines(session, &entry.other_words)}</p>
            </dd>
        </div>
    }
    .into_any()
}

pub(crate) fn all_questions(session: Session) -> AnyView {
    let items = quiz().unwrap_or_default();
    let given =
        items.iter().filter_map(|item| session.lessons().answer_to(&item.lesson, item.card, &item.question));
    let begun = given
        .fold((0_usize, 0_usize), |(right, count), given| (right + usize::from(given.is_right), count + 1));
    let score = RwSignal::new(begun);
    let count = items.len();
    let entries = items.into_iter().map(|item| quiz_question(session, item, score)).collect::<Vec<_>>();
    let result = text(move || {
        let (right, answered) = score.get();
        format!("{right} right of {answered} answered, {count} in all")
    });
    view! {
        <main class="page">
            <h1>"All questions"</h1>
            <p class="lead">"Every question of the lessons, one after the other; the allocator has the answers."</p>
            <p class="score" role="status" data-testid="score">{result}</p>
            <ol class="quiz" data-testid="quiz">{entries}</ol>
        </main>
    }
    .into_any()
}

fn quiz_question(session: Session, item: QuizItem, score: RwSignal<(usize, usize)>) -> AnyView {
    let state = RwSignal::new(session.lessons().answer_to(&item.lesson, item.card, &item.question));
    let problem = RwSignal::new(String::new());
    let question = item.question.clone();
    let (lesson, card) = (item.lesson.clone(), item.card);
    let answer = StoredValue::new_local(move |answer: &str| {
        if state.get_untracked().is_some() {
            return;
        }
        match GivenAnswer::new(&question, answer) {
            Ok(given) => {
                problem.set(String::new());
                session.lessons().remember_answer(&lesson, card, Some(&given.raw));
                score.update(|(right, answered)| {
                    *right += usize::from(given.is_right);
                    *answered += 1;
                });
                state.set(Some(given));
            }
            Err(why) => problem.set(why),
        }
    });
    let field = answer_field(&item.question.answers, state, answer);
    let asked = item.question.clone();
    let because = plain(&item.question.because);
    let result = text(move || match state.get() {
        None => problem.get(),
        Some(given) => format!("{} {because}", verdict(&asked, &given)),
    });
    let place = Place::Lesson { id: item.lesson.clone(), card: item.card };
    let target = Target::Lesson { id: item.lesson, card: item.card + 1 };
    view! {
        <li>
            <p>{prose::inlines(session, &item.question.text)}</p>
            <div class="choices">{field}</div>
            <p role="status">{result}</p>
            <p class="quiet">{place_link(session, place, target, item.title)}</p>
        </li>
    }
    .into_any()
}

/// A button for each choice, or else a field for the answer. Both call `answer`.
fn answer_field<F: Fn(&str) + 'static>(
    answers: &Answers,
    state: RwSignal<Option<GivenAnswer>>,
    answer: StoredValue<F, LocalStorage>,
) -> AnyView {
    let is_done = flag(move || state.with(Option::is_some));
    if let Answers::Choices(choices) = answers {
        let buttons = choices.iter().enumerate().map(|(place, choice)| {
            let pick = click(move || answer.with_value(|answer| answer(&(place + 1).to_string())));
            let given = move || state.with(|state| state.as_ref().map(|given| given.raw.clone()));
            let mark = choice_mark(choice.is_right, place, given);
            view! {
                <button type="button" disabled=is_done on:click=pick>
                    {plain(&choice.text)}{mark}
                </button>
            }
            .into_any()
        });
        return buttons.collect::<Vec<_>>().into_any();
    }
    let typed = RwSignal::new(String::new());
    let submit = on(move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        answer.with_value(|answer| answer(&typed.get_untracked()));
    });
    let input = on(move |event: leptos::ev::Event| typed.set(event_target_value(&event)));
    view! {
        <form class="cluster" on:submit=submit>
            <input class="field" aria-label="Your answer" autocomplete="off" disabled=is_done on:input=input />
            <button type="submit" disabled=is_done>"Answer"</button>
        </form>
    }
    .into_any()
}
