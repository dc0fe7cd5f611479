//! The run as a narrow timeline with a slider, on which the reader moves the cursor.

use blockyard_figure::{
    PlayerAction, Size, TimelineView, describe_target, timeline_strip, timeline_strip_cursor,
    timeline_strip_step_at, timeline_strip_window,
};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

use crate::frames::{self, Slot};
use crate::session::Session;
use crate::surface::{self, Drawn};
use crate::view::kit::{effect, on};
use crate::view::player;
use crate::view::timeline::moment_words;
use crate::view::tip::Tip;

pub(crate) fn scrubber(session: Session) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let drawn = Drawn::new();
    let tip = Tip::new();
    effect(move || {
        let (Some(canvas), size) = (base.get(), size.get()) else { return };
        if size.width_px < 1.0 {
            return;
        }
        let run = session.run.get();
        let scene = timeline_strip(&run.series, &run.recording, size);
        surface::fit(&canvas, &scene);
        session.draw(&canvas, &scene);
        drawn.keep(scene);
    });
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    effect(move || {
        let (Some(canvas), size) = (overlay.get(), size.get()) else { return };
        if size.width_px < 1.0 {
            return;
        }
        let count = session.run.get().recording.step_count();
        let mut scene = timeline_strip_cursor(count, steps.get(), session.hides_future(), size);
        if let Some(view) = session.timeline_view.get() {
            timeline_strip_window(&mut scene, &view, count, size);
        }
        surface::fit(&canvas, &scene);
        session.draw(&canvas, &scene);
    });
    let seek = move |x_px: f32| {
        frames::plan(Slot::Seek, move || {
            let Size { width_px, .. } = size.get_untracked();
            let count = session.run.get_untracked().recording.step_count();
            let step = timeline_strip_step_at(count, f64::from(x_px / width_px.max(1.0)));
            session.dispatch(PlayerAction::Pause);
            session.dispatch(PlayerAction::SeekStep(step));
        });
    };
    // Where a stroke with Shift began, which shows a part of the recording.
    let brush = StoredValue::new(None::<f32>);
    let show_part = move |from: f32, to: f32| {
        let Size { width_px, .. } = size.get_untracked();
        let count = session.run.get_untracked().recording.step_count();
        let edge =
            |x_px: f32| f64::from((x_px / width_px.max(1.0)).clamp(0.0, 1.0)) * (frames::count(count) + 1.0);
        let view = TimelineView { first_step: edge(from.min(to)), last_step: edge(from.max(to)) };
        frames::plan(Slot::Seek, move || session.timeline_view.set(Some(view.clamp(count))));
    };
    let down = on(move |event: ev::PointerEvent| {
        if event.button() == 0 && event.shift_key() {
            return brush.set_value(Some(surface::offset_px(&event).0));
        }
        if event.button() == 0 {
            let target = event.current_target().and_then(|target| target.dyn_into::<Element>().ok());
            if let Some(target) = target {
                let _ = target.set_pointer_capture(event.pointer_id());
            }
            tip.hide();
            seek(surface::offset_px(&event).0);
        }
    });
    let moved = on(move |event: ev::PointerEvent| {
        let (x, y) = surface::offset_px(&event);
        if event.buttons() & 1 != 0 {
            if let Some(from) = brush.get_value() {
                return show_part(from, x);
            }
            return seek(x);
        }
        brush.set_value(None);
        let target = drawn.look(|scene| scene.hit(x, y).map(|target| target.what));
        let words = target.and_then(|target| {
            session.with_state_now(|run, state| describe_target(target, state, &run.recording)).flatten()
        });
        let count = session.run.get_untracked().recording.step_count();
        let step = timeline_strip_step_at(count, f64::from(x / size.get_untracked().width_px.max(1.0)));
        tip.show(words.or_else(|| moment_words(session, step)), &event);
    });
    view! {
        <div class="scrubber">
            <div class="strip" node_ref=area on:pointerdown=down on:pointermove=moved
                on:pointerleave=on(move |_: ev::PointerEvent| tip.hide())
            >
                <canvas node_ref=base aria-hidden="true"></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {player::slider(session)}
            {tip.view()}
        </div>
    }
    .into_any()
}

impl Session {
    /// Whether a question is unanswered. The strip then hides the rest of the run, which would show the answer.
    fn hides_future(self) -> bool {
        let Some(lesson) = self.open_lesson() else { return false };
        self.lesson.with(|state| {
            let has_question = lesson.cards.get(state.card).is_some_and(|card| card.question.is_some());
            has_question && !state.is_revealed
        })
    }
}
