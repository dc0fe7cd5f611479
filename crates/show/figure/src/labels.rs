//! Placing texts on a line without overlaps.

use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::role::Role;
use crate::scene::{Anchor, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;

/// Rows of texts between two edges, filled one by one.
pub(crate) struct LabelRows {
    left_px: f32,
    right_px: f32,
    taken: Vec<Vec<(f32, f32)>>,
}

/// The place of a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LabelPlace {
    pub(crate) row: usize,
    pub(crate) left_px: f32,
    pub(crate) right_px: f32,
}

const GAP_PX: f32 = 8.0;

impl LabelRows {
    pub(crate) fn new(left_px: f32, right_px: f32, rows: usize) -> Self {
        Self { left_px, right_px, taken: vec![Vec::new(); rows] }
    }

    /// A place of `width_px` near `x_px` in the first row with enough room: centered at `x_px`, or else to
    /// the left or right of it, always within the edges.
    pub(crate) fn place(&mut self, x_px: f32, width_px: f32) -> Option<LabelPlace> {
        if width_px > self.right_px - self.left_px {
            return None;
        }
        let highest = self.right_px - width_px;
        let wishes =
            [x_px - width_px / 2.0, x_px - width_px, x_px].map(|left| left.clamp(self.left_px, highest));
        for row in 0..self.taken.len() {
            for left_px in wishes {
                let right_px = left_px + width_px;
                let is_free =
                    self.taken[row].iter().all(|(l, r)| right_px + GAP_PX <= *l || left_px >= *r + GAP_PX);
                if is_free {
                    self.taken[row].push((left_px, right_px));
                    return Some(LabelPlace { row, left_px, right_px });
                }
            }
        }
        None
    }
}

/// The height of a line of small text with its ground.
pub(crate) const PLATE_PX: f32 = 15.0;

/// A part of an area, between two upright lines.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_field_names, reason = "each is a length in pixels")]
pub(crate) struct AreaStrip {
    pub(crate) left_px: f32,
    pub(crate) right_px: f32,
    pub(crate) top_px: f32,
    pub(crate) foot_px: f32,
}

/// The place for a text of this size in an area, where the area is the highest, and clear of the rectangles
/// in `taken`; `None` where the area has no room for the text. The strips are in order from the left and
/// touch each other.
pub(crate) fn roomiest_place(
    strips: &[AreaStrip],
    width_px: f32,
    height_px: f32,
    taken: &[Rect],
) -> Option<Rect> {
    let mut best: Option<(f32, Rect)> = None;
    let mut from = 0;
    while let Some(first) = strips.get(from) {
        let ahead = strips.get(from..).unwrap_or_default();
        let end_px = first.left_px + width_px;
        let (mut top, mut foot, mut right) = (f32::MIN, f32::MAX, first.left_px);
        for strip in ahead.iter().take_while(|strip| strip.left_px < end_px) {
            (top, foot, right) = (top.max(strip.top_px), foot.min(strip.foot_px), strip.right_px);
        }
        // The sum of widths may be off by half a pixel.
        if right + 0.5 < end_px {
            break;
        }
        let room = foot - top;
        let y = (f32::midpoint(top, foot) - height_px / 2.0).round();
        let place = Rect::new(first.left_px, y, width_px, height_px);
        let is_better = room >= height_px + 2.0 && best.is_none_or(|(most, _)| room > most + 2.0);
        if is_better && !taken.iter().any(|other| other.overlaps(&place)) {
            best = Some((room, place));
        }
        // The next place to try is a third of the width farther.
        let next_px = first.left_px + width_px / 3.0;
        from += ahead.iter().take_while(|strip| strip.left_px < next_px).count().max(1);
    }
    best.map(|(_, place)| place)
}

/// A text on a rectangle in which the background color covers most of the marks below, so that the text can
/// be read on every color.
pub(crate) fn draw_plated_text(scene: &mut Scene, center: Point, text: &str, size_px: f32, weight: Weight) {
    let width = text_width_px(text, size_px, weight).ceil();
    let plate = Rect::new(
        (center.x_px - width / 2.0 - 3.0).round(),
        (center.y_px - size_px * 0.62).round(),
        width + 6.0,
        (size_px * 1.3).round(),
    );
    scene.add_rect(plate, Fill { role: Role::Background, pattern: Pattern::Strong }, None);
    let style = TextStyle { weight, ..TextStyle::new(Role::Text, size_px) };
    scene.add_text(
        Point::new(center.x_px, baseline(center.y_px, size_px)),
        text,
        style.anchored(Anchor::Middle),
    );
}

/// The baseline of a text whose small letters and digits are centered on `center_y_px`.
pub(crate) fn baseline(center_y_px: f32, size_px: f32) -> f32 {
    (center_y_px + size_px * 0.36).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_one_place_go_beside_each_other_and_then_below() {
        let mut rows = LabelRows::new(0.0, 300.0, 2);
        let places: Vec<_> = (0..4).map(|_| rows.place(150.0, 100.0)).collect();
        assert_eq!(places[0], Some(LabelPlace { row: 0, left_px: 100.0, right_px: 200.0 }));
        assert_eq!(places[1].map(|place| place.row), Some(1));
        assert_eq!((places[2], places[3]), (None, None));
        assert_eq!(rows.place(20.0, 80.0).map(|place| place.row), Some(0));
    }

    #[test]
    fn a_name_goes_where_its_area_is_the_highest_and_nothing_else_is_written() {
        let strip = |(at, height): (u8, f32)| AreaStrip {
            left_px: f32::from(at) * 10.0,
            right_px: f32::from(at) * 10.0 + 10.0,
            top_px: 100.0 - height,
            foot_px: 100.0,
        };
        let heights = [0.0, 20.0, 20.0, 20.0, 60.0, 50.0, 60.0, 10.0, 30.0, 30.0];
        let strips: Vec<AreaStrip> = (0..).zip(heights).map(strip).collect();
        let highest = Rect::new(40.0, 68.0, 30.0, 15.0);
        assert_eq!(roomiest_place(&strips, 30.0, 15.0, &[]), Some(highest));
        let beside = roomiest_place(&strips, 30.0, 15.0, &[highest]).unwrap();
        assert!(!beside.overlaps(&highest) && beside.x_px >= 10.0, "{beside:?}");
        assert_eq!(roomiest_place(&strips, 80.0, 15.0, &[]), None);
    }

    #[test]
    fn a_label_never_leaves_the_edges() {
        let mut rows = LabelRows::new(10.0, 110.0, 1);
        assert_eq!(rows.place(-50.0, 60.0), Some(LabelPlace { row: 0, left_px: 10.0, right_px: 70.0 }));
        assert_eq!(rows.place(60.0, 101.0), None);
    }
}
