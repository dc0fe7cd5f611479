//! The range of a recording that a timeline shows.

use crate::conversions::{count_f64, count_px, floor_count, px};
use crate::geometry::{Rect, Size};
use crate::timeline::clock::Clock;
use crate::timeline::series::{Series, SeriesFacts};

/// The range of a recording that a timeline shows.
///
/// Positions count complete steps: the memory after `k` steps fills the column from `k` to `k + 1`, so a
/// recording of `n` steps reaches from 0 to `n + 1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimelineView {
    /// The left edge.
    pub first_step: f64,
    /// The right edge.
    pub last_step: f64,
}

/// The fewest columns that a view shows, if the recording has this many.
const MIN_COLUMNS: f64 = 4.0;

impl TimelineView {
    /// The whole recording of `step_count` steps.
    #[must_use]
    pub fn fit(step_count: usize) -> Self {
        Self { first_step: 0.0, last_step: count_f64(step_count) + 1.0 }
    }

    /// Zooms by `factor` (2 shows half as much) around the point at `x_fraction` of the width, from 0 to 1.
    #[must_use]
    pub fn zoom_at(self, x_fraction: f64, factor: f64, step_count: usize) -> Self {
        let view = self.clamp(step_count);
        if !(factor.is_finite() && factor > 0.0 && x_fraction.is_finite()) {
            return view;
        }
        let x_fraction = x_fraction.clamp(0.0, 1.0);
        let total = count_f64(step_count) + 1.0;
        // The span is limited first, so that the point keeps its place also at the closest zoom.
        let span = (view.span() / factor).clamp(MIN_COLUMNS.min(total), total);
        let first_step = view.first_step + x_fraction * (view.span() - span);
        Self { first_step, last_step: first_step + span }.clamp(step_count)
    }

    /// Moves to the right by `fraction` of the width.
    #[must_use]
    pub fn pan(self, fraction: f64, step_count: usize) -> Self {
        let view = self.clamp(step_count);
        if !fraction.is_finite() {
            return view;
        }
        let by = view.span() * fraction;
        Self { first_step: view.first_step + by, last_step: view.last_step + by }.clamp(step_count)
    }

    /// The nearest view that is within the recording and not too narrow; the whole recording if an edge is
    /// not a number.
    #[must_use]
    pub fn clamp(self, step_count: usize) -> Self {
        let whole = Self::fit(step_count);
        if !(self.first_step.is_finite() && self.last_step.is_finite()) {
            return whole;
        }
        let total = whole.last_step;
        let span = self.span().clamp(MIN_COLUMNS.min(total), total);
        let first_step = self.first_step.clamp(0.0, total - span);
        Self { first_step, last_step: first_step + span }
    }

    /// Moves the view as little as needed to show the moment after `step` complete steps.
    #[must_use]
    pub fn reveal(self, step: usize, step_count: usize) -> Self {
        let view = self.clamp(step_count);
        let column = count_f64(step.min(step_count));
        let by = (column - view.first_step).min(0.0) + (column + 1.0 - view.last_step).max(0.0);
        Self { first_step: view.first_step + by, last_step: view.last_step + by }.clamp(step_count)
    }

    /// How many columns the view shows; a fraction where an edge lies within a column.
    pub fn span(&self) -> f64 {
        (self.last_step - self.first_step).max(0.0)
    }
}

/// The rectangle of the curves in a timeline of this size. Axes and labels are outside. The rectangle depends
/// on the run and not on the part that is shown, so that nothing moves while the part does.
pub fn timeline_plot(series: &Series, size: Size) -> Rect {
    let size = size.tame();
    let facts = series.facts();
    let axis_px = if facts.has_times && has_second_axis(size) { AXIS_ROW_PX } else { 0.0 };
    plot_above(size, axis_px + legend_px(size, legend_rows(size, facts)))
}

/// The plot above a legend of one line, for a figure of a trace that is still being read.
pub(super) fn plot_over_one_line(size: Size) -> Rect {
    let size = size.tame();
    plot_above(size, legend_px(size, usize::from(has_legend(size))))
}

/// The plot above the axis of steps and `below_px` further pixels.
pub(super) fn plot_above(size: Size, below_px: f32) -> Rect {
    let (left, width_px) = plot_sides(size);
    let top = plot_top(size);
    Rect::new(left, top, width_px, (size.height_px - top - 22.0 - below_px).max(1.0))
}

/// Where the plot of a figure over time begins below names, and below the values at the cursor.
pub(crate) fn plot_top(size: Size) -> f32 {
    if has_values(size) { 20.0 + VALUES_PX } else { 20.0 }
}

/// Where the plot of a figure over time of this size begins, and its width.
pub fn plot_sides(size: Size) -> (f32, f32) {
    let size = size.tame();
    // The name of the axis, "requests", is left of the number at the edge.
    let left = if size.width_px < 420.0 { 58.0 } else { 62.0 };
    (left, (size.width_px - left - RIGHT_PX).max(1.0))
}

/// The room to the right of the plot.
const RIGHT_PX: f32 = 12.0;
/// The height of the line above the plot with the values at the cursor.
pub(super) const VALUES_PX: f32 = 18.0;
/// The height of a line of the legend.
pub(super) const LEGEND_ROW_PX: f32 = 18.0;
/// The height of a second axis below the first.
pub(super) const AXIS_ROW_PX: f32 = 15.0;

/// Whether there is room for the values at the cursor above the plot.
pub(super) fn has_values(size: Size) -> bool {
    size.height_px >= 160.0
}

/// Whether there is room for a second axis below the first: time below steps, or steps below time.
pub(super) fn has_second_axis(size: Size) -> bool {
    size.height_px >= 180.0
}

/// Whether there is room for the legend.
fn has_legend(size: Size) -> bool {
    size.height_px >= 130.0
}

fn legend_px(size: Size, rows: usize) -> f32 {
    count_px(rows) * LEGEND_ROW_PX + if has_legend(size) { 4.0 } else { 0.0 }
}

/// How many lines the legend has.
pub(super) fn legend_rows(size: Size, facts: SeriesFacts) -> usize {
    if !has_legend(size) {
        0
    } else if size.height_px < 200.0 {
        1
    } else {
        crate::timeline::legend::rows(size.width_px, facts)
    }
}

/// How many steps are complete at the moment shown at `x_px`; the nearest one beyond the edges. `clock` and
/// `size` are the clock and the size of the figure.
pub fn timeline_step_at(view: &TimelineView, clock: Option<&Clock>, size: Size, x_px: f32) -> usize {
    let (left, width_px) = plot_sides(size.tame());
    let plot = Rect::new(left, 0.0, width_px, 1.0);
    let fraction = f64::from((x_px - plot.x_px) / plot.width_px).clamp(0.0, 1.0);
    let last = floor_count((view.last_step.ceil() - 1.0).max(0.0));
    let position = match clock {
        Some(clock) => clock.position_at(view, fraction),
        None => view.first_step + fraction * view.span(),
    };
    floor_count(position.max(0.0)).min(last)
}

/// Where the column of the moment after `step` steps begins and ends, in a figure whose axis begins at `left`
/// and is `width_px` wide.
pub fn moment_sides(
    view: &TimelineView,
    clock: Option<&Clock>,
    (left, width_px): (f32, f32),
    step: usize,
) -> (f32, f32) {
    let scale = XScale::by(clock, *view, Rect::new(left, 0.0, width_px, 1.0));
    (scale.x_px(count_f64(step)), scale.x_px(count_f64(step) + 1.0))
}

/// The horizontal scale of a plot, from steps to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct XScale<'a> {
    view: TimelineView,
    plot: Rect,
    clock: Option<&'a Clock>,
}

impl<'a> XScale<'a> {
    pub(crate) fn new(view: TimelineView, plot: Rect) -> Self {
        Self { view, plot, clock: None }
    }

    /// A scale of time if `clock` is known, else of steps.
    pub(crate) fn by(clock: Option<&'a Clock>, view: TimelineView, plot: Rect) -> Self {
        // A view within one moment of the clock has no width in time.
        let clock = clock.filter(|clock| clock.micros(view.last_step) > clock.micros(view.first_step));
        Self { view, plot, clock }
    }

    pub(super) fn plot(&self) -> Rect {
        self.plot
    }

    pub(crate) fn clock(&self) -> Option<&'a Clock> {
        self.clock
    }

    pub(crate) fn x_px(&self, step: f64) -> f32 {
        let fraction = match self.clock {
            Some(clock) => {
                let (from, to) = (clock.micros(self.view.first_step), clock.micros(self.view.last_step));
                (clock.micros(step) - from) / (to - from).max(f64::MIN_POSITIVE)
            }
            None => (step - self.view.first_step) / self.view.span().max(f64::MIN_POSITIVE),
        };
        self.plot.x_px + px(fraction) * self.plot.width_px
    }

    /// How many pixels a step takes.
    pub(crate) fn step_px(&self) -> f64 {
        f64::from(self.plot.width_px) / self.view.span().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zooming_keeps_the_point_under_the_pointer() {
        let view = TimelineView::fit(999).zoom_at(0.25, 4.0, 999);
        assert_eq!((view.first_step, view.last_step), (187.5, 437.5));
        assert_eq!(view.zoom_at(0.25, 0.25, 999), TimelineView::fit(999));
    }

    #[test]
    fn panning_stops_at_the_edges() {
        let view = TimelineView { first_step: 0.0, last_step: 10.0 };
        assert_eq!(view.pan(-1.0, 99), view);
        assert_eq!(view.pan(0.5, 99), TimelineView { first_step: 5.0, last_step: 15.0 });
        assert_eq!(view.pan(1e9, 99), TimelineView { first_step: 90.0, last_step: 100.0 });
    }

    #[test]
    fn a_hidden_step_comes_into_view_and_a_shown_one_moves_nothing() {
        let view = TimelineView { first_step: 20.0, last_step: 30.0 };
        assert_eq!(view.reveal(25, 99), view);
        assert_eq!(view.reveal(30, 99), TimelineView { first_step: 21.0, last_step: 31.0 });
        assert_eq!(view.reveal(3, 99), TimelineView { first_step: 3.0, last_step: 13.0 });
    }

    proptest! {
        #[test]
        fn a_view_stays_within_the_recording(
            edges in (any::<f64>(), any::<f64>()),
            moves in prop::collection::vec((any::<f64>(), any::<f64>()), 0..5),
            steps in 0_usize..100_000,
            x in -2000.0_f32..2000.0,
        ) {
            let mut view = TimelineView { first_step: edges.0, last_step: edges.1 };
            for (one, other) in moves {
                view = view.zoom_at(one, other, steps).pan(one, steps);
            }
            let view = view.clamp(steps);
            let total = count_f64(steps) + 1.0;
            prop_assert!(view.first_step >= 0.0 && view.last_step <= total + 1e-6 && view.span() > 0.0, "{:?}", view);
            prop_assert!(timeline_step_at(&view, None, Size::new(800.0, 200.0), x) <= steps);
        }
    }
}
