//! The names of blocks that are too narrow for them, on a line above the segments, and a block that is too small
//! to be seen, enlarged.

use std::collections::BTreeSet;

use blockyard_record::{BlockState, Bytes, counted, exact_size};

use super::draw::{Metrics, Painter};
use super::{Leaders, Stage, StageBlock};
use crate::conversions::{bytes_f64, px};
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, TargetId, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};

/// A stage with more names has no line of names: most of them would have no place on it.
pub(super) const MAX_NAMES: usize = 5;
/// Each of so many blocks is named, those that are free by their class.
pub(super) const FEW_BLOCKS: usize = 8;

/// A block with less than this part of its segment would not be seen even if the segment were as wide as the
/// figure.
const SEEN_PART: f64 = 256.0;

const GAP_PX: f32 = 10.0;

/// A name on the line above the segments.
struct Leader<'a> {
    block: &'a StageBlock,
    /// The middle of the block.
    x_px: f32,
    text: String,
    width_px: f32,
}

impl Stage {
    pub(super) fn make_room_for_leaders(&self, metrics: &mut Metrics) {
        if self.leaders == Leaders::None {
            return;
        }
        metrics.leaders_px = (metrics.text_px * 2.1).round();
        if self.enlarged().is_some() {
            metrics.enlarged_px = (metrics.text_px * 5.2).round();
        }
    }

    /// The only block in use, where it cannot be seen in its segment.
    fn enlarged(&self) -> Option<&StageBlock> {
        let mut active = self.blocks.iter().filter(|block| block.state.is_active());
        let only = active
            .next()
            .filter(|block| self.leaders == Leaders::Each && block.state == BlockState::Allocated)?;
        let segment = self.segments.iter().find(|segment| segment.id == only.segment)?;
        (active.next().is_none() && only.size * SEEN_PART < segment.size).then_some(only)
    }
}

impl<'a> Painter<'a> {
    pub(super) fn draw_leaders(&mut self) {
        let Metrics { text_px, leaders_px, width_px, .. } = self.metrics;
        if leaders_px <= 0.0 {
            return;
        }
        let foot = self.metrics.segments_y_px();
        let middle = foot - leaders_px + text_px * 0.6;
        let leaders = self.leaders(width_px);
        let lefts = places(&leaders, width_px);
        for (leader, left) in leaders.into_iter().zip(lefts) {
            let from = leader.x_px.clamp(left, left + leader.width_px);
            let (top, end) = (Point::new(from, middle + text_px * 0.6), Point::new(leader.x_px, foot));
            self.scene.add_line(top, end, Role::TextMuted, Dash::Solid, 1.0);
            let style = TextStyle::new(Role::Text, text_px);
            self.scene.add_text(Point::new(left, baseline(middle, text_px)), leader.text, style);
            let area = Rect::new(left, middle - text_px * 0.6, leader.width_px, text_px * 1.2);
            self.scene.add_target(area, TargetId::Block(leader.block.id));
        }
    }

    /// The names that fit on the line, from the left: with sizes, or else without those of free blocks, or else
    /// without sizes, or else of the larger blocks alone.
    fn leaders(&self, room_px: f32) -> Vec<Leader<'a>> {
        let stage = self.stage;
        let mut named = BTreeSet::new();
        let blocks = stage.blocks.iter().filter(|block| {
            let is_active = block.state.is_active();
            // One name is enough for all blocks of a list.
            let is_first = !is_active || named.insert(block.stem());
            is_first && (is_active || block.state == BlockState::Inactive && stage.leaders == Leaders::Each)
        });
        let mut blocks: Vec<&'a StageBlock> = blocks.filter(|block| !self.has_text_inside(block)).collect();
        while !blocks.is_empty() {
            for (has_free, has_sizes) in [(true, true), (false, true), (false, false)] {
                let shown = blocks.iter().filter(|block| has_free || block.state.is_active());
                let leaders: Vec<_> = shown.filter_map(|block| self.leader(block, has_sizes)).collect();
                let whole: f32 = leaders.iter().map(|leader| leader.width_px + GAP_PX).sum();
                if whole - GAP_PX <= room_px {
                    return leaders;
                }
            }
            let least = blocks.iter().map(|block| block.bytes).min();
            blocks.retain(|block| Some(block.bytes) != least);
        }
        Vec::new()
    }

    fn leader(&self, block: &'a StageBlock, has_size: bool) -> Option<Leader<'a>> {
        let name = if block.state.is_active() { block.name.as_deref()? } else { "cached" };
        let text = if has_size { format!("{name} {}", block.bytes) } else { name.to_owned() };
        let width_px = text_width_px(&text, self.metrics.text_px, Weight::Normal).ceil();
        Some(Leader { block, x_px: self.block_rect(block)?.center().x_px, text, width_px })
    }

    /// Draws the block that cannot be seen over the whole width, with lines from its place in the segment.
    pub(super) fn draw_enlarged(&mut self) {
        let Metrics { text_px, enlarged_px, width_px, segment_px, .. } = self.metrics;
        let stage = self.stage;
        let Some(block) = stage.enlarged().filter(|_| enlarged_px > 0.0) else { return };
        let Some(place) = self.block_rect(block) else { return };
        let Some(name) = block.name.as_deref() else { return };
        let top = self.metrics.enlarged_y_px() + (text_px * 0.7).round();
        let all = Rect::new(0.0, top, width_px, (text_px * 2.2).round().min(segment_px));
        for (from, to) in [(place.x_px, all.x_px + 0.5), (place.right_px(), all.right_px() - 0.5)] {
            let from = Point::new(from, place.bottom_px());
            self.scene.add_line(from, Point::new(to, all.y_px), Role::TextMuted, Dash::Dashed, 1.0);
        }
        let (asked, rounding) = (block.requested, block.bytes.saturating_sub(block.requested));
        let width = (all.width_px * px(bytes_f64(asked) / block.size.max(1.0))).round();
        let bytes = |bytes: Bytes| counted(bytes.get(), "byte");
        let parts = [
            (
                BreakdownClass::Requested,
                Rect { width_px: width - 1.0, ..all },
                format!("{name} asked for"),
                asked,
            ),
            (
                BreakdownClass::Rounding,
                Rect::new(width + 1.0, top, all.width_px - width - 1.0, all.height_px),
                "rounding".to_owned(),
                rounding,
            ),
        ];
        for (class, rect, word, size) in parts {
            if size.is_zero() || rect.width_px < 1.0 {
                continue;
            }
            self.scene.add_rounded(rect, Fill::of(class), 3.0);
            let texts = [format!("{word} {}", bytes(size)), bytes(size), size.get().to_string()];
            let fitting = first_fitting(&texts, text_px, Weight::Normal, rect.width_px - 10.0);
            let Some(text) = fitting else { continue };
            let role = if class == BreakdownClass::Requested { Role::TextOnRequested } else { Role::Text };
            let x = rect.center().x_px - text_width_px(text, text_px, Weight::Normal) / 2.0;
            let at = Point::new(x.round(), baseline(rect.center().y_px, text_px));
            self.put(at, text, TextStyle::new(role, text_px), class);
        }
        let size = exact_size(block.bytes);
        let texts = [format!("the block of {name}, enlarged: {size}"), format!("{name}, enlarged: {size}")];
        if let Some(text) = first_fitting(&texts, text_px, Weight::Normal, width_px) {
            let at = Point::new(0.0, all.bottom_px() + text_px * 1.35);
            self.scene.add_text(at, text, TextStyle::new(Role::TextMuted, text_px));
        }
    }
}

/// The left edges of the names: each above its block, or as near as its neighbors let it be.
fn places(leaders: &[Leader<'_>], room_px: f32) -> Vec<f32> {
    let mut free_from = 0.0_f32;
    let mut lefts = Vec::new();
    for leader in leaders {
        let left = (leader.x_px - leader.width_px / 2.0).max(free_from).round();
        free_from = left + leader.width_px + GAP_PX;
        lefts.push(left);
    }
    let mut end = room_px;
    for (left, leader) in lefts.iter_mut().zip(leaders).rev() {
        *left = left.min(end - leader.width_px).max(0.0);
        end = *left - GAP_PX;
    }
    lefts
}
