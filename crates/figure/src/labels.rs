//! Placing texts on a line without overlaps.

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
pub(crate) struct Place {
    pub(crate) row: usize,
    pub(crate) left_px: f32,
    pub(crate) right_px: f32,
}

const GAP_PX: f32 = 8.0;

impl LabelRows {
    pub(crate) fn new(left_px: f32, right_px: f32, rows: usize) -> Self {
        Self { left_px, right_px, taken: vec![Vec::new(); rows] }
    }

    /// A place of `width_px` near `x_px` in the first row with enough room: centered at `x_px`, or else to the left or right
    /// of it, always within the edges.
    pub(crate) fn place(&mut self, x_px: f32, width_px: f32) -> Option<Place> {
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
                    return Some(Place { row, left_px, right_px });
                }
            }
        }
        None
    }
}

/// A text on a rectangle in the background color, so that the text can be read on a pattern.
pub(crate) fn plated_text(scene: &mut Scene, center: Point, text: &str, size_px: f32, weight: Weight) {
    let width = text_width_px(text, size_px, weight).ceil();
    let plate = Rect::new(
        (center.x_px - width / 2.0 - 3.0).round(),
        (center.y_px - size_px * 0.62).round(),
        width + 6.0,
        (size_px * 1.3).round(),
    );
    scene.rect(plate, crate::fill::Fill::solid(Role::Background), None);
    let style = TextStyle { weight, ..TextStyle::new(Role::Text, size_px) };
    scene.text(Point::new(center.x_px, baseline(center.y_px, size_px)), text, style.anchored(Anchor::Middle));
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
        assert_eq!(places[0], Some(Place { row: 0, left_px: 100.0, right_px: 200.0 }));
        assert_eq!(places[1].map(|place| place.row), Some(1));
        assert_eq!((places[2], places[3]), (None, None));
        assert_eq!(rows.place(20.0, 80.0).map(|place| place.row), Some(0));
    }

    #[test]
    fn a_label_never_leaves_the_edges() {
        let mut rows = LabelRows::new(10.0, 110.0, 1);
        assert_eq!(rows.place(-50.0, 60.0), Some(Place { row: 0, left_px: 10.0, right_px: 70.0 }));
        assert_eq!(rows.place(60.0, 101.0), None);
    }
}
