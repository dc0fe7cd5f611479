//! The whole run in a narrow figure below memory over time: which part of a long run the figures over time
//! show. A drag moves the frame around this part.
//!
//! The figure is for pointers alone, since keys zoom and move the shown part too.

use blockyard_figure::{plot_sides, timeline_mini_map, timeline_mini_map_window};
use leptos::html;
use leptos::prelude::*;

use crate::session::Session;
use crate::surface;
use crate::view::figure::gesture;
use crate::view::figure::over_time::{OverTime, TimeAxis};
use crate::view::kit::{flag, text};

/// The fewest steps of a run with this figure; the figures over time show a shorter run whole.
const MIN_STEPS: usize = 200;

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
        let clock = session.figures().clock.get();
        Some(timeline_mini_map(&run.series, &run.recording, clock.as_deref(), size))
    });
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    surface::keep_drawn(session, overlay, size, move |size| {
        let count = session.run.with(|run| run.recording.step_count());
        let view = session.figures().timeline_view.get();
        Some(timeline_mini_map_window(
            view.as_ref(),
            session.figures().clock.get().as_deref(),
            steps.get(),
            session.figures().drawn_range(),
            count,
            size,
        ))
    });
    let over_time = OverTime { session, size, axis: TimeAxis::WholeRun };
    gesture::listen(area, move |gesture, at, _| over_time.act(gesture, at));
    let is_short = flag(move || session.run.with(|run| run.recording.step_count() < MIN_STEPS));
    view! {
        <div node_ref=around hidden=is_short>
        <div class="mini-map" node_ref=area data-testid="mini-map" aria-hidden="true" style=place
            title="The whole run. The frame is around the part that the figures show: drag moves it"
        >
            <canvas node_ref=base></canvas>
            <canvas node_ref=overlay></canvas>
        </div>
        </div>
    }
    .into_any()
}
