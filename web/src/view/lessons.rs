//! The pages behind "Learn": the list of lessons, the glossary, all questions, the page for teachers, and handouts.

use blockyard_lessons::{
    Answers, CourseStretch, Entry, Lesson, PARTS, QuizItem, TWO_HOURS, glossary, lessons, plain, quiz,
};
use leptos::prelude::*;

use crate::browser;
use crate::link::Target;
use crate::session::{CardDone, GivenAnswer, OpenLesson, Place, Session};
use crate::view::kit::{button, check, click, flag, on, text};
use crate::view::lesson::{choice_mark, verdict};
use crate::view::prose;

/// The facts about a lesson that lists show.
struct ListedLesson {
    id: &'static str,
    title: String,
    summary: String,
    minutes: Option<u32>,
    cards: usize,
}

/// All lessons of the page, in their order. A lesson that cannot be parsed is left out; a test proves that there is none.
fn summaries() -> Vec<ListedLesson> {
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
            session.go_to(place.clone());
        }
    });
    view! { <a href=href on:click=go>{words}</a> }.into_any()
}

pub(crate) fn list(session: Session) -> AnyView {
    let mut rows = summaries().into_iter().map(|ListedLesson { id, title, summary, minutes, cards }| {
        let done = text(move || {
            let (seen, passed) = session.progress.with(|progress| {
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
                {button("large", "to-quiz", "All questions in a row", "", click(move || session.go_to(Place::Quiz)))}
                {button("large", "to-glossary", "The words", "", click(move || session.go_to(Place::Glossary(String::new()))))}
                {button("large", "to-teachers", "For teachers", "", click(move || session.go_to(Place::Teachers)))}
                {button("large", "to-make-lesson", "Make a lesson", "", click(move || session.go_to(Place::MakeLesson)))}
            </p>
            {two_hours(session)}
            <div class="course" data-testid="lessons">{parts}</div>
        </main>
    }
    .into_any()
}

/// A way through the lessons in two hours with a class, folded away.
fn two_hours(session: Session) -> AnyView {
    let titled = |id: &str| {
        let lesson = blockyard_lessons::course().find(|lesson| lesson.id == id);
        lesson.map_or_else(String::new, |lesson| lesson.title.to_owned())
    };
    let stretch = |stretch: &CourseStretch| {
        let lessons = stretch.lessons.iter().map(|(id, minutes)| {
            let place = Place::Lesson { id: (*id).to_owned(), card: 0 };
            let target = Target::Lesson { id: (*id).to_owned(), card: 1 };
            view! { <li>{place_link(session, place, target, titled(id))}{format!(", {minutes} min")}</li> }
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
    let stretches = TWO_HOURS.iter().map(stretch).collect::<Vec<_>>();
    view! {
        <details data-testid="two-hours">
            <summary>"A course of two hours"</summary>
            <dl class="glossary">{stretches}</dl>
        </details>
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
    let given = items.iter().filter_map(|item| session.answer_to(&item.lesson, item.card, &item.question));
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
    let state = RwSignal::new(session.answer_to(&item.lesson, item.card, &item.question));
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
                session.remember_answer(&lesson, card, Some(&given.raw));
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

/// The lines that put a lesson into another page.
pub(crate) fn frame(address: &str, hash: &str, title: &str) -> String {
    format!(
        "<iframe src=\"{address}?embed=lesson#{hash}\" title=\"{title}\" width=\"100%\" height=\"640\" style=\"border:0\" loading=\"lazy\"></iframe>"
    )
}

pub(crate) fn teachers(session: Session) -> AnyView {
    let address = browser::address();
    // The lessons of a common sheet, in the order of the course.
    let chosen = RwSignal::new(std::collections::BTreeSet::<usize>::new());
    let chosen_ids = move || {
        let ids = chosen.get().into_iter().filter_map(|place| lessons().get(place)).map(|file| file.id);
        ids.collect::<Vec<_>>().join(",")
    };
    let is_none_chosen = flag(move || chosen.with(std::collections::BTreeSet::is_empty));
    let sheet = click(move || session.go_to(Place::Handout(untrack(chosen_ids))));
    let rows = summaries()
        .into_iter()
        .enumerate()
        .map(|(number, ListedLesson { id, title, summary, .. })| {
            let hash = Target::Lesson { id: id.to_owned(), card: 1 }.hash();
            let snippet = frame(&address, &hash, &title);
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
            let place = Place::Lesson { id: id.to_owned(), card: 0 };
            let target = Target::Lesson { id: id.to_owned(), card: 1 };
            let handout = Place::Handout(id.to_owned());
            view! {
                <li>
                    <h2>{place_link(session, place, target, title)}</h2>
                    <p>{summary}</p>
                    <p class="quiet">"Link to a card: "<code>{format!("{address}#{hash}")}</code></p>
                    <pre class="code">{snippet}</pre>
                    <p class="cluster">
                        {button("", "copy-embed", "Copy the frame", "", click(move || browser::copy(&copied)))}
                        {button("", "handout", "Class sheet and answers", "To print", click(move || session.go_to(handout.clone())))}
                        {check("choose-lesson", "On a sheet with others", "", is_chosen, choose)}
                    </p>
                </li>
            }
            .into_any()
        })
        .collect::<Vec<_>>();
    view! {
        <main class="page">
            <h1>"For teachers"</h1>
            <p class="lead">
                "Everything here runs in the reader's browser: no account, nothing is sent anywhere. Link to a card, put a figure or a whole lesson into your course page, or print a class sheet, with the answers on pages of their own."
            </p>
            {two_hours(session)}
            <p>
                "Every figure has a Share button in the workbench: a link with the text, the settings and the step in it; a frame; SVG, PNG, CSV. A lesson is a text file (Markdown with workload blocks): drop your own on this page to play it, or make one here."
            </p>
            <p class="cluster">
                <button type="button" class="large" data-testid="class-sheet" disabled=is_none_chosen on:click=sheet>
                    {text(move || match chosen.with(std::collections::BTreeSet::len) {
                        0 => "One sheet for several lessons: choose them below".to_owned(),
                        count => format!("Class sheet of {}", blockyard_record::counted(count, "lesson")),
                    })}
                </button>
                {button("primary large", "to-make-lesson", "Make a lesson", "", click(move || session.go_to(Place::MakeLesson)))}
            </p>
            <ol class="lesson-list" data-testid="teachers">{rows}</ol>
        </main>
    }
    .into_any()
}

/// Lessons on paper: every card with its figure, and the answers at the end.
pub(crate) fn handout(session: Session, ids: &str) -> AnyView {
    let own = session.lesson_text.get_untracked().or_else(|| browser::recall(super::make_lesson::KEY));
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
                {button("primary large", "print", "Print", "The cards, and the answers on a page of their own", click(move || print("")))}
                {button("large", "print-cards", "Print without the answers", "For the class", click(move || print("cards")))}
                {button("large", "print-answers", "Print the answers", "For the teacher", click(move || print("answers")))}
            </p>
            <div inner_html=paper.cards></div>
            <div inner_html=paper.answers></div>
        </main>
    }
    .into_any()
}
