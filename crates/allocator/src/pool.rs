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
pub(crate) struct FreeSetIndex(u32);

impl FreeSetIndex {
    pub(crate) const FIRST: Self = Self(0);

    fn place(self) -> usize {
        self.0 as usize
    }
}

/// The free blocks of one stream in one half of a memory pool, and what its blocks have in common.
// As large as it is aligned: then a shift finds it in the list of all, and nothing waits for a multiplication.
#[derive(Clone, Debug)]
#[repr(align(1024))]
pub(crate) struct FreeSet {
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

impl FreeSet {
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
pub(crate) struct Half {
    sets: Vec<(StreamId, FreeSetIndex)>,
    /// Searches so far, counted only while garbage collection is possible (`get_free_blocks_call_count`).
    calls: u64,
    never_splits: bool,
}

impl Half {
    pub(crate) fn new(never_splits: bool) -> Self {
        Self { never_splits, ..Self::default() }
    }

    /// Searches so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    #[inline]
    pub(crate) fn set_of(&self, stream: StreamId) -> Option<FreeSetIndex> {
        // Most programs have one stream, and of several the lowest is the default stream.
        match self.sets.first() {
            Some((first, set)) if *first == stream => Some(*set),
            _ => self.position(stream).ok().map(|position| self.sets[position].1),
        }
    }

    pub(crate) fn sets(&self) -> impl Iterator<Item = FreeSetIndex> + '_ {
        self.sets.iter().map(|(_, set)| *set)
    }

    fn position(&self, stream: StreamId) -> Result<usize, usize> {
        self.sets.binary_search_by_key(&stream, |(other, _)| *other)
    }
}

/// All free sets of an allocator.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeSets {
    sets: Vec<FreeSet>,
}

impl FreeSets {
    /// A new set for a stream that has none in this half of the pool yet.
    pub(crate) fn add(
        &mut self,
        half: &mut Half,
        (stream, owner, pool): (StreamId, PoolIndex, PoolKind),
    ) -> FreeSetIndex {
        // As many sets as blocks would need 2^32 streams.
        let set = FreeSetIndex(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        let (cached, unmapped) = (SizeBins::new(pool), BTreeSet::new());
        let Half { calls, never_splits, .. } = *half;
        self.sets.push(FreeSet { stream, owner, cached, calls, never_splits, unmapped });
        if let Err(position) = half.position(stream) {
            half.sets.insert(position, (stream, set));
        }
        set
    }

    /// Counts one more search in this half of a pool.
    pub(crate) fn count_call(&mut self, half: &mut Half) {
        half.calls += 1;
        for (_, set) in &half.sets {
            self.sets[set.place()].calls = half.calls;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FreeSet> {
        self.sets.iter()
    }
}

// Indexing is fine since sets are never removed.
impl std::ops::Index<FreeSetIndex> for FreeSets {
    type Output = FreeSet;

    #[inline]
    fn index(&self, set: FreeSetIndex) -> &FreeSet {
        &self.sets[set.place()]
    }
}

impl std::ops::IndexMut<FreeSetIndex> for FreeSets {
    #[inline]
    fn index_mut(&mut self, set: FreeSetIndex) -> &mut FreeSet {
        &mut self.sets[set.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_as_large_as_it_is_aligned() {
        assert_eq!(size_of::<FreeSet>(), align_of::<FreeSet>());
    }
}
