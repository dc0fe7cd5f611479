//! Free blocks ordered by size, then address: best fit in a few steps, however many there are.
//!
//! Sizes fall into bins: one for each size up to 32 KiB, 64 for every octave above. Two levels of bits say which bins hold
//! blocks. Within a bin the order is exact too, so this is an ordered set; what differs from a tree is that finding the
//! place of a block is arithmetic, and that the usual bin of up to three blocks costs no memory of its own.

use std::collections::BTreeSet;
use std::ops::Bound;

use blockyard_record::{Bytes, DeviceAddr};

use crate::block::{Block, BlockIndex, BlockTable};

/// A free block's place in the order.
type Key = (Bytes, DeviceAddr, BlockIndex);

const FEW: usize = 3;
/// A longer list becomes a tree: moving its entries for every insertion would cost more.
const LONGEST_LIST: usize = 128;
/// A list of this length fits into the bin again, with room for another block before it becomes a list once more.
const SHORTEST_LIST: usize = FEW - 1;
const WORD: usize = u64::BITS as usize;

/// The free blocks of one stream in one half of a pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct SizeBins {
    bins: Vec<Bin>,
    /// One bit for each bin that is not empty.
    occupied: Vec<u64>,
    /// One bit for each word of `occupied` that is not zero. Sizes below 2^64 have less than 64 words of bins.
    occupied_words: u64,
    lists: Vec<List>,
    vacant_lists: Vec<usize>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
enum Bin {
    /// Blocks in ascending order, the filled places first.
    Few([Option<BlockIndex>; FEW]),
    /// More of them, in the list with this number.
    Many(u32),
}

const EMPTY: Bin = Bin::Few([None; FEW]);

#[derive(Clone, Debug)]
enum List {
    /// In descending order, since best fit takes from the low end.
    Descending(Vec<Key>),
    Tree(BTreeSet<Key>),
}

impl SizeBins {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn insert(&mut self, index: BlockIndex, blocks: &BlockTable) {
        let block = &blocks[index];
        let bin_number = bin_of(block.size);
        self.len += 1;
        if bin_number >= self.bins.len() {
            self.grow(bin_number);
        }
        self.mark(bin_number);
        let bin = &mut self.bins[bin_number];
        match bin {
            Bin::Few(few) => {
                if few[FEW - 1].is_none() {
                    insert_in_few(few, index, block, blocks);
                    return;
                }
                let mut keys = [key(index, block); FEW + 1];
                for (place, other) in keys.iter_mut().zip(few.iter().flatten()) {
                    *place = key(*other, &blocks[*other]);
                }
                keys.sort_unstable_by(|one, other| other.cmp(one));
                *bin = Bin::Many(put_list(&mut self.lists, &mut self.vacant_lists, &keys));
            }
            Bin::Many(list) => self.lists[*list as usize].insert(key(index, block)),
        }
    }

    /// Takes the block out; says whether it was there.
    pub(crate) fn remove(&mut self, index: BlockIndex, block: &Block) -> bool {
        let bin_number = bin_of(block.size);
        let Some(bin) = self.bins.get_mut(bin_number) else {
            return false;
        };
        match bin {
            Bin::Few(few) => {
                let found = if few[0] == Some(index) {
                    few[0] = few[1];
                    few[1] = few[2];
                    true
                } else if few[1] == Some(index) {
                    few[1] = few[2];
                    true
                } else {
                    few[2] == Some(index)
                };
                if !found {
                    return false;
                }
                few[2] = None;
                if few[0].is_none() {
                    self.unmark(bin_number);
                }
            }
            Bin::Many(number) => {
                let list = &mut self.lists[*number as usize];
                if !list.remove(&key(index, block)) {
                    return false;
                }
                if let List::Descending(keys) = list
                    && keys.len() <= SHORTEST_LIST
                {
                    let mut few = [None; FEW];
                    for (place, key) in few.iter_mut().zip(keys.iter().rev()) {
                        *place = Some(key.2);
                    }
                    self.vacant_lists.push(*number as usize);
                    *bin = Bin::Few(few);
                }
            }
        }
        self.len -= 1;
        true
    }

    pub(crate) fn contains(&self, index: BlockIndex, block: &Block) -> bool {
        match self.bins.get(bin_of(block.size)) {
            Some(Bin::Few(few)) => few.contains(&Some(index)),
            Some(Bin::Many(list)) => self.lists[*list as usize].contains(&key(index, block)),
            None => false,
        }
    }

    /// The smallest block of at least `size`, the one at the lowest address among equals.
    #[inline]
    pub(crate) fn first_fitting(&self, size: Bytes, blocks: &BlockTable) -> Option<BlockIndex> {
        let bin_number = bin_of(size);
        if self.is_marked(bin_number)
            && let Some(found) = self.fitting_in_bin(bin_number, size, blocks)
        {
            return Some(found);
        }
        self.first_from(bin_number + 1)
    }

    /// The block behind this one in the order.
    pub(crate) fn next_after(&self, index: BlockIndex, block: &Block) -> Option<BlockIndex> {
        let bin_number = bin_of(block.size);
        let next = match self.bins.get(bin_number)? {
            Bin::Few(few) => {
                let place = few.iter().position(|place| *place == Some(index));
                place.and_then(|place| few.get(place + 1).copied().flatten())
            }
            Bin::Many(list) => self.lists[*list as usize].next_after(&key(index, block)),
        };
        next.or_else(|| self.first_from(bin_number + 1))
    }

    /// All blocks in order.
    pub(crate) fn iter<'a>(&'a self, blocks: &'a BlockTable) -> impl Iterator<Item = BlockIndex> + 'a {
        std::iter::successors(self.first_from(0), |index| self.next_after(*index, &blocks[*index]))
    }

    fn first_from(&self, bin_number: usize) -> Option<BlockIndex> {
        match self.bins[self.marked_from(bin_number)?] {
            Bin::Few(few) => few[0],
            Bin::Many(list) => self.lists[list as usize].first(),
        }
    }

    fn fitting_in_bin(&self, bin_number: usize, size: Bytes, blocks: &BlockTable) -> Option<BlockIndex> {
        match &self.bins[bin_number] {
            Bin::Few(few) => few.iter().flatten().find(|index| blocks[**index].size >= size).copied(),
            Bin::Many(list) => self.lists[*list as usize].first_fitting(size),
        }
    }

    fn is_marked(&self, bin_number: usize) -> bool {
        self.occupied.get(bin_number / WORD).is_some_and(|word| word >> (bin_number % WORD) & 1 == 1)
    }

    /// The first bin that holds blocks, from this one on.
    fn marked_from(&self, bin_number: usize) -> Option<usize> {
        let word_number = bin_number / WORD;
        let word = self.occupied.get(word_number)? >> (bin_number % WORD);
        if word != 0 {
            return Some(bin_number + word.trailing_zeros() as usize);
        }
        let later = self.occupied_words & (u64::MAX << word_number << 1);
        let word_number = later.trailing_zeros() as usize;
        let word = self.occupied.get(word_number)?;
        Some(word_number * WORD + word.trailing_zeros() as usize)
    }

    fn mark(&mut self, bin_number: usize) {
        self.occupied[bin_number / WORD] |= 1 << (bin_number % WORD);
        self.occupied_words |= 1 << (bin_number / WORD);
    }

    fn unmark(&mut self, bin_number: usize) {
        let word = &mut self.occupied[bin_number / WORD];
        *word &= !(1 << (bin_number % WORD));
        if *word == 0 {
            self.occupied_words &= !(1 << (bin_number / WORD));
        }
    }

    #[cold]
    fn grow(&mut self, bin_number: usize) {
        let words = bin_number / WORD + 1;
        self.occupied.resize(words, 0);
        self.bins.resize(words * WORD, EMPTY);
    }
}

impl List {
    fn insert(&mut self, key: Key) {
        match self {
            Self::Descending(keys) if keys.len() < LONGEST_LIST => insert_descending(keys, key),
            Self::Descending(keys) => {
                let mut tree: BTreeSet<Key> = keys.iter().copied().collect();
                tree.insert(key);
                *self = Self::Tree(tree);
            }
            Self::Tree(tree) => {
                tree.insert(key);
            }
        }
    }

    fn remove(&mut self, key: &Key) -> bool {
        match self {
            Self::Descending(keys) => {
                // Most often the lowest is taken.
                let last = keys.len().wrapping_sub(1);
                let place = if keys.get(last) == Some(key) {
                    Ok(last)
                } else {
                    keys.binary_search_by(|other| key.cmp(other))
                };
                place.map(|place| keys.remove(place)).is_ok()
            }
            Self::Tree(tree) => {
                let found = tree.remove(key);
                if tree.len() <= LONGEST_LIST / 2 {
                    *self = Self::Descending(tree.iter().rev().copied().collect());
                }
                found
            }
        }
    }

    fn contains(&self, key: &Key) -> bool {
        match self {
            Self::Descending(keys) => keys.binary_search_by(|other| key.cmp(other)).is_ok(),
            Self::Tree(tree) => tree.contains(key),
        }
    }

    fn first(&self) -> Option<BlockIndex> {
        match self {
            Self::Descending(keys) => keys.last(),
            Self::Tree(tree) => tree.first(),
        }
        .map(|key| key.2)
    }

    fn first_fitting(&self, size: Bytes) -> Option<BlockIndex> {
        match self {
            Self::Descending(keys) => {
                let fitting = keys.partition_point(|key| key.0 >= size);
                keys[..fitting].last()
            }
            Self::Tree(tree) => tree.range((size, DeviceAddr::new(0), BlockIndex::LOWEST)..).next(),
        }
        .map(|key| key.2)
    }

    fn next_after(&self, key: &Key) -> Option<BlockIndex> {
        match self {
            Self::Descending(keys) => {
                let above = keys.partition_point(|other| other > key);
                keys[..above].last()
            }
            Self::Tree(tree) => tree.range((Bound::Excluded(*key), Bound::Unbounded)).next(),
        }
        .map(|key| key.2)
    }
}

/// The bin of blocks of this size: the size itself in units of 512 bytes up to 63 of them, above that its six bits after the
/// leading one.
#[inline]
fn bin_of(size: Bytes) -> usize {
    let units = size.get() >> 9;
    if units < 64 {
        return units as usize;
    }
    let octave = units.ilog2() - 6;
    // Less than 128 after the shift.
    octave as usize * 64 + (units >> octave) as usize
}

fn key(index: BlockIndex, block: &Block) -> Key {
    (block.size, block.addr, index)
}

fn insert_in_few(few: &mut [Option<BlockIndex>; FEW], index: BlockIndex, block: &Block, blocks: &BlockTable) {
    let is_lower = |place: Option<BlockIndex>| {
        place.is_none_or(|other| {
            let other = &blocks[other];
            (block.size, block.addr) < (other.size, other.addr)
        })
    };
    if is_lower(few[0]) {
        *few = [Some(index), few[0], few[1]];
    } else if is_lower(few[1]) {
        *few = [few[0], Some(index), few[1]];
    } else {
        few[2] = Some(index);
    }
}

fn insert_descending(keys: &mut Vec<Key>, key: Key) {
    let place = keys.partition_point(|other| *other > key);
    keys.insert(place, key);
}

fn put_list(lists: &mut Vec<List>, vacant: &mut Vec<usize>, keys: &[Key]) -> u32 {
    let number = vacant.pop().unwrap_or(lists.len());
    match lists.get_mut(number) {
        Some(List::Descending(old)) => {
            // Keeps the memory that the list had.
            old.clear();
            old.extend_from_slice(keys);
        }
        Some(list) => *list = List::Descending(keys.to_vec()),
        None => lists.push(List::Descending(keys.to_vec())),
    }
    // There is at most one list for each of the less than 4096 bins.
    u32::try_from(number).unwrap_or(u32::MAX)
}
