//! The figure of pinned segments: free bytes that could not serve a request, and the blocks between them.

use blockyard_record::Bytes;

use crate::conversions::{bytes_f64, count_px, px};
use crate::fill::Fill;
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;

use super::axes::TEXT_PX;

/// A segment whose free bytes could not serve a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedRow {
    /// The size of the segment in bytes.
    pub size: Bytes,
    /// The largest free block of the segment in bytes.
    pub largest_free: Bytes,
    /// The live blocks of the segment, by ascending place.
    pub blocks: Vec<PinnedBlock>,
}

/// A live block of such a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedBlock {
    /// Bytes from the beginning of the segment.
    pub offset: Bytes,
    /// The size of the block in bytes.
    pub size: Bytes,
    /// The text to write on the block where there is room.
    pub name: String,
    /// Whether the request passes if the blocks marked so are freed before the request.
    pub is_freed: bool,
}

const ROW_PX: f32 = 26.0;
const BAR_PX: f32 = 18.0;
const LABEL_PX: f32 = 66.0;

/// How high the picture of this many segments is.
pub fn pinned_segments_height(rows: usize) -> f32 {
    count_px(rows + 1) * ROW_PX + 6.0
}

/// The request at the top, and under it the segments on the same scale, with the live blocks that keep the
/// free bytes apart.
pub fn pinned_segments(needed: Bytes, rows: &[PinnedRow], width_px: f32) -> Scene {
    let size = Size::new(width_px, pinned_segments_height(rows.len())).tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let longest = rows.iter().map(|row| row.size).max().unwrap_or_default().max(needed);
    let room = (size.width_px - LABEL_PX - 4.0).max(1.0);
    let wide = |bytes: Bytes| px(bytes_f64(bytes) / bytes_f64(longest).max(1.0)) * room;
    let label = |scene: &mut Scene, text: String, y: f32, role: Role| {
        let at = Point::new(LABEL_PX - 6.0, baseline(y + BAR_PX / 2.0, TEXT_PX));
        scene.add_text(at, text, TextStyle::new(role, TEXT_PX).anchored(Anchor::End));
    };
    let asked = Rect::new(LABEL_PX, 4.0, wide(needed).max(2.0), BAR_PX);
    label(&mut scene, needed.to_string(), asked.y_px, Role::Failure);
    scene.add_rect(asked, Fill { role: Role::Failure, pattern: crate::fill::Pattern::Hatch }, None);
    scene.add_frame(asked, Role::Failure, Dash::Solid, 2.0);
    for (index, row) in rows.iter().enumerate() {
        let y = 4.0 + count_px(index + 1) * ROW_PX;
        label(&mut scene, row.size.to_string(), y, Role::TextMuted);
        let bar = Rect::new(LABEL_PX, y, wide(row.size).max(2.0), BAR_PX);
        scene.add_rect(bar, Fill::of(BreakdownClass::Cached), Some(Role::Cached));
        for block in &row.blocks {
            draw_block(&mut scene, block, &bar, &wide);
        }
        let right = asked.right_px().floor() + 0.5;
        scene.add_line(
            Point::new(right, y - 4.0),
            Point::new(right, y + BAR_PX + 2.0),
            Role::Failure,
            Dash::Dotted,
            1.0,
        );
    }
    scene
}

fn draw_block(scene: &mut Scene, block: &PinnedBlock, bar: &Rect, wide: &impl Fn(Bytes) -> f32) {
    let rect = Rect::new(bar.x_px + wide(block.offset), bar.y_px, wide(block.size).max(1.0), BAR_PX);
    scene.add_rect(rect, Fill::of(BreakdownClass::Requested), Some(Role::Background));
    if block.is_freed {
        // A frame inside of the block, so that neighbors keep their own.
        scene.add_frame(rect.grown(-1.5), Role::Selection, Dash::Dashed, 2.0);
    }
    if text_width_px(&block.name, TEXT_PX, Weight::Normal) + 6.0 <= rect.width_px {
        let at = Point::new(rect.center().x_px, baseline(rect.center().y_px, TEXT_PX));
        let style = TextStyle::new(Role::TextOnRequested, TEXT_PX).anchored(Anchor::Middle).clipped(rect);
        scene.add_text(at, block.name.clone(), style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    #[test]
    fn a_block_that_is_to_be_freed_has_a_dashed_frame() {
        let dashes = |is_freed| {
            let block = PinnedBlock { size: Bytes::mib(20), is_freed, ..PinnedBlock::default() };
            let row = PinnedRow { size: Bytes::mib(60), largest_free: Bytes::mib(40), blocks: vec![block] };
            let scene = pinned_segments(Bytes::mib(50), &[row], 400.0);
            scene.to_svg(Theme::Light, "pinned", "").matches("stroke-dasharray").count()
        };
        assert_eq!(dashes(true), dashes(false) + 1);
    }
}
