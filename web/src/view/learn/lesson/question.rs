//! The question of a card, the reader's answer, and the words about the answer.

use blockyard_lessons::{LessonQuestion, RightAnswers, plain};
use leptos::ev;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::{GivenAnswer, drawn_bytes};
use crate::session::Session;
use crate::view::kit::{button, click, flag, on, text};
use crate::view::learn::practice;
use crate::view::prose;

pub(super) fn question_view(session: Session, question: LessonQuestion) -> AnyView {
    let shown = question.clone();
    let card = session.lessons().state.with_untracked(|state| state.card);
    let is_done = Memo::new(move |_| session.lessons().state.with(|state| state.is_revealed));
    let more = move || {
        let lesson = is_done.get().then(|| untrack(|| session.open_lesson()))??;
        practice::another(session, &lesson, card)
    };
    let heading = prose::inlines(session, &question.text);
    let input = answers(session, question);
    let result = move || {
        let state = session.lessons().state.get();
        state.is_revealed.then(|| {
            let (class, words) = match &state.answer {
                Some(given) if given.is_right => ("verdict is-right", answer_sentence(&shown, given)),
                Some(given) => ("verdict is-wrong", answer_sentence(&shown, given)),
                None => ("verdict", format!("The answer is: {}", stopped(&shown.right))),
            };
            let because = prose::inlines(session, &shown.because);
            view! {
                <p class=class role="status" data-testid="answer" tabindex="-1">{words}" "{because}</p>
                <p>{button("link", "ask-again", "Answer again", "", click(move || session.lessons().ask_again()))}</p>
            }
            .into_any()
        })
    };
    view! {
        <section class="predict" aria-label="Question">
            <h3>"Predict"</h3>
            <p>{heading}</p>
            {input}
            {result}
            {more}
        </section>
    }
    .into_any()
}

/// The words after a choice once the question is answered (`given` is the answer then, or empty if the reader
/// gave none): whether the choice is right, and whether the reader chose it.
pub(super) fn choice_mark(
    is_right: bool,
    index: usize,
    given: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> AnyView {
    let number = (index + 1).to_string();
    let mark = text(move || {
        let words = match (given(), is_right) {
            (Some(given), true) if given == number => "✓ right, your answer",
            (Some(_), true) => "✓ right",
            (Some(given), false) if given == number => "✗ your answer",
            (None, _) | (Some(_), false) => "",
        };
        words.to_owned()
    });
    view! { <span class="mark" class:right=is_right>{mark}</span> }.into_any()
}

/// The reader's answer and the right answer, in words.
pub(crate) fn answer_sentence(question: &LessonQuestion, given: &GivenAnswer) -> String {
    let drawn = question.ruler.and_then(|_| question.drawn_sentence(drawn_bytes(&given.raw)?));
    if let Some(sentence) = drawn {
        return sentence;
    }
    let said = stopped(&given.words);
    if given.is_right {
        format!("Right: {said}")
    } else {
        format!("You said: {said} The answer is: {}", stopped(&question.right))
    }
}

/// The words as a sentence that ends.
pub(crate) fn stopped(words: &str) -> String {
    let stop = if words.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{words}{stop}")
}

/// Answers a question, and moves the focus to the words about the answer: the field and the buttons are
/// disabled by then, and the focus would go to the page.
fn answer_question(session: Session, question: &LessonQuestion, answer: &str) {
    session.lessons().answer_question(question, answer);
    let _ = browser::after_millis(0, || browser::focus_first("[data-testid=answer]"));
}

fn answers(session: Session, question: LessonQuestion) -> AnyView {
    let is_done = flag(move || session.lessons().state.with(|state| state.is_revealed));
    let problem =
        text(move || session.lessons().state.with(|state| state.problem.clone().unwrap_or_default()));
    let field = match &question.answers {
        RightAnswers::Choices(choices) => {
            let buttons = choices
                .iter()
                .enumerate()
                .map(|(index, choice)| {
                    let (question, answer) = (question.clone(), (index + 1).to_string());
                    let answer = click(move || answer_question(session, &question, &answer));
                    let id = format!("choice-{}", index + 1);
                    let mark = choice_mark(choice.is_right, index, move || {
                        session.lessons().state.with(|state| {
                            let given = state.answer.as_ref().map(|given| given.raw.clone());
                            state.is_revealed.then(|| given.unwrap_or_default())
                        })
                    });
                    view! {
                        <button type="button" data-testid=id disabled=is_done on:click=answer>
                            {plain(&choice.text)}{mark}
                        </button>
                    }
                    .into_any()
                })
                .collect::<Vec<_>>();
            view! { <div class="choices">{buttons}</div> }.into_any()
        }
        RightAnswers::Bytes(_) | RightAnswers::Count(_) => {
            let hint = if matches!(question.answers, RightAnswers::Bytes(_)) {
                "for example 1.5 GiB"
            } else {
                "a number"
            };
            let typed = RwSignal::new(String::new());
            let submit = on(move |event: ev::SubmitEvent| {
                event.prevent_default();
                answer_question(session, &question, &typed.get_untracked());
            });
            view! {
                <form class="cluster" on:submit=submit>
                    <input
                        class="field"
                        data-testid="answer-field"
                        aria-label="Your answer"
                        placeholder=hint
                        autocomplete="off"
                        disabled=is_done
                        on:input=on(move |event: ev::Event| typed.set(event_target_value(&event)))
                    />
                    <button class="primary" type="submit" data-testid="answer-submit" disabled=is_done>
                        "Answer"
                    </button>
                </form>
            }
            .into_any()
        }
    };
    view! {
        {field}
        <p class="error" data-testid="answer-error">{problem}</p>
        <p hidden=is_done>
            {button("link", "reveal", "Show me", "Plays what happens", click(move || session.lessons().reveal()))}
        </p>
    }
    .into_any()
}
