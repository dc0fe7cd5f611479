//! Blocks and the table that owns them.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use blockyard_record::{AllocationId, BlockId, BlockState, Bytes, DeviceAddr, PoolKind, SegmentId, StreamId};

use crate::pool::FreeListIndex;

/// Where a block stands in its table. Places are used again after a block is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockIndex(NonZeroU32);

impl BlockIndex {
    pub(crate) const LOWEST: Self = Self(NonZeroU32::MIN);

    /// The plain number, from 1 on.
    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    /// The index with this number; `None` for 0.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub(crate) fn place(self) -> usize {
        self.0.get() as usize
    }

    /// The place of a neighbor: the first place of the table where there is none, so that nothing has to branch.
    #[inline]
    pub(crate) fn place_of(neighbor: Option<Self>) -> usize {
        neighbor.map_or(0, Self::place)
    }
}

/// A part of a segment. Neighbors in address order are linked (`prev` and `next` in PyTorch).
///
/// 64 bytes, one cache line, since the time of a request is the number of lines that it touches: what is the same for the whole
/// segment stands at its free set or with its pages, and what few blocks have stands in [`StreamUses`].
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) addr: DeviceAddr,
    /// Zero in vacant places of the table only.
    pub(crate) size: Bytes,
    /// What it was last handed out for; stays when the block becomes inactive, since PyTorch shows it so.
    pub(crate) requested: Bytes,
    /// The calls of its half of the pool when the block was put there, for garbage collection.
    pub(crate) calls_when_freed: u64,
    pub(crate) previous: Option<BlockIndex>,
    pub(crate) next: Option<BlockIndex>,
    pub(crate) id: BlockId,
    pub(crate) segment: SegmentId,
    /// Where it waits when it is free, which also says its stream and whose memory it is.
    pub(crate) list: FreeListIndex,
    /// Whom it serves or, while pending, served; stale in other states.
    pub(crate) allocation: AllocationId,
    /// Which of the table's records of streams is its own.
    pub(crate) uses: Option<NonZeroU32>,
    pub(crate) pool: PoolKind,
    pub(crate) state: BlockState,
    /// Whether its segment gets memory page by page.
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
    // Nothing merges with the first place of the table.
    state: BlockState::Allocated,
    is_expandable: false,
};

impl Block {
    /// The one block of a new segment: cached or, where the segment gets memory by pages, without memory yet.
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

    /// A new object for a part of this block's memory, not linked to others yet.
    pub(crate) fn part(&self, id: BlockId, addr: DeviceAddr, size: Bytes) -> Self {
        Self { addr, size, id, requested: Bytes::ZERO, previous: None, next: None, ..*self }
    }

    /// Puts the place at the head of the chain of vacant ones.
    #[inline]
    pub(crate) fn vacate(&mut self, index: BlockIndex, vacant: &mut Option<BlockIndex>) {
        self.size = Bytes::ZERO;
        self.next = *vacant;
        *vacant = Some(index);
    }

    /// Whether it is nobody's: ready to be used, or ready to get memory.
    pub(crate) fn is_available(&self) -> bool {
        !self.state.is_active()
    }

    /// Whether it has neighbors (`is_split`).
    pub(crate) fn is_split(&self) -> bool {
        // Not `||`, which would branch.
        self.previous.is_some() | self.next.is_some()
    }

    /// Whether other streams used it since it was handed out.
    pub(crate) fn has_uses(&self) -> bool {
        self.uses.is_some()
    }
}

/// What is known of a block that other streams used.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamUses {
    /// Other streams that used it since it was handed out, ascending.
    pub(crate) streams: Vec<StreamId>,
    /// Those of them that were noted while a scope on a pool was open; a free does not wait for these.
    pub(crate) in_scope: Vec<StreamId>,
    /// Events of those streams that its free still waits for.
    pub(crate) outstanding: usize,
}

/// All blocks of an allocator.
///
/// An index is valid from [`BlockTable::insert`] to [`BlockTable::remove`]; the allocator holds indices only in block
/// links, free sets, pending queues and live allocations, and takes them out of all of these before it removes a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockTable {
    /// The first place stays vacant, so that an index is never 0. It stands for a neighbor that is not there: what is written
    /// to it is of no use to anybody.
    blocks: Vec<Block>,
    /// Vacant places are chained by `next`.
    vacant: Option<BlockIndex>,
    /// By the number in `Block::uses`; the first is nobody's. Vacant ones keep their memory for the next block.
    uses: Vec<StreamUses>,
    vacant_uses: Vec<NonZeroU32>,
    minted: u32,
}

impl Default for BlockTable {
    fn default() -> Self {
        Self {
            blocks: vec![VACANT],
            vacant: None,
            uses: vec![StreamUses::default()],
            vacant_uses: Vec::new(),
            minted: 0,
        }
    }
}

impl BlockTable {
    /// A new identity.
    #[inline]
    pub(crate) fn mint(&mut self) -> BlockId {
        let id = BlockId::new(self.minted);
        self.minted = self.minted.wrapping_add(1);
        id
    }

    /// Lets new identities follow `taken`.
    pub(crate) fn skip(&mut self, taken: BlockId) {
        self.minted = self.minted.max(taken.get().wrapping_add(1));
    }

    #[inline]
    pub(crate) fn insert(&mut self, block: Block) -> BlockIndex {
        let index = self.claim();
        self.blocks[index.place()] = block;
        index
    }

    /// A vacant place, whose new block is written next.
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
        // A table of 2^32 blocks of 512 bytes each would cover 2 TiB in the smallest blocks there are, with 256 GiB for itself.
        let number = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        self.blocks.push(VACANT);
        BlockIndex(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    /// All places, and where the chain of vacant ones begins.
    #[inline]
    pub(crate) fn places(&mut self) -> (&mut [Block], &mut Option<BlockIndex>) {
        (&mut self.blocks, &mut self.vacant)
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: BlockIndex) {
        self.blocks[index.place()].vacate(index, &mut self.vacant);
    }

    /// The block, or what stands for none, so that nothing has to branch.
    #[inline]
    pub(crate) fn at_or_nothing(&self, index: Option<BlockIndex>) -> &Block {
        &self.blocks[BlockIndex::place_of(index)]
    }

    /// What stands at a place, which may be vacant.
    #[inline]
    pub(crate) fn at(&self, index: BlockIndex) -> Option<&Block> {
        self.blocks.get(index.place())
    }

    #[inline]
    pub(crate) fn get(&self, index: BlockIndex) -> Option<&Block> {
        self.at(index).filter(|block| !block.size.is_zero())
    }

    /// The streams that used the block, if others did.
    pub(crate) fn uses(&self, block: &Block) -> Option<&StreamUses> {
        block.uses.and_then(|uses| self.uses.get(uses.get() as usize))
    }

    /// Where to note streams that use the block.
    pub(crate) fn uses_mut(&mut self, index: BlockIndex) -> &mut StreamUses {
        let block = &mut self.blocks[index.place()];
        let uses = *block.uses.get_or_insert_with(|| {
            self.vacant_uses.pop().unwrap_or_else(|| {
                let number = u32::try_from(self.uses.len()).unwrap_or(u32::MAX);
                self.uses.push(StreamUses::default());
                NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
            })
        });
        &mut self.uses[uses.get() as usize]
    }

    /// Forgets the streams that used the block.
    pub(crate) fn clear_uses(&mut self, index: BlockIndex) {
        let Some(uses) = self.blocks[index.place()].uses.take() else {
            return;
        };
        let cleared = &mut self.uses[uses.get() as usize];
        cleared.streams.clear();
        cleared.in_scope.clear();
        cleared.outstanding = 0;
        self.vacant_uses.push(uses);
    }

    /// The first blocks of all segments, in no order that means anything.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Block> {
        self.iter().map(|(_, block)| block).filter(|block| block.previous.is_none())
    }

    /// `head` and the blocks behind it, in address order.
    pub(crate) fn chain<'a>(&'a self, head: &'a Block) -> impl Iterator<Item = &'a Block> {
        std::iter::successors(Some(head), |block| block.next.and_then(|next| self.get(next)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (BlockIndex, &Block)> {
        let numbered = (0..).zip(&self.blocks).filter(|(_, block)| !block.size.is_zero());
        numbered.filter_map(|(number, block)| BlockIndex::from_number(number).map(|index| (index, block)))
    }
}

// Indexing is fine because of the rule at the table: every index in the allocator's hands is valid.
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
