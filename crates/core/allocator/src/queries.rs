//! Queries that change nothing.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, EventSink, PoolId, Snapshot};

use crate::CachingAllocator;

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// The most that may be reserved, if a memory fraction below 1 is set.
    pub fn memory_limit(&self) -> Option<Bytes> {
        self.limit
    }

    /// The limit as a fraction of the device (`getMemoryFraction`); 1 without a limit. The value differs a
    /// little from the fraction that was set, because the limit is a whole number of bytes.
    #[expect(clippy::cast_precision_loss, reason = "PyTorch divides doubles")]
    pub fn memory_fraction(&self) -> f64 {
        let total = self.device.total_memory().get() as f64;
        self.limit.map_or(1.0, |limit| limit.get() as f64 / total)
    }

    /// The segments of one memory pool, by ascending address (`MemPool.snapshot()`). As in PyTorch, an
    /// expandable segment ends at its first gap.
    #[must_use]
    pub fn pool_snapshot(&self, id: PoolId) -> Snapshot {
        let mut snapshot = self.snapshot();
        snapshot.segments.retain(|segment| segment.pool_id == id);
        for segment in &mut snapshot.segments {
            let gap = segment.blocks.iter().position(|block| block.state == BlockState::Unmapped);
            segment.blocks.truncate(gap.unwrap_or(segment.blocks.len()));
            segment.size = segment.mapped();
        }
        snapshot.segments.retain(|segment| !segment.blocks.is_empty());
        snapshot
    }
}
