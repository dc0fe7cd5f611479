//! Free sets: what waits to be used again, in best-fit order.
//!
//! PyTorch keeps one set for each half of a memory pool, ordered by stream handle, size and address. A search never leaves its
//! stream, so here each stream has a set of its own; walks over a whole half take the sets by ascending handle.

use std::collections::BTreeSet;

use blockyard_record::{Bytes, DeviceAddr, PoolKind, StreamId};

use crate::bins::SizeBins;
use crate::block::{Block, BlockIndex, BlockTable};
use crate::private_pool::PoolIndex;

/// Which of the allocator's free sets. Sets are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeListIndex(u32);

impl FreeListIndex {
    pub(crate) const FIRST: Self = Self(0);

    fn place(self) -> usize {
        self.0 as usize
    }
}

/// The free blocks of one stream in one half of a memory pool, and what its blocks have in common.
// As large as it is aligned: then a shift finds it in the list of all, and nothing waits for a multiplication.
#[derive(Clone, Debug)]
#[repr(align(1024))]
pub(crate) struct FreeList {
    pub(crate) stream: StreamId,
    pub(crate) owner: PoolIndex,
    /// Cached blocks.
    pub(crate) cached: SizeBins,
    /// The calls of its half of the pool, which stand there too (`get_free_blocks_call_count`).
    pub(crate) calls: u64,
    /// Whether every request gets a whole segment, by the pool's options.
    pub(crate) never_splits: bool,
    /// Unmapped blocks of expandable segments by address.
    pub(crate) unmapped: BTreeSet<(DeviceAddr, BlockIndex)>,
}

impl FreeList {
    /// Whether it holds neither cached nor unmapped blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.cached.is_empty() && self.unmapped.is_empty()
    }

    pub(crate) fn contains_unmapped(&self, index: BlockIndex, block: &Block) -> bool {
        self.unmapped.contains(&(block.addr, index))
    }

    /// Blocks of at least `size`, smallest first, lowest address first among equals.
    pub(crate) fn fitting<'a>(
        &'a self,
        size: Bytes,
        blocks: &'a BlockTable,
    ) -> impl Iterator<Item = BlockIndex> + 'a {
        let first = self.cached.first_fitting(size, blocks);
        std::iter::successors(first, |index| self.cached.next_after(*index, &blocks[*index]))
    }

    /// Blocks smaller than `size`, largest first.
    pub(crate) fn smaller_than(&self, size: Bytes, blocks: &BlockTable) -> Vec<BlockIndex> {
        let mut smaller: Vec<BlockIndex> =
            self.cached.iter(blocks).take_while(|index| blocks[*index].size < size).collect();
        smaller.reverse();
        smaller
    }
}

/// One half of a memory pool (`BlockPool`): its free sets by ascending stream handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockPool {
    lists: Vec<(StreamId, FreeListIndex)>,
    /// Searches so far, counted only while garbage collection is possible (`get_free_blocks_call_count`).
    calls: u64,
    never_splits: bool,
}

impl BlockPool {
    pub(crate) fn new(never_splits: bool) -> Self {
        Self { never_splits, ..Self::default() }
    }

    /// Searches so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    #[inline]
    pub(crate) fn list_of(&self, stream: StreamId) -> Option<FreeListIndex> {
        // Most programs have one stream, and of several the lowest is the default stream.
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

/// All free sets of an allocator.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeLists {
    lists: Vec<FreeList>,
}

impl FreeLists {
    /// A new set for a stream that has none in this half of the pool yet.
    pub(crate) fn add(
        &mut self,
        block_pool: &mut BlockPool,
        (stream, owner, pool): (StreamId, PoolIndex, PoolKind),
    ) -> FreeListIndex {
        // As many sets as blocks would need 2^32 streams.
        let list = FreeListIndex(u32::try_from(self.lists.len()).unwrap_or(u32::MAX));
        let (cached, unmapped) = (SizeBins::new(pool), BTreeSet::new());
        let BlockPool { calls, never_splits, .. } = *block_pool;
        self.lists.push(FreeList { stream, owner, cached, calls, never_splits, unmapped });
        if let Err(position) = block_pool.position(stream) {
            block_pool.lists.insert(position, (stream, list));
        }
        list
    }

    /// Counts one more search in this half of a pool.
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

// Indexing is fine since sets are never removed.
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
    fn a_set_is_as_large_as_it_is_aligned() {
        assert_eq!(size_of::<FreeList>(), align_of::<FreeList>());
    }
}
