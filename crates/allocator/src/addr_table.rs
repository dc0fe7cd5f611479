//! From the address of live memory to its block.

use blockyard_record::DeviceAddr;

use crate::block::BlockIndex;

/// Live blocks by their addresses: open addressing, at most a quarter full so that most are found at once, neighbors move up
/// when one is taken out.
///
/// A slot is 8 bytes, so that a search stays within one cache line: it holds the low half of the address in units of the smallest block,
/// which tells blocks apart within 2 TiB, and the block itself is asked for the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddrTable {
    /// A power of two of them, or none. The block's number is 0 in empty ones.
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    tag: u32,
    block: u32,
}

const LEAST: usize = 256;

impl AddrTable {
    /// The block at the address, if there is one for which `is_it` holds, and its place for [`AddrTable::remove`].
    #[inline]
    pub(crate) fn find(
        &self,
        addr: DeviceAddr,
        is_it: impl Fn(BlockIndex) -> bool,
    ) -> Option<(usize, BlockIndex)> {
        let tag = tag(addr);
        let mut place = self.home(tag);
        loop {
            let slot = self.slots.get(place)?;
            let index = BlockIndex::from_number(slot.block)?;
            if slot.tag == tag && is_it(index) {
                return Some((place, index));
            }
            place = self.after(place);
        }
    }

    /// Adds a block that is not in the table.
    #[inline]
    pub(crate) fn insert(&mut self, addr: DeviceAddr, index: BlockIndex) {
        if self.len * 4 >= self.slots.len() {
            self.grow();
        }
        self.put(Slot { tag: tag(addr), block: index.number() });
        self.len += 1;
    }

    /// Takes out the block at a place that [`AddrTable::find`] gave, before anything else changed.
    #[inline]
    pub(crate) fn remove(&mut self, mut place: usize) {
        self.len -= 1;
        let mut hole = place;
        loop {
            place = self.after(place);
            let slot = self.slots[place];
            if slot.block == 0 {
                break;
            }
            // It may move up only if its home does not lie behind the hole.
            let mask = self.slots.len() - 1;
            let distance_home = place.wrapping_sub(self.home(slot.tag)) & mask;
            let distance_to_hole = place.wrapping_sub(hole) & mask;
            if distance_home >= distance_to_hole {
                self.slots[hole] = slot;
                hole = place;
            }
        }
        self.slots[hole] = Slot::default();
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        // Fibonacci hashing: the high bits of the product are well mixed, and neighbors in memory are spread.
        let mixed = u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        // At most 32 bits.
        mixed as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
    }

    fn put(&mut self, slot: Slot) {
        let mut place = self.home(slot.tag);
        while self.slots[place].block != 0 {
            place = self.after(place);
        }
        self.slots[place] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![Slot::default(); (old.len() * 2).max(LEAST)];
        for slot in old.into_iter().filter(|slot| slot.block != 0) {
            self.put(slot);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the tag is the low half by definition")]
fn tag(addr: DeviceAddr) -> u32 {
    (addr.get() >> 9) as u32
}

#[cfg(test)]
mod model;
