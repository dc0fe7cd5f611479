//! The segments and their blocks, and a request that found no memory among the blocks.

use blockyard_record::{BlockId, BlockState, PoolKind};

use super::draw::Painter;
use super::{Change, Leaders, StageBlock, StageForm, StageSegment};
use crate::conversions::{bytes_f64, px};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TargetId, TextStyle, Weight};
use crate::term::Term;
use crate::text_width::{first_fitting, fitted, text_width_px};

/// Neighboring blocks narrower than this are drawn as one rectangle.
const NARROW_PX: f32 = 2.0;
/// A block is seen, however narrow.
const MIN_PX: f32 = 1.0;
const CHANGED_PX: f32 = 4.0;
/// A block that has its name above the segments is at least this wide.
const LED_PX: f32 = 3.0;
/// A segment of at least this width is framed, since borders of segments differ from borders of blocks. A
/// narrower segment has no room for a frame.
const FRAMED_PX: f32 = 12.0;
const FRAME_PX: f32 = 1.0;

fn is_framed(segment: &Rect) -> bool {
    segment.width_px >= FRAMED_PX - 2.0
}

fn class_of(state: BlockState) -> BreakdownClass {
    match state {
        BlockState::Allocated => BreakdownClass::Requested,
        BlockState::PendingFree => BreakdownClass::Pending,
        BlockState::Inactive => BreakdownClass::Cached,
        BlockState::Unmapped => BreakdownClass::Free,
    }
}

/// The room for a text on a block, to the left of its rounding.
fn text_room_px(block: &StageBlock, rect: &Rect) -> f32 {
    let has_rounding = block.state == BlockState::Allocated && block.size > 0.0;
    let solid = if has_rounding { px(bytes_f64(block.requested) / block.size) } else { 1.0 };
    rect.width_px * solid - 12.0
}

impl Painter<'_> {
    pub(super) fn draw_segments(&mut self) {
        let stage = self.stage;
        self.draw_free_part();
        for segment in &stage.segments {
            let rect = self.segment_rect(segment);
            if is_framed(&rect) {
                self.scene.add_frame(rect, Role::TextMuted, Dash::Solid, FRAME_PX);
            }
            self.scene.add_target(rect, TargetId::Segment(segment.id));
        }
        let mut narrow = NarrowBlocks::default();
        // A block in use that is wider than to scale lies over its neighbor.
        let mut blocks: Vec<&StageBlock> = stage.blocks.iter().collect();
        if stage.leaders == Leaders::Each {
            blocks.sort_by_key(|block| block.state.is_active());
        }
        for block in blocks {
            let Some(rect) = self.block_rect(block) else { continue };
            if rect.width_px < NARROW_PX && block.change.is_none() {
                narrow.take(&rect, block, self.scene);
                continue;
            }
            self.draw_block(block, &rect);
        }
        narrow.flush(self.scene);
        for block in stage.blocks.iter().filter(|block| block.change.is_some()) {
            if let Some(rect) = self.block_rect(block) {
                self.draw_change(block, &rect);
            }
        }
        let has_labels = !self.is_projected();
        let mut before = None;
        for (index, segment) in stage.segments.iter().enumerate().filter(|_| has_labels) {
            // The label of a first or a second segment may go on below the free part.
            let is_last = index + 1 == stage.segments.len() && index < 2;
            self.draw_segment_label(segment, before, if is_last { self.ruler.width_px } else { 0.0 });
            before = Some(segment);
        }
        self.draw_selected();
    }

    pub(super) fn place_segments(&mut self) {
        let rects = self.stage.segments.iter().map(|segment| (segment.id, self.segment_rect(segment)));
        self.rects = rects.collect();
    }

    /// The segment with a gap to its neighbors.
    fn segment_rect(&self, segment: &StageSegment) -> Rect {
        let (left, right) = self.span_px(segment.start, segment.size);
        let gap = if right - left >= FRAMED_PX { 1.0 } else { 0.0 };
        let width = (right - left - 2.0 * gap).max(1.0);
        Rect::new(left + gap, self.metrics.segments_y_px(), width, self.metrics.segment_px)
    }

    fn span_px(&self, start: f64, size: f64) -> (f32, f32) {
        (self.ruler.x_px(start).round(), self.ruler.x_px(start + size).round())
    }

    /// The block inside the frame of its segment, with a gap to its neighbors.
    pub(super) fn block_rect(&self, block: &StageBlock) -> Option<Rect> {
        let outer = self.rects.get(&block.segment)?;
        let outer = if is_framed(outer) { outer.grown(-FRAME_PX - 1.0) } else { *outer };
        let (left, right) = self.span_px(block.start, block.size);
        let (left, right) = (left.max(outer.x_px), right.min(outer.right_px()));
        let gap = if right - left > 5.0 { 1.0 } else { 0.0 };
        let rect = Rect::new(left + gap, outer.y_px, (right - left - 2.0 * gap).max(0.0), outer.height_px);
        // A changed block is visible, however small.
        let least = match block.change {
            Some(_) => 2.0,
            None if self.stage.leaders == Leaders::Each && block.state.is_active() => LED_PX,
            None => 0.5,
        };
        Some(Rect { width_px: rect.width_px.max(least), ..rect })
    }

    fn draw_block(&mut self, block: &StageBlock, rect: &Rect) {
        self.draw_block_fill(block, block.state, rect);
        self.draw_block_text(block, rect);
        self.scene.add_target(*rect, TargetId::Block(block.id));
    }

    fn draw_block_fill(&mut self, block: &StageBlock, state: BlockState, rect: &Rect) {
        self.scene.add_rounded(*rect, Fill::of(class_of(state)), 3.0);
        let beyond = block.size - bytes_f64(block.requested);
        if state == BlockState::Allocated && beyond > 0.0 && block.size > 0.0 {
            let width = (rect.width_px * px(beyond / block.size)).round();
            if width >= 1.0 {
                let part = Rect::new(rect.right_px() - width, rect.y_px, width, rect.height_px);
                self.scene.add_rounded(part, Fill::of(BreakdownClass::Rounding), 2.0);
            }
        }
    }

    /// Whether a projected stage names the block and says its size: the first that the step changed, unless the
    /// process or a failed request has the labels.
    fn is_projected_label(&self, block: &StageBlock) -> bool {
        let changed = self.stage.blocks.iter().find(|block| block.change.is_some());
        let is_free = self.stage.non_pytorch_bytes.is_none() && self.stage.failed.is_none();
        is_free && changed.is_some_and(|changed| changed.id == block.id)
    }

    fn draw_block_text(&mut self, block: &StageBlock, rect: &Rect) {
        let text_px = self.metrics.text_px;
        let has_size = !self.is_projected() || self.is_projected_label(block);
        // A text that speaks of few tensors needs their names.
        let has_name = has_size || (self.stage.leaders != Leaders::None && block.state.is_active());
        if rect.height_px < text_px * 1.4 || !has_name {
            return;
        }
        let is_allocated = block.state == BlockState::Allocated;
        let room = text_room_px(block, rect);
        let size = block.bytes.to_string();
        let y = baseline(rect.center().y_px, text_px);
        let x = rect.x_px + 7.0;
        let role = if is_allocated { Role::TextOnRequested } else { Role::Text };
        let style = TextStyle::new(role, text_px);
        let name = block.name.as_deref().filter(|_| block.state.is_active());
        let Some(name) = name else {
            if text_width_px(&size, text_px, Weight::Normal) <= room {
                self.put(Point::new(x, y), &size, style, class_of(block.state));
            }
            return;
        };
        let Some(text) = fitted(name, text_px, Weight::Bold, room) else { return };
        if self.stage.leaders != Leaders::None && text != name {
            return;
        }
        let used = text_width_px(&text, text_px, Weight::Bold) + 7.0;
        let has_room =
            has_size && text == name && used + text_width_px(&size, text_px, Weight::Normal) <= room;
        if block.state == BlockState::PendingFree {
            return self.put(Point::new(x, y), &text, style.bold(), BreakdownClass::Pending);
        }
        self.scene.add_text(Point::new(x, y), text, style.bold());
        if has_room {
            self.scene.add_text(Point::new(x + used, y), size, style);
        }
    }

    /// Whether a block has its whole name on it, or its size where it is free.
    pub(super) fn has_text_inside(&self, block: &StageBlock) -> bool {
        let Some(rect) = self.block_rect(block) else { return true };
        let size = block.bytes.to_string();
        let (text, weight) = match block.name.as_deref().filter(|_| block.state.is_active()) {
            Some(name) => (name, Weight::Bold),
            None => (size.as_str(), Weight::Normal),
        };
        text_width_px(text, self.metrics.text_px, weight) <= text_room_px(block, &rect)
    }

    /// The plate that interrupts the pattern of a class below a text; the plate on cached bytes keeps their
    /// tint.
    pub(super) fn draw_plate(&mut self, plate: Rect, class: BreakdownClass) {
        self.scene.add_rect(plate, Fill::solid(Role::Background), None);
        if class == BreakdownClass::Cached {
            self.scene.add_rect(plate, Fill { role: Role::Cached, pattern: Pattern::Tint }, None);
        }
    }

    /// Text on the pattern of a class gets a plate.
    pub(super) fn put(&mut self, at: Point, text: &str, style: TextStyle, class: BreakdownClass) {
        if style.role == Role::Text {
            let width = text_width_px(text, style.size_px, style.weight).ceil();
            let plate = Rect::new(at.x_px - 3.0, at.y_px - style.size_px, width + 6.0, style.size_px * 1.3);
            self.draw_plate(plate, class);
        }
        self.scene.add_text(at, text, style);
    }

    /// Draws amber around a block that the step changed; a split also has a cut, and a merge a mark at the
    /// old border.
    fn draw_change(&mut self, block: &StageBlock, rect: &Rect) {
        // The frame lies outside of a narrow block, so that the block's color can be seen.
        let line = CHANGED_PX.min((rect.width_px / 6.0).max(1.5));
        self.scene.add_frame(
            rect.grown((line - 1.0).min(1.0).max(3.0 - rect.width_px)),
            Role::Changed,
            Dash::Solid,
            line,
        );
        if block.change == Some(Change::Allocated) {
            let x = rect.right_px() + 1.0;
            let top = Point::new(x, rect.y_px - 5.0);
            self.scene.add_line(top, Point::new(x, rect.bottom_px() + 5.0), Role::Changed, Dash::Solid, 2.0);
        }
    }

    fn draw_selected(&mut self) {
        let Some(id) = self.view.selected else { return };
        let stage = self.stage;
        for block in stage.blocks.iter().filter(|block| block.id == id) {
            if let Some(rect) = self.block_rect(block) {
                self.scene.add_frame(rect.grown(1.0), Role::Selection, Dash::Solid, 3.0);
            }
        }
    }

    /// The segment's number below its middle, or from its left edge to at most `end_px`. Pool and stream are
    /// written only where they differ from those of the segment `before`.
    fn draw_segment_label(&mut self, segment: &StageSegment, before: Option<&StageSegment>, end_px: f32) {
        let text_px = self.metrics.text_px;
        let (left, right) = self.span_px(segment.start, segment.size);
        let kind = if segment.pool == PoolKind::Small { "small pool" } else { "large pool" };
        let number = segment.id.get().saturating_add(1);
        let mut texts = Vec::new();
        if before.is_none_or(|before| before.kind() != segment.kind()) {
            let stream = segment.stream_name.as_ref().map(|name| format!(", stream {name}"));
            let pool = segment.pool_name.as_ref().map(|name| format!(", private pool {name}"));
            let (stream, pool) = (stream.unwrap_or_default(), pool.unwrap_or_default());
            texts.push(format!("segment {number}, {kind}{stream}{pool}"));
            let names = [&segment.pool_name, &segment.stream_name].into_iter().flatten();
            texts.extend(names.map(|name| format!("segment {number}, {name}")));
        }
        // A number without the word would say nothing.
        texts.push(format!("segment {number}"));
        let role = if segment.is_new { Role::Text } else { Role::TextMuted };
        let (style, y) = (TextStyle::new(role, text_px), self.metrics.labels_y_px() + text_px * 1.25);
        if let Some(text) = first_fitting(&texts, text_px, Weight::Normal, right - left - text_px) {
            let at = Point::new(left.midpoint(right).round(), y);
            self.scene.add_text(at, text, style.anchored(Anchor::Middle));
        } else if let Some(text) = first_fitting(&texts, text_px, Weight::Normal, end_px - left) {
            self.scene.add_text(Point::new(left, y), text, style);
        }
    }

    /// Draws the free memory of the device beside the segments, so that the row is as long as the bar.
    fn draw_free_part(&mut self) {
        let stage = self.stage;
        let end = bytes_f64(stage.shown.min(stage.capacity));
        let (left, right) = self.span_px(stage.reserved(), (end - stage.reserved()).max(0.0));
        if right - left < 4.0 {
            return;
        }
        let y = self.metrics.segments_y_px();
        let rect = Rect::new(left + 1.0, y, right - left - 2.0, self.metrics.segment_px);
        self.scene.add_frame(rect, Role::Grid, Dash::Dashed, 1.0);
        let text_px = self.metrics.text_px;
        let words = self.free_below.take();
        let fits = |words: &String| text_width_px(words, text_px, Weight::Normal) <= rect.width_px - 10.0;
        if let Some(words) = words.filter(fits) {
            let at = Point::new(rect.x_px + 5.0, baseline(rect.center().y_px, text_px));
            self.scene.add_text(at, words, TextStyle::new(Role::TextMuted, text_px));
        }
    }

    /// The failed request to scale, beside the memory that was free for it.
    pub(super) fn draw_failure(&mut self) {
        let Some(failed) = self.stage.failed else { return };
        let text_px = self.metrics.text_px;
        let width_px = self.metrics.width_px;
        let is_small = self.view.form == StageForm::Small;
        let top = self.metrics.failure_y_px() + text_px * 0.4;
        let height = text_px * if is_small { 1.8 } else { 2.6 };
        let needed = bytes_f64(failed.needed());
        let cached = bytes_f64(failed.grows_at.unwrap_or_default());
        let start = self.stage.reserved() - cached;
        let width = self.ruler.span_px(needed).max(8.0);
        let left = self.ruler.x_px(start).round().min(width_px - width.min(width_px)).max(self.ruler.left_px);
        let rect = Rect::new(left, top, width.min(width_px - left), height);
        self.scene.add_rect(rect, Fill { role: Role::Failure, pattern: Pattern::Faint }, None);
        // The part beyond the limit, beyond the device or beyond its last whole page is the missing memory.
        let bound =
            self.stage.limit.map_or(self.stage.capacity, |limit| limit.highest.min(self.stage.capacity));
        let reserved = self.stage.numbers.reserved;
        let bound = reserved.saturating_add(failed.usable(bound.saturating_sub(reserved)));
        let from = self.ruler.x_px(bytes_f64(bound)).round().max(rect.x_px);
        if from < rect.right_px() {
            let part = Rect { x_px: from, width_px: rect.right_px() - from, ..rect };
            self.scene.add_rect(part, Fill { role: Role::Failure, pattern: Pattern::Hatch }, None);
        }
        self.scene.add_frame(rect, Role::Failure, Dash::Dashed, 2.0);
        let longest = match failed.grows_at {
            Some(cached) if cached.is_zero() => format!("{} needed", failed.needed()),
            Some(cached) => format!("{} needed, {cached} of it at the segment's end", failed.needed()),
            None => format!("{} needed: a segment of {}", failed.request.rounded, failed.needed()),
        };
        let words = [longest, format!("{} needed", failed.needed()), failed.needed().to_string()];
        let style = TextStyle::new(Role::Failure, text_px);
        let middle = baseline(rect.center().y_px, text_px);
        if let Some(text) = first_fitting(&words, text_px, Weight::Bold, rect.width_px - 12.0) {
            crate::labels::draw_plated_text(self.scene, rect.center(), text, text_px, Weight::Bold);
        } else if let Some(text) = first_fitting(&words, text_px, Weight::Bold, rect.x_px - 8.0) {
            let at = Point::new(rect.x_px - 6.0, middle);
            self.scene.add_text(at, text, style.bold().anchored(Anchor::End));
        }
        // The three brackets of a process and the request are four labels.
        let is_full = self.is_projected() && self.stage.non_pytorch_bytes.is_some();
        let room = if is_full || is_small { 0.0 } else { width_px };
        let reasons = [
            format!(
                "free on the device {}, largest cached block it may use {}",
                failed.device_free, failed.largest_cached
            ),
            format!("free {}, largest cached block {}", failed.device_free, failed.largest_cached),
            format!("free {}, largest {}", failed.device_free, failed.largest_cached),
        ];
        if let Some(text) = first_fitting(&reasons, text_px, Weight::Normal, room) {
            let width = text_width_px(text, text_px, Weight::Normal);
            let x = (rect.center().x_px - width / 2.0).min(width_px - width).max(0.0).round();
            let at = Point::new(x, rect.bottom_px() + text_px * 1.3);
            self.scene.add_text(at, text, TextStyle::new(Role::Text, text_px));
        }
    }

    pub(super) fn draw_lit_segments(&mut self, term: Term) {
        let stage = self.stage;
        if term == Term::Reserved {
            for segment in &stage.segments {
                let rect = self.segment_rect(segment);
                self.scene.add_frame(rect, Role::Selection, Dash::Solid, 3.0);
            }
            return;
        }
        for block in &stage.blocks {
            let is_lit = match term {
                Term::Allocated | Term::Requested => block.state == BlockState::Allocated,
                Term::Rounding => block.state == BlockState::Allocated && block.bytes > block.requested,
                Term::Pending => block.state == BlockState::PendingFree,
                Term::Cached => block.state == BlockState::Inactive,
                _ => false,
            };
            if is_lit && let Some(rect) = self.block_rect(block) {
                self.scene.add_frame(rect, Role::Selection, Dash::Solid, 2.0);
            }
        }
    }
}

/// Blocks too narrow to be drawn one by one: one rectangle, blue up to the share that is in use. It is the place
/// of its largest block in use, whose color it may get.
#[derive(Default)]
struct NarrowBlocks {
    rect: Option<Rect>,
    active: f64,
    bytes: f64,
    largest: Option<(f64, BlockId)>,
}

impl NarrowBlocks {
    fn take(&mut self, rect: &Rect, block: &StageBlock, scene: &mut Scene) {
        let goes_on = self.rect.is_some_and(|open| {
            rect.x_px - open.right_px() < 1.5 && rect.right_px() - open.x_px < 12.0 && rect.x_px >= open.x_px
        });
        if !goes_on {
            self.flush(scene);
            self.rect = Some(*rect);
        }
        if let Some(open) = &mut self.rect {
            open.width_px = (rect.right_px() - open.x_px).max(open.width_px);
        }
        self.bytes += block.size;
        if block.state.is_active() {
            self.active += block.size;
            if self.largest.is_none_or(|(size, _)| size < block.size) {
                self.largest = Some((block.size, block.id));
            }
        }
    }

    fn flush(&mut self, scene: &mut Scene) {
        let Some(mut rect) = self.rect.take() else { return };
        rect.width_px = rect.width_px.max(MIN_PX);
        let share = if self.bytes > 0.0 { px(self.active / self.bytes) } else { 0.0 };
        let active = rect.height_px * share;
        let upper = Rect::new(rect.x_px, rect.y_px, rect.width_px, rect.height_px - active);
        let lower = Rect::new(rect.x_px, rect.bottom_px() - active, rect.width_px, active);
        if upper.height_px > 0.0 {
            scene.add_rect(upper, Fill { role: Role::Cached, pattern: Pattern::Dots }, None);
        }
        if lower.height_px > 0.0 {
            scene.add_rect(lower, Fill::solid(Role::Requested), None);
            if let Some((_, largest)) = self.largest {
                scene.add_target(lower, TargetId::Block(largest));
            }
        }
        *self = Self::default();
    }
}
