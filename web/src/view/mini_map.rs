//! The whole run in a narrow figure below memory over time: which part of a long run the figures over time
//! show. A drag shows a part, a click moves the shown part, a double click shows the whole run.
//!
//! The figure is for pointers alone, since keys zoom and move the shown part too.

use blockyard_figure::{PlayerAction, TimelineView, plot_sides, timeline_mini_map, timeline_mini_map_window};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::frames::{self, Slot};
use crate::session::Session;
use crate::surface;
use crate::view::kit::{capture, click, flag, on, text};

/// The fewest steps of a run with this figure; the figures over time show a shorter run whole.
const MIN_STEPS: usize = 200;
/// A press during which the pointer moved less than this is a click.
const CLICK_PX: f32 = 4.0;

pub(crate) fn mini_map(session: Session) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let around = NodeRef::<html::Div>::new();
    let whole = surface::size_of(around);
    // The figure is as wide as the plot above it, from a phone to a large screen.
    let place = text(move || {
        let (left, width) = plot_sides(whole.get());
        let (left, width) = (surface::on_page(left), surface::on_page(width));
        format!("margin-left:{left}px;width:{width}px")
    });
    surface::keep_drawn(session, base, size, move |size| {
        let run = session.run.get();
        Some(timeline_mini_map(&run.series, &run.recording, size))
    });
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    surface::keep_drawn(session, overlay, size, move |size| {
        let count = session.run.with(|run| run.recording.step_count());
        let view = session.figures().timeline_view.get();
        Some(timeline_mini_map_window(view.as_ref(), steps.get(), count, size))
    });
    let drag = MiniMapDrag { session, from_px: StoredValue::new(None) };
    let x_of = move |event: &ev::PointerEvent| {
        let width = size.with_untracked(|size| size.width_px).max(1.0);
        (surface::offset_px(event).0, width)
    };
    let is_short = flag(move || session.run.with(|run| run.recording.step_count() < MIN_STEPS));
    view! {
        <div node_ref=around hidden=is_short>
        <div class="mini-map" node_ref=area data-testid="mini-map" aria-hidden="true" style=place
            title="The whole run: drag to show a part, click to move the shown part, double click to show all"
            on:pointerdown=on(move |event: ev::PointerEvent| drag.down(&event, x_of(&event).0))
            on:pointermove=on(move |event: ev::PointerEvent| drag.moved(&event, x_of(&event)))
            on:pointerup=on(move |event: ev::PointerEvent| drag.up(x_of(&event)))
            on:pointercancel=on(move |_: ev::PointerEvent| drag.from_px.set_value(None))
            on:dblclick=click(move || session.figures().fit_timeline())
        >
            <canvas node_ref=base></canvas>
            <canvas node_ref=overlay></canvas>
        </div>
        </div>
    }
    .into_any()
}

/// A press on the figure; a handle that is copied freely.
#[derive(Clone, Copy)]
struct MiniMapDrag {
    session: Session,
    /// Where the press began, from the left edge.
    from_px: StoredValue<Option<f32>>,
}

impl MiniMapDrag {
    fn down(self, event: &ev::PointerEvent, x_px: f32) {
        if event.button() != 0 {
            return;
        }
        capture(event);
        self.from_px.set_value(Some(x_px));
    }

    fn moved(self, event: &ev::PointerEvent, (x_px, width_px): (f32, f32)) {
        let Some(from_px) = self.from_px.get_value().filter(|_| event.buttons() & 1 != 0) else { return };
        if (x_px - from_px).abs() < CLICK_PX {
            return;
        }
        let count = self.session.run.with_untracked(|run| run.recording.step_count());
        let edge = |x_px: f32| f64::from((x_px / width_px).clamp(0.0, 1.0)) * (frames::count(count) + 1.0);
        let view = TimelineView { first_step: edge(from_px.min(x_px)), last_step: edge(from_px.max(x_px)) };
        let session = self.session;
        frames::plan(Slot::Seek, move || session.figures().timeline_view.set(Some(view.clamp(count))));
    }

    fn up(self, (x_px, width_px): (f32, f32)) {
        let from_px = self.from_px.get_value();
        self.from_px.set_value(None);
        if from_px.is_none_or(|from_px| (x_px - from_px).abs() >= CLICK_PX) {
            return;
        }
        let session = self.session;
        let count = session.run.with_untracked(|run| run.recording.step_count());
        let at = f64::from((x_px / width_px).clamp(0.0, 1.0)) * (frames::count(count) + 1.0);
        if let Some(view) = session.figures().timeline_view.get_untracked() {
            let middle = f64::midpoint(view.first_step, view.last_step);
            let moved = view.pan((at - middle) / view.span().max(f64::MIN_POSITIVE), count);
            session.figures().timeline_view.set(Some(moved));
        } else {
            // The whole run is shown: a click chooses the moment, as in the figure above.
            let step = blockyard_figure::timeline_strip_step_at(count, f64::from(x_px / width_px));
            session.dispatch(PlayerAction::Pause);
            session.dispatch(PlayerAction::SeekStep(step));
        }
    }
}
