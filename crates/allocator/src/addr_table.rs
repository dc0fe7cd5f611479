//! From the address of live memory to its block.

use std::collections::BTreeSet;

use blockyard_record::DeviceAddr;

use crate::block::BlockIndex;

/// Live blocks by their addresses: a hash of the address says which pair of slots is its home.
///
/// Which of the two is chosen without a branch, and at most an eighth of the slots are filled, so that nearly everything is found
/// where it is looked for first: what cannot be foreseen costs more than the memory. The few that find both slots of their home filled
/// wait in a tree.
///
/// A slot is 8 bytes, so that a pair lies in one cache line: it holds the low half of the address in units of the smallest block,
/// which tells blocks apart within 2 TiB, and the block itself is asked for the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddrTable {
    /// A power of two of them, or none.
    pairs: Vec<[Slot; 2]>,
    crowd: BTreeSet<Slot>,
    /// So many more come in before the table grows.
    room: usize,
}

/// The block's number is 0 in empty ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    tag: u32,
    block: u32,
}

/// The place of those in the crowd.
const CROWD: usize = usize::MAX;
const LEAST_PAIRS: usize = 256;
/// So many slots for each block that is in the table.
const SPARSITY: usize = 8;

impl AddrTable {
    /// The block at the address, if there is one for which `is_it` holds, and its place for [`AddrTable::remove`].
    #[inline]
    pub(crate) fn find(
        &self,
        addr: DeviceAddr,
        is_it: impl Fn(BlockIndex) -> bool,
    ) -> Option<(usize, BlockIndex)> {
        let tag = tag(addr);
        let home = self.home(tag);
        let pair = self.pairs.get(home)?;
        let second = usize::from(pair[1].tag == tag);
        match BlockIndex::from_number(pair[second].block) {
            Some(index) if is_it(index) => Some((home * 2 + second, index)),
            _ => self.find_elsewhere(tag, is_it),
        }
    }

    /// Looks at the other slot of the home, and among those that found no slot.
    #[cold]
    #[inline(never)]
    fn find_elsewhere(&self, tag: u32, is_it: impl Fn(BlockIndex) -> bool) -> Option<(usize, BlockIndex)> {
        let home = self.home(tag);
        let pair = self.pairs.get(home)?;
        let in_pair = (home * 2..).zip(*pair);
        let in_crowd = self.crowd.range(Slot { tag, block: 0 }..=Slot { tag, block: u32::MAX });
        let found = in_pair.chain(in_crowd.map(|slot| (CROWD, *slot)));
        let mut blocks =
            found.filter_map(|(place, slot)| Some((place, BlockIndex::from_number(slot.block)?)));
        blocks.find(|(_, index)| is_it(*index))
    }

    /// Adds a block that is not in the table.
    #[inline]
    pub(crate) fn insert(&mut self, addr: DeviceAddr, index: BlockIndex) {
        if self.room == 0 {
            self.grow();
        }
        self.room -= 1;
        self.put(Slot { tag: tag(addr), block: index.number() });
    }

    /// Takes out the block at this address, at the place that [`AddrTable::find`] gave for it before anything else changed.
    #[inline]
    pub(crate) fn remove(&mut self, addr: DeviceAddr, (place, index): (usize, BlockIndex)) {
        self.room += 1;
        match self.pairs.as_flattened_mut().get_mut(place) {
            Some(slot) => *slot = Slot::default(),
            None => self.leave_crowd(Slot { tag: tag(addr), block: index.number() }),
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_crowd(&mut self, slot: Slot) {
        self.crowd.remove(&slot);
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        // Fibonacci hashing: neighbors in memory are spread.
        let mixed = u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        // At most 32 bits.
        mixed as usize & self.pairs.len().wrapping_sub(1)
    }

    #[inline]
    fn put(&mut self, slot: Slot) {
        let home = self.home(slot.tag);
        let pair = &mut self.pairs[home];
        let second = usize::from(pair[0].block != 0);
        if pair[second].block == 0 {
            pair[second] = slot;
        } else {
            self.join_crowd(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn join_crowd(&mut self, slot: Slot) {
        self.crowd.insert(slot);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let pairs = (self.pairs.len() * 2).max(LEAST_PAIRS);
        let old = std::mem::replace(&mut self.pairs, vec![[Slot::default(); 2]; pairs]);
        let crowd = std::mem::take(&mut self.crowd);
        let filled = old.into_iter().flatten().chain(crowd).filter(|slot| slot.block != 0);
        let count = filled.map(|slot| self.put(slot)).count();
        self.room = pairs * 2 / SPARSITY - count;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the tag is the low half by definition")]
fn tag(addr: DeviceAddr) -> u32 {
    (addr.get() >> 9) as u32
}

#[cfg(test)]
mod model;
