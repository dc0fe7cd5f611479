//! The breakdown over time, with the cursor.

use blockyard_figure::{
    PlayerAction, TimelineView, describe_target, timeline as timeline_scene, timeline_cursor, timeline_plot,
    timeline_step_at, timeline_text,
};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

use crate::frames::{self, Slot};
use crate::session::Session;
use crate::surface::{self, Drawn, pixels};
use crate::view::kit::{click, effect, on, text};
use crate::view::pinch::{Pinch, Pinched};
use crate::view::tip::Tip;

impl Session {
    /// The stretch of the recording that is shown, following.
    pub(crate) fn timeline_view_or_fit(self) -> TimelineView {
        let steps = self.run.get().recording.step_count();
        self.timeline_view.get().map_or_else(|| TimelineView::fit(steps), |view| view.clamp(steps))
    }

    fn change_timeline(self, change: impl FnOnce(TimelineView, usize) -> TimelineView) {
        let steps = self.run.get_untracked().recording.step_count();
        let view = self.timeline_view.get_untracked().unwrap_or_else(|| TimelineView::fit(steps));
        let changed = change(view, steps);
        self.timeline_view.set((changed != TimelineView::fit(steps)).then_some(changed));
    }

    /// Zooms the timeline around a place in its width; above 1 goes in.
    pub(crate) fn zoom_timeline(self, x_fraction: f64, factor: f64) {
        self.change_timeline(move |view, steps| view.zoom_at(x_fraction, factor, steps));
    }

    /// Zooms the timeline around the cursor.
    pub(crate) fn zoom_timeline_at_cursor(self, factor: f64) {
        let step = self.player.with_untracked(|player| player.steps);
        self.change_timeline(move |view, steps| {
            let width = view.last_step - view.first_step;
            let place = (frames::count(step) + 0.5 - view.first_step) / width;
            view.zoom_at(if (0.0..=1.0).contains(&place) { place } else { 0.5 }, factor, steps)
        });
    }

    pub(crate) fn pan_timeline(self, fraction: f64) {
        self.change_timeline(move |view, steps| view.pan(fraction, steps));
    }

    pub(crate) fn fit_timeline(self) {
        self.change_timeline(|_, steps| TimelineView::fit(steps));
    }
}

pub(crate) fn timeline(session: Session) -> AnyView {
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
        let (run, view) = (session.run.get(), session.timeline_view_or_fit());
        let scene = timeline_scene(&run.series, &run.recording, &view, size);
        surface::fit(&canvas, &scene);
        session.draw(&canvas, &scene);
        drawn.keep(scene);
    });
    // The cursor lies on a canvas of its own, so that moving it leaves the timeline as it is.
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    effect(move || {
        let (Some(canvas), size) = (overlay.get(), size.get()) else { return };
        if size.width_px < 1.0 {
            return;
        }
        let scene = timeline_cursor(&session.timeline_view_or_fit(), steps.get(), size);
        surface::fit(&canvas, &scene);
        session.draw(&canvas, &scene);
    });
    let seek = move |x_px: f32| {
        frames::plan(Slot::Seek, move || {
            let view = untrack(|| session.timeline_view_or_fit());
            let step = timeline_step_at(&view, size.get_untracked(), x_px);
            session.dispatch(PlayerAction::Pause);
            session.dispatch(PlayerAction::SeekStep(step));
        });
    };
    let pinch = Pinch::new();
    let fraction = move |x_px: f32| {
        let plot = timeline_plot(size.get_untracked());
        f64::from((x_px - plot.x_px) / plot.width_px.max(1.0))
    };
    let down = on(move |event: ev::PointerEvent| {
        pinch.down(&event);
        if event.button() == 0 && !pinch.is_on() {
            if let Some(target) = event.current_target().and_then(|target| target.dyn_into::<Element>().ok())
            {
                let _ = target.set_pointer_capture(event.pointer_id());
            }
            tip.hide();
            seek(offset_px(&event).0);
        }
    });
    let moved = on(move |event: ev::PointerEvent| {
        let (x, y) = offset_px(&event);
        if let Some(Pinched { x_px, factor }) = pinch.moved(&event) {
            return session.zoom_timeline(fraction(x_px), factor);
        }
        if event.buttons() & 1 != 0 {
            return seek(x);
        }
        let target = drawn.look(|scene| scene.hit(x, y).map(|target| target.what));
        let words = target.and_then(|target| {
            session.with_state_now(|run, state| describe_target(target, state, &run.recording)).flatten()
        });
        tip.show(words, &event);
    });
    let wheel = on(move |event: ev::WheelEvent| {
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            session.zoom_timeline(fraction(pixels(f64::from(event.offset_x()))), zoom_factor(&event));
        } else if event.delta_x().abs() > event.delta_y().abs() {
            event.prevent_default();
            session.pan_timeline(event.delta_x() / 600.0);
        }
    });
    let label = Memo::new(move |_| {
        let run = session.run.get();
        timeline_text(&run.series, &run.recording)
    });
    view! {
        <section class="panel timeline" aria-label="Memory over time">
            <div class="canvas-box" node_ref=area on:pointerdown=down on:pointermove=moved
                on:pointerup=on(move |event: ev::PointerEvent| pinch.up(&event))
                on:pointercancel=on(move |event: ev::PointerEvent| pinch.up(&event))
                on:pointerleave=on(move |_: ev::PointerEvent| tip.hide()) on:wheel=wheel on:dblclick=click(move || session.fit_timeline())
            >
                <canvas node_ref=base role="img" data-testid="timeline" aria-label=text(move || label.get())></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {tip.view()}
        </section>
    }
    .into_any()
}

fn offset_px(event: &ev::PointerEvent) -> (f32, f32) {
    (pixels(f64::from(event.offset_x())), pixels(f64::from(event.offset_y())))
}

/// How far one turn of the wheel zooms: the same for mice that count lines and pads that count pixels.
pub(crate) fn zoom_factor(event: &ev::WheelEvent) -> f64 {
    let pixels = if event.delta_mode() == 0 { event.delta_y() } else { event.delta_y() * 30.0 };
    (-pixels.clamp(-150.0, 150.0) / 250.0).exp()
}
