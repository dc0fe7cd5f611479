//! Time on the wall clock as the horizontal axis: pauses are as wide as they were long.

use blockyard_record::Recording;

use crate::conversions::{count_f64, floor_count, micros_f64};
use crate::timeline::view::TimelineView;

/// When each step of a recording happened, for a time axis that is linear in time.
///
/// The memory after `k` steps lasts from the `k`th step until the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// The time of each step since the first one, in ticks, ascending.
    ticks: Vec<u32>,
    micros_per_tick: f64,
}

impl Clock {
    /// The times of the recording; `None` where they are not known, or where all are the same.
    pub fn new(recording: &Recording) -> Option<Self> {
        let first = recording.time_us(0)?;
        let mut latest = 0;
        let elapsed: Vec<u64> = recording
            .times_us_from(0)
            .map(|time| {
                // A time before that of an earlier step (another thread's) is drawn at that step.
                latest = time.saturating_sub(first).max(latest);
                latest
            })
            .collect();
        if latest == 0 || elapsed.len() != recording.step_count() {
            return None;
        }
        // 32 bits a step are enough for a pixel of any zoom that shows more than the clock says.
        let micros_per_tick = latest.div_ceil(u64::from(u32::MAX));
        let tick = |micros: &u64| {
            let ticks = micros.checked_div(micros_per_tick).unwrap_or_default();
            u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        Some(Self { ticks: elapsed.iter().map(tick).collect(), micros_per_tick: micros_f64(micros_per_tick) })
    }

    /// The time at the left edge of the moment after `moment` steps.
    fn begin(&self, moment: usize) -> f64 {
        let step = moment.saturating_sub(1).min(self.ticks.len().saturating_sub(1));
        self.ticks.get(step).map_or(0.0, |ticks| f64::from(*ticks) * self.micros_per_tick)
    }

    /// The time since the first step at a position in steps.
    pub(crate) fn micros(&self, position: f64) -> f64 {
        let moment = floor_count(position.max(0.0));
        let (from, to) = (self.begin(moment), self.begin(moment.saturating_add(1)));
        from + (to - from) * (position - count_f64(moment)).clamp(0.0, 1.0)
    }

    /// The position in steps at a time since the first step.
    pub(crate) fn position(&self, micros: f64) -> f64 {
        let ticks = micros / self.micros_per_tick;
        // The last moment that begins at this time or before it.
        let moment = self.ticks.partition_point(|tick| f64::from(*tick) <= ticks);
        let (from, to) = (self.begin(moment), self.begin(moment.saturating_add(1)));
        let within = if to > from { ((micros - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
        count_f64(moment) + within
    }

    fn span(&self, view: &TimelineView) -> (f64, f64) {
        (self.micros(view.first_step), self.micros(view.last_step))
    }

    /// The position in steps at a part of the width of a view, from 0 to 1.
    pub fn position_at(&self, view: &TimelineView, x_fraction: f64) -> f64 {
        let (from, to) = self.span(view);
        self.position(from + (to - from) * x_fraction).clamp(view.first_step, view.last_step)
    }

    /// Zooms as [`TimelineView::zoom_at`] does, where the place and the factor are of time and not of steps.
    pub fn zoom_at(
        &self,
        view: TimelineView,
        x_fraction: f64,
        factor: f64,
        step_count: usize,
    ) -> TimelineView {
        let view = view.clamp(step_count);
        if !(factor.is_finite() && factor > 0.0 && x_fraction.is_finite()) {
            return view;
        }
        let (from, to) = self.span(&view);
        let at = from + (to - from) * x_fraction.clamp(0.0, 1.0);
        self.view(at - (at - from) / factor, at + (to - at) / factor, step_count)
    }

    /// Moves the view as [`TimelineView::pan`] does, by a part of the time that is shown.
    pub fn pan(&self, view: TimelineView, fraction: f64, step_count: usize) -> TimelineView {
        let view = view.clamp(step_count);
        let (from, to) = self.span(&view);
        let end = self.begin(step_count.saturating_add(1));
        if !fraction.is_finite() {
            return view;
        }
        let by = ((to - from) * fraction).clamp(-from, (end - to).max(0.0));
        self.view(from + by, to + by, step_count)
    }

    /// Where a view is drawn on the axis of another view: its left edge and its width, as parts of the other's
    /// width.
    pub fn place(&self, view: &TimelineView, on: &TimelineView) -> (f64, f64) {
        let (from, to) = self.span(view);
        let (first, last) = self.span(on);
        let width = (last - first).max(f64::MIN_POSITIVE);
        ((from - first) / width, (to - from) / width)
    }

    fn view(&self, from: f64, to: f64, step_count: usize) -> TimelineView {
        let whole = TimelineView::fit(step_count);
        let end = self.begin(step_count.saturating_add(1));
        let first_step = if from <= 0.0 { whole.first_step } else { self.position(from) };
        let last_step = if to >= end { whole.last_step } else { self.position(to) };
        TimelineView { first_step, last_step }.clamp(step_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps at 0, 10, 20 and 1,000 microseconds: a pause before the last one.
    fn paused() -> Clock {
        Clock { ticks: vec![0, 10, 20, 1000], micros_per_tick: 1.0 }
    }

    #[test]
    fn a_pause_is_as_wide_as_it_was_long() {
        let clock = paused();
        let expected =
            [(0.0, 0.0), (1.0, 0.0), (2.0, 10.0), (3.0, 20.0), (3.5, 510.0), (4.0, 1000.0), (5.0, 1000.0)];
        for (position, micros) in expected {
            assert!((clock.micros(position) - micros).abs() < 1e-9, "{position}");
        }
        for position in [1.5, 2.25, 3.5] {
            let there_and_back = clock.position(clock.micros(position));
            assert!((there_and_back - position).abs() < 1e-9, "{position}");
        }
    }

    #[test]
    fn zooming_keeps_the_time_under_the_pointer() {
        let clock = paused();
        let view = TimelineView::fit(4);
        assert!((clock.position_at(&view, 0.5) - 3.489_795).abs() < 1e-3);
        let wide = Clock { ticks: (0..1000).map(|step| step * step).collect(), micros_per_tick: 1.0 };
        let whole = TimelineView::fit(1000);
        let near = wide.zoom_at(whole, 0.25, 4.0, 1000);
        let before = wide.position_at(&whole, 0.25);
        assert!((wide.position_at(&near, 0.25) - before).abs() < 0.5, "{near:?}");
        assert_eq!(wide.zoom_at(near, 0.25, 4.0_f64.recip(), 1000), whole);
        assert_eq!(wide.pan(whole, 0.3, 1000), whole);
        assert!(wide.pan(near, 0.5, 1000).first_step > near.first_step);
    }
}
