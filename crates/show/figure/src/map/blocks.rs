//! The blocks of a segment as bars.

use blockyard_record::{BlockSnapshot, BlockState, Bytes, Recording, SegmentId};

use crate::apportion::apportion;
use crate::conversions::{count_px, floor_count, px, share, step_u32};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::map::gutter::TEXT_PX;
use crate::map::pieces::{BarScale, Piece, pieces, sums};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Mark, Scene, TargetId, TextStyle, Weight};
use crate::text_width::{fitted, text_width_px};

/// Blocks that were too narrow to be drawn one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HiddenBlocks {
    pub(super) count: usize,
    pub(super) bytes: Bytes,
}

/// A segment's blocks as a bar whose upper edge is at `top_px`.
pub(super) fn draw_blocks(
    scene: &mut Scene,
    names: &Recording,
    segment: SegmentId,
    blocks: &[BlockSnapshot],
    scale: &BarScale,
    top_px: f32,
) -> HiddenBlocks {
    let mut hidden = HiddenBlocks::default();
    let pieces = pieces(blocks, scale);
    for piece in &pieces {
        let (left, right) = piece.edges_px();
        let rect = Rect::new(left, top_px, right - left, scale.bar_px);
        match piece {
            Piece::Block { block, .. } => {
                draw_block(scene, block, &rect);
                draw_block_text(scene, names, block, &rect);
                scene.add_target(rect, TargetId::Block(block.id));
            }
            Piece::Run { blocks, .. } => {
                let bytes = draw_run(scene, blocks, &rect);
                hidden.count += blocks.len();
                hidden.bytes = hidden.bytes.saturating_add(bytes);
                if let Some(first) = blocks.first() {
                    let (first, count) = (first.id, step_u32(blocks.len()));
                    scene.add_target(rect, TargetId::SmallBlocks { segment, first, count, bytes });
                }
            }
        }
    }
    draw_edges(scene, &pieces, top_px, scale.bar_px);
    let whole = Rect::new(scale.left_px, top_px, scale.right_px - scale.left_px, scale.bar_px);
    scene.add_frame(whole, Role::SplitEdge, crate::scene::Dash::Solid, 1.0);
    hidden
}

/// The classes of a block's bytes and how many pixels each has, from left to right.
fn classes_px(block: &BlockSnapshot, width_px: f32) -> Vec<(BreakdownClass, f32)> {
    match block.state {
        BlockState::PendingFree => vec![(BreakdownClass::Pending, width_px)],
        BlockState::Inactive => vec![(BreakdownClass::Cached, width_px)],
        // Addresses without memory have no bytes of any class.
        BlockState::Unmapped => Vec::new(),
        BlockState::Allocated => {
            let requested = block.requested.min(block.size);
            let parts = [requested, block.size.saturating_sub(requested)];
            let widths = apportion(&parts, floor_count(f64::from(width_px)));
            let classes = [BreakdownClass::Requested, BreakdownClass::Rounding].into_iter();
            classes
                .zip(widths)
                .filter(|(_, width)| *width > 0)
                .map(|(class, width)| (class, count_px(width)))
                .collect()
        }
    }
}

fn draw_block(scene: &mut Scene, block: &BlockSnapshot, rect: &Rect) {
    let mut left = rect.x_px;
    if block.state == BlockState::Unmapped {
        // An outline alone: reserved addresses are not memory.
        scene.add_frame(*rect, Role::Free, crate::scene::Dash::Dotted, 1.0);
    }
    for (class, width) in classes_px(block, rect.width_px) {
        let part = Rect::new(left, rect.y_px, width, rect.height_px);
        scene.add_rect(part, Fill::of(class), None);
        if class == BreakdownClass::Rounding && width >= 3.0 {
            let x = left + 0.5;
            scene.add_hairline(Point::new(x, rect.y_px), Point::new(x, rect.bottom_px()), Role::Background);
        }
        left += width;
    }
}

/// Draws narrow neighbors together: their classes as layers, in proportion. Returns their bytes.
fn draw_run(scene: &mut Scene, blocks: &[BlockSnapshot], rect: &Rect) -> Bytes {
    let parts = sums(blocks);
    let heights = apportion(&parts, floor_count(f64::from(rect.height_px)));
    let mut bottom = rect.bottom_px();
    let fills = [
        // A tint without lines, since a reader would take lines for blocks.
        Fill { role: Role::Requested, pattern: Pattern::Strong },
        Fill::of(BreakdownClass::Pending),
        Fill::of(BreakdownClass::Cached),
    ];
    for (fill, height) in fills.into_iter().zip(heights).filter(|(_, height)| *height > 0) {
        let height = count_px(height);
        bottom -= height;
        scene.add_rect(Rect::new(rect.x_px, bottom, rect.width_px, height), fill, None);
    }
    parts.into_iter().sum()
}

/// A line between neighbors; a stronger line if both are free and are about to be merged.
fn draw_edges(scene: &mut Scene, pieces: &[Piece<'_>], top_px: f32, bar_px: f32) {
    for pair in pieces.windows(2) {
        let [left, right] = pair else { continue };
        // Runs of narrow blocks are divided only for drawing, so that no line separates them.
        if matches!((left, right), (Piece::Run { .. }, Piece::Run { .. })) {
            continue;
        }
        let (from, to) = right.edges_px();
        let before = left.edges_px();
        if to - from < 3.0 || before.1 - before.0 < 3.0 {
            continue;
        }
        let is_free = |piece: &Piece<'_>| matches!(piece, Piece::Block { block, .. } if block.state != BlockState::Allocated);
        let width = if is_free(left) && is_free(right) { 3.0 } else { 1.0 };
        let x = from + 0.5;
        scene.marks.push(Mark::Line {
            from: Point::new(x, top_px),
            to: Point::new(x, top_px + bar_px),
            role: Role::SplitEdge,
            dash: crate::scene::Dash::Solid,
            width_px: width,
        });
    }
}

fn draw_block_text(scene: &mut Scene, names: &Recording, block: &BlockSnapshot, rect: &Rect) {
    let size = block.size.to_string();
    let middle = rect.center().y_px;
    let y = baseline(middle, TEXT_PX);
    let name = block.allocation.and_then(|allocation| names.name(allocation));
    match block.state {
        BlockState::Allocated => {
            let solid = px(share(block.requested, block.size)) * rect.width_px;
            let room = solid - 10.0;
            let style = TextStyle::new(Role::TextOnRequested, TEXT_PX);
            let x = rect.x_px + 5.0;
            let Some(name) = name else {
                if text_width_px(&size, TEXT_PX, Weight::Normal) <= room {
                    scene.add_text(Point::new(x, y), size, style);
                }
                return;
            };
            let Some(text) = fitted(name, TEXT_PX, Weight::Bold, room) else { return };
            let used = text_width_px(&text, TEXT_PX, Weight::Bold) + 6.0;
            let is_whole = text == name;
            scene.add_text(Point::new(x, y), text, style.bold());
            if is_whole && used + text_width_px(&size, TEXT_PX, Weight::Normal) <= room {
                scene.add_text(Point::new(x + used, y), size, style);
            }
        }
        BlockState::PendingFree | BlockState::Inactive | BlockState::Unmapped => {
            let room = rect.width_px - 14.0;
            let texts = match name.filter(|_| block.state == BlockState::PendingFree) {
                Some(name) => [format!("{name} pending {size}"), name.to_owned(), size],
                None if block.state == BlockState::Unmapped => {
                    [format!("{size} without memory"), "no memory".to_owned(), String::new()]
                }
                None => [size.clone(), size.clone(), size],
            };
            if let Some(text) = crate::text_width::first_fitting(&texts, TEXT_PX, Weight::Normal, room) {
                let width = text_width_px(text, TEXT_PX, Weight::Normal).ceil();
                let plate = Rect::new(rect.x_px + 4.0, middle - 7.0, width + 6.0, 14.0);
                scene.add_rect(plate, Fill::solid(Role::Background), None);
                scene.add_text(Point::new(rect.x_px + 7.0, y), text, TextStyle::new(Role::Text, TEXT_PX));
            }
        }
    }
}
