//! The line below the bar with its numbers.

use super::{Metrics, Painter};
use crate::conversions::bytes_f64;
use crate::geometry::Point;
use crate::role::Role;
use crate::scene::{TextStyle, Weight};
use crate::stage::Stage;
use crate::text_width::text_width_px;

impl Painter<'_> {
    /// The line with its ticks. A projected stage has the numbers of both ends alone.
    pub(super) fn draw_ruler(&mut self) {
        let Metrics { text_px, width_px, .. } = self.metrics;
        let y = self.metrics.ruler_y_px() + 0.5;
        self.scene.add_hairline(Point::new(self.ruler.left_px, y), Point::new(width_px, y), Role::Grid);
        let mut free_from = 0.0;
        for (bytes, text) in self.ruler.ticks(text_px * 6.5) {
            let x = self.ruler.x_px(bytes_f64(bytes)).round().clamp(1.0, width_px - 1.0);
            self.scene.add_hairline(Point::new(x - 0.5, y), Point::new(x - 0.5, y + 6.0), Role::TextMuted);
            let width = text_width_px(&text, text_px, Weight::Normal);
            let left = (x - width / 2.0).min(width_px - width).max(0.0).round();
            if left >= free_from && (bytes.is_zero() || !self.is_projected()) {
                free_from = left + width + 8.0;
                let at = Point::new(left, y + 6.0 + text_px);
                self.scene.add_text(at, text, TextStyle::new(Role::TextMuted, text_px));
            }
        }
        if self.is_projected() {
            self.draw_end_of_ruler(free_from);
        }
    }

    /// The memory of the device below the end of a projected ruler, after the part of it that the ruler shows.
    fn draw_end_of_ruler(&mut self, free_from: f32) {
        let Stage { capacity, shown, .. } = *self.stage;
        let (device, text_px) = (self.device_text(0.0), self.metrics.text_px);
        let whole = if self.stage.is_enlarged() { format!("{shown} of {device}") } else { device };
        let left = self.ruler.x_px(bytes_f64(capacity)) - text_width_px(&whole, text_px, Weight::Normal);
        if left >= free_from {
            let at = Point::new(left.round(), self.metrics.ruler_y_px() + 6.5 + text_px);
            self.scene.add_text(at, whole, TextStyle::new(Role::Text, text_px));
        }
    }
}
