//! Figures of answers about a run: two timelines on one scale, a planned layout, pinned segments;
//! and the peaks of runs over a value.

mod axes;
mod compared;
mod fit_curves;
mod layout;
mod pinned;

pub use axes::answer_sides;
pub use compared::{ComparedCurve, ComparedTimelines, CurvePart, compared_timelines};
pub use fit_curves::{FitCurve, FitOutcome, FitPoint, fit_curve_role, fit_curves};
pub use layout::{PlacedBlock, PlannedLayout, planned_layout};
pub use pinned::{PinnedBlock, PinnedRow, pinned_segments, pinned_segments_height};
