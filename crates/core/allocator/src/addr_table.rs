//! A hash table from the address of an allocated block to the block.

use std::collections::BTreeMap;

use blockyard_record::DeviceAddr;

use crate::block::BlockIndex;

/// Allocated blocks by address. A hash of the address chooses a pair of slots, the home of the block.
///
/// The slot of the pair is chosen without a branch, because a branch that the processor cannot predict costs
/// more than memory does. At most an eighth of the slots are in use, so that nearly every block is in its
/// home. A block whose home is full is in the neighboring pair, and if that pair is full too, in a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddrTable {
    /// The number of pairs is a power of two, or zero.
    pairs: Vec<[Slot; 2]>,
    /// The blocks that found no slot.
    overflow: BTreeMap<DeviceAddr, BlockIndex>,
    /// How many more blocks can be added before the table grows.
    room: usize,
}

/// The number of a block, and above it the tag of its address: four bytes, so that many slots fit into a
/// cache. The address itself is in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(u32);

const TAG_SHIFT: u32 = 24;

impl Slot {
    const EMPTY: Self = Self(0);

    /// `None` for a number that is too large.
    #[inline]
    fn new(hash: Hash, index: BlockIndex) -> Option<Self> {
        let number = index.number();
        (number >> TAG_SHIFT == 0).then_some(Self(hash.tag() << TAG_SHIFT | number))
    }

    #[inline]
    fn tag(self) -> u32 {
        self.0 >> TAG_SHIFT
    }

    /// `None` for an empty slot.
    #[inline]
    fn index(self) -> Option<BlockIndex> {
        BlockIndex::from_number(self.0 & ((1 << TAG_SHIFT) - 1))
    }
}

/// Fibonacci hashing: the high bits of the product are well mixed, and neighbors in memory are spread.
#[derive(Clone, Copy, Debug)]
struct Hash(u64);

impl Hash {
    #[inline]
    fn of(addr: DeviceAddr) -> Self {
        Self((addr.get() >> 9).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Distinguishes most blocks that have the same home. A tag is at least 128, so that no empty slot has
    /// one.
    #[inline]
    fn tag(self) -> u32 {
        // Seven bits remain.
        (self.0 >> 57) as u32 | 1 << 7
    }

    /// The index of the home in a table with this number of pairs, a power of two.
    #[inline]
    fn home(self, pairs: usize) -> usize {
        let bits = self.0 >> 32;
        // At most 32 bits.
        bits as usize & pairs.wrapping_sub(1)
    }
}

/// Stands for the place of a block that is in the tree of the overflow.
const OVERFLOW: usize = usize::MAX;
const MIN_PAIRS: usize = 256;
/// The number of slots for each block in the table.
const SPARSITY: usize = 8;

/// The pair for blocks whose home is full. It is in the same cache line as the home.
fn neighbor(home: usize) -> usize {
    home ^ 1
}

impl AddrTable {
    /// The block at the address, if `is_it` accepts it, and its place for [`AddrTable::remove`].
    #[inline]
    pub(crate) fn find(
        &self,
        addr: DeviceAddr,
        accepts: impl Fn(BlockIndex) -> bool,
    ) -> Option<(usize, BlockIndex)> {
        let hash = Hash::of(addr);
        let home = hash.home(self.pairs.len());
        let [first, second] = self.pairs.get(home)?;
        let is_second = second.tag() == hash.tag();
        // Both slots are loaded before the choice: a load from the chosen slot would have to wait for the
        // choice.
        let slot = std::hint::select_unpredictable(is_second, *second, *first);
        match slot.index() {
            Some(index) if accepts(index) => Some((home * 2 + usize::from(is_second), index)),
            _ => self.find_elsewhere(addr, accepts),
        }
    }

    /// Searches the home, the neighboring pair and the tree.
    #[cold]
    #[inline(never)]
    fn find_elsewhere(
        &self,
        addr: DeviceAddr,
        is_it: impl Fn(BlockIndex) -> bool,
    ) -> Option<(usize, BlockIndex)> {
        let home = Hash::of(addr).home(self.pairs.len());
        let slots = self.pairs.as_flattened();
        let places = [home, neighbor(home)].into_iter().flat_map(|pair| [pair * 2, pair * 2 + 1]);
        let in_slots = places.filter_map(|place| Some((place, slots.get(place)?.index()?)));
        let in_overflow = self.overflow.get(&addr).map(|index| (OVERFLOW, *index));
        in_slots.chain(in_overflow).find(|(_, index)| is_it(*index))
    }

    /// Adds a block that is not in the table; `addr_of` returns the address of any block in the table.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        addr: DeviceAddr,
        index: BlockIndex,
        addr_of: impl Fn(BlockIndex) -> DeviceAddr,
    ) {
        if self.room == 0 {
            self.grow(addr_of);
        }
        self.room -= 1;
        self.put(addr, index);
    }

    /// Removes the block at this address. `place` was returned by [`AddrTable::find`], with no change to the
    /// table in between.
    #[inline]
    pub(crate) fn remove(&mut self, addr: DeviceAddr, place: usize) {
        self.room += 1;
        match self.pairs.as_flattened_mut().get_mut(place) {
            Some(slot) => *slot = Slot::EMPTY,
            None => self.remove_from_overflow(addr),
        }
    }

    #[cold]
    #[inline(never)]
    fn remove_from_overflow(&mut self, addr: DeviceAddr) {
        self.overflow.remove(&addr);
    }

    #[inline]
    fn put(&mut self, addr: DeviceAddr, index: BlockIndex) {
        let hash = Hash::of(addr);
        let home = hash.home(self.pairs.len());
        let pair = &mut self.pairs[home];
        let second = usize::from(pair[0] != Slot::EMPTY);
        match Slot::new(hash, index) {
            Some(slot) if pair[second] == Slot::EMPTY => pair[second] = slot,
            _ => self.put_elsewhere(addr, index),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_elsewhere(&mut self, addr: DeviceAddr, index: BlockIndex) {
        let hash = Hash::of(addr);
        let other = neighbor(hash.home(self.pairs.len()));
        let pair = &mut self.pairs[other];
        match (Slot::new(hash, index), pair.iter_mut().find(|slot| **slot == Slot::EMPTY)) {
            (Some(filled), Some(slot)) => *slot = filled,
            _ => {
                self.overflow.insert(addr, index);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, addr_of: impl Fn(BlockIndex) -> DeviceAddr) {
        let pairs = (self.pairs.len() * 2).max(MIN_PAIRS);
        let old = std::mem::replace(&mut self.pairs, vec![[Slot::EMPTY; 2]; pairs]);
        let overflow = std::mem::take(&mut self.overflow);
        let in_slots = old.into_iter().flatten().filter_map(Slot::index);
        let mut count = 0;
        for (addr, index) in in_slots.map(|index| (addr_of(index), index)).chain(overflow) {
            self.put(addr, index);
            count += 1;
        }
        self.room = pairs * 2 / SPARSITY - count;
    }
}

#[cfg(test)]
mod model;
