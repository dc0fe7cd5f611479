//! The effect of gestures on figures over time, which all show the same part of the run.

use blockyard_figure::{
    Clock, Point, Size, TimelineView, moment_sides, plot_sides, timeline_step_at, timeline_strip_step_at,
};
use leptos::prelude::*;

use crate::frames::{self, Slot};
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::figure::gesture::Gesture;
use crate::view::kit::{button, check, click, flag};

/// A press this near to the cursor takes hold of it.
const NEAR_PX: f32 = 5.0;

/// The horizontal axis of a figure over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeAxis {
    /// Requests or the clock, beside an axis of bytes.
    Plot,
    /// Requests over the whole width.
    Strip,
    /// The whole run over the whole width, with a frame around the part that other figures show.
    WholeRun,
}

/// The button that shows the whole again in every figure over time; hidden while the whole is shown.
pub(crate) fn show_all(session: Session, id: &'static str) -> AnyView {
    let figures = session.figures();
    let is_whole = flag(move || figures.range.get().is_none() && figures.timeline_view.get().is_none());
    view! {
        <span hidden=is_whole>
            {button("", id, "Show all", "Show the whole recording again (0, double click)", click(move || figures.show_whole()))}
        </span>
    }
    .into_any()
}

/// The choices of a file's memory over time: its allocations or its states, by requests or by the clock.
pub(crate) fn axes(session: Session) -> AnyView {
    let figures = session.figures();
    let (is_by_clock, is_by_state) = (figures.is_by_clock, figures.is_by_state);
    let without_times = flag(move || session.run.with(|run| run.recording.time_us(0).is_none()));
    view! {
        <span hidden=without_times>
            {check("by-clock", "By time", "The horizontal axis of all figures is the clock; else it counts requests", flag(move || is_by_clock.get()), move |is_on| is_by_clock.set(is_on))}
        </span>
        <span hidden=flag(move || !session.shows_recording())>
            {check("by-state", "By state", "Requested, rounding, pending and cached bytes, in place of allocations", flag(move || is_by_state.get()), move |is_on| is_by_state.set(is_on))}
        </span>
    }
    .into_any()
}

/// A figure over time; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct OverTime {
    pub(crate) session: Session,
    pub(crate) size: RwSignal<Size>,
    pub(crate) axis: TimeAxis,
}

impl OverTime {
    /// Where the axis begins, and how long it is.
    fn sides(self) -> (f32, f32) {
        let size = self.size.get_untracked();
        match self.axis {
            TimeAxis::Plot => plot_sides(size),
            TimeAxis::Strip | TimeAxis::WholeRun => (0.0, size.width_px.max(1.0)),
        }
    }

    /// A place of the axis, from 0 (left) to 1.
    fn fraction(self, x_px: f32) -> f64 {
        let (left, width) = self.sides();
        f64::from((x_px - left) / width)
    }

    /// The part of the run that the axis shows.
    fn view(self) -> TimelineView {
        match self.axis {
            TimeAxis::WholeRun => {
                TimelineView::fit(self.session.run.with_untracked(|run| run.recording.step_count()))
            }
            _ => untrack(|| self.session.figures().timeline_view_or_fit()),
        }
    }

    /// The clock of the axis; `None` on an axis of requests.
    fn clock(self) -> Option<PtrEq<Clock>> {
        untrack(|| self.session.figures().clock.get()).filter(|_| self.axis != TimeAxis::Strip)
    }

    /// The moment at a place of the figure.
    pub(crate) fn moment(self, x_px: f32) -> usize {
        let view = self.view();
        match self.axis {
            TimeAxis::Plot => {
                timeline_step_at(&view, self.clock().as_deref(), self.size.get_untracked(), x_px)
            }
            TimeAxis::Strip | TimeAxis::WholeRun => {
                let fraction = self.fraction(x_px);
                let fraction = match self.clock() {
                    Some(clock) => {
                        let at = clock.position_at(&view, fraction.clamp(0.0, 1.0));
                        (at - view.first_step) / view.span().max(f64::MIN_POSITIVE)
                    }
                    None => fraction,
                };
                timeline_strip_step_at(&view, fraction)
            }
        }
    }

    fn is_at_cursor(self, x_px: f32) -> bool {
        let clock = self.clock();
        let step = self.session.player.with_untracked(|player| player.steps);
        let (left, right) = moment_sides(&self.view(), clock.as_deref(), self.sides(), step);
        let is_line = self.axis == TimeAxis::Plot;
        (x_px - right).abs() < NEAR_PX || !is_line && (x_px - left).abs() < NEAR_PX
    }

    fn seek(self, x_px: f32) {
        frames::plan(Slot::Seek, move || self.session.seek_moment(self.moment(x_px)));
    }

    /// Does what the gesture means on every figure over time. Returns whether the figures changed.
    pub(crate) fn act(self, gesture: Gesture, at: Point) -> bool {
        let figures = self.session.figures();
        match gesture {
            Gesture::Hover | Gesture::Leave | Gesture::Drop => false,
            Gesture::Begin => figures.timeline_view.get_untracked().is_none(),
            Gesture::Grab { is_brush } => !is_brush && self.is_at_cursor(at.x_px),
            Gesture::Hold => {
                self.seek(at.x_px);
                true
            }
            Gesture::Cancel => figures.let_go_of_range(),
            Gesture::Zoom(factor) => {
                let place = self.fraction(at.x_px);
                match self.axis {
                    TimeAxis::Plot => figures.zoom_memory(place, factor),
                    TimeAxis::Strip => figures.zoom_timeline(place, factor),
                    TimeAxis::WholeRun => figures.zoom_at_place_of_run(place, factor),
                }
            }
            Gesture::Pan(by) => {
                let part = f64::from(by.x_px / self.sides().1);
                match self.axis {
                    TimeAxis::Plot => figures.pan_memory(-part),
                    TimeAxis::Strip => figures.pan_timeline(-part),
                    // The frame follows the pointer.
                    TimeAxis::WholeRun => figures.pan_by_part_of_run(part),
                }
            }
            Gesture::Brush(from) | Gesture::Brushed(from) => {
                let is_done = matches!(gesture, Gesture::Brushed(_));
                figures.brush(self.moment(from.x_px), self.moment(at.x_px), is_done);
                true
            }
            Gesture::Choose => {
                figures.choose_event();
                self.seek(at.x_px);
                true
            }
            Gesture::Whole => {
                figures.show_whole();
                true
            }
        }
    }
}
