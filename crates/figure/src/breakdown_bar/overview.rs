//! The parts below the bar: the overview of the whole device, and the legend.

use blockyard_record::Breakdown;

use crate::breakdown_bar::{
    Bar, LEGEND_ROW_PX, SMALL_TEXT_PX, TEXT_PX, class_ends_px, class_share, legend_columns, legend_y_px,
    overview_y_px,
};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::numbers::{count_px, percent, px, share};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, Mark, Scene, TargetId, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};

impl Bar {
    /// The whole device as a thin bar, with guide lines from the part that is enlarged above.
    pub(super) fn draw_overview(&self, scene: &mut Scene) {
        let capacity = self.breakdown.capacity();
        let (top, bar_top, bar_height) =
            (overview_y_px(self.width_px), overview_y_px(self.width_px) + 12.0, 12.0);
        let part = (px(share(self.shown, capacity)) * self.width_px).round().max(1.0);
        let corners = vec![
            Point::new(0.5, top),
            Point::new(self.width_px - 0.5, top),
            Point::new(part - 0.5, bar_top),
            Point::new(0.5, bar_top),
        ];
        scene.marks.push(Mark::Area {
            points: corners.clone(),
            fill: Fill { role: Role::TextMuted, pattern: Pattern::Faint },
        });
        scene.hairline(corners[1], corners[2], Role::TextMuted);
        scene.hairline(corners[0], corners[3], Role::TextMuted);
        let ends = class_ends_px(&self.breakdown, capacity, self.width_px);
        let mut left = 0.0;
        for (class, end) in BreakdownClass::ALL.into_iter().zip(ends) {
            if end > left {
                let rect = Rect::new(left, bar_top, end - left, bar_height);
                scene.rect(rect, Fill::of(class), None);
                scene.target(rect, TargetId::Class(class));
            }
            left = end;
        }
        scene.frame(Rect::new(0.0, bar_top, self.width_px, bar_height), Role::Free, Dash::Solid, 1.0);
        let text_y = bar_top + bar_height + 14.0;
        let reserved = percent(self.breakdown.reserved(), capacity);
        let texts = [
            format!(
                "device: {capacity}, {reserved} of it reserved; the bar above shows its first {}",
                self.shown
            ),
            format!("device: {capacity}; the bar above shows its first {}", self.shown),
            format!("{capacity}; above {}", self.shown),
        ];
        let limit =
            self.limit.filter(|limit| *limit > self.shown).map(|limit| (limit, format!("limit {limit}")));
        let limit_width =
            limit.as_ref().map_or(0.0, |(_, text)| text_width_px(text, SMALL_TEXT_PX, Weight::Normal) + 14.0);
        let room = self.width_px - limit_width;
        let caption = first_fitting(&texts, SMALL_TEXT_PX, Weight::Normal, room).unwrap_or_default();
        scene.text(Point::new(0.0, text_y), caption, TextStyle::new(Role::TextMuted, SMALL_TEXT_PX));
        if let Some((limit, text)) = limit {
            let x =
                (px(share(limit, capacity)) * self.width_px).round().clamp(0.0, self.width_px - 1.0) + 0.5;
            let (top, foot) = (Point::new(x, bar_top - 4.0), Point::new(x, bar_top + bar_height));
            scene.line(top, foot, Role::Limit, Dash::Solid, 2.0);
            scene.target(Rect::new(x - 5.0, bar_top - 4.0, 10.0, bar_height + 4.0), TargetId::Limit);
            // The text is below its tick, or as near to it as the caption allows.
            let least = text_width_px(caption, SMALL_TEXT_PX, Weight::Normal) + 14.0;
            let left = (x - limit_width / 2.0).min(self.width_px - limit_width + 14.0).max(least);
            scene.text(Point::new(left.round(), text_y), text, TextStyle::new(Role::Limit, SMALL_TEXT_PX));
        }
    }
}

/// Every class with its swatch, size and percentage, at fixed places.
pub(super) fn draw_legend(scene: &mut Scene, breakdown: &Breakdown) {
    let columns = legend_columns(scene.width_px);
    let column_px = (scene.width_px / columns).floor();
    let top = legend_y_px(scene.width_px);
    for (index, class) in BreakdownClass::ALL.into_iter().enumerate() {
        let (column, row) = (count_px(index) % columns, (count_px(index) / columns).floor());
        let (x, y) = (column * column_px, top + row * LEGEND_ROW_PX);
        let swatch = Rect::new(x, y + 1.0, 14.0, 14.0);
        scene.rect(swatch, Fill::of(class), Some(class.role()));
        let clip = Rect::new(x, y, column_px - 4.0, LEGEND_ROW_PX);
        let name = TextStyle::new(Role::Text, TEXT_PX).bold().clipped(clip);
        scene.text(Point::new(x + 20.0, y + 12.0), class.name(), name);
        let bytes = class.bytes(breakdown);
        let texts = [format!("{bytes} · {}", class_share(class, breakdown)), bytes.to_string()];
        let room = column_px - 24.0;
        let text = first_fitting(&texts, TEXT_PX, Weight::Normal, room).unwrap_or(&texts[1]);
        let value = TextStyle::new(Role::TextMuted, TEXT_PX).clipped(clip);
        scene.text(Point::new(x + 20.0, y + 27.0), text, value);
        scene.target(clip, TargetId::Class(class));
    }
}
