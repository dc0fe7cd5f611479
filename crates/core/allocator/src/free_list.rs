//! Free lists: the inactive and the unmapped blocks, in best-fit order.
//!
//! PyTorch has one set for each `BlockPool`, ordered by stream, size and address. A search uses the blocks of
//! one stream only, so here each stream has its own free list; iteration over a whole block pool takes the
//! lists by ascending stream.

use std::collections::BTreeSet;

use blockyard_record::{Bytes, DeviceAddr, PoolKind, StreamId};

use crate::bins::SizeBins;
use crate::block::{Block, BlockIndex, BlockTable};
use crate::memory_pool::MemoryPoolIndex;

/// The index of a free list. Free lists are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeListIndex(u32);

impl FreeListIndex {
    pub(crate) const FIRST: Self = Self(0);

    fn place(self) -> usize {
        self.0 as usize
    }
}

/// The free blocks of one stream in one block pool, and the values that all these blocks share. The size is a
/// power of two and equals the alignment, so that indexing takes a shift instead of a multiplication.
#[derive(Clone, Debug)]
#[repr(align(1024))]
pub(crate) struct FreeList {
    pub(crate) stream: StreamId,
    /// The memory pool that the blocks belong to.
    pub(crate) memory_pool: MemoryPoolIndex,
    /// Cached blocks.
    pub(crate) cached: SizeBins,
    /// A copy of the call count of the block pool (`get_free_blocks_call_count`).
    pub(crate) calls: u64,
    /// Whether the pool's options forbid splitting, so that every request gets a whole segment.
    pub(crate) never_splits: bool,
    /// Unmapped blocks of expandable segments by address.
    pub(crate) unmapped: BTreeSet<(DeviceAddr, BlockIndex)>,
}

impl FreeList {
    /// Whether no block is cached or unmapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.cached.is_empty() && self.unmapped.is_empty()
    }

    pub(crate) fn contains_unmapped(&self, index: BlockIndex, block: &Block) -> bool {
        self.unmapped.contains(&(block.addr, index))
    }

    /// Blocks of at least `size`, by ascending size, then by ascending address.
    pub(crate) fn fitting<'a>(
        &'a self,
        size: Bytes,
        blocks: &'a BlockTable,
    ) -> impl Iterator<Item = BlockIndex> + 'a {
        let first = self.cached.first_fitting(size, blocks);
        std::iter::successors(first, |index| self.cached.next_after(*index, &blocks[*index]))
    }

    /// Blocks smaller than `size`, by ascending size.
    pub(crate) fn smaller_than(&self, size: Bytes, blocks: &BlockTable) -> Vec<BlockIndex> {
        self.cached.iter(blocks).take_while(|index| blocks[*index].size < size).collect()
    }
}

/// The small or the large block pool of one memory pool (`BlockPool`): its free lists by ascending stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockPool {
    lists: Vec<(StreamId, FreeListIndex)>,
    /// How many searches there were, counted only while garbage collection is possible
    /// (`get_free_blocks_call_count`).
    calls: u64,
    never_splits: bool,
}

impl BlockPool {
    pub(crate) fn new(never_splits: bool) -> Self {
        Self { never_splits, ..Self::default() }
    }

    /// How many searches there were.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    #[inline]
    pub(crate) fn list_of(&self, stream: StreamId) -> Option<FreeListIndex> {
        // Most programs have one stream, and the default stream is the lowest.
        match self.lists.first() {
            Some((first, list)) if *first == stream => Some(*list),
            _ => self.position(stream).ok().map(|position| self.lists[position].1),
        }
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = FreeListIndex> + '_ {
        self.lists.iter().map(|(_, list)| *list)
    }

    fn position(&self, stream: StreamId) -> Result<usize, usize> {
        self.lists.binary_search_by_key(&stream, |(other, _)| *other)
    }
}

/// All free lists of an allocator.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeLists {
    lists: Vec<FreeList>,
}

impl FreeLists {
    /// A new free list for a stream that has none in this block pool yet.
    pub(crate) fn add(
        &mut self,
        block_pool: &mut BlockPool,
        (stream, memory_pool, pool): (StreamId, MemoryPoolIndex, PoolKind),
    ) -> FreeListIndex {
        let list = FreeListIndex(crate::block::table_number(self.lists.len()));
        let (cached, unmapped) = (SizeBins::new(pool), BTreeSet::new());
        let BlockPool { calls, never_splits, .. } = *block_pool;
        self.lists.push(FreeList { stream, memory_pool, cached, calls, never_splits, unmapped });
        if let Err(position) = block_pool.position(stream) {
            block_pool.lists.insert(position, (stream, list));
        }
        list
    }

    /// Counts one more search in this block pool.
    pub(crate) fn count_call(&mut self, block_pool: &mut BlockPool) {
        block_pool.calls += 1;
        for (_, list) in &block_pool.lists {
            self.lists[list.place()].calls = block_pool.calls;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FreeList> {
        self.lists.iter()
    }
}

// Indexing cannot fail, because free lists are never removed.
impl std::ops::Index<FreeListIndex> for FreeLists {
    type Output = FreeList;

    #[inline]
    fn index(&self, list: FreeListIndex) -> &FreeList {
        &self.lists[list.place()]
    }
}

impl std::ops::IndexMut<FreeListIndex> for FreeLists {
    #[inline]
    fn index_mut(&mut self, list: FreeListIndex) -> &mut FreeList {
        &mut self.lists[list.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_list_is_as_large_as_it_is_aligned() {
        assert_eq!(size_of::<FreeList>(), align_of::<FreeList>());
    }
}
