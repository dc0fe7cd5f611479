mod overview;

use blockyard_record::{Breakdown, Bytes, MemoryState};

use crate::apportion::apportion;
use crate::breakdown_bar::overview::draw_legend;
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::labels::{LabelRows, baseline, plated_text};
use crate::numbers::{count_px, floor_count, percent, px, share};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TargetId, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};

const TIER_PX: f32 = 19.0;
const BAR_Y_PX: f32 = 2.0 * TIER_PX + 2.0;
/// The enlarged bar, with the whole device below it.
const ENLARGED_BAR_PX: f32 = 40.0;
/// The height of the overview below the enlarged bar. A bar without overview is higher by this.
const OVERVIEW_PX: f32 = 44.0;
const TICK_ROW_PX: f32 = 15.0;
const LEGEND_ROW_PX: f32 = 34.0;
const LEGEND_COLUMN_PX: f32 = 112.0;
const SMALL_TEXT_PX: f32 = 11.0;
const TEXT_PX: f32 = 12.0;

/// The height of [`breakdown_bar`] at this width. It does not depend on the state, so that nothing moves during playback.
#[must_use]
pub fn breakdown_bar_height(width_px: f32) -> f32 {
    let width_px = Size::new(width_px, 1.0).tame().width_px;
    legend_y_px(width_px) + legend_rows(width_px) * LEGEND_ROW_PX
}

/// The capacity as one bar in which every byte is in exactly one class: requested, rounding, pending, cached, free, from
/// left to right.
///
/// Brackets show the sums that PyTorch's terms mean; ticks show the peaks and the limit. If little of the device is ever
/// reserved, the bar shows the first part of the device enlarged, and the whole device below. The height of the scene is
/// [`breakdown_bar_height`], for any height of `size`.
#[must_use]
pub fn breakdown_bar(state: &MemoryState, size: Size) -> Scene {
    let width_px = size.tame().width_px;
    let mut scene = Scene::new(width_px, breakdown_bar_height(width_px));
    let bar = Bar::new(state, width_px);
    let rects = bar.draw_classes(&mut scene);
    bar.draw_brackets(&mut scene);
    bar.draw_ticks(&mut scene);
    for (class, rect) in &rects {
        bar.draw_class_label(&mut scene, *class, rect);
    }
    if bar.is_enlarged() {
        bar.draw_overview(&mut scene);
    }
    draw_legend(&mut scene, &bar.breakdown);
    scene
}

fn legend_columns(width_px: f32) -> f32 {
    (width_px / LEGEND_COLUMN_PX).floor().clamp(1.0, 5.0)
}

fn legend_rows(width_px: f32) -> f32 {
    (5.0 / legend_columns(width_px)).ceil()
}

fn tick_rows(width_px: f32) -> usize {
    if width_px < 480.0 { 3 } else { 2 }
}

fn ticks_y_px() -> f32 {
    BAR_Y_PX + ENLARGED_BAR_PX
}

fn overview_y_px(width_px: f32) -> f32 {
    ticks_y_px() + 8.0 + count_px(tick_rows(width_px)) * TICK_ROW_PX
}

fn legend_y_px(width_px: f32) -> f32 {
    overview_y_px(width_px) + OVERVIEW_PX + 8.0
}

/// A value marked on the bar.
struct Tick {
    bytes: Bytes,
    name: &'static str,
    role: Role,
    dash: Dash,
    target: TargetId,
}

/// The geometry of one bar.
struct Bar {
    breakdown: Breakdown,
    peak_allocated: Bytes,
    peak_reserved: Bytes,
    limit: Option<Bytes>,
    /// The bytes that the width stands for: the capacity, or its first part.
    shown: Bytes,
    width_px: f32,
    /// Where each class ends, in [`BreakdownClass::ALL`]'s order.
    ends_px: [f32; 5],
}

impl Bar {
    fn new(state: &MemoryState, width_px: f32) -> Self {
        let breakdown = state.breakdown();
        let peak = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
        let peak_reserved = peak(state.stats().reserved_bytes.all.peak);
        let shown = shown_bytes(breakdown.capacity(), peak_reserved.max(breakdown.reserved()));
        let ends_px = class_ends_px(&breakdown, shown, width_px);
        Self {
            breakdown,
            peak_allocated: peak(state.stats().allocated_bytes.all.peak),
            peak_reserved,
            limit: state.limit(),
            shown,
            width_px,
            ends_px,
        }
    }

    fn is_enlarged(&self) -> bool {
        self.shown < self.breakdown.capacity()
    }

    fn height_px(&self) -> f32 {
        if self.is_enlarged() { ENLARGED_BAR_PX } else { ENLARGED_BAR_PX + OVERVIEW_PX }
    }

    fn bottom_px(&self) -> f32 {
        BAR_Y_PX + self.height_px()
    }

    /// The place of a byte count, on a whole pixel that is inside the bar.
    fn x_px(&self, bytes: Bytes) -> f32 {
        (px(share(bytes, self.shown)) * self.width_px).round().clamp(0.0, self.width_px - 1.0)
    }

    /// Draws the classes and returns their rectangles.
    fn draw_classes(&self, scene: &mut Scene) -> Vec<(BreakdownClass, Rect)> {
        let mut rects = Vec::new();
        let mut left = 0.0;
        for (class, end) in BreakdownClass::ALL.into_iter().zip(self.ends_px) {
            let rect = Rect::new(left, BAR_Y_PX, end - left, self.height_px());
            left = end;
            if rect.width_px <= 0.0 {
                continue;
            }
            scene.rect(rect, Fill::of(class), None);
            if class != BreakdownClass::Requested && rect.width_px > 2.0 {
                // The edge separates neighbors where patterns are cut off.
                let x = rect.x_px + 0.5;
                scene.hairline(Point::new(x, rect.y_px), Point::new(x, rect.bottom_px()), Role::Background);
            }
            scene.target(rect, TargetId::Class(class));
            rects.push((class, rect));
        }
        let whole = Rect::new(0.0, BAR_Y_PX, self.width_px, self.height_px());
        scene.frame(whole, Role::Free, Dash::Solid, 1.0);
        rects
    }

    /// The widest part of the rectangle that no tick runs through.
    fn widest_part(&self, rect: &Rect) -> Rect {
        let ticks = self.ticks();
        let mut cuts: Vec<f32> = ticks.iter().map(|tick| self.x_px(tick.bytes)).collect();
        cuts.retain(|x| *x > rect.x_px && *x < rect.right_px());
        cuts.extend([rect.x_px, rect.right_px()]);
        cuts.sort_by(f32::total_cmp);
        let parts = cuts.windows(2).map(|pair| Rect { x_px: pair[0], width_px: pair[1] - pair[0], ..*rect });
        parts.max_by(|one, other| one.width_px.total_cmp(&other.width_px)).unwrap_or(*rect)
    }

    fn draw_class_label(&self, scene: &mut Scene, class: BreakdownClass, rect: &Rect) {
        let part = self.widest_part(rect);
        let room = part.width_px - 14.0;
        let bytes = class.bytes(&self.breakdown);
        let values = if class == BreakdownClass::Free && self.is_enlarged() {
            // Only a small part of the class is in this bar.
            [format!("{bytes} in all"), "and more".to_owned()]
        } else {
            [format!("{bytes} · {}", class_share(class, &self.breakdown)), bytes.to_string()]
        };
        if text_width_px(class.name(), TEXT_PX, Weight::Bold) > room {
            return;
        }
        let Some(value) = first_fitting(&values, TEXT_PX, Weight::Normal, room) else { return };
        let Point { x_px, y_px } = part.center();
        let role = if class == BreakdownClass::Requested { Role::TextOnRequested } else { Role::Text };
        for (text, y, weight) in
            [(class.name(), y_px - 8.0, Weight::Bold), (value, y_px + 8.0, Weight::Normal)]
        {
            if matches!(Fill::of(class).pattern, Pattern::Solid | Pattern::Faint) {
                let style = TextStyle { weight, ..TextStyle::new(role, TEXT_PX) };
                scene.text(Point::new(x_px, baseline(y, TEXT_PX)), text, style.anchored(Anchor::Middle));
            } else {
                plated_text(scene, Point::new(x_px, y), text, TEXT_PX, weight);
            }
        }
    }

    fn draw_brackets(&self, scene: &mut Scene) {
        let reserved = ("reserved", self.breakdown.reserved(), self.ends_px[3]);
        let allocated = ("allocated", self.breakdown.allocated(), self.ends_px[1]);
        for (tier, (name, bytes, end)) in [reserved, allocated].into_iter().enumerate() {
            let top = count_px(tier) * TIER_PX;
            let line_y = top + TIER_PX - 3.5;
            let text = format!("{name} {bytes}");
            let text_width = text_width_px(&text, TEXT_PX, Weight::Bold);
            let right = (end - 0.5).max(0.5);
            if end >= 1.0 {
                let foot_y = BAR_Y_PX - 1.0;
                for x in [0.5, right] {
                    scene.hairline(Point::new(x, line_y), Point::new(x, foot_y), Role::TextMuted);
                }
                scene.hairline(Point::new(0.0, line_y), Point::new(right + 0.5, line_y), Role::TextMuted);
            }
            // The text is centered over its bracket if it fits, and otherwise after the end of the bracket.
            let left = if text_width + 8.0 <= end {
                (end - text_width) / 2.0
            } else if end >= 1.0 {
                (end + 5.0).min(self.width_px - text_width).max(0.0)
            } else {
                0.0
            };
            if text_width + 8.0 > end {
                // The end of the outer bracket may be behind the text.
                let plate = Rect::new(left.round() - 2.0, top + 1.0, text_width + 4.0, TIER_PX - 4.0);
                scene.rect(plate, Fill::solid(Role::Background), None);
            }
            let style = TextStyle::new(Role::Text, TEXT_PX).bold();
            scene.text(Point::new(left.round(), top + 12.0), text, style);
        }
    }

    fn ticks(&self) -> Vec<Tick> {
        let tick = |bytes, name, role, dash, target| Tick { bytes, name, role, dash, target };
        let mut ticks = vec![
            tick(
                self.peak_allocated,
                "peak allocated",
                Role::PeakAllocated,
                Dash::Dashed,
                TargetId::PeakAllocated,
            ),
            tick(
                self.peak_reserved,
                "peak reserved",
                Role::PeakReserved,
                Dash::Dotted,
                TargetId::PeakReserved,
            ),
        ];
        let limit = self.limit.filter(|limit| *limit <= self.shown);
        ticks.extend(limit.map(|limit| tick(limit, "limit", Role::Limit, Dash::Solid, TargetId::Limit)));
        ticks
    }

    fn draw_ticks(&self, scene: &mut Scene) {
        let mut rows = LabelRows::new(0.0, self.width_px, tick_rows(self.width_px));
        let bottom = self.bottom_px();
        for Tick { bytes, name, role, dash, target } in self.ticks() {
            let x = self.x_px(bytes) + 0.5;
            let (top, foot) = (Point::new(x, BAR_Y_PX), Point::new(x, bottom + 5.0));
            scene.line(top, foot, Role::Background, Dash::Solid, 4.0);
            scene.line(top, foot, role, dash, 2.0);
            let tip = [
                Point::new(x, bottom + 1.0),
                Point::new(x + 4.0, bottom + 7.0),
                Point::new(x - 4.0, bottom + 7.0),
            ];
            scene.marks.push(crate::scene::Mark::Area { points: tip.to_vec(), fill: Fill::solid(role) });
            scene.target(Rect::new(x - 5.0, BAR_Y_PX, 10.0, self.height_px() + 8.0), target);
            let text = format!("{name} {bytes}");
            let width = text_width_px(&text, SMALL_TEXT_PX, Weight::Normal);
            if let Some(place) = rows.place(x, width) {
                let y = bottom + 18.0 + count_px(place.row) * TICK_ROW_PX;
                if place.row > 0
                    && !rows.is_crossed(x, place.row)
                    && (place.left_px..=place.right_px).contains(&x)
                {
                    scene.hairline(Point::new(x, bottom + 7.0), Point::new(x, y - 10.0), role);
                }
                scene.text(Point::new(place.left_px.round(), y), text, TextStyle::new(role, SMALL_TEXT_PX));
                let rect = Rect::new(place.left_px, y - 11.0, place.right_px - place.left_px, 14.0);
                scene.target(rect, target);
            }
        }
    }
}

/// The capacity; or, if less than an eighth of it was ever reserved, a round part that contains every byte ever reserved.
///
/// The part depends on the peak and not on the moment, so that the scale does not change during playback.
pub(crate) fn shown_bytes(capacity: Bytes, peak: Bytes) -> Bytes {
    // A sum beyond 2^63 is more than an eighth of any device: then the capacity is shown.
    let wanted = peak.get().max(Bytes::mib(20).get()).saturating_add(peak.get() / 16);
    let power = wanted.checked_next_power_of_two().unwrap_or(u64::MAX);
    let three_quarters = power.saturating_sub(power / 4);
    let round = if three_quarters >= wanted { three_quarters } else { power };
    if round <= capacity.get() / 8 { Bytes::new(round) } else { capacity }
}

/// The share of a class in what it is a part of: the reserved bytes, or, for free bytes, the device.
pub(crate) fn class_share(class: BreakdownClass, breakdown: &Breakdown) -> String {
    let bytes = class.bytes(breakdown);
    match class {
        BreakdownClass::Free => format!("{} of the device", percent(bytes, breakdown.capacity())),
        _ => format!("{} of reserved", percent(bytes, breakdown.reserved())),
    }
}

fn class_ends_px(breakdown: &Breakdown, shown: Bytes, width_px: f32) -> [f32; 5] {
    let mut parts = BreakdownClass::ALL.map(|class| class.bytes(breakdown));
    parts[4] = shown.saturating_sub(breakdown.reserved());
    let widths = apportion(&parts, floor_count(f64::from(width_px)));
    let mut end = 0;
    let mut ends = [0.0; 5];
    for (slot, width) in ends.iter_mut().zip(widths) {
        end += width;
        *slot = count_px(end);
    }
    ends
}
