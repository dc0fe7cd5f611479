//! The test of all invariants of the allocator.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, EventSink, PoolKind, StatArray};
use blockyard_rules::size;

use crate::block::Block;
use crate::{CachingAllocator, Corruption};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Tests the invariants that the crate's first page lists, as far as they can be seen at one moment. Of
    /// the last one, the check sees only that all blocks of a segment belong to one stream.
    ///
    /// This is for tests: the time is linear in the number of blocks.
    ///
    /// # Errors
    ///
    /// [`Corruption`] names the first broken invariant.
    pub fn check(&self) -> Result<(), Corruption> {
        for head in self.blocks.heads() {
            self.check_segment(head)?;
        }
        self.check_pools()?;
        self.check_stats()
    }

    fn check_segment(&self, head: &Block) -> Result<(), Corruption> {
        let mut end = head.addr;
        let mut before = None;
        for block in self.blocks.chain(head) {
            if block.segment != head.segment || block.addr != end || block.list != head.list {
                return Err(Corruption::Coverage(head.segment));
            }
            let size = block.size.get();
            if block.size < size::MIN_BLOCK_SIZE || size % size::MIN_BLOCK_SIZE.get() != 0 {
                return Err(Corruption::Size(block.addr));
            }
            if block.is_available() && before == Some(block.state) {
                return Err(Corruption::Unmerged(head.segment));
            }
            before = Some(block.state);
            end = block.addr.offset(block.size);
        }
        Ok(())
    }

    fn check_pools(&self) -> Result<(), Corruption> {
        let (mut inactive, mut unmapped) = (0_usize, 0_usize);
        for (index, block) in self.blocks.iter() {
            let list = &self.free_lists[block.list];
            let is_inactive = block.state == BlockState::Inactive;
            inactive += usize::from(is_inactive);
            let is_unmapped = block.state == BlockState::Unmapped;
            unmapped += usize::from(is_unmapped);
            if list.cached.pool != block.pool
                || list.cached.contains(index, block) != is_inactive
                || list.contains_unmapped(index, block) != is_unmapped
            {
                return Err(Corruption::Pool(block.segment));
            }
            let links_back =
                |neighbor: Option<&Block>, link: Option<_>| neighbor.is_none() || link == Some(index);
            let previous = block.previous.and_then(|previous| self.blocks.get(previous));
            let next = block.next.and_then(|next| self.blocks.get(next));
            if previous.is_some() != block.previous.is_some()
                || next.is_some() != block.next.is_some()
                || !links_back(previous, previous.and_then(|block| block.next))
                || !links_back(next, next.and_then(|block| block.previous))
            {
                return Err(Corruption::Coverage(block.segment));
            }
            if block.has_uses() && block.is_available() {
                return Err(Corruption::StreamUses(block.addr));
            }
        }
        if inactive != self.free_lists.iter().map(|list| list.cached.count(&self.blocks)).sum::<usize>() {
            return Err(Corruption::Statistic("free blocks"));
        }
        if unmapped != self.free_lists.iter().map(|list| list.unmapped.len()).sum::<usize>() {
            return Err(Corruption::Statistic("unmapped blocks"));
        }
        Ok(())
    }

    fn check_stats(&self) -> Result<(), Corruption> {
        let count = |name, stat: &StatArray, part: &dyn Fn(&Block) -> Bytes| {
            let mut sums = [0_i64; 2];
            for (_, block) in self.blocks.iter() {
                sums[usize::from(block.pool == PoolKind::Large)] += part(block).signed();
            }
            let kept = [stat.small_pool.current, stat.large_pool.current];
            if kept == sums && stat.all.current == sums[0] + sums[1] {
                Ok(())
            } else {
                Err(Corruption::Statistic(name))
            }
        };
        let one = Bytes::new(1);
        let when = |is_so: bool, amount: Bytes| if is_so { amount } else { Bytes::ZERO };
        let stats = self.stats();
        let is_allocated = |block: &Block| block.state == BlockState::Allocated;
        let is_remainder = |block: &Block| block.is_available() && block.is_split() && !block.is_expandable;
        let is_whole_segment = |block: &Block| block.previous.is_none() && !block.is_expandable;
        let is_mapped = |block: &Block| block.state != BlockState::Unmapped;
        count("allocation", &stats.allocation, &|block| when(is_allocated(block), one))?;
        count("allocated_bytes", &stats.allocated_bytes, &|block| when(is_allocated(block), block.size))?;
        count("active", &stats.active, &|block| when(block.state.is_active(), one))?;
        count("active_bytes", &stats.active_bytes, &|block| when(block.state.is_active(), block.size))?;
        count("requested_bytes", &stats.requested_bytes, &|block| {
            when(block.state.is_active(), block.requested)
        })?;
        count("segment", &stats.segment, &|block| when(is_whole_segment(block), one))?;
        count("reserved_bytes", &stats.reserved_bytes, &|block| when(is_mapped(block), block.size))?;
        count("inactive_split", &stats.inactive_split, &|block| when(is_remainder(block), one))?;
        count("inactive_split_bytes", &stats.inactive_split_bytes, &|block| {
            when(is_remainder(block), block.size)
        })?;
        if self.reserved.signed() != stats.reserved_bytes.all.current {
            return Err(Corruption::Statistic("total reserved"));
        }
        Ok(())
    }
}
