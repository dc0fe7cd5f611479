//! The free bytes of the device, divided by the limit of the process.

use blockyard_record::Bytes;

use super::{CUTS_PX, Metrics, Painter};
use crate::conversions::bytes_f64;
use crate::fill::{BEYOND_LIMIT, Fill};
use crate::geometry::{Point, Rect};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, TargetId, TextStyle, Weight};
use crate::text_width::text_width_px;

impl Painter<'_> {
    /// The free bytes of the device in two parts: bytes that the process may still reserve, and bytes beyond
    /// its limit. `before` is the area before them, with the pixels that its words take. Returns whether the
    /// ruler reaches the limit.
    pub(super) fn draw_free_within_limit(
        &mut self,
        from: f64,
        free: Bytes,
        before: Option<(Rect, f32)>,
    ) -> bool {
        let stage = self.stage;
        let Some(limit) = stage.limit.filter(|limit| limit.highest < stage.shown) else { return false };
        let Metrics { bar_px, width_px, .. } = self.metrics;
        let y = self.metrics.bar_y_px();
        let end = bytes_f64(limit.highest).max(from);
        let (left, middle) = (self.ruler.x_px(from).round(), self.ruler.x_px(end).round());
        let within = limit.highest.saturating_sub(stage.numbers.reserved).min(free);
        if middle - left >= 1.0 {
            let rect = Rect::new(left + 1.0, y, (middle - left - 2.0).max(1.0), bar_px);
            self.scene.add_rounded(rect, Fill::of(BreakdownClass::Free), 4.0);
            self.scene.add_target(rect, TargetId::Class(BreakdownClass::Free));
            // Of a limit between two bounds, the upper bound alone leaves this much free.
            let at_most = if limit.lowest < limit.highest { ", at most" } else { "" };
            let words =
                [format!("free within the limit{at_most}"), format!("free{at_most}"), "free".to_owned()];
            if self.draw_class_text(BreakdownClass::Free, within, &words, &rect) <= 0.0 {
                self.draw_free_before(within, before);
            }
        }
        let end = self.ruler.x_px(bytes_f64(stage.capacity)).round().min(width_px);
        let mut beyond = Rect::new(middle, y, (end - middle).max(1.0), bar_px);
        self.scene.add_rect(beyond, BEYOND_LIMIT, None);
        self.scene.add_target(beyond, TargetId::Limit);
        if stage.is_enlarged() && beyond.width_px > 3.0 * CUTS_PX {
            self.draw_cuts(&beyond);
            beyond.width_px -= CUTS_PX;
        }
        let range = limit.range_text();
        // On a device of unknown size, only this part of the free bytes is known.
        let at_least = if stage.is_capacity_unknown { ", at least" } else { "" };
        let words = [
            format!("beyond the limit {range}: not for this process{at_least}"),
            format!("not for this process{at_least}"),
            "not for this process".to_owned(),
            "beyond the limit".to_owned(),
        ];
        self.draw_class_text(BreakdownClass::Free, free.saturating_sub(within), &words, &beyond);
        let (mut top, foot) = (Point::new(middle, y - 3.0), Point::new(middle, y + bar_px + 3.0));
        if let Some(at) = self.limit_name_at() {
            let text_px = self.metrics.text_px;
            let text = format!("limit {range}");
            top.y_px = at.y_px + text_px * 0.35;
            self.scene.add_text(at, text, TextStyle::new(Role::Limit, text_px));
        }
        self.scene.add_line(top, foot, Role::Background, Dash::Solid, 4.0);
        self.scene.add_line(top, foot, Role::Limit, Dash::Dashed, 2.0);
        true
    }

    /// Where the limit's value begins above the bar, over its mark and beside the words about allocated
    /// bytes; `None` where there is no room, or no limit on the ruler.
    pub(in crate::stage) fn limit_name_at(&self) -> Option<Point> {
        let Metrics { text_px, width_px, tiers, tier_px, .. } = self.metrics;
        let limit = self.stage.limit.filter(|limit| limit.highest < self.stage.shown)?;
        let wide = |text: &str| text_width_px(text, text_px, Weight::Normal);
        let width = wide(&format!("limit {}", limit.range_text()));
        let left_px = self.ruler.left_px;
        let numbers = &self.stage.numbers;
        let value = self.with_peak(numbers.allocated, numbers.max_allocated);
        let whole = self.name_px(self.stage.allocated_name()) + wide(&value);
        let end = self.ruler.x_px(self.stage.allocated());
        // The place of the words is computed as in `draw_bracket`.
        let words = (left_px.midpoint(end) - whole / 2.0).min(width_px - whole).max(left_px).round();
        let mark = self.ruler.x_px(bytes_f64(limit.highest));
        let left = (mark - width / 2.0).min(width_px - width).max(words + whole + 12.0).round();
        let line_y = (tiers * tier_px - 7.0).round() + 0.5;
        let is_at_mark = left <= mark && left + width <= width_px;
        is_at_mark.then(|| Point::new(left, (line_y - text_px * 0.45).round()))
    }
}
