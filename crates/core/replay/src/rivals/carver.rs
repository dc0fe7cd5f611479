//! Regions that are cut into blocks, with neighbors that merge when they are free.

use std::collections::BTreeMap;

/// The free blocks, in the order in which a policy looks through them.
pub(crate) trait FreeIndex: Default {
    fn insert(&mut self, addr: u64, size: u64);
    fn remove(&mut self, addr: u64, size: u64);
    /// A free block of at least this many bytes.
    fn find(&self, size: u64) -> Option<(u64, u64)>;
}

#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    is_free: bool,
    /// Whether a region starts here: the block never merges with the block before it.
    begins_region: bool,
}

/// Regions and their blocks.
///
/// Blocks cover their regions without gaps, and no two free neighbors of a region are left unmerged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carver<I> {
    blocks: BTreeMap<u64, Block>,
    free: I,
}

impl<I: FreeIndex> Carver<I> {
    /// Adds a region, which is one free block.
    pub(crate) fn add_region(&mut self, base: u64, size: u64) {
        self.blocks.insert(base, Block { size, is_free: true, begins_region: true });
        self.free.insert(base, size);
    }

    /// Allocates a block for this many bytes: address and size. `should_split` gets the size of a free block
    /// that is larger, and says whether the remainder becomes a separate block. `None` if no free block is
    /// large enough.
    pub(crate) fn allocate(&mut self, size: u64, should_split: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let (addr, found) = self.free.find(size)?;
        self.free.remove(addr, found);
        let block = self.blocks.get_mut(&addr)?;
        block.is_free = false;
        if found > size && should_split(found) {
            block.size = size;
            let remainder = Block { size: found - size, is_free: true, begins_region: false };
            self.blocks.insert(addr + size, remainder);
            self.free.insert(addr + size, remainder.size);
            return Some((addr, size));
        }
        Some((addr, found))
    }

    /// Frees the block at `addr`. Returns the first address and the size of the region if all of the region
    /// is free now.
    pub(crate) fn free(&mut self, addr: u64) -> Option<(u64, u64)> {
        let mut block = *self.blocks.get(&addr).filter(|block| !block.is_free)?;
        let mut addr = addr;
        let next = addr + block.size;
        if let Some(neighbor) =
            self.blocks.get(&next).copied().filter(|block| block.is_free && !block.begins_region)
        {
            self.free.remove(next, neighbor.size);
            self.blocks.remove(&next);
            block.size += neighbor.size;
        }
        let before = self.blocks.range(..addr).next_back().map(|(base, before)| (*base, *before));
        if let Some((base, before)) = before.filter(|(_, before)| before.is_free && !block.begins_region) {
            self.free.remove(base, before.size);
            self.blocks.remove(&addr);
            block = Block { size: before.size + block.size, ..before };
            addr = base;
        }
        block.is_free = true;
        self.blocks.insert(addr, block);
        self.free.insert(addr, block.size);
        let ends_region = self.blocks.get(&(addr + block.size)).is_none_or(|next| next.begins_region);
        (block.begins_region && ends_region).then_some((addr, block.size))
    }

    /// Removes a region that is one free block.
    pub(crate) fn remove_region(&mut self, base: u64, size: u64) {
        self.free.remove(base, size);
        self.blocks.remove(&base);
    }

    /// Removes the regions that are one free block each. Returns their sizes by ascending address.
    pub(crate) fn take_whole_regions(&mut self) -> Vec<u64> {
        let mut blocks = self.blocks.iter().peekable();
        let mut whole = Vec::new();
        while let Some((base, block)) = blocks.next() {
            let is_alone = blocks.peek().is_none_or(|(_, next)| next.begins_region);
            if block.begins_region && block.is_free && is_alone {
                whole.push((*base, block.size));
            }
        }
        for (base, size) in &whole {
            self.remove_region(*base, *size);
        }
        whole.into_iter().map(|(_, size)| size).collect()
    }
}
