//! The list of a bin with more than three blocks, in exact order.

use blockyard_record::{Bytes, DeviceAddr};

use super::sorted::SortedList;
use crate::block::{Block, BlockIndex, BlockTable};

/// A free block with the values that order it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) size: Bytes,
    pub(super) addr: DeviceAddr,
    pub(super) index: BlockIndex,
}

impl Key {
    /// Whether this block is smaller, or of equal size and at a lower address.
    #[inline]
    pub(super) fn comes_before(&self, other: &Block) -> bool {
        // `then_with` would branch, and the processor cannot predict the branch.
        self.size.cmp(&other.size).then(self.addr.cmp(&other.addr)).is_lt()
    }

    pub(super) fn of(index: BlockIndex, blocks: &BlockTable) -> Self {
        let block = &blocks[index];
        Self { size: block.size, addr: block.addr, index }
    }

    fn units(&self) -> u64 {
        self.size.get() >> 9
    }

    /// The address in units of 512 bytes; `None` if it needs more than [`PLACE_BITS`], which no processor's
    /// addresses do yet.
    #[inline]
    fn place(&self) -> Option<u64> {
        let place = self.addr.get() >> 9;
        (place >> PLACE_BITS == 0).then_some(place)
    }
}

/// The bits of a rank for the address.
const PLACE_BITS: u32 = 40;
/// The bits of a rank in a bin of one size for the number of the block.
const INDEX_BITS: u32 = u64::BITS - PLACE_BITS;

/// An entry of a sorted list. Entries are small, because inserting moves other entries.
pub(super) trait Entry: Copy {
    /// The order within a bin.
    type Rank: Ord + Copy + std::fmt::Debug;

    /// The entry of the key; `None` if this kind of entry cannot represent the key.
    fn of(key: &Key) -> Option<Self>;
    fn rank(self) -> Self::Rank;
    fn index(self) -> BlockIndex;
}

/// The entry for bins of one size: the address in the high bits, and the number of the block in the low bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedEntry(u64);

impl Entry for PackedEntry {
    type Rank = u64;

    #[inline]
    fn of(key: &Key) -> Option<Self> {
        let number = u64::from(key.index.number());
        let place = key.place().filter(|_| number >> INDEX_BITS == 0)?;
        Some(Self(place << INDEX_BITS | number))
    }

    #[inline]
    fn rank(self) -> u64 {
        self.0
    }

    #[inline]
    fn index(self) -> BlockIndex {
        let number = self.0 & ((1 << INDEX_BITS) - 1);
        BlockIndex::from_entry(number as u32)
    }
}

/// The entry for bins of several sizes: the size, then the address.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeAndPlace {
    rank: u64,
    index: BlockIndex,
}

impl Entry for SizeAndPlace {
    type Rank = u64;

    #[inline]
    fn of(key: &Key) -> Option<Self> {
        let units = key.units();
        // Sizes of 8 GiB and more leave no bits for the address.
        let place = key.place().filter(|_| units >> (u64::BITS - PLACE_BITS) == 0)?;
        Some(Self { rank: units << PLACE_BITS | place, index: key.index })
    }

    #[inline]
    fn rank(self) -> u64 {
        self.rank
    }

    #[inline]
    fn index(self) -> BlockIndex {
        self.index
    }
}

/// The entry for keys that no smaller entry can hold.
impl Entry for Key {
    type Rank = (Bytes, DeviceAddr);

    fn of(key: &Key) -> Option<Self> {
        Some(*key)
    }

    fn rank(self) -> Self::Rank {
        (self.size, self.addr)
    }

    fn index(self) -> BlockIndex {
        self.index
    }
}

#[derive(Clone, Debug)]
pub(super) enum List {
    OneSize(SortedList<PackedEntry>),
    SeveralSizes(SortedList<SizeAndPlace>),
    /// Some keys fit into no smaller entry.
    Anything(SortedList<Key>),
}

impl List {
    /// An empty list, for blocks of one size or of several.
    pub(super) fn new(is_of_one_size: bool) -> Self {
        if is_of_one_size {
            Self::OneSize(SortedList::default())
        } else {
            Self::SeveralSizes(SortedList::default())
        }
    }

    /// Empties the list, and keeps its memory if possible.
    pub(super) fn reset(&mut self, is_of_one_size: bool) {
        match self {
            Self::OneSize(sorted) if is_of_one_size => sorted.clear(),
            Self::SeveralSizes(sorted) if !is_of_one_size => sorted.clear(),
            _ => *self = Self::new(is_of_one_size),
        }
    }

    pub(super) fn insert(&mut self, key: &Key, blocks: &BlockTable) {
        let is_inserted = match self {
            Self::OneSize(sorted) => insert_if_representable(sorted, key),
            Self::SeveralSizes(sorted) => insert_if_representable(sorted, key),
            Self::Anything(sorted) => insert_if_representable(sorted, key),
        };
        if !is_inserted {
            self.widen(key, blocks);
        }
    }

    /// Changes the kind of entry to one that represents every key, and adds the key.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, key: &Key, blocks: &BlockTable) {
        let mut places = vec![None; self.len()];
        self.lowest(&mut places);
        let mut sorted = SortedList::default();
        places.into_iter().flatten().for_each(|index| sorted.insert(Key::of(index, blocks)));
        sorted.insert(*key);
        *self = Self::Anything(sorted);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        match self {
            Self::OneSize(sorted) => remove_if_representable(sorted, key),
            Self::SeveralSizes(sorted) => remove_if_representable(sorted, key),
            Self::Anything(sorted) => remove_if_representable(sorted, key),
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        match self {
            Self::OneSize(sorted) => contains_key(sorted, key),
            Self::SeveralSizes(sorted) => contains_key(sorted, key),
            Self::Anything(sorted) => contains_key(sorted, key),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::OneSize(sorted) => sorted.len(),
            Self::SeveralSizes(sorted) => sorted.len(),
            Self::Anything(sorted) => sorted.len(),
        }
    }

    /// Fills the places with the lowest blocks, in ascending order.
    pub(super) fn lowest(&self, places: &mut [Option<BlockIndex>]) {
        match self {
            Self::OneSize(sorted) => fill(places, sorted.ascending()),
            Self::SeveralSizes(sorted) => fill(places, sorted.ascending()),
            Self::Anything(sorted) => fill(places, sorted.ascending()),
        }
    }

    pub(super) fn first(&self) -> Option<BlockIndex> {
        match self {
            Self::OneSize(sorted) => sorted.first(),
            Self::SeveralSizes(sorted) => sorted.first(),
            Self::Anything(sorted) => sorted.first(),
        }
    }

    /// The first block of at least `size`, a size of this bin.
    pub(super) fn first_fitting(&self, size: Bytes) -> Option<BlockIndex> {
        let lowest = Key { size, addr: DeviceAddr::new(0), index: BlockIndex::LOWEST };
        match self {
            Self::OneSize(sorted) => sorted.first_from(PackedEntry::of(&lowest)?.rank()),
            Self::SeveralSizes(sorted) => sorted.first_from(SizeAndPlace::of(&lowest)?.rank()),
            Self::Anything(sorted) => sorted.first_from(lowest.rank()),
        }
    }

    pub(super) fn next_after(&self, key: &Key) -> Option<BlockIndex> {
        match self {
            Self::OneSize(sorted) => sorted.first_after(PackedEntry::of(key)?.rank()),
            Self::SeveralSizes(sorted) => sorted.first_after(SizeAndPlace::of(key)?.rank()),
            Self::Anything(sorted) => sorted.first_after(key.rank()),
        }
    }
}

#[inline]
fn remove_if_representable<E: Entry>(sorted: &mut SortedList<E>, key: &Key) {
    if let Some(entry) = E::of(key) {
        sorted.remove(entry);
    }
}

fn contains_key<E: Entry>(sorted: &SortedList<E>, key: &Key) -> bool {
    E::of(key).is_some_and(|entry| sorted.contains(entry))
}

/// Adds the key, if this kind of entry can represent the key. Returns whether the key was added.
#[inline]
fn insert_if_representable<E: Entry>(sorted: &mut SortedList<E>, key: &Key) -> bool {
    E::of(key).map(|entry| sorted.insert(entry)).is_some()
}

fn fill(places: &mut [Option<BlockIndex>], lowest: impl Iterator<Item = BlockIndex>) {
    for (place, index) in places.iter_mut().zip(lowest) {
        *place = Some(index);
    }
}
