//! The names of blocks that are too narrow for them, on a line above the segments, and a block that is too small
//! to be seen, enlarged.

use blockyard_record::{BlockState, Bytes, counted, exact_size};

use super::draw::{Metrics, Painter};
use super::{Stage, StageBlock, StageForm};
use crate::conversions::{bytes_f64, px};
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, TargetId, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};

/// A stage with more blocks in use has no line of names: most of them would have no place on it.
pub(super) const MOST_BLOCKS: usize = 5;

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
    pub(super) fn make_room_for_leaders(&self, metrics: &mut Metrics, form: StageForm) {
        if !self.has_leaders || form == StageForm::Projected {
            return;
        }
        metrics.leaders_px = (metrics.text_px * 2.1).round();
        if self.enlarged().is_some() {
            metrics.enlarged_px = (metrics.text_px * 5.2).round();
        }
    }

    /// The last block in use with a name that cannot be seen in its segment.
    fn enlarged(&self) -> Option<&StageBlock> {
        let is_small = |block: &&StageBlock| {
            let segment = self.segments.iter().find(|segment| segment.id == block.segment);
            segment.is_some_and(|segment| block.size * SEEN_PART < segment.size)
        };
        let named = self.blocks.iter().filter(|block| block.name.is_some() && self.has_leaders);
        named.filter(|block| block.state == BlockState::Allocated).rfind(is_small)
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

    /// The names that fit on the line, from the left: with sizes, or else without, or else of the larger
    /// blocks alone.
    fn leaders(&self, room_px: f32) -> Vec<Leader<'a>> {
        let (stage, text_px) = (self.stage, self.metrics.text_px);
        let mut blocks: Vec<&'a StageBlock> =
            stage.blocks.iter().filter(|block| block.state.is_active()).collect();
        blocks.retain(|block| !self.has_name_inside(block));
        while !blocks.is_empty() {
            for has_size in [true, false] {
                let leader = |block: &&'a StageBlock| {
                    let name = block.name.as_deref()?;
                    let text = if has_size { format!("{name} {}", block.bytes) } else { name.to_owned() };
                    let width_px = text_width_px(&text, text_px, Weight::Normal).ceil();
                    Some(Leader { block, x_px: self.block_rect(block)?.center().x_px, text, width_px })
                };
                let leaders: Vec<_> = blocks.iter().filter_map(leader).collect();
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
