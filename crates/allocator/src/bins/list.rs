//! The blocks of a bin that holds more than a few, in exact order.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use blockyard_record::{Bytes, DeviceAddr};

use super::EXACT;
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

/// A block and its place in the order within its bin: what its size has beyond the least of the bin, then its address, in units of
/// 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    rank: u64,
    index: BlockIndex,
}

impl Key {
    /// `None` where one number does not hold it, which takes a terabyte, or an address that no processor has yet.
    #[inline]
    fn packed(&self) -> Option<Packed> {
        let (units, place) = (self.size.get() >> 9, self.addr.get() >> 9);
        let octave = (units | EXACT as u64).ilog2();
        // In bins of one size this says nothing, and is the same for all.
        let within = units & ((1 << (octave - 6)) - 1);
        let is_held = octave < 6 + u64::BITS - PLACE_BITS && place >> PLACE_BITS == 0;
        is_held.then_some(Packed { rank: within << PLACE_BITS | place, index: self.index })
    }

    pub(super) fn of(index: BlockIndex, blocks: &BlockTable) -> Self {
        let block = &blocks[index];
        Self { size: block.size, addr: block.addr, index }
    }
}

/// Of a packed key, those for the address.
const PLACE_BITS: u32 = 40;
/// A longer list becomes a tree: moving its entries for every insertion would cost more. Measured; tests reach the tree with fewer.
const LONGEST_LIST: usize = if cfg!(test) { 128 } else { 2048 };

#[derive(Clone, Debug)]
pub(super) enum List {
    /// In descending order, since best fit takes from the low end.
    Descending(Vec<Packed>),
    /// Many of them, or some that cannot be packed.
    Tree(BTreeSet<Key>),
}

impl List {
    pub(super) fn insert(&mut self, key: Key, blocks: &BlockTable) {
        if let Self::Descending(entries) = self {
            match key.packed() {
                Some(entry) if entries.len() < LONGEST_LIST => {
                    entries.insert(above(entries, entry.rank), entry);
                    return;
                }
                _ => *self = Self::Tree(entries.iter().map(|entry| Key::of(entry.index, blocks)).collect()),
            }
        }
        if let Self::Tree(tree) = self {
            tree.insert(key);
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        match self {
            Self::Descending(entries) => {
                // Most often the lowest is taken.
                if entries.last().is_some_and(|entry| entry.index == key.index) {
                    entries.pop();
                } else if let Some(place) = place_of(entries, key) {
                    entries.remove(place);
                }
            }
            Self::Tree(tree) => {
                tree.remove(key);
                if tree.len() <= LONGEST_LIST / 2
                    && let Some(entries) = tree.iter().rev().map(Key::packed).collect()
                {
                    *self = Self::Descending(entries);
                }
            }
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        match self {
            Self::Descending(entries) => place_of(entries, key).is_some(),
            Self::Tree(tree) => tree.contains(key),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Descending(entries) => entries.len(),
            Self::Tree(tree) => tree.len(),
        }
    }

    /// Fills the places with the lowest, in ascending order.
    pub(super) fn lowest(&self, places: &mut [Option<BlockIndex>]) {
        match self {
            Self::Descending(entries) => {
                for (place, entry) in places.iter_mut().zip(entries.iter().rev()) {
                    *place = Some(entry.index);
                }
            }
            Self::Tree(tree) => {
                for (place, key) in places.iter_mut().zip(tree) {
                    *place = Some(key.index);
                }
            }
        }
    }

    pub(super) fn first(&self) -> Option<BlockIndex> {
        match self {
            Self::Descending(entries) => entries.last().map(|entry| entry.index),
            Self::Tree(tree) => tree.first().map(|key| key.index),
        }
    }

    /// The first of at least `size`, which belongs into this bin.
    pub(super) fn first_fitting(&self, size: Bytes) -> Option<BlockIndex> {
        let lowest = Key { size, addr: DeviceAddr::new(0), index: BlockIndex::LOWEST };
        match self {
            Self::Descending(entries) => {
                let rank = lowest.packed()?.rank;
                let fitting = entries.partition_point(|entry| entry.rank >= rank);
                entries[..fitting].last().map(|entry| entry.index)
            }
            Self::Tree(tree) => tree.range(lowest..).next().map(|key| key.index),
        }
    }

    pub(super) fn next_after(&self, key: &Key) -> Option<BlockIndex> {
        match self {
            Self::Descending(entries) => {
                entries[..above(entries, key.packed()?.rank)].last().map(|entry| entry.index)
            }
            Self::Tree(tree) => {
                tree.range((Bound::Excluded(*key), Bound::Unbounded)).next().map(|key| key.index)
            }
        }
    }
}

/// How many of the entries come behind this rank.
#[inline]
fn above(entries: &[Packed], rank: u64) -> usize {
    entries.partition_point(|entry| entry.rank > rank)
}

fn place_of(entries: &[Packed], key: &Key) -> Option<usize> {
    let wanted = key.packed()?;
    let place = above(entries, wanted.rank);
    (entries.get(place) == Some(&wanted)).then_some(place)
}
