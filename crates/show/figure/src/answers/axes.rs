//! The axes that the figures of answers share.

use blockyard_record::Bytes;

use crate::axis_range::AxisRange;
use crate::conversions::{ByteUnit, bytes_f64, px, round_bytes};
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::role::Role;
use crate::scene::{Anchor, Dash, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::{TimelineView, XScale, draw_x_axis, tick_step};

pub(super) const TEXT_PX: f32 = 11.0;
const LEFT_PX: f32 = 62.0;
/// The unit of the axis is at its upper end.
const TOP_PX: f32 = 20.0;
const BOTTOM_PX: f32 = 38.0;

/// Where the plot of a figure of an answer begins, and its width.
pub fn answer_sides(width_px: f32) -> (f32, f32) {
    (LEFT_PX, (width_px - LEFT_PX - 4.0).max(1.0))
}

/// Requests to the right, bytes upward from 0 to `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes {
    pub(super) plot: Rect,
    requests: u64,
    part: AxisRange,
    high: f64,
}

impl Axes {
    /// Axes of a figure of a part of the requests, with room for `most` bytes.
    pub(super) fn new(size: Size, requests: u64, part: AxisRange, most: Bytes) -> Self {
        let (left, width) = answer_sides(size.width_px);
        let plot = Rect::new(left, TOP_PX, width, (size.height_px - TOP_PX - BOTTOM_PX).max(1.0));
        let high = bytes_f64(most).max(1.0) * 1.06;
        Self { plot, requests: requests.max(1), part, high }
    }

    /// The place of a request, or the nearest edge of the plot.
    pub(super) fn x_px(&self, request: u64) -> f32 {
        let share = (self.share(request) - self.part.from) / (self.part.to - self.part.from);
        self.plot.x_px + px(share.clamp(0.0, 1.0)) * self.plot.width_px
    }

    /// Whether the request is in the part that is shown.
    pub(super) fn shows(&self, request: u64) -> bool {
        (self.part.from..=self.part.to).contains(&self.share(request))
    }

    fn share(&self, request: u64) -> f64 {
        (bytes_f64(Bytes::new(request)) / bytes_f64(Bytes::new(self.requests))).min(1.0)
    }

    /// The height of this many bytes.
    pub(super) fn y_px(&self, bytes: f64) -> f32 {
        let share = (bytes / self.high).clamp(0.0, 1.0);
        self.plot.bottom_px() - px(share) * self.plot.height_px
    }

    /// Draws level lines with their bytes on the left, under the unit of all, and the numbers of requests below
    /// the plot, as the figures over time have them.
    pub(super) fn draw(&self, scene: &mut Scene) {
        let most = if self.plot.height_px < 90.0 { 2 } else { 4 };
        let whole = round_bytes(self.high);
        let step = tick_step(whole, most);
        let unit = ByteUnit::of_ticks(step, whole);
        let style = TextStyle::new(Role::TextMuted, TEXT_PX).anchored(Anchor::End);
        scene.add_text(Point::new(self.plot.x_px - 7.0, self.plot.y_px - 9.0), unit.name(), style);
        let mut tick = Bytes::ZERO;
        loop {
            let y = self.y_px(bytes_f64(tick)).round() - 0.5;
            let from = Point::new(self.plot.x_px - 4.0, y);
            scene.add_hairline(from, Point::new(self.plot.right_px(), y), Role::Grid);
            scene.add_text(Point::new(self.plot.x_px - 7.0, y + 4.0), unit.tick(tick, step), style);
            match tick.checked_add(step) {
                Some(next) if next <= whole => tick = next,
                _ => break,
            }
        }
        // The tick of a request is where the request ends, as in the figures over time.
        let end = |share: f64| share * bytes_f64(Bytes::new(self.requests)) + 1.0;
        let view = TimelineView { first_step: end(self.part.from), last_step: end(self.part.to) };
        draw_x_axis(scene, &XScale::new(view, self.plot), &view, &self.plot);
    }

    /// The distance of two values in pixels.
    pub(super) fn height_px(&self, low: Bytes, high: Bytes) -> f32 {
        self.y_px(bytes_f64(low)) - self.y_px(bytes_f64(high))
    }

    /// Fills the area between two values over the whole width.
    pub(super) fn draw_band(&self, scene: &mut Scene, (low, high): (Bytes, Bytes), fill: crate::fill::Fill) {
        let (top, foot) = (self.y_px(bytes_f64(high)), self.y_px(bytes_f64(low)));
        scene.add_rect(Rect::new(self.plot.x_px, top, self.plot.width_px, foot - top), fill, None);
    }

    /// A level line over the whole width, with a word above it.
    pub(super) fn draw_level(&self, scene: &mut Scene, bytes: Bytes, role: Role, dash: Dash, text: &str) {
        let y = self.y_px(bytes_f64(bytes)).round() + 0.5;
        let (from, to) = (Point::new(self.plot.x_px, y), Point::new(self.plot.right_px(), y));
        scene.add_line(from, to, role, dash, 1.0);
        let width = text_width_px(text, TEXT_PX, Weight::Normal);
        if width + 8.0 < self.plot.width_px {
            // Above the line, where no curve goes; below only where the line is at the figure's upper edge.
            let top = if y >= 16.0 { y - 15.0 } else { y + 2.0 };
            let plate = Rect::new((self.plot.x_px + 3.0).floor(), top.round(), width + 6.0, 14.0);
            scene.add_rect(plate, crate::fill::Fill::solid(Role::Background), None);
            let at = Point::new(plate.x_px + 3.0, baseline(plate.center().y_px, TEXT_PX));
            scene.add_text(at, text, TextStyle::new(role, TEXT_PX));
        }
    }
}

/// An entry of a legend: a name, and a function that draws a sample at a place.
pub(super) type LegendEntry<'a> = (&'a str, &'a dyn Fn(&mut Scene, f32, f32));

/// Entries side by side on the last line, as many as fit.
pub(super) fn draw_legend(scene: &mut Scene, entries: &[LegendEntry<'_>]) {
    let y = scene.height_px - 6.0;
    let mut x = 2.0;
    for (name, draw) in entries {
        let end = x + 20.0 + text_width_px(name, TEXT_PX, Weight::Normal);
        if end > scene.width_px {
            return;
        }
        draw(scene, x, y - 4.0);
        scene.add_text(Point::new(x + 20.0, y), *name, TextStyle::new(Role::TextMuted, TEXT_PX));
        x = end + 14.0;
    }
}
