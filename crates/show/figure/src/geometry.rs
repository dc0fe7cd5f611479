//! Points, sizes and rectangles in CSS pixels.

use serde::{Deserialize, Serialize};

/// A position in CSS pixels, from the top left corner of a scene.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// To the right.
    pub x_px: f32,
    /// Down.
    pub y_px: f32,
}

impl Point {
    /// The point at `x_px`, `y_px`.
    #[must_use]
    pub const fn new(x_px: f32, y_px: f32) -> Self {
        Self { x_px, y_px }
    }
}

/// A width and a height in CSS pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// From left to right, in CSS pixels.
    pub width_px: f32,
    /// From top to bottom, in CSS pixels.
    pub height_px: f32,
}

impl Size {
    /// The size `width_px` by `height_px`.
    #[must_use]
    pub const fn new(width_px: f32, height_px: f32) -> Self {
        Self { width_px, height_px }
    }

    /// The size in whole pixels, at least 1 by 1 and at most 16384 by 16384; a value that is not a number
    /// counts as 1.
    pub(crate) fn tame(self) -> Self {
        let tame = |length: f32| if length.is_finite() { length.floor().clamp(1.0, 16384.0) } else { 1.0 };
        Self { width_px: tame(self.width_px), height_px: tame(self.height_px) }
    }
}

/// An upright rectangle in CSS pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rect {
    /// The left edge.
    pub x_px: f32,
    /// The upper edge.
    pub y_px: f32,
    /// To the right edge.
    pub width_px: f32,
    /// To the lower edge.
    pub height_px: f32,
}

impl Rect {
    /// The rectangle with its left upper corner at `x_px`, `y_px`.
    #[must_use]
    pub const fn new(x_px: f32, y_px: f32, width_px: f32, height_px: f32) -> Self {
        Self { x_px, y_px, width_px, height_px }
    }

    /// The right edge.
    pub fn right_px(&self) -> f32 {
        self.x_px + self.width_px
    }

    /// The lower edge.
    pub fn bottom_px(&self) -> f32 {
        self.y_px + self.height_px
    }

    /// The point in the middle.
    pub fn center(&self) -> Point {
        Point::new(self.x_px + self.width_px / 2.0, self.y_px + self.height_px / 2.0)
    }

    /// Whether the point lies inside; the left and upper edges belong to the rectangle, the right and lower
    /// edges do not.
    pub fn contains(&self, x_px: f32, y_px: f32) -> bool {
        x_px >= self.x_px && x_px < self.right_px() && y_px >= self.y_px && y_px < self.bottom_px()
    }

    /// The rectangle grown by `margin_px` on each side; shrunk where that is negative.
    #[must_use]
    pub fn grown(&self, margin_px: f32) -> Self {
        Self::new(
            self.x_px - margin_px,
            self.y_px - margin_px,
            (self.width_px + 2.0 * margin_px).max(0.0),
            (self.height_px + 2.0 * margin_px).max(0.0),
        )
    }

    /// Whether two rectangles share a point of their insides.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x_px < other.right_px()
            && other.x_px < self.right_px()
            && self.y_px < other.bottom_px()
            && other.y_px < self.bottom_px()
    }
}
