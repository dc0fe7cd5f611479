//! The pieces of a bar: blocks, or runs of neighbors that are too narrow to draw one by one.

use blockyard_record::{BlockSnapshot, BlockState, Bytes, DeviceAddr};

use crate::conversions::{bytes_f64, px};

/// Blocks narrower than this are not drawn one by one.
const NARROW_PX: f64 = 1.5;
/// Narrow neighbors are drawn together up to this width, so that the density of blocks can still be seen.
const RUN_PX: f32 = 16.0;

/// How a segment's bytes map to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarScale {
    /// Where the segment starts.
    pub(super) base: DeviceAddr,
    /// The bytes that are shown, from the first to before the second, counted from the segment's start.
    pub(super) window: (Bytes, Bytes),
    /// The left edge of the shown bytes, on a whole pixel.
    pub(super) left_px: f32,
    pub(super) right_px: f32,
    /// The height of the bar.
    pub(super) bar_px: f32,
}

impl BarScale {
    fn exact_px(&self, offset: Bytes) -> f64 {
        let (from, to) = (bytes_f64(self.window.0), bytes_f64(self.window.1));
        let share = (bytes_f64(offset) - from) / (to - from).max(1.0);
        f64::from(self.left_px) + share.clamp(0.0, 1.0) * f64::from(self.right_px - self.left_px)
    }

    /// The whole pixel of a byte, from the segment's start; bytes outside the window are at its edges.
    pub(super) fn x_px(&self, offset: Bytes) -> f32 {
        px(self.exact_px(offset).round())
    }

    /// Where a block begins and ends, exactly.
    pub(super) fn span_px(&self, block: &BlockSnapshot) -> (f64, f64) {
        let offset = block.addr.offset_from(self.base);
        (self.exact_px(offset), self.exact_px(offset.saturating_add(block.size)))
    }

    /// The blocks that overlap the window.
    pub(super) fn visible<'a>(&self, blocks: &'a [BlockSnapshot]) -> &'a [BlockSnapshot] {
        let offset = |block: &BlockSnapshot| block.addr.offset_from(self.base);
        let from = blocks.partition_point(|block| offset(block).saturating_add(block.size) <= self.window.0);
        let to = blocks.partition_point(|block| offset(block) < self.window.1);
        blocks.get(from..to.max(from)).unwrap_or_default()
    }
}

/// One drawn piece: a block, or a run of narrow neighbors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'a> {
    Block { block: &'a BlockSnapshot, left_px: f32, right_px: f32 },
    Run { blocks: &'a [BlockSnapshot], left_px: f32, right_px: f32 },
}

impl Piece<'_> {
    pub(super) fn edges_px(&self) -> (f32, f32) {
        match self {
            Self::Block { left_px, right_px, .. } | Self::Run { left_px, right_px, .. } => {
                (*left_px, *right_px)
            }
        }
    }
}

/// The pieces of a bar in address order. Pieces lie side by side; only a piece that would be thinner than 2
/// pixels reaches over its neighbor.
pub(super) fn pieces<'a>(blocks: &'a [BlockSnapshot], scale: &BarScale) -> Vec<Piece<'a>> {
    let visible = scale.visible(blocks);
    let is_narrow = |block: &BlockSnapshot| {
        let (left, right) = scale.span_px(block);
        right - left < NARROW_PX
    };
    let mut pieces = Vec::new();
    let mut index = 0;
    while let Some(block) = visible.get(index) {
        let offset = block.addr.offset_from(scale.base);
        let left_px = scale.x_px(offset);
        if !is_narrow(block) {
            pieces.push(Piece::Block {
                block,
                left_px,
                right_px: scale.x_px(offset.saturating_add(block.size)),
            });
            index += 1;
            continue;
        }
        let end =
            |block: &BlockSnapshot| scale.x_px(block.addr.offset_from(scale.base).saturating_add(block.size));
        let more = visible[index + 1..]
            .iter()
            .take_while(|next| is_narrow(next) && end(next) - left_px <= RUN_PX)
            .count();
        let run = &visible[index..=index + more];
        let left_px = left_px.min(scale.right_px - 2.0).max(scale.left_px);
        let right_px = end(&visible[index + more]).max(left_px + 2.0).min(scale.right_px);
        pieces.push(match run {
            [block] => Piece::Block { block, left_px, right_px },
            blocks => Piece::Run { blocks, left_px, right_px },
        });
        index += more + 1;
    }
    pieces
}

/// The sizes of the blocks in each state, added up: allocated, pending, cached.
pub(super) fn sums(blocks: &[BlockSnapshot]) -> [Bytes; 3] {
    let mut sums = [Bytes::ZERO; 3];
    for block in blocks {
        let index = match block.state {
            BlockState::Allocated => 0,
            BlockState::PendingFree => 1,
            BlockState::Inactive => 2,
            BlockState::Unmapped => continue,
        };
        sums[index] = sums[index].saturating_add(block.size);
    }
    sums
}
