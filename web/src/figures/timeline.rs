//! The steps that figures over time show: zoom, move, show all.

use blockyard_figure::TimelineView;
use leptos::ev;
use leptos::prelude::*;

use super::FigureSignals;
use crate::frames;
use crate::session::Feature;
use crate::surface::offset_px;

impl Feature<FigureSignals> {
    /// The steps of the recording that are shown. Reads signals.
    pub(crate) fn timeline_view_or_fit(self) -> TimelineView {
        let steps = self.session.run.get().recording.step_count();
        self.timeline_view.get().map_or_else(|| TimelineView::fit(steps), |view| view.clamp(steps))
    }

    fn change_timeline(self, change: impl FnOnce(TimelineView, usize) -> TimelineView) {
        let steps = self.session.run.get_untracked().recording.step_count();
        let view = self.timeline_view.get_untracked().unwrap_or_else(|| TimelineView::fit(steps));
        let changed = change(view, steps);
        self.timeline_view.set((changed != TimelineView::fit(steps)).then_some(changed));
    }

    /// Zooms the timeline around a place in its width, from 0 (left) to 1. A factor above 1 zooms in.
    pub(crate) fn zoom_timeline(self, x_fraction: f64, factor: f64) {
        self.change_timeline(move |view, steps| view.zoom_at(x_fraction, factor, steps));
    }

    /// Zooms the timeline around the cursor.
    pub(crate) fn zoom_timeline_at_cursor(self, factor: f64) {
        let step = self.session.player.with_untracked(|player| player.steps);
        self.change_timeline(move |view, steps| {
            let width = view.last_step - view.first_step;
            let place = (frames::count(step) + 0.5 - view.first_step) / width;
            view.zoom_at(if (0.0..=1.0).contains(&place) { place } else { 0.5 }, factor, steps)
        });
    }

    /// Zooms the axis of memory over time, steps or time, around a place in its width, from 0 (left) to 1.
    pub(crate) fn zoom_memory(self, x_fraction: f64, factor: f64) {
        match untrack(|| self.clock.get()) {
            Some(clock) => {
                self.change_timeline(move |view, steps| clock.zoom_at(view, x_fraction, factor, steps));
            }
            None => self.zoom_timeline(x_fraction, factor),
        }
    }

    /// Moves the shown part by this part of its width, to the right for positive values, in steps or in time.
    pub(crate) fn pan_memory(self, fraction: f64) {
        match untrack(|| self.clock.get()) {
            Some(clock) => self.change_timeline(move |view, steps| clock.pan(view, fraction, steps)),
            None => self.pan_timeline(fraction),
        }
    }

    /// With Ctrl the wheel zooms; a wheel that turns sideways moves the shown part. `fraction` turns pixels
    /// into a place in the width, from 0 (left) to 1.
    pub(crate) fn turn_wheel(self, event: &ev::WheelEvent, fraction: impl Fn(f32) -> f64) {
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            self.zoom_memory(fraction(offset_px(event).0), zoom_factor(event));
        } else if event.delta_x().abs() > event.delta_y().abs() {
            event.prevent_default();
            self.pan_memory(event.delta_x() / 600.0);
        }
    }

    /// Moves the shown steps by this part of their width.
    pub(crate) fn pan_timeline(self, fraction: f64) {
        self.change_timeline(move |view, steps| view.pan(fraction, steps));
    }

    /// Shows all steps and all bytes again.
    pub(crate) fn fit_timeline(self) {
        self.range.set(None);
        self.change_timeline(|_, steps| TimelineView::fit(steps));
    }
}

/// The factor by which an event of the wheel zooms: about the same for mice, which count lines, and for
/// touchpads, which count pixels.
pub(crate) fn zoom_factor(event: &ev::WheelEvent) -> f64 {
    let pixels = if event.delta_mode() == 0 { event.delta_y() } else { event.delta_y() * 30.0 };
    (-pixels.clamp(-150.0, 150.0) / 250.0).exp()
}
