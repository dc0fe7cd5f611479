//! The peaks and the limit, as marks below the ruler with their numbers.

use super::NARROW_PX;
use super::draw::Painter;
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::numbers::{bytes_f64, count_px};
use crate::role::Role;
use crate::scene::{Mark, TargetId, TextStyle, Weight};
use crate::text_width::text_width_px;

impl Painter<'_> {
    /// The peaks and the limit, below the ruler.
    pub(super) fn draw_peaks(&mut self) {
        let super::draw::Metrics { text_px, width_px, peaks_px, ruler_px, .. } = self.metrics;
        let (allocated, reserved) = (self.stage.max_allocated, self.stage.max_reserved);
        let limit = self.stage.limit.filter(|limit| *limit < self.stage.shown);
        let limit = limit.unwrap_or_default();
        let marks = [
            ("max allocated", allocated, Role::PeakAllocated, TargetId::PeakAllocated),
            ("max reserved", reserved, Role::PeakReserved, TargetId::PeakReserved),
            ("limit", bytes_f64(limit), Role::Limit, TargetId::Limit),
        ];
        let numbers = [self.stage.numbers.max_allocated, self.stage.numbers.max_reserved, limit];
        let rows: usize = if width_px < NARROW_PX { 2 } else { 1 };
        let line = peaks_px / count_px(rows);
        let top = self.metrics.ruler_y_px() + ruler_px;
        let texts = [0, 1, 2].map(|place: usize| format!("{} {}", marks[place].0, numbers[place]));
        let widths = texts.clone().map(|text| text_width_px(&text, text_px, Weight::Normal));
        let places = marks.map(|mark| self.ruler.x_px(mark.1));
        let lefts = peak_lefts(places, widths, width_px, rows);
        for (index, (((_, bytes, role, target), text), left)) in
            marks.into_iter().zip(texts).zip(lefts).enumerate()
        {
            if bytes < 1.0 {
                continue;
            }
            let x = self.ruler.x_px(bytes).round().clamp(5.0, width_px - 5.0);
            let y = self.metrics.ruler_y_px();
            let tip = [Point::new(x, y - 1.0), Point::new(x + 5.0, y + 7.0), Point::new(x - 5.0, y + 7.0)];
            self.scene.marks.push(Mark::Area { points: tip.to_vec(), fill: Fill::solid(role) });
            self.scene.target(Rect::new(x - 6.0, y - 2.0, 12.0, 12.0), target);
            let Some(left) = left.filter(|_| !numbers[index].is_zero()) else { continue };
            let row = usize::from(rows == 2 && index == 1);
            let y = top + count_px(row) * line + text_px;
            let width = text_width_px(&text, text_px, Weight::Normal);
            self.scene.text(Point::new(left, y), text, TextStyle::new(role, text_px));
            self.scene.target(Rect::new(left, y - text_px, width, text_px * 1.3), target);
        }
    }
}

/// Where the texts of max allocated, max reserved and the limit begin, near their marks; none where there is no room for one.
fn peak_lefts(marks: [f32; 3], widths: [f32; 3], width_px: f32, rows: usize) -> [Option<f32>; 3] {
    const GAP_PX: f32 = 12.0;
    let inside = |left: f32, width: f32| left.min(width_px - width).max(0.0).round();
    let mut allocated = inside(marks[0] - widths[0] + 10.0, widths[0]);
    let mut reserved = inside(marks[1] - 10.0, widths[1]);
    if rows == 1 && reserved < allocated + widths[0] + GAP_PX {
        reserved = inside(allocated + widths[0] + GAP_PX, widths[1]);
        allocated = inside((reserved - GAP_PX - widths[0]).min(allocated), widths[0]);
    }
    let is_shown = rows > 1 || allocated + widths[0] + GAP_PX <= reserved + 1.0;
    let limit = inside(marks[2] - widths[2] / 2.0, widths[2]);
    let is_free =
        |left: f32, width: f32| limit >= left + width + GAP_PX || limit + widths[2] + GAP_PX <= left;
    let has_room = rows == 1 && is_free(allocated, widths[0]) && is_free(reserved, widths[1]);
    [is_shown.then_some(allocated), Some(reserved), has_room.then_some(limit)]
}
