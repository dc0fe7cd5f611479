//! The free places of a plot, where texts go: above the areas, and between the lines of peaks, limits and
//! capacity.

use blockyard_record::Bytes;

use crate::conversions::{count_px, floor_count};
use crate::geometry::{Point, Rect};
use crate::timeline::axis::YScale;
use crate::timeline::draw::Column;
use crate::timeline::series::Series;

/// The distances of the places that are looked at.
const STEP_X_PX: f32 = 8.0;
const STEP_Y_PX: f32 = 4.0;

/// The areas and lines of a plot by columns, and so the free places between them.
pub(super) struct Air<'a> {
    pub(super) columns: &'a [Column],
    pub(super) range: &'a YScale,
    /// For each column, where the areas begin, and the lines over it: both peaks, the limit.
    drawn_px: Vec<(f32, [f32; 3])>,
    capacity_px: Option<f32>,
}

impl<'a> Air<'a> {
    pub(super) fn new(
        series: &Series,
        columns: &'a [Column],
        range: &'a YScale,
        capacity: Option<Bytes>,
    ) -> Self {
        let holds = |bytes: &Bytes| range.holds(*bytes);
        // A line beyond the scale is below everything, where no text goes.
        let line_px = |bytes: Option<Bytes>| bytes.filter(holds).map_or(f32::MAX, |bytes| range.y_px(bytes));
        let of_column = |column: &Column| {
            let (allocated, reserved) = series.peaks_at(column.last_moment);
            let limit = series.process_limit(column.last_moment).map(|limit| limit.highest);
            (range.y_px(column.extent.high[3]), [Some(allocated), Some(reserved), limit].map(line_px))
        };
        let capacity_px = capacity.filter(holds).map(|capacity| range.y_px(capacity));
        Self { columns, range, drawn_px: columns.iter().map(of_column).collect(), capacity_px }
    }

    /// Whether nothing of the data is drawn in a rectangle, and the rectangle is within the plot.
    pub(super) fn is_clear(&self, plate: &Rect) -> bool {
        let plot = &self.range.plot;
        let is_inside = plate.x_px >= plot.x_px
            && plate.right_px() <= plot.right_px()
            && plate.y_px >= plot.y_px
            && plate.bottom_px() <= plot.bottom_px();
        if !is_inside || self.capacity_px.is_some_and(|y| y > plate.y_px - 1.0 && y < plate.bottom_px()) {
            return false;
        }
        let from = self.columns.partition_point(|column| column.right_px <= plate.x_px);
        let to = self.columns.partition_point(|column| column.left_px < plate.right_px());
        let near = self.drawn_px.get(from..to.max(from)).unwrap_or_default();
        if near.iter().any(|(top, _)| *top < plate.bottom_px()) {
            return false;
        }
        // A line is upright between two levels, so that it crosses everything between its highest and its
        // lowest level.
        (0..3).all(|line| {
            let levels = near.iter().filter_map(|(_, lines)| lines.get(line).copied());
            let (top, foot) = levels.fold((f32::MAX, f32::MIN), |(top, foot), y| (top.min(y), foot.max(y)));
            top >= plate.bottom_px() || foot <= plate.y_px - 1.0
        })
    }

    /// The clear place of this size that is nearest to a point, and over none of `taken`.
    pub(super) fn nearest(&self, at: Point, width_px: f32, height_px: f32, taken: &[Rect]) -> Option<Rect> {
        let plot = &self.range.plot;
        let count = |length: f32, step: f32| floor_count(f64::from((length / step).max(-1.0) + 1.0));
        let (wide, high) =
            (count(plot.width_px - width_px, STEP_X_PX), count(plot.height_px - height_px, STEP_Y_PX));
        let places = (0..high).flat_map(|row| (0..wide).map(move |column| (row, column)));
        let plate = |(row, column): (usize, usize)| {
            let x = (plot.x_px + count_px(column) * STEP_X_PX).ceil();
            Rect::new(x, (plot.y_px + count_px(row) * STEP_Y_PX).ceil(), width_px, height_px)
        };
        let is_free = |place: &Rect| self.is_clear(place) && !taken.iter().any(|other| other.overlaps(place));
        let found = places.map(plate).filter(is_free);
        found.min_by(|one, other| distance(at, one).total_cmp(&distance(at, other)))
    }
}

/// How far a point is from a rectangle.
fn distance(at: Point, rect: &Rect) -> f32 {
    let end = leader_end(at, rect);
    (end.x_px - at.x_px).hypot(end.y_px - at.y_px)
}

/// The point of a rectangle that is the nearest to a point, where a line to the rectangle ends.
pub(super) fn leader_end(at: Point, rect: &Rect) -> Point {
    Point::new(at.x_px.clamp(rect.x_px, rect.right_px()), at.y_px.clamp(rect.y_px, rect.bottom_px()))
}
