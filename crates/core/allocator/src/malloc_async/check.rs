//! The test of all invariants of the pool.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, EventSink};
use blockyard_rules::size::{self, MALLOC_ASYNC_GRANULE};

use super::MallocAsyncAllocator;
use crate::Corruption;

impl<D: DeviceMemory, S: EventSink> MallocAsyncAllocator<D, S> {
    /// Tests that blocks cover their ranges, that free addresses are those of free blocks, that mapped
    /// granules are those of mapped blocks, and that the statistics are the sums over the blocks. This is for
    /// tests.
    ///
    /// # Errors
    ///
    /// [`Corruption`] names the first broken invariant.
    pub fn check(&self) -> Result<(), Corruption> {
        let mut free = Bytes::ZERO;
        let mut mapped = Bytes::ZERO;
        let (mut allocated, mut requested) = (Bytes::ZERO, Bytes::ZERO);
        for (base, (segment, length)) in &self.memory.ranges {
            let mut end = *base;
            let mut before = None;
            for (addr, block) in self.memory.blocks.range(*base..base.offset(*length)) {
                if *addr != end {
                    return Err(Corruption::Coverage(*segment));
                }
                if block.size.is_zero() || block.size.get() % size::MIN_BLOCK_SIZE.get() != 0 {
                    return Err(Corruption::Size(*addr));
                }
                if !block.state.is_active() && before == Some(block.state) {
                    return Err(Corruption::Unmerged(*segment));
                }
                before = Some(block.state);
                end = end.offset(block.size);
                if block.state != BlockState::Unmapped {
                    mapped += block.size;
                }
                if block.state.is_active() {
                    allocated += block.size;
                    requested += block.requested;
                } else {
                    free += block.size;
                }
            }
            if end != base.offset(*length) {
                return Err(Corruption::Coverage(*segment));
            }
        }
        if free != self.free.total() {
            return Err(Corruption::Statistic("free addresses"));
        }
        if mapped.get() != self.memory.granules.len() as u64 * MALLOC_ASYNC_GRANULE.get() {
            return Err(Corruption::Statistic("granules"));
        }
        let kept = [
            ("reserved_bytes", self.stats.reserved_bytes, mapped),
            ("allocated_bytes", self.stats.allocated_bytes, allocated),
            ("requested_bytes", self.stats.requested_bytes, requested),
        ];
        match kept.into_iter().find(|(_, stat, sum)| stat.all.current != sum.signed()) {
            Some((name, ..)) => Err(Corruption::Statistic(name)),
            None => Ok(()),
        }
    }
}
