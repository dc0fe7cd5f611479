//! The block to which a key of the keyboard goes from another block.

use blockyard_record::{BlockId, BlockSnapshot, MemoryState, SegmentInfo, SegmentSnapshot};

use crate::changes::Changes;
use crate::conversions::bytes_f64;
use crate::map::rows::{Row, Rows};
use crate::map::view::{Direction, MapView};

/// The block to which a key goes from a block, in the order of the rows.
///
/// From no block (`None`, or a block that does not exist any more) the keyboard goes to the first block, or
/// to the last block for [`Direction::Left`], [`Direction::Up`] and the ends. At the ends of the map the
/// block stays. `None` where there are no blocks.
pub fn next_block(
    state: &MemoryState,
    view: &MapView,
    from: Option<BlockId>,
    direction: Direction,
) -> Option<BlockId> {
    let navigation = BlockNavigation { state, rows: segments(state, view) };
    let place = from.and_then(|block| navigation.place(block));
    let Some((row, index)) = place else {
        return match direction {
            Direction::Left | Direction::Up | Direction::End | Direction::Last => navigation.last(),
            Direction::Right | Direction::Down | Direction::Home | Direction::First => navigation.first(),
        };
    };
    let blocks = navigation.blocks(row)?;
    let found = match direction {
        Direction::Left => match index.checked_sub(1) {
            Some(index) => blocks.blocks.get(index).map(|block| block.id),
            None => row.checked_sub(1).and_then(|row| navigation.blocks(row)).and_then(|row| last_of(&row)),
        },
        Direction::Right => match blocks.blocks.get(index + 1) {
            Some(block) => Some(block.id),
            None => navigation.blocks(row + 1).and_then(|row| first_of(&row)),
        },
        Direction::Up => row.checked_sub(1).and_then(|other| navigation.nearest(&blocks, index, other)),
        Direction::Down => navigation.nearest(&blocks, index, row + 1),
        Direction::Home => first_of(&blocks),
        Direction::End => last_of(&blocks),
        Direction::First => navigation.first(),
        Direction::Last => navigation.last(),
    };
    found.or(from)
}

fn segments(state: &MemoryState, view: &MapView) -> Vec<SegmentInfo> {
    let rows = Rows::new(state, &Changes::default(), view).list;
    rows.into_iter().filter_map(|row| if let Row::Segment(info) = row { Some(info) } else { None }).collect()
}

fn first_of(segment: &SegmentSnapshot) -> Option<BlockId> {
    segment.blocks.first().map(|block| block.id)
}

fn last_of(segment: &SegmentSnapshot) -> Option<BlockId> {
    segment.blocks.last().map(|block| block.id)
}

struct BlockNavigation<'a> {
    state: &'a MemoryState,
    rows: Vec<SegmentInfo>,
}

impl BlockNavigation<'_> {
    fn blocks(&self, row: usize) -> Option<SegmentSnapshot> {
        self.rows.get(row).and_then(|info| self.state.segment(info.id))
    }

    fn first(&self) -> Option<BlockId> {
        self.blocks(0).and_then(|segment| first_of(&segment))
    }

    fn last(&self) -> Option<BlockId> {
        self.rows.len().checked_sub(1).and_then(|row| self.blocks(row)).and_then(|segment| last_of(&segment))
    }

    /// The block's row and its index there.
    fn place(&self, block: BlockId) -> Option<(usize, usize)> {
        let segment = self.state.segment_of(block)?;
        let row = self.rows.iter().position(|info| info.id == segment)?;
        let index = self.blocks(row)?.blocks.iter().position(|other| other.id == block)?;
        Some((row, index))
    }

    /// The block of another row that lies over or under the middle of a block, as the map draws them.
    fn nearest(&self, segment: &SegmentSnapshot, index: usize, row: usize) -> Option<BlockId> {
        let other = self.blocks(row)?;
        let block = segment.blocks.get(index)?;
        let middle = bytes_f64(block.addr.offset_from(segment.addr)) + bytes_f64(block.size) / 2.0;
        let end =
            |block: &BlockSnapshot| bytes_f64(block.addr.offset_from(other.addr)) + bytes_f64(block.size);
        let found = other.blocks.partition_point(|block| end(block) <= middle);
        other.blocks.get(found).or_else(|| other.blocks.last()).map(|block| block.id)
    }
}
