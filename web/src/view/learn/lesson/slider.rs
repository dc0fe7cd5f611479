//! The sliders of a lesson: values that the reader moves. One with few stops is a row of buttons.

use blockyard_lessons::Slider;
use leptos::ev;
use leptos::prelude::*;

use crate::lessons::Presentation;
use crate::session::Session;
use crate::view::kit::{flag, on, text};

/// In a presentation this many presses of an arrow key bring a slider from its first value to its last.
const PRESSES: usize = 40;

/// A slider of at most this many stops shows them all, as buttons of which one is pressed.
const BUTTONS: usize = 5;

/// The sliders of a card.
pub(super) fn sliders(session: Session, all: &[Slider], card: usize) -> Vec<AnyView> {
    let shown = all.iter().enumerate().filter(|(_, slider)| slider.cards().contains(&card));
    shown.map(|(index, slider)| slider_view(session, index, slider, card)).collect()
}

fn slider_view(session: Session, index: usize, slider: &Slider, card: usize) -> AnyView {
    // The first card of a slider names it in tests.
    let id = match slider.cards() {
        [first, ..] if *first != card => format!("slider-{index}-again-{card}"),
        _ => format!("slider-{index}"),
    };
    let lessons = session.lessons();
    let position = move || lessons.positions.with(|positions| positions.get(index).copied().unwrap_or(0));
    let stops = slider.clone();
    let value = text(move || stops.value(position()));
    let moved = on(move |event: ev::Event| {
        if let Ok(position) = event_target_value(&event).parse() {
            lessons.move_slider(index, position);
        }
    });
    let last = slider.stop_count().saturating_sub(1);
    // A class does not wait for a thousand presses. The other keys of a slider are the clicker's.
    let by_key = on(move |event: ev::KeyboardEvent| {
        if lessons.presenting.get_untracked() == Presentation::No {
            return;
        }
        let far = if event.shift_key() { 1 } else { (last / PRESSES).max(1) };
        let now = untrack(position);
        let to = match event.key().as_str() {
            "ArrowRight" | "ArrowUp" => (now + far).min(last),
            "ArrowLeft" | "ArrowDown" => now.saturating_sub(far),
            _ => return,
        };
        event.prevent_default();
        lessons.move_slider(index, to);
    });
    if slider.stop_count() <= BUTTONS {
        let stop = |place: usize| {
            view! {
                <label class="stop">
                    <input
                        type="radio" name=id.clone() value=place.to_string()
                        prop:checked=flag(move || position() == place)
                    />
                    {slider.value(place)}
                </label>
            }
            .into_any()
        };
        let stops = (0..slider.stop_count()).map(stop).collect::<Vec<_>>();
        return view! {
            <fieldset class="slider" data-testid=id.clone() on:input=moved on:keydown=by_key>
                <legend>{slider.label().to_owned()}</legend>
                <div class="stops">{stops}</div>
            </fieldset>
        }
        .into_any();
    }
    view! {
        <label class="slider">
            <span>{slider.label().to_owned()}": "<output class="value">{value}</output></span>
            <input
                type="range" min="0" step="1" max=last.to_string() data-testid=id aria-valuetext=value
                prop:value=text(move || position().to_string()) on:input=moved on:keydown=by_key
            />
        </label>
    }
    .into_any()
}
