//! Free blocks ordered by size, then address: best fit in a few steps, however many there are.
//!
//! Sizes fall into bins: one for each size up to 1 MiB, 128 for every octave up to 63.5 GiB. Two levels of bits say which bins hold
//! blocks. Within a bin the order is exact too, so this is an ordered set; what differs from a tree is that finding the
//! place of a block is arithmetic, and that the usual bin of up to three blocks costs no memory of its own.

mod list;

use blockyard_record::{Bytes, DeviceAddr};

use crate::bins::list::{Key, List};
use crate::block::{Block, BlockIndex, BlockTable};

const FEW: usize = 3;
/// A list of this length fits into the bin again, with room for another block before it becomes a list once more.
const SHORTEST_LIST: usize = FEW - 1;
const WORD: usize = u64::BITS as usize;
/// Sizes below this many units of 512 bytes have a bin each: all that the small half of a pool is asked for.
const EXACT: usize = 2049;
/// So many bits behind the leading one tell the bins of larger sizes apart.
const FINE_BITS: u32 = 7;
/// What the bins of larger sizes are ahead of where they would be, were all octaves cut as finely as theirs.
const AHEAD: usize = EXACT - ((EXACT.ilog2() as usize + 1) << FINE_BITS);
const LAST_BIN: usize = WORD * WORD - 1;
/// Units from here on, those of 63.5 GiB, are all in the last bin.
const UNITS_BEYOND: u64 = {
    let last = LAST_BIN - EXACT;
    let within = (1 << FINE_BITS) + last % (1 << FINE_BITS);
    (within as u64) << (last >> FINE_BITS) << (EXACT.ilog2() - FINE_BITS)
};

/// The free blocks of one stream in one half of a pool.
///
/// The block that came last stands outside of the bins: what was just freed or left over is most often taken again or merged
/// next, and then it never has to be filed at all.
#[derive(Clone, Debug)]
pub(crate) struct SizeBins {
    latest: Option<BlockIndex>,
    /// Zero while there is none.
    latest_size: Bytes,
    latest_addr: DeviceAddr,
    /// One bit for each word of `occupied` that is not zero.
    occupied_words: u64,
    /// One bit for each bin that is not empty.
    occupied: [u64; WORD],
    /// Up to the largest size so far, in whole words.
    bins: Vec<Bin>,
    lists: Vec<List>,
    vacant_lists: Vec<usize>,
}

impl Default for SizeBins {
    fn default() -> Self {
        Self {
            latest: None,
            latest_size: Bytes::ZERO,
            latest_addr: DeviceAddr::new(0),
            occupied_words: 0,
            occupied: [0; WORD],
            bins: Vec::new(),
            lists: Vec::new(),
            vacant_lists: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Bin {
    /// Blocks in ascending order, the filled places first.
    Few([Option<BlockIndex>; FEW]),
    /// More of them, in the list with this number.
    Many(u32),
}

const EMPTY: Bin = Bin::Few([None; FEW]);

/// A block in a bin.
struct Filed {
    /// Of the bin.
    number: usize,
    index: BlockIndex,
    /// Whether it is known to be the first of the bin.
    is_first: bool,
}

impl SizeBins {
    pub(crate) fn is_empty(&self) -> bool {
        self.latest.is_none() && self.occupied_words == 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, index: BlockIndex, size: Bytes, addr: DeviceAddr, blocks: &BlockTable) {
        if let Some(before) = self.latest {
            self.file(before, self.latest_size, self.latest_addr, blocks);
        }
        self.latest = Some(index);
        self.latest_size = size;
        self.latest_addr = addr;
    }

    /// Puts the latest block into its bin, as walks expect it.
    pub(crate) fn settle(&mut self, blocks: &BlockTable) {
        if let Some((latest, size)) = self.take_latest() {
            self.file(latest, size, self.latest_addr, blocks);
        }
    }

    #[inline]
    fn take_latest(&mut self) -> Option<(BlockIndex, Bytes)> {
        let size = std::mem::take(&mut self.latest_size);
        self.latest.take().map(|latest| (latest, size))
    }

    #[inline]
    fn file(&mut self, index: BlockIndex, size: Bytes, addr: DeviceAddr, blocks: &BlockTable) {
        let number = bin_of(size);
        self.occupied_words |= 1 << (number / WORD);
        self.occupied[number / WORD % WORD] |= 1 << (number % WORD);
        match self.bins.get_mut(number) {
            // Most bins are empty.
            Some(Bin::Few([first @ None, ..])) => *first = Some(index),
            Some(Bin::Few(few)) if few[FEW - 1].is_none() => {
                insert_in_few(few, &Key { size, addr, index }, blocks);
            }
            _ => self.file_among_others(number, index, (size, addr), blocks),
        }
    }

    #[inline(never)]
    fn file_among_others(
        &mut self,
        number: usize,
        index: BlockIndex,
        (size, addr): (Bytes, DeviceAddr),
        blocks: &BlockTable,
    ) {
        let key = &Key { size, addr, index };
        if number >= self.bins.len() {
            self.bins.resize((number / WORD + 1) * WORD, EMPTY);
        }
        match &mut self.bins[number] {
            Bin::Few(few) if few[FEW - 1].is_none() => insert_in_few(few, key, blocks),
            _ => self.insert_in_list(number, *key, blocks),
        }
    }

    fn insert_in_list(&mut self, number: usize, key: Key, blocks: &BlockTable) {
        let bin = &mut self.bins[number];
        let list = match bin {
            Bin::Few(few) => {
                let lists = (&mut self.lists, &mut self.vacant_lists);
                let list = put_list(lists, few, number < EXACT, blocks);
                *bin = Bin::Many(list);
                list
            }
            Bin::Many(list) => *list,
        };
        self.lists[list as usize].insert(&key, blocks);
    }

    /// Takes the block out, if it is there.
    #[inline]
    pub(crate) fn remove(&mut self, index: BlockIndex, size: Bytes, addr: DeviceAddr) {
        if self.latest == Some(index) {
            self.take_latest();
        } else {
            self.remove_from_bin(bin_of(size), &Key { size, addr, index });
        }
    }

    #[inline]
    fn remove_from_bin(&mut self, number: usize, key: &Key) {
        let Some(Bin::Few(few)) = self.bins.get_mut(number) else {
            self.remove_from_list(number, key);
            return;
        };
        // Which place it has cannot be foreseen, so nothing here asks with a branch.
        let index = Some(key.index);
        let [first, second, third] = *few;
        let is_first = first == index;
        let is_second = second == index;
        let last = if third == index { None } else { third };
        let below = if is_first { second } else { first };
        let above = if is_first | is_second { last } else { second };
        *few = [below, above, if is_first | is_second { None } else { last }];
        self.note_first(number, below);
    }

    /// As [`SizeBins::remove_from_bin`], for the first of its bin.
    #[inline]
    fn remove_first(&mut self, number: usize, key: &Key) {
        let Some(Bin::Few(few)) = self.bins.get_mut(number) else {
            self.remove_from_list(number, key);
            return;
        };
        let [_, second, third] = *few;
        *few = [second, third, None];
        self.note_first(number, second);
    }

    /// Keeps the bits true after a removal, given what is the first of the bin now.
    #[inline]
    fn note_first(&mut self, number: usize, first: Option<BlockIndex>) {
        let word = &mut self.occupied[number / WORD % WORD];
        *word &= !(u64::from(first.is_none()) << (number % WORD));
        self.occupied_words &= !(u64::from(*word == 0) << (number / WORD));
    }

    fn remove_from_list(&mut self, number: usize, key: &Key) {
        let Some(bin) = self.bins.get_mut(number) else {
            return;
        };
        let Bin::Many(list_number) = *bin else {
            return;
        };
        let list = &mut self.lists[list_number as usize];
        list.remove(key);
        if list.len() <= SHORTEST_LIST {
            let mut few = [None; FEW];
            list.lowest(&mut few);
            self.vacant_lists.push(list_number as usize);
            *bin = Bin::Few(few);
        }
    }

    pub(crate) fn contains(&self, index: BlockIndex, block: &Block) -> bool {
        if self.latest == Some(index) {
            return self.latest_size == block.size && self.latest_addr == block.addr;
        }
        match self.bins.get(bin_of(block.size)) {
            Some(Bin::Few(few)) => few.contains(&Some(index)),
            Some(Bin::Many(list)) => {
                self.lists[*list as usize].contains(&Key { size: block.size, addr: block.addr, index })
            }
            None => false,
        }
    }

    /// Takes the smallest block of at least `size` out, the one at the lowest address among equals. Returns its size too.
    #[expect(
        clippy::inline_always,
        reason = "for either half of a pool, what is known of its sizes leaves half of this out"
    )]
    #[inline(always)]
    pub(crate) fn take_first_fitting(
        &mut self,
        size: Bytes,
        blocks: &BlockTable,
    ) -> Option<(BlockIndex, Bytes)> {
        let number = bin_of(size);
        let bit = self.occupied[number / WORD % WORD] >> (number % WORD) & 1;
        // Most often what was just freed is asked for again, and nothing else of its size is there.
        if self.latest_size == size && bit == 0 {
            return self.take_latest();
        }
        let Some(filed) = self.first_filed(number, size, blocks) else {
            return if self.latest_size >= size { self.take_latest() } else { None };
        };
        let Filed { number, index, is_first } = filed;
        // The bins of one size know it before the block is there.
        let filed_size = if number < EXACT { Bytes::new((number as u64) << 9) } else { blocks[index].size };
        if self.latest_size >= size && self.latest_comes_before(filed_size, index, blocks) {
            return self.take_latest();
        }
        let key = Key { size: filed_size, addr: blocks[index].addr, index };
        if is_first {
            self.remove_first(number, &key);
        } else {
            self.remove_from_bin(number, &key);
        }
        Some((index, filed_size))
    }

    /// Whether the latest block comes before a filed one.
    #[inline]
    fn latest_comes_before(&self, size: Bytes, index: BlockIndex, blocks: &BlockTable) -> bool {
        // Not by their keys: the sizes alone answer nearly always, and sooner.
        self.latest_size < size || (self.latest_size == size && self.latest_addr < blocks[index].addr)
    }

    /// The smallest block of at least `size`, the one at the lowest address among equals.
    pub(crate) fn first_fitting(&self, size: Bytes, blocks: &BlockTable) -> Option<BlockIndex> {
        let latest = self.latest.filter(|_| self.latest_size >= size);
        match self.first_filed(bin_of(size), size, blocks) {
            Some(Filed { index, .. }) => {
                let comes_first =
                    |_: &BlockIndex| self.latest_comes_before(blocks[index].size, index, blocks);
                latest.filter(comes_first).or(Some(index))
            }
            None => latest,
        }
    }

    /// The first fitting block in the bins, given the bin of its size.
    #[expect(clippy::inline_always, reason = "as its caller")]
    #[inline(always)]
    fn first_filed(&self, number: usize, size: Bytes, blocks: &BlockTable) -> Option<Filed> {
        let from = self.occupied[number / WORD % WORD] >> (number % WORD);
        if number < EXACT {
            // Whatever is in a bin of one size fits.
            return self.first_above(number, from);
        }
        if from & 1 == 1 {
            let found = match &self.bins[number] {
                Bin::Few(few) => few.iter().flatten().find(|index| blocks[**index].size >= size).copied(),
                Bin::Many(list) => self.lists[*list as usize].first_fitting(size),
            };
            if let Some(index) = found {
                return Some(Filed { number, index, is_first: false });
            }
        }
        self.first_above(number, from & !1)
    }

    /// The first block from this bin on, given the bits of its word from its own on.
    #[inline]
    fn first_above(&self, number: usize, from: u64) -> Option<Filed> {
        let number = if from == 0 {
            let later = self.occupied_words & (u64::MAX << (number / WORD) << 1);
            let word = later.trailing_zeros() as usize;
            word * WORD + self.occupied.get(word)?.trailing_zeros() as usize
        } else {
            number + from.trailing_zeros() as usize
        };
        let first = match self.bins.get(number)? {
            Bin::Few(few) => few[0],
            Bin::Many(list) => self.lists[*list as usize].first(),
        };
        first.map(|index| Filed { number, index, is_first: true })
    }

    /// The block behind this one in the order; settled first.
    pub(crate) fn next_after(&self, index: BlockIndex, block: &Block) -> Option<BlockIndex> {
        let number = bin_of(block.size);
        let next = match self.bins.get(number)? {
            Bin::Few(few) => {
                let place = few.iter().position(|place| *place == Some(index));
                place.and_then(|place| few.get(place + 1).copied().flatten())
            }
            Bin::Many(list) => {
                self.lists[*list as usize].next_after(&Key { size: block.size, addr: block.addr, index })
            }
        };
        let from = self.occupied[number / WORD % WORD] >> (number % WORD) & !1;
        next.or_else(|| self.first_above(number, from).map(|filed| filed.index))
    }

    /// All blocks in order; settled first.
    pub(crate) fn iter<'a>(&'a self, blocks: &'a BlockTable) -> impl Iterator<Item = BlockIndex> + 'a {
        let first = self.first_above(0, self.occupied[0]).map(|filed| filed.index);
        std::iter::successors(first, |index| self.next_after(*index, &blocks[*index]))
    }

    /// How many blocks there are.
    pub(crate) fn count(&self, blocks: &BlockTable) -> usize {
        usize::from(self.latest.is_some()) + self.iter(blocks).count()
    }
}

/// The bin of blocks of this size: the size itself in units of 512 bytes up to 1 MiB, where most blocks are; above that its
/// octave and the seven bits after the leading one; and the last bin for what is larger than all of these.
#[inline]
fn bin_of(size: Bytes) -> usize {
    let units = size.get() >> 9;
    match usize::try_from(units) {
        Ok(units) if units < EXACT => return units,
        _ => {}
    }
    let octave = units.ilog2();
    // From 128 to 255: which of its octave it is, and an octave more.
    let within = (units >> (octave - FINE_BITS)) as usize;
    (((octave as usize) << FINE_BITS) + within + AHEAD).min(LAST_BIN)
}

/// Puts a block among up to two others.
#[inline]
fn insert_in_few(few: &mut [Option<BlockIndex>; FEW], key: &Key, blocks: &BlockTable) {
    // How many there are and which comes first cannot be foreseen, so nothing here asks with a branch.
    let goes_before = |place: Option<BlockIndex>| place.is_none() | (*key < Key::at(place, blocks));
    let index = Some(key.index);
    let [first, second, _] = *few;
    let (is_first, is_second) = (goes_before(first), goes_before(second));
    let below = if is_second { index } else { second };
    let above = if is_second { second } else { index };
    *few = if is_first { [index, first, second] } else { [first, below, above] };
}

/// Makes a list of the blocks of a bin.
fn put_list(
    (lists, vacant): (&mut Vec<List>, &mut Vec<usize>),
    few: &[Option<BlockIndex>; FEW],
    is_of_one_size: bool,
    blocks: &BlockTable,
) -> u32 {
    let number = vacant.pop().unwrap_or(lists.len());
    match lists.get_mut(number) {
        Some(list) => list.reset(is_of_one_size),
        None => lists.push(List::new(is_of_one_size)),
    }
    let list = &mut lists[number];
    for index in few.iter().flatten().rev() {
        list.insert(&Key::of(*index, blocks), blocks);
    }
    // There is at most one list for each of the less than 4096 bins.
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_the_order_of_their_sizes() {
        assert_eq!(bin_of(Bytes::new(512)), 1);
        assert_eq!(bin_of(Bytes::mib(1) - Bytes::new(512)), 2047);
        assert_eq!(bin_of(Bytes::mib(1)), 2048);
        assert_eq!(bin_of(Bytes::mib(1) + Bytes::new(512)), 2049);
        assert_eq!(bin_of(Bytes::mib(2)), 2049 + 128);
        assert_eq!(bin_of(Bytes::new(UNITS_BEYOND * 512)), LAST_BIN);
        assert_eq!(bin_of(Bytes::new(UNITS_BEYOND * 512 - 512)), LAST_BIN - 1);
        let mut before = 0;
        for exponent in 9..64 {
            for part in 0..128 {
                let size = Bytes::new((1 << exponent) + (1_u64 << exponent) / 128 * part);
                let bin = bin_of(size);
                assert!(bin == before || bin == before + 1 || exponent <= 20 && bin > before, "{size}");
                before = bin;
            }
        }
        assert_eq!(before, LAST_BIN);
        assert_eq!(bin_of(Bytes::new(u64::MAX)), LAST_BIN);
    }
}
