//! The steps that figures over time show, and the range that is brushed in them.

use blockyard_figure::TimelineView;
use leptos::prelude::*;

use super::{Brushed, FigureSignals, HolderMoment};
use crate::frames;
use crate::session::Feature;

impl Feature<FigureSignals> {
    /// The steps of the recording that are shown. Reads signals.
    pub(crate) fn timeline_view_or_fit(self) -> TimelineView {
        let steps = self.session.run.get().recording.step_count();
        self.timeline_view.get().map_or_else(|| TimelineView::fit(steps), |view| view.clamp(steps))
    }

    /// Changes the shown steps. Returns whether they are others than before.
    fn change_timeline(self, change: impl FnOnce(TimelineView, usize) -> TimelineView) -> bool {
        let steps = self.session.run.get_untracked().recording.step_count();
        let before = self.timeline_view.get_untracked();
        let changed = change(before.unwrap_or_else(|| TimelineView::fit(steps)), steps);
        let after = (changed != TimelineView::fit(steps)).then_some(changed);
        if after != before {
            self.timeline_view.set(after);
        }
        after != before
    }

    /// Zooms the timeline around a place in its width, from 0 (left) to 1. A factor above 1 zooms in. Returns
    /// whether other steps are shown, as the other functions here do.
    pub(crate) fn zoom_timeline(self, x_fraction: f64, factor: f64) -> bool {
        self.change_timeline(move |view, steps| view.zoom_at(x_fraction, factor, steps))
    }

    /// Zooms the timeline around a place of the whole run, from 0 (left) to 1. A place that is not shown
    /// comes into the middle.
    pub(crate) fn zoom_at_place_of_run(self, fraction: f64, factor: f64) -> bool {
        let clock = untrack(|| self.clock.get());
        self.change_timeline(move |view, steps| {
            let run = TimelineView::fit(steps);
            let at = match &clock {
                Some(clock) => clock.position_at(&run, fraction),
                None => fraction * run.span(),
            };
            let place = (at - view.first_step) / view.span().max(f64::MIN_POSITIVE);
            let (view, place) = if (0.0..=1.0).contains(&place) {
                (view, place)
            } else {
                (view.pan(place - 0.5, steps), 0.5)
            };
            view.zoom_at(place, factor, steps)
        })
    }

    /// Zooms the timeline around the cursor.
    pub(crate) fn zoom_timeline_at_cursor(self, factor: f64) -> bool {
        let at = frames::count(self.session.player.with_untracked(|player| player.steps)) + 0.5;
        let view = untrack(|| self.timeline_view_or_fit());
        let place = match untrack(|| self.clock.get()) {
            Some(clock) => clock.place(&TimelineView { first_step: at, last_step: at }, &view).0,
            None => (at - view.first_step) / view.span().max(f64::MIN_POSITIVE),
        };
        self.zoom_memory(if (0.0..=1.0).contains(&place) { place } else { 0.5 }, factor)
    }

    /// Zooms the axis of memory over time, steps or time, around a place in its width, from 0 (left) to 1.
    pub(crate) fn zoom_memory(self, x_fraction: f64, factor: f64) -> bool {
        match untrack(|| self.clock.get()) {
            Some(clock) => {
                self.change_timeline(move |view, steps| clock.zoom_at(view, x_fraction, factor, steps))
            }
            None => self.zoom_timeline(x_fraction, factor),
        }
    }

    /// Moves the shown part by this part of its width, to the right for positive values, in steps or in time.
    pub(crate) fn pan_memory(self, fraction: f64) -> bool {
        match untrack(|| self.clock.get()) {
            Some(clock) => self.change_timeline(move |view, steps| clock.pan(view, fraction, steps)),
            None => self.pan_timeline(fraction),
        }
    }

    /// Moves the shown steps by this part of their width.
    pub(crate) fn pan_timeline(self, fraction: f64) -> bool {
        self.change_timeline(move |view, steps| view.pan(fraction, steps))
    }

    /// Moves the shown steps by this part of the whole run.
    pub(crate) fn pan_by_part_of_run(self, fraction: f64) -> bool {
        let clock = untrack(|| self.clock.get());
        self.change_timeline(move |view, steps| {
            let run = TimelineView::fit(steps);
            match clock {
                Some(clock) => {
                    let shown = clock.place(&view, &run).1.max(f64::MIN_POSITIVE);
                    clock.pan(view, fraction / shown, steps)
                }
                None => view.pan(fraction * run.span() / view.span().max(f64::MIN_POSITIVE), steps),
            }
        })
    }

    /// Shows all steps, all bytes and whole segments again.
    pub(crate) fn show_whole(self) {
        self.range.set(None);
        self.change_timeline(|_, steps| TimelineView::fit(steps));
        if self.map_view.with_untracked(|view| view.zoom.is_some()) {
            self.map_view.update(|view| view.zoom = None);
        }
    }

    /// Shows the brushed range and no other steps. Returns whether there is one.
    pub(crate) fn zoom_to_range(self) -> bool {
        let Some((first, last)) = untrack(|| self.steps_range()) else { return false };
        let (first_step, last_step) = (frames::count(first), frames::count(last + 1));
        self.change_timeline(|_, steps| TimelineView { first_step, last_step }.clamp(steps));
        true
    }

    /// Brushes the moments from one to the other, in any order. If the range is complete, the table of
    /// holders is about what was allocated in it.
    pub(crate) fn brush(self, one: usize, other: usize, is_done: bool) {
        let brushed = Brushed { first: one.min(other), last: one.max(other), is_done };
        if self.brushed.get_untracked() != Some(brushed) {
            self.brushed.set(Some(brushed));
        }
        if is_done && brushed.first < brushed.last {
            self.holder_moment.set(HolderMoment::Made);
        }
    }

    /// Begins a range at the cursor, or completes the range that was begun. A second press at the same moment
    /// takes the beginning away.
    pub(crate) fn brush_by_key(self) {
        let now = self.session.player.with_untracked(|player| player.steps);
        match self.brushed.get_untracked().filter(|brushed| brushed.first == brushed.last) {
            Some(begun) if begun.first == now => self.brushed.set(None),
            Some(begun) => self.brush(begun.first, now, true),
            None => self.brush(now, now, true),
        }
    }

    /// Lets go of the brushed range. Returns whether there was one.
    pub(crate) fn let_go_of_range(self) -> bool {
        let was_brushed = self.brushed.get_untracked().is_some();
        if was_brushed {
            self.brushed.set(None);
            if self.holder_moment.get_untracked().is_of_range() {
                self.holder_moment.set(HolderMoment::Cursor);
            }
        }
        was_brushed
    }

    /// The first and the last moment of the complete range. Reads signals.
    pub(crate) fn steps_range(self) -> Option<(usize, usize)> {
        let brushed = self.brushed.get().filter(|brushed| brushed.is_done && brushed.first < brushed.last)?;
        Some((brushed.first, brushed.last))
    }

    /// The first and the last moment of the range as far as it is brushed. Reads signals.
    pub(crate) fn drawn_range(self) -> Option<(usize, usize)> {
        self.brushed.get().map(|brushed| (brushed.first, brushed.last))
    }
}
