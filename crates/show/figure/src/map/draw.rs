//! The scene of the segment map.

use blockyard_record::{Bytes, MemoryState, Recording, SegmentInfo, grouped};

use crate::changes::{Changes, ReleasedSegment};
use crate::conversions::{bytes_f64, floor_count, px, share};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::map::blocks::{HiddenBlocks, draw_blocks};
use crate::map::coverage::Coverage;
use crate::map::emphasis::{draw_changes, draw_new_segment, draw_picked, draw_ring};
use crate::map::gutter::{TEXT_PX, draw_pool_heading, draw_row_head};
use crate::map::pieces::BarScale;
use crate::map::rows::{OVERVIEW_PX, Row, Rows, bars_px};
use crate::map::view::MapView;
use crate::role::Role;
use crate::scene::{Anchor, Dash, Scene, Target, TargetId, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};

/// Draws a row for every segment, with its blocks to scale in address order.
///
/// `changed` is emphasized, `names` gives blocks and streams their names. The scene is a window of `size` on
/// all rows ([`segment_map_height`](crate::segment_map_height)); the header stays at its top. It says which
/// rows are in sight and how many blocks are too narrow to be drawn one by one.
pub fn segment_map(
    state: &MemoryState,
    changed: &Changes,
    names: &Recording,
    view: &MapView,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let rows = Rows::new(state, changed, view);
    let scroll = rows.scroll_px(view.scroll_px, size.height_px);
    let visible = rows.visible(scroll, size.height_px);
    let largest = rows.list.iter().map(Row::size).max().unwrap_or_default();
    let map = Map { state, changed, names, view, bars: bars_px(size), largest };
    let mut hidden = HiddenBlocks::default();
    for index in visible.0..visible.1 {
        let Some(row) = rows.list.get(index) else { continue };
        let top = rows.top_px(index) - scroll;
        match row {
            Row::Heading(heading) => draw_pool_heading(&mut scene, heading, view, top, map.bars.1),
            Row::Segment(info) => {
                let found = map.draw_segment(&mut scene, info, top, rows.is_zoomed(index));
                hidden.count += found.count;
                hidden.bytes = hidden.bytes.saturating_add(found.bytes);
            }
            Row::Released(ghost) => {
                draw_row_head(&mut scene, names, row, ghost.size, top, (map.bars.0, rows.row_px));
                map.draw_released(&mut scene, ghost, top);
            }
        }
    }
    if rows.list.is_empty() {
        let at = Point::new(map.bars.0, baseline(rows.header_px + rows.row_px / 2.0, 12.0));
        scene.add_text(at, "no segments: nothing is reserved", TextStyle::new(Role::TextMuted, 12.0));
    }
    clip_targets(&mut scene, rows.header_px);
    map.draw_header(&mut scene, &rows, visible, hidden);
    scene
}

/// Cuts the targets at the header: rows scroll under the header, and a target that the header covers must not
/// be reached.
fn clip_targets(scene: &mut Scene, header_px: f32) {
    let bottom = scene.height_px;
    scene.targets.retain_mut(|Target { rect, .. }| {
        let (top, end) = (rect.y_px.max(header_px), rect.bottom_px().min(bottom));
        rect.y_px = top;
        rect.height_px = end - top;
        end > top
    });
}

struct Map<'a> {
    state: &'a MemoryState,
    changed: &'a Changes,
    names: &'a Recording,
    view: &'a MapView,
    bars: (f32, f32),
    largest: Bytes,
}

impl Map<'_> {
    /// Where a bar of `size` bytes ends: twice the width is twice the bytes. A bar is at least two pixels wide.
    fn bar_right_px(&self, size: Bytes) -> f32 {
        let width = self.bars.1 - self.bars.0;
        self.bars.0 + (px(share(size, self.largest)) * width).round().max(2.0)
    }

    fn draw_segment(
        &self,
        scene: &mut Scene,
        info: &SegmentInfo,
        top_px: f32,
        is_zoomed: bool,
    ) -> HiddenBlocks {
        let Some(segment) = self.state.segment(info.id) else { return HiddenBlocks::default() };
        let row_px = self.view.rows.row_px();
        // Addresses without memory do not count.
        let memory = if info.is_expandable { segment.mapped() } else { info.size };
        draw_row_head(scene, self.names, &Row::Segment(*info), memory, top_px, (self.bars.0, row_px));
        let head = Rect::new(0.0, top_px, self.bars.0 - 4.0, row_px);
        scene.add_target(head, TargetId::Segment(info.id));
        let window = self.view.window(info.id, info.size);
        let right_px = if is_zoomed { self.bars.1 } else { self.bar_right_px(info.size) };
        let bar_px = self.view.rows.bar_px();
        let scale = BarScale { base: info.addr, window, left_px: self.bars.0, right_px, bar_px };
        let bar_top = top_px + 3.0;
        let hidden = draw_blocks(scene, self.names, info.id, &segment.blocks, &scale, bar_top);
        if self.changed.new_segments.contains(&info.id) {
            draw_new_segment(scene, &scale, bar_top);
        }
        draw_changes(scene, self.changed, &segment.blocks, &scale, bar_top);
        draw_picked(scene, &self.view.picked, &segment.blocks, &scale, bar_top);
        match self.view.hovered {
            Some(TargetId::Block(id)) => draw_ring(scene, id, &segment.blocks, &scale, bar_top, Role::Hover),
            Some(TargetId::Segment(id)) if id == info.id => {
                scene.add_frame(head.grown(-1.0), Role::Hover, Dash::Solid, 1.0);
            }
            Some(what @ TargetId::SmallBlocks { segment, .. }) if segment == info.id => {
                let rect =
                    scene.targets.iter().rev().find(|target| target.what == what).map(|target| target.rect);
                if let Some(rect) = rect {
                    scene.add_frame(rect.grown(3.0), Role::Hover, Dash::Solid, 2.0);
                }
            }
            _ => {}
        }
        if let Some(id) = self.view.selected {
            draw_ring(scene, id, &segment.blocks, &scale, bar_top, Role::Selection);
        }
        if is_zoomed {
            self.draw_overview(scene, info, window, top_px + row_px);
        }
        hidden
    }

    /// The whole of a zoomed segment as a strip, with a frame around the part that is shown.
    fn draw_overview(&self, scene: &mut Scene, info: &SegmentInfo, window: (Bytes, Bytes), top_px: f32) {
        let Some(segment) = self.state.segment(info.id) else { return };
        let strip = Rect::new(self.bars.0, top_px + 2.0, self.bars.1 - self.bars.0, 9.0);
        let column_bytes = bytes_f64(info.size) / f64::from(strip.width_px);
        let mut coverage = Coverage::new(floor_count(f64::from(strip.width_px)), column_bytes);
        for block in &segment.blocks {
            coverage.add(block, block.addr.offset_from(info.addr));
        }
        coverage.draw(scene, Point::new(strip.x_px, strip.y_px), strip.height_px);
        let edge = |bytes: Bytes| self.bars.0 + (px(share(bytes, info.size)) * strip.width_px).round();
        let (left, right) = (edge(window.0), edge(window.1));
        let part = Rect::new(left, strip.y_px, (right - left).max(3.0), strip.height_px);
        scene.add_frame(part.grown(2.0), Role::Background, Dash::Solid, 1.0);
        scene.add_frame(part.grown(1.0), Role::Cursor, Dash::Solid, 2.0);
        scene.add_target(strip, TargetId::Overview(info.id));
        let text = format!("bytes {} to {} of {}", window.0, window.1, info.size);
        let at = Point::new(self.bars.0, top_px + OVERVIEW_PX - 6.0);
        scene.add_text(at, text, TextStyle::new(Role::TextMuted, TEXT_PX));
    }

    fn draw_released(&self, scene: &mut Scene, ghost: &ReleasedSegment, top_px: f32) {
        let right = self.bar_right_px(ghost.size);
        let bar = Rect::new(self.bars.0, top_px + 3.0, right - self.bars.0, self.view.rows.bar_px());
        scene.add_rect(bar, Fill { role: Role::Free, pattern: Pattern::Faint }, None);
        scene.add_frame(bar, Role::Changed, Dash::Dashed, 2.0);
        let texts = [format!("released to the device: {}", ghost.size), "released".to_owned()];
        if let Some(text) = first_fitting(&texts, TEXT_PX, Weight::Normal, bar.width_px - 14.0) {
            let at = Point::new(bar.x_px + 7.0, baseline(bar.center().y_px, TEXT_PX));
            scene.add_text(at, text, TextStyle::new(Role::Text, TEXT_PX));
        }
        scene.add_target(bar, TargetId::Released(ghost.segment));
    }

    fn draw_header(&self, scene: &mut Scene, rows: &Rows, visible: (usize, usize), hidden: HiddenBlocks) {
        let (width, height) = (scene.width_px, rows.header_px);
        scene.add_rect(Rect::new(0.0, 0.0, width, height - 1.0), Fill::solid(Role::Background), None);
        scene.add_hairline(Point::new(0.0, height - 1.5), Point::new(width, height - 1.5), Role::Grid);
        let style = TextStyle::new(Role::TextMuted, TEXT_PX);
        scene.add_text(Point::new(6.0, 15.0), "pool, stream", style);
        scene.add_text(Point::new(self.bars.0 - 12.0, 15.0), "size", style.anchored(Anchor::End));
        let notes = notes(rows, visible, hidden);
        let room = self.bars.1 - self.bars.0;
        let note = first_fitting(&notes, TEXT_PX, Weight::Normal, room).unwrap_or_default();
        scene.add_text(Point::new(self.bars.1, 15.0), note, style.anchored(Anchor::End));
        let left = room - text_width_px(note, TEXT_PX, Weight::Normal) - 16.0;
        let has_expandable = self.state.segments().any(|segment| segment.is_expandable);
        let outlines = if has_expandable { "; a dotted outline: addresses without memory" } else { "" };
        let captions = [
            format!("blocks by address, all to one scale: the whole width is {}{outlines}", self.largest),
            format!("whole width: {}{outlines}", self.largest),
            format!("whole width: {}", self.largest),
        ];
        if let Some(caption) = first_fitting(&captions, TEXT_PX, Weight::Normal, left) {
            scene.add_text(Point::new(self.bars.0, 15.0), caption, style);
        }
    }
}

/// Texts about rows and blocks that are not visible, the longest wording first.
fn notes(rows: &Rows, visible: (usize, usize), hidden: HiddenBlocks) -> Vec<String> {
    let segments =
        |end: usize| rows.list.iter().take(end).filter(|row| matches!(row, Row::Segment(_))).count();
    let gone = rows.list.iter().filter(|row| matches!(row, Row::Released(_))).count();
    let (total, visible) = (segments(rows.list.len()), (segments(visible.0), segments(visible.1)));
    let shown = match total {
        0 => "no segments".to_owned(),
        1 => "1 segment".to_owned(),
        _ if visible == (0, total) => format!("{} segments", grouped(total)),
        _ => {
            let (first, last) = (grouped(visible.0 + 1), grouped(visible.1));
            format!("segments {first} to {last} of {}", grouped(total))
        }
    };
    let shown = if gone == 0 { shown } else { format!("{shown}, {} just released", grouped(gone)) };
    if hidden.count == 0 {
        return vec![shown];
    }
    let count = grouped(hidden.count);
    vec![
        format!("{shown}; {count} blocks ({}) too narrow to tell apart", hidden.bytes),
        format!("{shown}; {count} too narrow ({})", hidden.bytes),
        format!("{count} too narrow ({})", hidden.bytes),
        format!("{count} hidden"),
    ]
}
