//! The part of an axis that a figure shows.

/// The left and the right end of the shown part: 0 is the beginning of the whole axis, and 1 its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisRange {
    /// The left end.
    pub from: f64,
    /// The right end.
    pub to: f64,
}

impl AxisRange {
    /// The whole axis.
    pub const WHOLE: Self = Self { from: 0.0, to: 1.0 };
    /// The smallest part that is shown.
    const MIN: f64 = 1e-6;

    /// Zooms by `factor` (2 shows half as much) around a place in the width, from 0 to 1.
    #[must_use]
    pub fn zoomed(self, x_fraction: f64, factor: f64) -> Self {
        let span = self.to - self.from;
        if !(factor.is_finite() && factor > 0.0 && x_fraction.is_finite()) {
            return self;
        }
        let shown = (span / factor).clamp(Self::MIN, 1.0);
        Self::within(self.from + x_fraction.clamp(0.0, 1.0) * (span - shown), shown)
    }

    /// Moves to the right by `fraction` of the width.
    #[must_use]
    pub fn panned(self, fraction: f64) -> Self {
        let span = self.to - self.from;
        if fraction.is_finite() { Self::within(self.from + span * fraction, span) } else { self }
    }

    /// A part of this length that is within the axis.
    fn within(from: f64, span: f64) -> Self {
        if span >= 1.0 {
            return Self::WHOLE;
        }
        let from = from.clamp(0.0, 1.0 - span);
        Self { from, to: from + span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_under_the_pointer_stays_and_the_part_stays_within_the_axis() {
        let part = AxisRange::WHOLE.zoomed(0.25, 4.0);
        assert_eq!(part, AxisRange { from: 0.1875, to: 0.4375 });
        assert_eq!(part.zoomed(0.25, 0.25), AxisRange::WHOLE);
        assert_eq!(part.panned(-9.0), AxisRange { from: 0.0, to: 0.25 });
        assert_eq!(part.panned(9.0), AxisRange { from: 0.75, to: 1.0 });
        assert_eq!(AxisRange::WHOLE.panned(0.5), AxisRange::WHOLE);
        assert_eq!(part.zoomed(f64::NAN, 2.0), part);
    }
}
