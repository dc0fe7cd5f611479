//! The run as a narrow timeline with a slider, on which the reader moves the cursor.

use blockyard_figure::{
    PlayerAction, Size, TimelineView, describe_target, timeline_strip, timeline_strip_cursor,
    timeline_strip_step_at, timeline_strip_window,
};
use blockyard_record::MemoryState;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::run::Run;
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::kit::{capture, on};
use crate::view::player;
use crate::view::timeline::moment_text;
use crate::view::tip::Tip;

pub(crate) fn scrubber(session: Session) -> AnyView {
    frames::forget_with_view(&[Slot::Seek]);
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let strip = ScrubberStrip {
        session,
        size: surface::size_of(area),
        drawn: DrawnScene::new(),
        tip: Tip::new(),
        brush_px: StoredValue::new(None),
    };
    effect(move || {
        if let Some(canvas) = base.get() {
            strip.draw_run(&canvas);
        }
    });
    // The cursor is on a separate canvas, so that the run is not drawn again when the cursor moves.
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    effect(move || {
        if let Some(canvas) = overlay.get() {
            strip.draw_cursor(&canvas, steps.get());
        }
    });
    view! {
        <div class="scrubber">
            <div class="strip" node_ref=area
                on:pointerdown=on(move |event: ev::PointerEvent| strip.pointer_down(&event))
                on:pointermove=on(move |event: ev::PointerEvent| strip.pointer_moved(&event))
                on:pointerleave=on(move |_: ev::PointerEvent| strip.tip.hide())
            >
                <canvas node_ref=base aria-hidden="true"></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {player::slider(session)}
            {strip.tip.view()}
        </div>
    }
    .into_any()
}

/// The strip and its pointer; a handle that is copied freely.
#[derive(Clone, Copy)]
struct ScrubberStrip {
    session: Session,
    size: RwSignal<Size>,
    drawn: DrawnScene,
    tip: Tip,
    /// Where a drag with Shift began, from the left edge. Such a drag chooses the part of the run that the
    /// figures over time show.
    brush_px: StoredValue<Option<f32>>,
}

impl ScrubberStrip {
    fn draw_run(self, canvas: &HtmlCanvasElement) {
        let size = self.size.get();
        if size.width_px < 1.0 {
            return;
        }
        let run = self.session.run.get();
        let scene = timeline_strip(&run.series, &run.recording, size);
        surface::show(self.session, canvas, &scene);
        self.drawn.keep(scene);
    }

    fn draw_cursor(self, canvas: &HtmlCanvasElement, steps: usize) {
        let (session, size) = (self.session, self.size.get());
        if size.width_px < 1.0 {
            return;
        }
        let count = session.run.get().recording.step_count();
        let mut scene = timeline_strip_cursor(count, steps, session.lessons().hidden_after(), size);
        if let Some(view) = session.figures().timeline_view.get() {
            timeline_strip_window(&mut scene, &view, count, size);
        }
        surface::show(session, canvas, &scene);
    }

    fn step_count(self) -> usize {
        self.session.run.get_untracked().recording.step_count()
    }

    /// A place of the strip as a part of its width.
    fn fraction(self, x_px: f32) -> f64 {
        f64::from(x_px / self.size.get_untracked().width_px.max(1.0))
    }

    fn seek(self, x_px: f32) {
        frames::plan(Slot::Seek, move || {
            let step = timeline_strip_step_at(self.step_count(), self.fraction(x_px));
            self.session.dispatch(PlayerAction::Pause);
            self.session.dispatch(PlayerAction::SeekStep(step));
        });
    }

    /// Shows the steps between two places of the strip in the figures over time.
    fn show_part(self, from_px: f32, to_px: f32) {
        let count = self.step_count();
        let edge = |x_px: f32| self.fraction(x_px).clamp(0.0, 1.0) * (frames::count(count) + 1.0);
        let view = TimelineView { first_step: edge(from_px.min(to_px)), last_step: edge(from_px.max(to_px)) };
        let session = self.session;
        frames::plan(Slot::Seek, move || session.figures().timeline_view.set(Some(view.clamp(count))));
    }

    fn pointer_down(self, event: &ev::PointerEvent) {
        if event.button() != 0 {
            return;
        }
        let (x_px, _) = surface::offset_px(event);
        if event.shift_key() {
            return self.brush_px.set_value(Some(x_px));
        }
        capture(event);
        self.tip.hide();
        self.seek(x_px);
    }

    fn pointer_moved(self, event: &ev::PointerEvent) {
        let (x_px, y_px) = surface::offset_px(event);
        if event.buttons() & 1 != 0 {
            return match self.brush_px.get_value() {
                Some(from_px) => self.show_part(from_px, x_px),
                None => self.seek(x_px),
            };
        }
        self.brush_px.set_value(None);
        let step = timeline_strip_step_at(self.step_count(), self.fraction(x_px));
        if untrack(|| self.session.lessons().hidden_after()).is_some_and(|last| step > last) {
            return self.tip.hide();
        }
        let target = self.drawn.look(|scene| scene.hit(x_px, y_px).map(|target| target.what));
        let words = target.and_then(|target| {
            let described = |run: &Run, state: &MemoryState| describe_target(target, state, &run.recording);
            self.session.with_state_now(described).flatten()
        });
        self.tip.show(words.or_else(|| moment_text(self.session, step)), event);
    }
}
