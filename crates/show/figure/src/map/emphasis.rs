//! The changes of the current step, emphasized in the segment map.

use blockyard_record::{AllocationId, BlockId, BlockSnapshot};

use crate::changes::Changes;
use crate::conversions::px;
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::map::pieces::BarScale;
use crate::role::Role;
use crate::scene::{Dash, Mark, Scene};

/// Marks the changes of the current step in one bar: a frame around a block (solid for allocated, dashed for
/// freed, dotted for pending), and a wedge at a split.
pub(super) fn draw_changes(
    scene: &mut Scene,
    changed: &Changes,
    blocks: &[BlockSnapshot],
    scale: &BarScale,
    top_px: f32,
) {
    for block in scale.visible(blocks) {
        let id = block.id;
        let dash = if changed.allocated.contains(&id) {
            Some(Dash::Solid)
        } else if changed.freed.contains(&id) || changed.merged.contains(&id) {
            Some(Dash::Dashed)
        } else if changed.pending.contains(&id) || changed.stream_recorded.contains(&id) {
            Some(Dash::Dotted)
        } else {
            None
        };
        let (left, right) = edges_px(block, scale);
        if let Some(dash) = dash {
            let rect = Rect::new(left, top_px, right - left, scale.bar_px);
            scene.add_frame(rect.grown(3.0), Role::Changed, dash, 2.0);
        }
        if changed.split_fronts.contains(&id) {
            let x = right;
            scene.add_line(
                Point::new(x, top_px),
                Point::new(x, top_px + scale.bar_px),
                Role::Background,
                Dash::Solid,
                4.0,
            );
            scene.add_line(
                Point::new(x, top_px - 3.0),
                Point::new(x, top_px + scale.bar_px + 3.0),
                Role::Changed,
                Dash::Solid,
                2.0,
            );
            let wedge = [(-4.0, -3.0), (4.0, -3.0), (0.0, 3.0)];
            let points = wedge.iter().map(|(dx, dy)| Point::new(x + dx, top_px + dy)).collect();
            scene.marks.push(Mark::Area { points, fill: Fill::solid(Role::Changed) });
        }
    }
}

/// Marks a segment that the current step allocated.
pub(super) fn draw_new_segment(scene: &mut Scene, scale: &BarScale, top_px: f32) {
    let bar = Rect::new(scale.left_px, top_px, scale.right_px - scale.left_px, scale.bar_px);
    scene.add_frame(bar.grown(3.0), Role::Changed, Dash::Solid, 2.0);
}

/// Marks the blocks of chosen allocations with a bar above and below them.
pub(super) fn draw_picked(
    scene: &mut Scene,
    picked: &[AllocationId],
    blocks: &[BlockSnapshot],
    scale: &BarScale,
    top_px: f32,
) {
    if picked.is_empty() {
        return;
    }
    for block in scale.visible(blocks) {
        if !block.state.is_active() {
            continue;
        }
        let is_picked = block.allocation.is_some_and(|id| picked.binary_search(&id).is_ok());
        if is_picked {
            let (left, right) = edges_px(block, scale);
            for y in [top_px - 1.0, top_px + scale.bar_px - 2.0] {
                scene.add_rect(Rect::new(left, y, right - left, 3.0), Fill::solid(Role::Selection), None);
            }
        }
    }
}

/// A ring around a block, also if the block is drawn together with its neighbors.
pub(super) fn draw_ring(
    scene: &mut Scene,
    id: BlockId,
    blocks: &[BlockSnapshot],
    scale: &BarScale,
    top_px: f32,
    role: Role,
) {
    let Some(block) = scale.visible(blocks).iter().find(|block| block.id == id) else { return };
    let (left, right) = edges_px(block, scale);
    let rect = Rect::new(left, top_px, right - left, scale.bar_px);
    scene.add_frame(rect.grown(1.0), Role::Background, Dash::Solid, 1.0);
    scene.add_frame(rect.grown(3.0), role, Dash::Solid, 2.0);
}

/// The block's edges on whole pixels, at least 2 apart.
fn edges_px(block: &BlockSnapshot, scale: &BarScale) -> (f32, f32) {
    let (left, right) = scale.span_px(block);
    let left = px(left.round());
    (left, px(right.round()).max(left + 2.0))
}
