//! The blocks of a bin that holds more than a few, in exact order.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use blockyard_record::{Bytes, DeviceAddr};

use crate::block::{BlockIndex, BlockTable};

/// A free block and its place in the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) size: Bytes,
    pub(super) addr: DeviceAddr,
    pub(super) index: BlockIndex,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // Not `then_with`, which would branch on what cannot be foreseen.
        self.size.cmp(&other.size).then(self.addr.cmp(&other.addr))
    }
}

impl Key {
    /// Of the block at a place, or of nothing.
    #[inline]
    pub(super) fn at(place: Option<BlockIndex>, blocks: &BlockTable) -> Self {
        let block = blocks.at_or_nothing(place);
        Self { size: block.size, addr: block.addr, index: place.unwrap_or(BlockIndex::LOWEST) }
    }

    pub(super) fn of(index: BlockIndex, blocks: &BlockTable) -> Self {
        Self::at(Some(index), blocks)
    }

    fn units(&self) -> u64 {
        self.size.get() >> 9
    }

    /// The address in units of 512 bytes; `None` where it takes more than [`PLACE_BITS`], which no processor's addresses do yet.
    #[inline]
    fn place(&self) -> Option<u64> {
        let place = self.addr.get() >> 9;
        (place >> PLACE_BITS == 0).then_some(place)
    }
}

/// Of a rank, those for the address.
const PLACE_BITS: u32 = 40;
/// Of a rank in a bin of one size, those for the block.
const INDEX_BITS: u32 = u64::BITS - PLACE_BITS;
/// A longer list becomes a tree: moving its entries for every insertion would cost more. Measured; tests reach the tree with fewer.
const LONGEST_LIST: usize = if cfg!(test) { 128 } else { 2048 };

/// A block in a sorted list, as small as it can be, since entries are moved to make room for others.
pub(super) trait Entry: Copy {
    /// `None` where it does not hold the key.
    fn of(key: &Key) -> Option<Self>;
    /// Its place in the order within its bin.
    fn rank(self) -> u64;
    fn index(self) -> BlockIndex;
}

/// For bins of one size: the address, and the number of the block below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(u64);

impl Entry for Place {
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
        BlockIndex::from_number(number as u32).unwrap_or(BlockIndex::LOWEST)
    }
}

/// For bins of several sizes: the size, then the address.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeAndPlace {
    rank: u64,
    index: BlockIndex,
}

impl Entry for SizeAndPlace {
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

/// Entries in descending order, since best fit takes from the low end.
#[derive(Clone, Debug)]
pub(super) struct Sorted<E>(Vec<E>);

impl<E: Entry> Sorted<E> {
    /// How many of the entries come behind this rank.
    #[inline]
    fn above(&self, rank: u64) -> usize {
        self.0.partition_point(|entry| entry.rank() > rank)
    }

    fn place_of(&self, key: &Key) -> Option<usize> {
        let place = self.above(E::of(key)?.rank());
        self.0.get(place).is_some_and(|entry| entry.index() == key.index).then_some(place)
    }

    /// Adds it; where it has no room here, all of them as a tree.
    #[inline]
    fn insert_or_leave(&mut self, key: &Key, blocks: &BlockTable) -> Option<BTreeSet<Key>> {
        match E::of(key) {
            Some(entry) if self.0.len() < LONGEST_LIST => {
                self.0.insert(self.above(entry.rank()), entry);
                None
            }
            _ => Some(self.ascending().map(|index| Key::of(index, blocks)).chain([*key]).collect()),
        }
    }

    fn remove(&mut self, key: &Key) {
        // Most often the lowest is taken.
        if self.0.last().is_some_and(|entry| entry.index() == key.index) {
            self.0.pop();
        } else if let Some(place) = self.place_of(key) {
            self.0.remove(place);
        }
    }

    fn first_fitting(&self, lowest: &Key) -> Option<BlockIndex> {
        let rank = E::of(lowest)?.rank();
        let fitting = self.0.partition_point(|entry| entry.rank() >= rank);
        self.0[..fitting].last().map(|entry| entry.index())
    }

    fn next_after(&self, key: &Key) -> Option<BlockIndex> {
        self.0[..self.above(E::of(key)?.rank())].last().map(|entry| entry.index())
    }

    /// In ascending order.
    fn ascending(&self) -> impl Iterator<Item = BlockIndex> {
        self.0.iter().rev().map(|entry| entry.index())
    }

    fn of_tree(tree: &BTreeSet<Key>) -> Option<Self> {
        tree.iter().rev().map(E::of).collect::<Option<_>>().map(Self)
    }
}

#[derive(Clone, Debug)]
pub(super) enum List {
    OfOneSize(Sorted<Place>),
    OfSizes(Sorted<SizeAndPlace>),
    /// Many of them, or some that no entry holds.
    Tree(BTreeSet<Key>),
}

impl List {
    /// Nothing, for blocks of one size or of several.
    pub(super) fn new(is_of_one_size: bool) -> Self {
        if is_of_one_size { Self::OfOneSize(Sorted(Vec::new())) } else { Self::OfSizes(Sorted(Vec::new())) }
    }

    /// The same without blocks, which keeps its memory if it can.
    pub(super) fn reset(&mut self, is_of_one_size: bool) {
        match self {
            Self::OfOneSize(Sorted(entries)) if is_of_one_size => entries.clear(),
            Self::OfSizes(Sorted(entries)) if !is_of_one_size => entries.clear(),
            _ => *self = Self::new(is_of_one_size),
        }
    }

    pub(super) fn insert(&mut self, key: &Key, blocks: &BlockTable) {
        let tree = match self {
            Self::OfOneSize(sorted) => sorted.insert_or_leave(key, blocks),
            Self::OfSizes(sorted) => sorted.insert_or_leave(key, blocks),
            Self::Tree(tree) => {
                tree.insert(*key);
                None
            }
        };
        if let Some(tree) = tree {
            *self = Self::Tree(tree);
        }
    }

    /// Takes it out, given whether all are of one size.
    pub(super) fn remove(&mut self, key: &Key, is_of_one_size: bool) {
        match self {
            Self::OfOneSize(sorted) => sorted.remove(key),
            Self::OfSizes(sorted) => sorted.remove(key),
            Self::Tree(tree) => {
                tree.remove(key);
                if tree.len() <= LONGEST_LIST / 2 {
                    let list = if is_of_one_size {
                        Sorted::of_tree(tree).map(Self::OfOneSize)
                    } else {
                        Sorted::of_tree(tree).map(Self::OfSizes)
                    };
                    *self = list.unwrap_or_else(|| Self::Tree(std::mem::take(tree)));
                }
            }
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        match self {
            Self::OfOneSize(sorted) => sorted.place_of(key).is_some(),
            Self::OfSizes(sorted) => sorted.place_of(key).is_some(),
            Self::Tree(tree) => tree.contains(key),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::OfOneSize(Sorted(entries)) => entries.len(),
            Self::OfSizes(Sorted(entries)) => entries.len(),
            Self::Tree(tree) => tree.len(),
        }
    }

    /// Fills the places with the lowest, in ascending order.
    pub(super) fn lowest(&self, places: &mut [Option<BlockIndex>]) {
        match self {
            Self::OfOneSize(sorted) => fill(places, sorted.ascending()),
            Self::OfSizes(sorted) => fill(places, sorted.ascending()),
            Self::Tree(tree) => fill(places, tree.iter().map(|key| key.index)),
        }
    }

    pub(super) fn first(&self) -> Option<BlockIndex> {
        match self {
            Self::OfOneSize(Sorted(entries)) => entries.last().map(|entry| entry.index()),
            Self::OfSizes(Sorted(entries)) => entries.last().map(|entry| entry.index()),
            Self::Tree(tree) => tree.first().map(|key| key.index),
        }
    }

    /// The first of at least `size`, which belongs into this bin.
    pub(super) fn first_fitting(&self, size: Bytes) -> Option<BlockIndex> {
        let lowest = Key { size, addr: DeviceAddr::new(0), index: BlockIndex::LOWEST };
        match self {
            Self::OfOneSize(sorted) => sorted.first_fitting(&lowest),
            Self::OfSizes(sorted) => sorted.first_fitting(&lowest),
            Self::Tree(tree) => tree.range(lowest..).next().map(|key| key.index),
        }
    }

    pub(super) fn next_after(&self, key: &Key) -> Option<BlockIndex> {
        match self {
            Self::OfOneSize(sorted) => sorted.next_after(key),
            Self::OfSizes(sorted) => sorted.next_after(key),
            Self::Tree(tree) => {
                tree.range((Bound::Excluded(*key), Bound::Unbounded)).next().map(|key| key.index)
            }
        }
    }
}

fn fill(places: &mut [Option<BlockIndex>], lowest: impl Iterator<Item = BlockIndex>) {
    for (place, index) in places.iter_mut().zip(lowest) {
        *place = Some(index);
    }
}
