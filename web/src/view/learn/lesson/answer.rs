//! Fields for the answer to a question.

use blockyard_lessons::{LessonQuestion, RightAnswers, plain};
use blockyard_record::Bytes;
use leptos::prelude::*;

use super::question::choice_mark;
use crate::lessons::{GivenAnswer, drawn_bytes};
use crate::view::kit::{button, click, flag, on, text};

/// A button for each choice, a ruler for a size that is drawn, or a field. Each calls `answer`.
pub(crate) fn answer_field<F: Fn(&str) + 'static>(
    question: &LessonQuestion,
    state: RwSignal<Option<GivenAnswer>>,
    is_done: Signal<bool>,
    answer: StoredValue<F, LocalStorage>,
) -> AnyView {
    if let RightAnswers::Bytes(right) = question.answers
        && question.ruler.is_some()
    {
        let draw = move |raw: String| answer.with_value(|answer| answer(&raw));
        return drawn_field(question, right, state, is_done, draw);
    }
    if let RightAnswers::Choices(choices) = &question.answers {
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
        return view! { <div class="choices">{buttons.collect::<Vec<_>>()}</div> }.into_any();
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

/// A ruler on which the reader draws a size. Once the question is answered, the right size lies over it.
fn drawn_field(
    question: &LessonQuestion,
    right: Bytes,
    given: RwSignal<Option<GivenAnswer>>,
    is_done: Signal<bool>,
    answer: impl Fn(String) + 'static,
) -> AnyView {
    let asked = StoredValue::new(question.clone());
    let step = RwSignal::new(question.first_step());
    let drawn = Memo::new(move |_| {
        let earlier = given.with(|given| drawn_bytes(&given.as_ref()?.raw));
        earlier.unwrap_or_else(|| asked.with_value(|question| question.drawn_at(step.get())))
    });
    let words = text(move || drawn.get().to_string());
    let mark = text(move || {
        format!("width:{:.2}%", asked.with_value(|question| question.place_percent(drawn.get())))
    });
    let moved =
        on(move |event: leptos::ev::Event| step.set(event_target_value(&event).parse().unwrap_or_default()));
    let take = click(move || answer(format!("{} B", drawn.get_untracked().get())));
    let end = question.ruler.unwrap_or_default().to_string();
    let (right_words, right) = (right.to_string(), question.place_percent(right));
    view! {
        <div class="drawing">
            <div class="drawn-bars" aria-hidden="true">
                <span class="is-drawn" style=mark></span>
                <span class="is-right" hidden=flag(move || !is_done.get()) style=format!("width:{right:.2}%")></span>
            </div>
            <p class="quiet drawn-ends" aria-hidden="true"><span>"0"</span><span>{end}</span></p>
            <p class="quiet drawn-key">
                <span class="swatch is-drawn" aria-hidden="true"></span>"Your mark: "{words}" "
                <span hidden=flag(move || !is_done.get())>
                    <span class="swatch is-right" aria-hidden="true"></span>{format!("The answer: {right_words}")}
                </span>
            </p>
            <label class="slider" hidden=is_done>
                <span>"Move your mark:"</span>
                <input
                    type="range" min="0" max=question.drawn_steps().to_string() data-testid="draw"
                    aria-valuetext=words prop:value=text(move || step.get().to_string()) on:input=moved
                />
            </label>
            <p hidden=is_done>{button("primary", "draw-answer", "This is my mark", "", take)}</p>
        </div>
    }
    .into_any()
}
