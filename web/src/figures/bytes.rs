//! The vertical axis of the figure, in bytes.

use blockyard_figure::{GridKind, Series, TimelineView};
use leptos::prelude::*;

use super::{Columns, FigureSignals};
use crate::session::Feature;

impl Feature<FigureSignals> {
    /// The bytes at the bottom and at the top of the figure. Reads signals.
    pub(crate) fn byte_range(self, columns: &Columns, steps: &TimelineView) -> (f64, f64) {
        let kind = self.kind.get();
        let run = self.session.run.get();
        self.range.get().unwrap_or_else(|| whole(columns, &run.series, kind, steps))
    }

    /// Zooms the bytes around a place in the height, from 0 (bottom) to 1. A factor above 1 zooms in.
    /// Returns whether other bytes are shown.
    pub(crate) fn zoom_bytes(self, place: f64, factor: f64) -> bool {
        let Some(columns) = untrack(|| self.columns()) else { return false };
        let before = self.range.get_untracked();
        let steps = untrack(|| self.timeline_view_or_fit());
        let (low, high) = untrack(|| self.byte_range(&columns, &steps));
        let at = low + (high - low) * place.clamp(0.0, 1.0);
        self.set_range(at - (at - low) / factor, at + (high - at) / factor);
        self.range.get_untracked() != before
    }

    /// Moves the shown bytes up by this part of the height.
    pub(crate) fn pan_bytes(self, fraction: f64) {
        if let Some((low, high)) = self.range.get_untracked() {
            let by = (high - low) * fraction;
            self.set_range(low + by, high + by);
        }
    }

    /// Shows the bytes from `low` to `high`, cut to the axis, and at least 4 KiB.
    pub(crate) fn set_range(self, low: f64, high: f64) {
        let Some(columns) = untrack(|| self.columns()) else { return };
        let steps = untrack(|| self.timeline_view_or_fit());
        let run = self.session.run.get_untracked();
        let (_, most) = whole(&columns, &run.series, self.kind.get_untracked(), &steps);
        let height = (high - low).clamp(4096.0_f64.min(most), most);
        let low = low.clamp(0.0, most - height);
        let is_whole = height >= most;
        self.range.set((!is_whole).then_some((low, low + height)));
    }
}

/// The bottom and the top of the whole axis. For stacked allocations the top is a little above the active and
/// the reserved bytes of the shown steps, and above what bounds them, so that the names of the peaks have room.
fn whole(columns: &Columns, series: &Series, kind: GridKind, steps: &TimelineView) -> (f64, f64) {
    let (bytes, room) = match kind {
        GridKind::Address => (columns.map.total(), 1.0),
        GridKind::Stacked => {
            let active = columns.allocations.most_active(steps);
            (series.stack_top(&columns.recording, steps, active), 1.15)
        }
    };
    (0.0, (float(bytes.get()) * room).max(4096.0))
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}
