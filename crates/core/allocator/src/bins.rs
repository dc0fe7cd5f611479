//! Free blocks ordered by size, then by address. Best fit takes a few steps for any number of blocks.
//!
//! Sizes are divided into bins: one bin for each size in the small pool, whose sizes are below 2 MiB, and 128
//! bins an octave in the large pool. A bitmap of two levels marks the bins that have blocks. The order within
//! a bin is exact too, so that the whole is an ordered set. Unlike in a tree, the bin of a block is found by
//! arithmetic, and a bin of up to three blocks, which is the usual case, takes no further memory.

mod list;
mod sorted;

use blockyard_record::{Bytes, DeviceAddr, PoolKind};
use blockyard_rules::size::MIN_BLOCK_SIZE;

use crate::bins::list::{Key, List};
use crate::block::{Block, BlockIndex, BlockTable};

const FEW: usize = 3;
/// A list that shrinks to this length is stored in the bin again; one more block fits before the bin needs a
/// list again.
const SHORTEST_LIST: usize = FEW - 1;
const WORD: usize = u64::BITS as usize;
/// Sizes are multiples of [`MIN_BLOCK_SIZE`], the unit of bins: this many low bits of a size are zero.
const UNIT_BITS: u32 = MIN_BLOCK_SIZE.get().ilog2();
/// How many bits after the leading one number the bins of an octave.
const FINE_BITS: u32 = 7;
const LAST_BIN: usize = WORD * WORD - 1;

/// The free blocks of one stream in one block pool.
///
/// The latest block is kept outside of the bins. A block that was just freed or split off is most often taken
/// or merged next; then it never needs to be put in a bin.
#[derive(Clone, Debug)]
pub(crate) struct SizeBins {
    /// The small or the large block pool, which decides which sizes share a bin.
    pub(crate) pool: PoolKind,
    latest: Option<BlockIndex>,
    /// Zero without a latest block.
    latest_size: Bytes,
    latest_addr: DeviceAddr,
    /// One bit for each word of `occupied` that is not zero.
    occupied_words: u64,
    /// One bit for each bin that is not empty.
    occupied: [u64; WORD],
    /// Bins up to the largest size so far, rounded up to whole words of the bitmap.
    bins: Vec<Bin>,
    lists: Vec<List>,
    vacant_lists: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Bin {
    /// Up to three blocks in ascending order, then empty places.
    Few([Option<BlockIndex>; FEW]),
    /// More blocks, in the list with this number.
    Many(u32),
}

const EMPTY: Bin = Bin::Few([None; FEW]);

/// A block in a bin.
struct BinnedBlock {
    /// The number of the bin.
    number: usize,
    index: BlockIndex,
    /// Whether the block is known to be the first of the bin.
    is_first: bool,
}

impl SizeBins {
    /// No blocks, for the small or the large block pool.
    pub(crate) fn new(pool: PoolKind) -> Self {
        Self {
            pool,
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

    pub(crate) fn is_empty(&self) -> bool {
        self.latest.is_none() && self.occupied_words == 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, index: BlockIndex, size: Bytes, addr: DeviceAddr, blocks: &BlockTable) {
        if let Some(before) = self.latest {
            self.put_in_bin(before, self.latest_size, self.latest_addr, blocks);
        }
        self.latest = Some(index);
        self.latest_size = size;
        self.latest_addr = addr;
    }

    /// Puts the latest block into its bin. Iteration over the bins needs this.
    pub(crate) fn put_latest_in_bin(&mut self, blocks: &BlockTable) {
        if let Some((latest, size)) = self.take_latest() {
            self.put_in_bin(latest, size, self.latest_addr, blocks);
        }
    }

    #[inline]
    fn take_latest(&mut self) -> Option<(BlockIndex, Bytes)> {
        let size = std::mem::take(&mut self.latest_size);
        self.latest.take().map(|latest| (latest, size))
    }

    #[expect(clippy::inline_always, reason = "a call costs as much as what it does")]
    #[inline(always)]
    fn put_in_bin(&mut self, index: BlockIndex, size: Bytes, addr: DeviceAddr, blocks: &BlockTable) {
        let number = bin_of(self.pool, size);
        self.occupied_words |= 1 << (number / WORD);
        self.occupied[number / WORD % WORD] |= 1 << (number % WORD);
        match self.bins.get_mut(number) {
            // Most bins are empty.
            Some(Bin::Few([first @ None, ..])) => *first = Some(index),
            Some(Bin::Few(few)) if few[FEW - 1].is_none() => {
                insert_in_few(few, &Key { size, addr, index }, blocks);
            }
            _ => self.insert_in_full_bin(number, index, (size, addr), blocks),
        }
    }

    #[inline(never)]
    fn insert_in_full_bin(
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
                let list = put_list(lists, few, holds_one_size(self.pool, number), blocks);
                *bin = Bin::Many(list);
                list
            }
            Bin::Many(list) => *list,
        };
        self.lists[list as usize].insert(&key, blocks);
    }

    /// Removes the block, if it is in the set.
    #[inline]
    pub(crate) fn remove(&mut self, index: BlockIndex, size: Bytes, addr: DeviceAddr) {
        if self.latest == Some(index) {
            self.take_latest();
        } else {
            self.remove_from_bin(bin_of(self.pool, size), &Key { size, addr, index });
        }
    }

    #[inline]
    fn remove_from_bin(&mut self, number: usize, key: &Key) {
        let Some(Bin::Few(few)) = self.bins.get_mut(number) else {
            self.remove_from_list(number, key);
            return;
        };
        // The processor cannot predict the place of the block, so this code has no branches.
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

    /// Removes the first block of its bin, which is faster than [`SizeBins::remove_from_bin`].
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

    /// Updates the bitmap after a removal, given the first block of the bin now.
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
        match self.bins.get(bin_of(self.pool, block.size)) {
            Some(Bin::Few(few)) => few.contains(&Some(index)),
            Some(Bin::Many(list)) => {
                self.lists[*list as usize].contains(&Key { size: block.size, addr: block.addr, index })
            }
            None => false,
        }
    }

    /// Removes and returns the smallest block of at least `size`, with its size. Ties go to the lowest
    /// address.
    ///
    /// The caller passes the pool although the set has it: a constant lets the compiler leave out the code
    /// for the other pool.
    #[expect(clippy::inline_always, reason = "to be made for either pool")]
    #[inline(always)]
    pub(crate) fn take_first_fitting(
        &mut self,
        pool: PoolKind,
        size: Bytes,
        blocks: &BlockTable,
    ) -> Option<(BlockIndex, Bytes)> {
        debug_assert_eq!(pool, self.pool, "the pool that these bins are for");
        let number = bin_of(pool, size);
        let bit = self.occupied[number / WORD % WORD] >> (number % WORD) & 1;
        // Most requests have the size of the block that was just freed, and no other free block has this
        // size.
        if self.latest_size == size && bit == 0 {
            return self.take_latest();
        }
        let Some(binned) = self.first_binned(pool, number, size, blocks) else {
            return if self.latest_size >= size { self.take_latest() } else { None };
        };
        let BinnedBlock { number, index, is_first } = binned;
        // In a bin of one size, the size follows from the number of the bin, without a load of the block.
        let binned_size = if holds_one_size(pool, number) {
            Bytes::new((number as u64) << UNIT_BITS)
        } else {
            blocks[index].size
        };
        if self.latest_size >= size && self.latest_comes_before(binned_size, index, blocks) {
            return self.take_latest();
        }
        let key = Key { size: binned_size, addr: blocks[index].addr, index };
        if is_first {
            self.remove_first(number, &key);
        } else {
            self.remove_from_bin(number, &key);
        }
        Some((index, binned_size))
    }

    /// Whether the latest block comes before a block in a bin.
    #[inline]
    fn latest_comes_before(&self, size: Bytes, index: BlockIndex, blocks: &BlockTable) -> bool {
        // Keys are not compared here: the sizes alone decide nearly always, and faster.
        self.latest_size < size || (self.latest_size == size && self.latest_addr < blocks[index].addr)
    }

    /// The smallest block of at least `size`. Ties go to the lowest address.
    pub(crate) fn first_fitting(&self, size: Bytes, blocks: &BlockTable) -> Option<BlockIndex> {
        let latest = self.latest.filter(|_| self.latest_size >= size);
        match self.first_binned(self.pool, bin_of(self.pool, size), size, blocks) {
            Some(BinnedBlock { index, .. }) => {
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
    fn first_binned(
        &self,
        pool: PoolKind,
        number: usize,
        size: Bytes,
        blocks: &BlockTable,
    ) -> Option<BinnedBlock> {
        let from = self.occupied[number / WORD % WORD] >> (number % WORD);
        if holds_one_size(pool, number) {
            // Every block of a bin of one size fits.
            return self.first_above(number, from);
        }
        if from & 1 == 1 {
            let found = match &self.bins[number] {
                Bin::Few(few) => few.iter().flatten().find(|index| blocks[**index].size >= size).copied(),
                Bin::Many(list) => self.lists[*list as usize].first_fitting(size),
            };
            if let Some(index) = found {
                return Some(BinnedBlock { number, index, is_first: false });
            }
        }
        self.first_above(number, from & !1)
    }

    /// The first block from this bin on, given the bits of the bitmap word from this bin on.
    #[inline]
    fn first_above(&self, number: usize, from: u64) -> Option<BinnedBlock> {
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
        first.map(|index| BinnedBlock { number, index, is_first: true })
    }

    /// The next block in the order. The latest block must be in its bin.
    pub(crate) fn next_after(&self, index: BlockIndex, block: &Block) -> Option<BlockIndex> {
        let number = bin_of(self.pool, block.size);
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
        next.or_else(|| self.first_above(number, from).map(|binned| binned.index))
    }

    /// All blocks in order. The latest block must be in its bin.
    pub(crate) fn iter<'a>(&'a self, blocks: &'a BlockTable) -> impl Iterator<Item = BlockIndex> + 'a {
        let first = self.first_above(0, self.occupied[0]).map(|binned| binned.index);
        std::iter::successors(first, |index| self.next_after(*index, &blocks[*index]))
    }

    /// The number of blocks.
    pub(crate) fn count(&self, blocks: &BlockTable) -> usize {
        usize::from(self.latest.is_some()) + self.iter(blocks).count()
    }
}

/// The number of the bin for this size. In the small pool, whose segments have 2 MiB, the number is the size
/// in units of 512 bytes. In the large pool, the number is the octave and the seven bits after the leading
/// one. The last bin holds all larger sizes.
#[inline]
fn bin_of(pool: PoolKind, size: Bytes) -> usize {
    let units = size.get() >> UNIT_BITS;
    let bin = match pool {
        PoolKind::Small => units,
        PoolKind::Large => {
            let octave = (units | 1 << FINE_BITS).ilog2() - FINE_BITS;
            // The shift gives 128 to 255: the number within the octave, plus one octave.
            (u64::from(octave) << FINE_BITS) + (units >> octave)
        }
    };
    usize::try_from(bin).map_or(LAST_BIN, |bin| bin.min(LAST_BIN))
}

/// Whether all blocks of a bin are of the same size.
#[inline]
fn holds_one_size(pool: PoolKind, number: usize) -> bool {
    pool == PoolKind::Small && number < LAST_BIN
}

/// Inserts a block among up to two others.
#[inline]
fn insert_in_few(few: &mut [Option<BlockIndex>; FEW], key: &Key, blocks: &BlockTable) {
    // The processor cannot predict the count nor the order, so this code has no branches.
    let goes_before =
        |place: Option<BlockIndex>| place.is_none() | key.comes_before(blocks.at_or_first(place));
    let index = Some(key.index);
    let [first, second, _] = *few;
    let (is_first, is_second) = (goes_before(first), goes_before(second));
    let below = if is_second { index } else { second };
    let above = if is_second { second } else { index };
    *few = if is_first { [index, first, second] } else { [first, below, above] };
}

/// Moves the blocks of a bin to a list.
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
    crate::block::table_number(number)
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_the_order_of_their_sizes() {
        let small = |units: u64| bin_of(PoolKind::Small, Bytes::new(units * 512));
        let large = |units: u64| bin_of(PoolKind::Large, Bytes::new(units * 512));
        assert_eq!(
            [1, 2048, 4094, 4095, 4096, 1 << 50].map(small),
            [1, 2048, 4094, LAST_BIN, LAST_BIN, LAST_BIN]
        );
        assert_eq!([1, 127, 128, 255, 256, 257, 258].map(large), [1, 127, 128, 255, 256, 256, 257]);
        assert_eq!(
            [2048, 4096, (1 << 38) - 1, 1 << 38, 1 << 54].map(large),
            [640, 768, LAST_BIN, LAST_BIN, LAST_BIN]
        );
        let mut before = 0;
        for exponent in 7..55 {
            for part in 0..128 {
                let bin = large((1 << exponent) + (1_u64 << exponent) / 128 * part);
                assert!(bin == before + 1 || bin == LAST_BIN || exponent == 7, "{exponent} {part}");
                before = bin;
            }
        }
    }
}
