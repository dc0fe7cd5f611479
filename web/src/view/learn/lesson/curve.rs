//! The run of a presented card over time, in letters for the last row: the peak of a training, and what holds
//! it. A run of few steps has the strip alone.

use blockyard_figure::{ReadRun, Size, read_timeline, read_timeline_text};
use leptos::html;
use leptos::prelude::*;

use super::chapter::FEW_STEPS;
use crate::effect::effect;
use crate::lessons::{Presentation, training_groups};
use crate::session::Session;
use crate::surface;
use crate::view::kit::{flag, text};

/// The figure's letters have 11 pixels.
const LETTER_PX: f32 = 11.0;

/// The curve, hidden outside of a presentation.
pub(super) fn projected_curve(session: Session) -> AnyView {
    let (area, canvas) = (NodeRef::<html::Div>::new(), NodeRef::<html::Canvas>::new());
    let size = surface::size_of(area);
    let is_shown = Memo::new(move |_| {
        session.lessons().presenting.get() != Presentation::No
            && session.open_lesson().is_some_and(|lesson| lesson.is_chapter())
            && session.run.with(|run| run.recording.step_count() >= FEW_STEPS)
    });
    let groups = Memo::new(move |_| {
        if !is_shown.get() {
            return Vec::new();
        }
        session.run.with(|run| training_groups(&run.workload, &run.recording))
    });
    effect(move || {
        let (Some(canvas), size) = (canvas.get(), size.get()) else { return };
        if !is_shown.get() || size.width_px < 1.0 {
            return;
        }
        let run = session.run.get();
        let step = session.player.with(|player| player.steps);
        let (last, highest) = (session.lessons().hidden_after(), run.series.peaks().1);
        let read = ReadRun { last, highest, groups: groups.get(), before: Vec::new() };
        let factor = (size.height_px / 11.0 / LETTER_PX).clamp(1.0, 2.4);
        let laid_out = Size { width_px: size.width_px / factor, height_px: size.height_px / factor };
        let scene = read_timeline(&run.series, &run.recording, &read, step, laid_out);
        session.appearance().draw_enlarged(&canvas, &scene, factor);
    });
    let words = text(move || {
        // Words about the end would give an answer away.
        if !is_shown.get() || session.lessons().hidden_after().is_some() {
            return "Memory over time".to_owned();
        }
        session.run.with(|run| read_timeline_text(&run.series, &run.recording))
    });
    view! {
        <div class="projected-curve" node_ref=area hidden=flag(move || !is_shown.get())>
            <canvas node_ref=canvas role="img" data-testid="projected-curve" aria-label=words></canvas>
        </div>
    }
    .into_any()
}
