//! A picture in another size, with its letters and lines.

use super::{Mark, Scene};
use crate::geometry::{Point, Rect};

impl Scene {
    /// The picture so many times as large.
    #[must_use]
    pub fn scaled(mut self, factor: f32) -> Self {
        self.width_px *= factor;
        self.height_px *= factor;
        for mark in &mut self.marks {
            scale(mark, factor);
        }
        for target in &mut self.targets {
            scale_rect(&mut target.rect, factor);
        }
        self
    }
}

fn scale(mark: &mut Mark, factor: f32) {
    match mark {
        Mark::Rect { rect, .. } => scale_rect(rect, factor),
        Mark::Rounded { rect, radius_px: length, .. } | Mark::Frame { rect, width_px: length, .. } => {
            scale_rect(rect, factor);
            *length *= factor;
        }
        Mark::Line { from, to, width_px, .. } => {
            scale_point(from, factor);
            scale_point(to, factor);
            *width_px *= factor;
        }
        Mark::Path { points, width_px, .. } => {
            scale_points(points, factor);
            *width_px *= factor;
        }
        Mark::Area { points, .. } => scale_points(points, factor),
        Mark::Text { at, size_px, clip, .. } => {
            scale_point(at, factor);
            *size_px *= factor;
            if let Some(clip) = clip {
                scale_rect(clip, factor);
            }
        }
    }
}

fn scale_points(points: &mut [Point], factor: f32) {
    for point in points {
        scale_point(point, factor);
    }
}

fn scale_point(point: &mut Point, factor: f32) {
    point.x_px *= factor;
    point.y_px *= factor;
}

fn scale_rect(rect: &mut Rect, factor: f32) {
    for length in [&mut rect.x_px, &mut rect.y_px, &mut rect.width_px, &mut rect.height_px] {
        *length *= factor;
    }
}
