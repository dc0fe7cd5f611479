//! Blocks, and the table that owns them.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use blockyard_record::{AllocationId, BlockId, BlockState, Bytes, DeviceAddr, PoolKind, SegmentId, StreamId};

use crate::free_list::FreeListIndex;

/// The place of a block in the table. Places are reused after a block is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockIndex(NonZeroU32);

/// The number of a place in one of the allocator's tables, the largest of which is that of blocks.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the assertion checks it")]
pub(crate) fn table_number(place: usize) -> u32 {
    debug_assert!(
        u32::try_from(place).is_ok(),
        "a table of 2^32 blocks takes 256 GiB, which the host does not have"
    );
    place as u32
}

impl BlockIndex {
    pub(crate) const LOWEST: Self = Self(NonZeroU32::MIN);

    /// The number, from 1 on.
    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    /// The index with this number; `None` for 0.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The index that an entry of a list was made of.
    #[inline]
    pub(crate) fn from_entry(number: u32) -> Self {
        debug_assert_ne!(number, 0, "entries are made of indices, which are at least 1");
        match NonZeroU32::new(number) {
            Some(number) => Self(number),
            None => Self::LOWEST,
        }
    }

    pub(crate) fn place(self) -> usize {
        self.0.get() as usize
    }

    /// The place of a neighbor. Without a neighbor this is the first place of the table, so that callers need
    /// no branch.
    #[inline]
    pub(crate) fn place_of(neighbor: Option<Self>) -> usize {
        neighbor.map_or(0, Self::place)
    }
}

/// A part of a segment. Neighbors in address order are linked (`prev` and `next` in PyTorch).
///
/// A block takes 64 bytes, which is one cache line, because the time of a request depends on the number of
/// cache lines that it touches. Values that are the same for a whole segment are in its free list or with its
/// pages, and values that few blocks have are in [`StreamUses`].
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) addr: DeviceAddr,
    /// Zero only in vacant places of the table.
    pub(crate) size: Bytes,
    /// The request that the block last served. An inactive block keeps the value, because PyTorch shows it.
    pub(crate) requested: Bytes,
    /// The call count of the pool when the block was freed, for garbage collection.
    pub(crate) calls_when_freed: u64,
    pub(crate) previous: Option<BlockIndex>,
    pub(crate) next: Option<BlockIndex>,
    pub(crate) id: BlockId,
    pub(crate) segment: SegmentId,
    /// The free list of the block, which also has its stream and its memory pool.
    pub(crate) list: FreeListIndex,
    /// The allocation that the block serves or, while its free is pending, served. Stale in other states.
    pub(crate) allocation: AllocationId,
    /// The index of the block's [`StreamUses`] in the table.
    pub(crate) uses: Option<NonZeroU32>,
    pub(crate) pool: PoolKind,
    pub(crate) state: BlockState,
    /// Whether the segment is expandable.
    pub(crate) is_expandable: bool,
}

const VACANT: Block = Block {
    addr: DeviceAddr::new(0),
    size: Bytes::ZERO,
    requested: Bytes::ZERO,
    calls_when_freed: 0,
    previous: None,
    next: None,
    id: BlockId::new(0),
    segment: SegmentId::new(0),
    list: FreeListIndex::FIRST,
    allocation: AllocationId::new(0),
    uses: None,
    pool: PoolKind::Small,
    // An allocated block never merges, so that no block merges with the first place of the table.
    state: BlockState::Allocated,
    is_expandable: false,
};

impl Block {
    /// The only block of a new segment: cached, or unmapped if the segment is expandable.
    pub(crate) fn of_segment(
        id: BlockId,
        segment: SegmentId,
        (addr, size): (DeviceAddr, Bytes),
        (list, pool): (FreeListIndex, PoolKind),
        is_expandable: bool,
    ) -> Self {
        let state = if is_expandable { BlockState::Unmapped } else { BlockState::Inactive };
        Self { addr, size, id, segment, list, pool, state, is_expandable, ..VACANT }
    }

    /// A new block for a part of this block, without links to neighbors.
    pub(crate) fn part(&self, id: BlockId, addr: DeviceAddr, size: Bytes) -> Self {
        Self { addr, size, id, requested: Bytes::ZERO, previous: None, next: None, ..*self }
    }

    /// Adds the place to the chain of vacant places.
    #[inline]
    pub(crate) fn vacate(&mut self, index: BlockIndex, vacant: &mut Option<BlockIndex>) {
        self.size = Bytes::ZERO;
        self.next = *vacant;
        *vacant = Some(index);
    }

    /// Whether the block is inactive or unmapped.
    pub(crate) fn is_available(&self) -> bool {
        !self.state.is_active()
    }

    /// Whether the block has neighbors (`is_split`).
    pub(crate) fn is_split(&self) -> bool {
        // `||` would branch.
        self.previous.is_some() | self.next.is_some()
    }

    /// Whether the block is a whole segment of the driver, which can be released. Where `max_split_size` was
    /// set after larger blocks existed, some of these are parts of segments.
    pub(crate) fn is_releasable(&self) -> bool {
        !self.is_expandable && !self.is_split()
    }

    /// Whether other streams used the block since it was allocated.
    pub(crate) fn has_uses(&self) -> bool {
        self.uses.is_some()
    }
}

/// The streams that used a block, and the events that its free waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamUses {
    /// Other streams that used the block since it was allocated, ascending.
    pub(crate) streams: Vec<StreamId>,
    /// Those of the streams that were recorded during a graph capture. A free does not wait for them.
    pub(crate) in_capture: Vec<StreamId>,
    /// How many events of these streams the free still waits for.
    pub(crate) outstanding: usize,
}

/// All blocks of an allocator.
///
/// An index is valid from [`BlockTable::insert`] to [`BlockTable::remove`]. The allocator has indices only in
/// links of blocks, free lists, pending queues and live allocations, and removes an index from all of these
/// before it removes the block.
#[derive(Clone, Debug)]
pub(crate) struct BlockTable {
    /// The first place is never used, so that an index is never 0. It stands for a neighbor that does not
    /// exist: values written to it are never read.
    blocks: Vec<Block>,
    /// The first vacant place; vacant places are linked by `next`.
    vacant: Option<BlockIndex>,
    /// Entry `i` belongs to the block with `Block::uses` = `i`; entry 0 belongs to no block. Vacant entries
    /// keep their memory.
    uses: Vec<StreamUses>,
    vacant_uses: Vec<NonZeroU32>,
    /// The number of the next block id.
    next_id: u32,
}

impl Default for BlockTable {
    fn default() -> Self {
        Self {
            blocks: vec![VACANT],
            vacant: None,
            uses: vec![StreamUses::default()],
            vacant_uses: Vec::new(),
            next_id: 0,
        }
    }
}

impl BlockTable {
    /// A new block id.
    #[inline]
    pub(crate) fn new_id(&mut self) -> BlockId {
        let id = BlockId::new(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// Continues block ids with this number.
    pub(crate) fn set_next_id(&mut self, next: u32) {
        self.next_id = next;
    }

    /// Continues block ids after `taken`.
    pub(crate) fn skip(&mut self, taken: BlockId) {
        self.next_id = self.next_id.max(taken.get().wrapping_add(1));
    }

    #[inline]
    pub(crate) fn insert(&mut self, block: Block) -> BlockIndex {
        let index = self.claim();
        self.blocks[index.place()] = block;
        index
    }

    /// A vacant place. The caller writes the new block next.
    #[inline]
    pub(crate) fn claim(&mut self) -> BlockIndex {
        let Some(index) = self.vacant else {
            return self.add_place();
        };
        self.vacant = self.blocks[index.place()].next;
        index
    }

    #[cold]
    #[inline(never)]
    fn add_place(&mut self) -> BlockIndex {
        // The first place is never vacant, so this is at least 1.
        let index = BlockIndex::from_entry(table_number(self.blocks.len()));
        self.blocks.push(VACANT);
        index
    }

    /// All places, and the first vacant place.
    #[inline]
    pub(crate) fn places(&mut self) -> (&mut [Block], &mut Option<BlockIndex>) {
        (&mut self.blocks, &mut self.vacant)
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: BlockIndex) {
        self.blocks[index.place()].vacate(index, &mut self.vacant);
    }

    /// The block, or the first place of the table for `None`, so that callers need no branch.
    #[inline]
    pub(crate) fn at_or_first(&self, index: Option<BlockIndex>) -> &Block {
        &self.blocks[BlockIndex::place_of(index)]
    }

    /// The block at a place, which may be vacant.
    #[inline]
    pub(crate) fn at(&self, index: BlockIndex) -> Option<&Block> {
        self.blocks.get(index.place())
    }

    #[inline]
    pub(crate) fn get(&self, index: BlockIndex) -> Option<&Block> {
        self.at(index).filter(|block| !block.size.is_zero())
    }

    /// The other streams that used the block, if there are any.
    pub(crate) fn uses(&self, block: &Block) -> Option<&StreamUses> {
        block.uses.and_then(|uses| self.uses.get(uses.get() as usize))
    }

    /// The [`StreamUses`] of the block, made if the block has none.
    pub(crate) fn uses_mut(&mut self, index: BlockIndex) -> &mut StreamUses {
        let block = &mut self.blocks[index.place()];
        let uses = *block.uses.get_or_insert_with(|| {
            self.vacant_uses.pop().unwrap_or_else(|| {
                let place = BlockIndex::from_entry(table_number(self.uses.len()));
                self.uses.push(StreamUses::default());
                place.0
            })
        });
        &mut self.uses[uses.get() as usize]
    }

    /// Removes the [`StreamUses`] of the block.
    pub(crate) fn clear_uses(&mut self, index: BlockIndex) {
        let Some(uses) = self.blocks[index.place()].uses.take() else {
            return;
        };
        let cleared = &mut self.uses[uses.get() as usize];
        cleared.streams.clear();
        cleared.in_capture.clear();
        cleared.outstanding = 0;
        self.vacant_uses.push(uses);
    }

    /// The first block of each segment, in no particular order.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Block> {
        self.iter().map(|(_, block)| block).filter(|block| block.previous.is_none())
    }

    /// `head` and the blocks after it, in address order.
    pub(crate) fn chain<'a>(&'a self, head: &'a Block) -> impl Iterator<Item = &'a Block> {
        std::iter::successors(Some(head), |block| block.next.and_then(|next| self.get(next)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (BlockIndex, &Block)> {
        let numbered = (0..).zip(&self.blocks).filter(|(_, block)| !block.size.is_zero());
        numbered.filter_map(|(number, block)| BlockIndex::from_number(number).map(|index| (index, block)))
    }
}

// Indexing cannot fail, by the rule at the table: every index that the allocator has is valid.
impl Index<BlockIndex> for BlockTable {
    type Output = Block;

    #[inline]
    fn index(&self, index: BlockIndex) -> &Block {
        &self.blocks[index.place()]
    }
}

impl IndexMut<BlockIndex> for BlockTable {
    #[inline]
    fn index_mut(&mut self, index: BlockIndex) -> &mut Block {
        &mut self.blocks[index.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_fills_one_cache_line() {
        assert_eq!(size_of::<Block>(), 64);
    }
}
