//! Events: the actions of an allocator, several for each request.

use serde::{Deserialize, Serialize};

use crate::{AllocationId, BlockId, Bytes, DeviceAddr, PoolId, PoolKind, SegmentId, StreamId};

/// One action inside an allocator. The events of one request are a [`Step`](crate::Step).
///
/// Events are complete: [`MemoryState::apply`](crate::MemoryState::apply) over all events of a run gives the
/// allocator's own snapshot and statistics, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The device allocated a new segment. One inactive block covers the segment.
    SegmentAllocated {
        /// The new segment.
        segment: SegmentId,
        /// The block that covers it.
        block: BlockId,
        /// The address of the first byte.
        addr: DeviceAddr,
        /// How large it is.
        size: Bytes,
        /// The stream that may use it.
        stream: StreamId,
        /// The memory pool that owns it.
        pool_id: PoolId,
        /// The small or the large block pool.
        pool: PoolKind,
        /// Whether its size is at least `max_split_size` (counted in `oversize_segments`).
        is_oversize: bool,
    },
    /// A segment, which had become one inactive block, was released to the device.
    SegmentReleased {
        /// The released segment.
        segment: SegmentId,
        /// Whether the size is at least `max_split_size` as it is set at this moment.
        is_oversize: bool,
    },
    /// Addresses were reserved for an expandable segment. One unmapped block covers the addresses; no memory
    /// is mapped yet.
    RangeReserved {
        /// The new segment.
        segment: SegmentId,
        /// The block that covers it.
        block: BlockId,
        /// The address of the first byte.
        addr: DeviceAddr,
        /// How many addresses were reserved, in bytes.
        size: Bytes,
        /// The stream that may use it.
        stream: StreamId,
        /// The memory pool that owns it.
        pool_id: PoolId,
        /// The small or the large block pool.
        pool: PoolKind,
    },
    /// The addresses of an expandable segment, which had become one unmapped block, were released.
    RangeReleased {
        /// The released segment.
        segment: SegmentId,
    },
    /// Memory was mapped into the low `size` bytes of an unmapped block, which is inactive now. The
    /// remainder, if there is one, is the new unmapped block `remainder`. Merges with inactive neighbors
    /// follow as separate events.
    Mapped {
        /// The block that has memory now.
        block: BlockId,
        /// How many bytes were mapped, in whole pages.
        size: Bytes,
        /// The block that covers the remainder.
        remainder: Option<BlockId>,
    },
    /// The whole pages inside an inactive block of an expandable segment were unmapped. `block` covers these
    /// pages now; the parts of the block below and above them stay inactive and are new blocks. Merges with
    /// unmapped neighbors follow as separate events.
    Unmapped {
        /// The block that has no memory now.
        block: BlockId,
        /// The new block below the unmapped pages, and its size.
        before: Option<(BlockId, Bytes)>,
        /// The new block above the unmapped pages, and its size.
        after: Option<(BlockId, Bytes)>,
    },
    /// A new segment could not be allocated.
    SegmentFailed {
        /// The size that the segment would have had.
        size: Bytes,
        /// Why the segment could not be allocated.
        cause: FailureCause,
    },
    /// An inactive block was split: its low `size` bytes are the new block `front`, and `block` keeps the
    /// remainder.
    Split {
        /// The old block, which is the remainder: it keeps the high addresses.
        block: BlockId,
        /// The new block at the old block's address.
        front: BlockId,
        /// The size of the front.
        size: Bytes,
    },
    /// A block was allocated to a caller.
    Allocated {
        /// The block that serves the request.
        block: BlockId,
        /// The allocation that it serves.
        allocation: AllocationId,
        /// The bytes that the caller asked for.
        requested: Bytes,
        /// Whether the block's size is at least `max_split_size` (counted in `oversize_allocations`).
        is_oversize: bool,
    },
    /// Another stream used the block. The free of the block will wait for the work of that stream.
    StreamRecorded {
        /// The block that the further stream uses.
        block: BlockId,
        /// The further stream.
        stream: StreamId,
    },
    /// The caller freed the block. The block stays active until [`Event::FreeCompleted`].
    FreeRequested {
        /// The block that the caller frees.
        block: BlockId,
        /// Whether the size is at least `max_split_size` as it is set at this moment.
        is_oversize: bool,
    },
    /// The block is inactive and can be allocated again. Merges with its inactive neighbors follow as
    /// separate events.
    FreeCompleted {
        /// The block that is free now.
        block: BlockId,
    },
    /// A block was merged with an adjacent block of the same state (inactive or unmapped), which no longer
    /// exists.
    Merged {
        /// The block that covers both now.
        block: BlockId,
        /// The block that no longer exists.
        absorbed: BlockId,
    },
    /// The second attempt to allocate a segment began, after all cached segments were released
    /// (`num_alloc_retries`).
    RetryStarted,
    /// The allocator waited for the work of all streams (`num_sync_all_streams`).
    StreamsSynchronized,
    /// A request failed (`num_ooms`, or `num_oom_rejections` where it was rejected).
    OutOfMemory {
        /// The bytes that the caller asked for.
        requested: Bytes,
        /// The request after rounding.
        rounded: Bytes,
        /// The segment that would have been needed.
        segment_size: Bytes,
        /// The stream of the request.
        stream: StreamId,
        /// How many bytes were free on the device, as the device reported.
        device_free: Bytes,
        /// Whether the allocator rejected the request before it asked the device (`throw_on_cudamalloc_oom`).
        /// PyTorch's trace has no entry then.
        is_rejected: bool,
    },
    /// A snapshot was taken, which PyTorch's trace has an entry for.
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

/// Why a new segment could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureCause {
    /// The device has not enough free memory.
    Device,
    /// The segment would exceed the memory fraction; the device was not asked.
    Fraction,
}

/// Receives the events of an allocator, in order.
///
/// The sink is a type parameter of the allocator, so that [`NullSink`] costs nothing.
pub trait EventSink {
    /// Takes the next event.
    fn record(&mut self, event: Event);

    /// Whether the sink drops events at present, so that the allocator need not send the events of the
    /// current request.
    ///
    /// The allocator calls this once a request, which costs less than one call for each event that is
    /// dropped.
    #[inline]
    fn is_closed(&self) -> bool {
        false
    }
}

/// The sink that drops every event.
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
