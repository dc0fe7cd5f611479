//! All reserved memory as one strip, over the rows of the map: each segment is as wide as its bytes.

use blockyard_record::{BlockId, Bytes, MemoryState, SegmentId, grouped};

use crate::changes::Changes;
use crate::conversions::{bytes_f64, floor_count, px, round_bytes};
use crate::fill::Fill;
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::map::coverage::Coverage;
use crate::map::gutter::TEXT_PX;
use crate::map::rows::{Row, Rows, bars_px};
use crate::map::view::MapView;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TextStyle, Weight};
use crate::text_width::first_fitting;

/// The height of the strip with the space above and below it.
const HEIGHT_PX: f32 = 26.0;
/// The upper edge of the strip.
const STRIP_Y_PX: f32 = 4.0;
const STRIP_PX: f32 = 15.0;
/// The height of the mark under a change of the step.
const CHANGED_PX: f32 = 3.0;
/// A narrower segment has no line to its neighbor.
const MIN_BORDERED_PX: f32 = 5.0;

/// All segments in the order of the map's rows, side by side to one scale, so that a place of the strip is a
/// place of the rows.
///
/// The whole strip is the most that the run ever reserves: a step changes no segment's width.
#[derive(Clone, Debug, PartialEq)]
pub struct MapOverview {
    spans: Vec<Span>,
    /// The height of all rows with the header above them.
    end_px: f32,
    header_px: f32,
    reserved: Bytes,
    whole: Bytes,
    /// Where the strip begins and ends: above the bars of the rows.
    bars_px: (f32, f32),
    map: Size,
}

/// A row of the map that is a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    segment: SegmentId,
    /// The bytes of all segments before this segment.
    from: Bytes,
    size: Bytes,
    top_px: f32,
    bottom_px: f32,
}

impl MapOverview {
    /// The strip of a map of `map` pixels; `most_reserved` is the most that the run ever reserves.
    #[must_use]
    pub fn new(
        state: &MemoryState,
        changed: &Changes,
        view: &MapView,
        most_reserved: Bytes,
        map: Size,
    ) -> Self {
        let rows = Rows::new(state, changed, view);
        let mut spans = Vec::new();
        let mut reserved = Bytes::ZERO;
        for (index, row) in rows.list.iter().enumerate() {
            let Row::Segment(info) = row else { continue };
            let (top_px, bottom_px) = (rows.top_px(index), rows.top_px(index + 1));
            spans.push(Span { segment: info.id, from: reserved, size: info.size, top_px, bottom_px });
            // Sums of the bytes of real segments are far below 2^64.
            reserved = reserved.saturating_add(info.size);
        }
        Self {
            spans,
            end_px: rows.height_px(),
            header_px: rows.header_px,
            reserved,
            whole: most_reserved.max(reserved),
            bars_px: bars_px(map),
            map: map.tame(),
        }
    }

    /// The height of [`MapOverview::scene`].
    pub const fn height_px() -> f32 {
        HEIGHT_PX
    }

    /// The strip: the allocated, pending and cached bytes of each column of pixels, with amber under the
    /// changes of the step.
    pub fn scene(&self, state: &MemoryState, changed: &Changes, selected: Option<BlockId>) -> Scene {
        let mut scene = Scene::new(self.map.width_px, HEIGHT_PX);
        self.draw_title(&mut scene);
        let right_px = self.x_px(self.reserved);
        if right_px < self.bars_px.1 {
            let rest = strip_rect(right_px, self.bars_px.1);
            scene.add_rect(rest, Fill::of(BreakdownClass::Free), None);
        }
        let coverage = self.coverage(state);
        coverage.draw(&mut scene, Point::new(self.bars_px.0, STRIP_Y_PX), STRIP_PX);
        for span in self.spans.iter().skip(1) {
            let left = self.x_px(span.from);
            if self.x_px(span.from.saturating_add(span.size)) - left >= MIN_BORDERED_PX {
                let end = Point::new(left + 0.5, STRIP_Y_PX + STRIP_PX);
                scene.add_hairline(Point::new(left + 0.5, STRIP_Y_PX), end, Role::Background);
            }
        }
        self.draw_changes(&mut scene, state, changed);
        if let Some((left, right)) = selected.and_then(|block| self.block_px(state, block)) {
            let around = strip_rect(left, right.max(left + 3.0)).grown(1.0);
            scene.add_frame(around, Role::Selection, Dash::Solid, 2.0);
        }
        scene
    }

    /// The lens: where the rows in sight begin and end on the strip, in pixels from the left.
    pub fn lens_px(&self, scroll_px: f32) -> (f32, f32) {
        let left = self.x_px(self.byte_at(scroll_px + self.header_px));
        let right = self.x_px(self.byte_at(scroll_px + self.map.height_px));
        (left, right.max(left))
    }

    /// How far the rows are scrolled when the place `x_px` of the strip is in the middle of the map.
    pub fn scroll_px_at(&self, x_px: f32) -> f32 {
        let (left, right) = self.bars_px;
        let x_px = if x_px.is_finite() { x_px } else { left };
        let share = f64::from((x_px - left) / (right - left).max(1.0)).clamp(0.0, 1.0);
        let byte = share * bytes_f64(self.whole);
        let found = self.spans.partition_point(|span| bytes_f64(span.from) + bytes_f64(span.size) <= byte);
        let y_px = match self.spans.get(found) {
            Some(span) => {
                let inside = (byte - bytes_f64(span.from)) / bytes_f64(span.size).max(1.0);
                span.top_px + px(inside) * (span.bottom_px - span.top_px)
            }
            None => self.end_px,
        };
        let middle = f32::midpoint(self.header_px, self.map.height_px);
        (y_px - middle).clamp(0.0, self.most_scroll_px())
    }

    /// How far the rows are scrolled, from 0 to 1.
    pub fn scrolled_share(&self, scroll_px: f32) -> f32 {
        (scroll_px / self.most_scroll_px().max(1.0)).clamp(0.0, 1.0)
    }

    fn most_scroll_px(&self) -> f32 {
        (self.end_px - self.map.height_px).max(0.0)
    }

    /// Which segments are in sight, in words.
    pub fn text(&self, scroll_px: f32) -> String {
        let (top, bottom) = (scroll_px + self.header_px, scroll_px + self.map.height_px);
        let first = self.spans.partition_point(|span| span.bottom_px <= top);
        let last = self.spans.partition_point(|span| span.top_px < bottom);
        let (Some(one), Some(other)) =
            (self.spans.get(first), last.checked_sub(1).and_then(|last| self.spans.get(last)))
        else {
            return "no segments".to_owned();
        };
        let count = grouped(self.spans.len());
        let seen = other.from.saturating_add(other.size).saturating_sub(one.from);
        let which = if last <= first + 1 {
            format!("segment {} of {count}", grouped(first + 1))
        } else {
            format!("segments {} to {} of {count}", grouped(first + 1), grouped(last))
        };
        format!("{which}, {seen} of {} reserved", self.reserved)
    }

    fn draw_title(&self, scene: &mut Scene) {
        let room = self.bars_px.0 - 18.0;
        let titles = ["all segments by size", "all segments", "all"];
        if let Some(title) = first_fitting(&titles, TEXT_PX, Weight::Normal, room) {
            let at = Point::new(self.bars_px.0 - 12.0, baseline(STRIP_Y_PX + STRIP_PX / 2.0, TEXT_PX));
            scene.add_text(at, title, TextStyle::new(Role::TextMuted, TEXT_PX).anchored(Anchor::End));
        }
    }

    fn draw_changes(&self, scene: &mut Scene, state: &MemoryState, changed: &Changes) {
        let blocks =
            changed.allocated.iter().chain(&changed.pending).chain(&changed.freed).chain(&changed.merged);
        let of_blocks = blocks.filter_map(|block| self.block_px(state, *block));
        let new = self.spans.iter().filter(|span| changed.new_segments.contains(&span.segment));
        let of_segments =
            new.map(|span| (self.x_px(span.from), self.x_px(span.from.saturating_add(span.size))));
        let mut marks: Vec<(f32, f32)> =
            of_blocks.chain(of_segments).map(|(left, right)| (left, right.max(left + 3.0))).collect();
        marks.sort_by(|one, other| one.0.total_cmp(&other.0));
        marks.dedup();
        for (left, right) in marks {
            let mark = Rect::new(left, STRIP_Y_PX + STRIP_PX + 1.0, right - left, CHANGED_PX);
            scene.add_rect(mark, Fill::solid(Role::Changed), None);
        }
    }

    /// The bytes of each class in each column of pixels, from the left edge of the strip to the last reserved
    /// byte.
    fn coverage(&self, state: &MemoryState) -> Coverage {
        let width = (self.x_px(self.reserved) - self.bars_px.0).max(0.0);
        let column_bytes = bytes_f64(self.whole) / f64::from(self.bars_px.1 - self.bars_px.0);
        let mut coverage = Coverage::new(floor_count(f64::from(width)), column_bytes);
        for span in &self.spans {
            let Some(segment) = state.segment(span.segment) else { continue };
            for block in &segment.blocks {
                coverage.add(block, span.from.saturating_add(block.addr.offset_from(segment.addr)));
            }
        }
        coverage
    }

    /// Where a block is on the strip; `None` where the block does not exist any more.
    fn block_px(&self, state: &MemoryState, block: BlockId) -> Option<(f32, f32)> {
        let segment = state.segment_of(block)?;
        let block = state.block(block)?;
        let span = self.spans.iter().find(|span| span.segment == segment)?;
        let base = state.segments().find(|info| info.id == segment)?.addr;
        let from = span.from.saturating_add(block.addr.offset_from(base));
        Some((self.x_px(from), self.x_px(from.saturating_add(block.size))))
    }

    /// The byte of the strip at a height of the rows.
    fn byte_at(&self, y_px: f32) -> Bytes {
        let found = self.spans.partition_point(|span| span.bottom_px <= y_px);
        let Some(span) = self.spans.get(found) else { return self.reserved };
        let inside = ((y_px - span.top_px) / (span.bottom_px - span.top_px).max(1.0)).clamp(0.0, 1.0);
        let offset = round_bytes(f64::from(inside) * bytes_f64(span.size));
        span.from.saturating_add(offset)
    }

    fn x_px(&self, bytes: Bytes) -> f32 {
        let (left, right) = self.bars_px;
        let share = bytes_f64(bytes) / bytes_f64(self.whole).max(1.0);
        left + (px(share.clamp(0.0, 1.0)) * (right - left)).round()
    }
}

fn strip_rect(left_px: f32, right_px: f32) -> Rect {
    Rect::new(left_px, STRIP_Y_PX, right_px - left_px, STRIP_PX)
}
