use serde::{Deserialize, Serialize};

use crate::{AllocationId, BlockId, Bytes, DeviceAddr, PoolId, PoolKind, SegmentId, StreamId};

/// One step inside an allocator.
///
/// Events are complete: [`MemoryState::apply`](crate::MemoryState::apply) over all events of a run gives the
/// allocator's own snapshot and statistics, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The device gave a new segment, which is one inactive block.
    SegmentAllocated {
        /// The new segment.
        segment: SegmentId,
        /// The block that covers it.
        block: BlockId,
        /// Where it starts.
        addr: DeviceAddr,
        /// How large it is.
        size: Bytes,
        /// The stream that may use it.
        stream: StreamId,
        /// The memory pool that owns it.
        pool_id: PoolId,
        /// Which half of that pool.
        pool: PoolKind,
        /// Whether its size is at least `max_split_size` (counted in `oversize_segments`).
        is_oversize: bool,
    },
    /// A segment, one inactive block by now, went back to the device.
    SegmentReleased {
        /// The segment that is gone.
        segment: SegmentId,
        /// Whether it counts as oversize under the setting of this moment.
        is_oversize: bool,
    },
    /// A range of addresses was reserved for an expandable segment: one unmapped block, no memory yet.
    RangeReserved {
        /// The new segment.
        segment: SegmentId,
        /// The block that covers it.
        block: BlockId,
        /// Where it starts.
        addr: DeviceAddr,
        /// How many bytes of addresses it has.
        size: Bytes,
        /// The stream that may use it.
        stream: StreamId,
        /// The memory pool that owns it.
        pool_id: PoolId,
        /// Which half of that pool.
        pool: PoolKind,
    },
    /// A range of addresses, one unmapped block by now, was given up.
    RangeReleased {
        /// The segment that is gone.
        segment: SegmentId,
    },
    /// The low `size` bytes of an unmapped block got memory and are inactive now; the rest, if any, is the new unmapped
    /// block `rest`. Merges with mapped inactive neighbors follow as events of their own.
    Mapped {
        /// The block.
        block: BlockId,
        /// How many bytes got memory, in whole pages.
        size: Bytes,
        /// The block that covers the rest.
        remainder: Option<BlockId>,
    },
    /// The whole pages inside an inactive block of an expandable segment gave their memory back; `block` covers just
    /// them, and inactive leftovers of partial pages are new blocks. Merges with unmapped neighbors follow as events of their own.
    Unmapped {
        /// The block.
        block: BlockId,
        /// The leftover below and its size.
        before: Option<(BlockId, Bytes)>,
        /// The leftover above and its size.
        after: Option<(BlockId, Bytes)>,
    },
    /// A new segment was wanted and not given.
    SegmentFailed {
        /// The size of the segment.
        size: Bytes,
        /// Who refused it.
        cause: FailureCause,
    },
    /// A block that nobody uses was cut: its low `size` bytes became the new block `front`, `block` keeps the rest.
    Split {
        /// The old block, which keeps the high addresses.
        block: BlockId,
        /// The new block at the old block's address.
        front: BlockId,
        /// The size of the front.
        size: Bytes,
    },
    /// A block was handed to a caller.
    Allocated {
        /// The block.
        block: BlockId,
        /// The allocation that it serves.
        allocation: AllocationId,
        /// What the caller asked for.
        requested: Bytes,
        /// Whether the block's size is at least `max_split_size` (counted in `oversize_allocations`).
        is_oversize: bool,
    },
    /// Another stream used the block; its free will wait for that stream's work.
    StreamRecorded {
        /// The block.
        block: BlockId,
        /// The stream.
        stream: StreamId,
    },
    /// The caller gave the block back. It stays active until [`Event::FreeCompleted`].
    FreeRequested {
        /// The block.
        block: BlockId,
        /// Whether it counts as oversize under the setting of this moment.
        is_oversize: bool,
    },
    /// The block became reusable; merges with its inactive neighbors follow as events of their own.
    FreeCompleted {
        /// The block.
        block: BlockId,
    },
    /// A block took over an adjacent inactive block, which is gone.
    Merged {
        /// The block that remains, now covering both.
        block: BlockId,
        /// The block that is gone.
        absorbed: BlockId,
    },
    /// The second attempt at a new segment began, after the whole cache was released (`num_alloc_retries`).
    RetryStarted,
    /// All outstanding stream work was waited for (`num_sync_all_streams`).
    StreamsSynchronized,
    /// A request failed (`num_ooms`).
    OutOfMemory {
        /// What the caller asked for.
        requested: Bytes,
        /// The request after rounding.
        rounded: Bytes,
        /// The segment that would have been needed.
        segment_size: Bytes,
        /// The stream of the request.
        stream: StreamId,
        /// What the device reported free.
        device_free: Bytes,
    },
    /// Somebody took a snapshot, which PyTorch's trace notes.
    SnapshotTaken {
        /// Bytes of active blocks at that moment.
        active: Bytes,
    },
    /// Every peak was set to its current value.
    PeakReset,
    /// Every accumulated count was set to zero.
    AccumulatedReset,
    /// The memory fraction was set.
    FractionSet {
        /// The most that may be reserved, or `None` for no limit.
        limit: Option<Bytes>,
    },
}

/// Who refused a new segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureCause {
    /// The device has not that much free.
    Device,
    /// The memory fraction does not allow it; the device was not asked.
    Fraction,
}

/// Receives what happens inside an allocator, in order.
///
/// A type parameter of the allocator, so that [`NullSink`] costs nothing.
pub trait EventSink {
    /// Takes the next event.
    fn record(&mut self, event: Event);

    /// Whether nobody looks at events now, so that those of one request may be left out.
    ///
    /// Asked once a request, where a sink that is closed most of the time would else be asked for each event.
    #[inline]
    fn is_closed(&self) -> bool {
        false
    }
}

/// The sink that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn record(&mut self, _event: Event) {}

    #[inline]
    fn is_closed(&self) -> bool {
        true
    }
}

impl EventSink for Vec<Event> {
    fn record(&mut self, event: Event) {
        self.push(event);
    }
}
