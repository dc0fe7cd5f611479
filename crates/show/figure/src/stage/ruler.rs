//! Bytes to pixels along the stage's width.

use blockyard_record::Bytes;

use crate::conversions::{ByteUnit, bytes_f64, px};

/// The one scale of the stage: the bar, the ticks and the segments share it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ruler {
    pub(super) shown: Bytes,
    /// The left edge of byte 0. Marks to the left of this edge are not to scale.
    pub(super) left_px: f32,
    /// Where the ruler ends.
    pub(super) width_px: f32,
}

impl Ruler {
    /// The place of a byte; bytes beyond the ruler are at its end.
    pub(super) fn x_px(&self, bytes: f64) -> f32 {
        let whole = bytes_f64(self.shown).max(1.0);
        self.left_px + px((bytes / whole).clamp(0.0, 1.0) * f64::from(self.width_px - self.left_px))
    }

    /// How wide this many bytes are.
    pub(super) fn span_px(&self, bytes: f64) -> f32 {
        self.x_px(bytes) - self.left_px
    }

    /// Round values for ticks that are at least `gap_px` apart, from zero up, each with its text in the unit
    /// that all share.
    pub(super) fn ticks(&self, gap_px: f32) -> Vec<(Bytes, String)> {
        let room = ((self.width_px - self.left_px) / gap_px.max(1.0)).max(1.0);
        let least = bytes_f64(self.shown) / f64::from(room);
        let mut step = 512_u64;
        while bytes_f64(Bytes::new(step)) < least && step < 1 << 62 {
            step <<= 1;
        }
        let unit = ByteUnit::of_ticks(Bytes::new(step), self.shown);
        let text = |tick: Bytes| match unit.tick(tick, Bytes::new(step)) {
            zero if tick.is_zero() => zero,
            number => format!("{number} {}", unit.name()),
        };
        (0_u64..)
            .map(|index| Bytes::new(index.saturating_mul(step)))
            .take_while(|at| *at <= self.shown)
            .take(200)
            .map(|at| (at, text(at)))
            .collect()
    }
}
