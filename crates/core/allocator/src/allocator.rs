//! The allocator: its fields, and the calls for users.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_device::DeviceMemory;
use blockyard_record::{
    AllocationId, BlockState, Bytes, DeviceAddr, Event, EventSink, NullSink, PoolId, SegmentId,
    SegmentSnapshot, StatArray, Stats, StreamId,
};
use blockyard_rules::{AllocatorConfig, ConfigError, size};

use crate::AllocError;
use crate::block::{BlockIndex, BlockTable};
use crate::counters::Counters;
use crate::expandable::ExpandableSegments;
use crate::free_list::{FreeListIndex, FreeLists};
use crate::memory_pool::{MemoryPool, Scope};
use crate::stream::PendingFrees;

/// PyTorch's caching allocator over the device `D`. It reports every action to the sink `S` as an event.
///
/// At every moment, in bytes: allocated ≤ active ≤ reserved, and reserved is the sum of all segments.
#[derive(Debug)]
pub struct CachingAllocator<D: DeviceMemory, S: EventSink = NullSink> {
    pub(crate) device: D,
    pub(crate) sink: S,
    pub(crate) config: AllocatorConfig,
    pub(crate) blocks: BlockTable,
    pub(crate) free_lists: FreeLists,
    /// The default pool, then the pools of programs and of graph captures in the order of creation.
    pub(crate) memory_pools: Vec<MemoryPool>,
    /// Open scopes on pools, in the order in which they were opened.
    pub(crate) scopes: Vec<Scope>,
    /// How many graph captures are open, of those that were announced
    /// ([`CachingAllocator::mark_capture_begin`]).
    pub(crate) captures: u32,
    /// Bytes of the segments of private pools.
    pub(crate) private_reserved: BTreeMap<PoolId, StatArray>,
    /// Blocks that were freed during a graph capture, and that wait for other streams.
    pub(crate) deferred: Vec<BlockIndex>,
    pub(crate) pending: PendingFrees<D::Event>,
    pub(crate) counters: Counters,
    /// First address and page size by segment.
    pub(crate) expandable_segments: ExpandableSegments,
    /// Whether the rules for default settings decide which block a request gets.
    pub(crate) has_default_rules: bool,
    /// The free list of the last request, for the small and the large default pool.
    pub(crate) default_lists: [Option<(StreamId, FreeListIndex)>; 2],
    /// Bytes of all segments (`total_allocated_memory`).
    pub(crate) reserved: Bytes,
    /// The most that may be reserved, if a memory fraction below 1 is set.
    pub(crate) limit: Option<Bytes>,
    /// The number of the next segment.
    pub(crate) next_segment_id: u32,
    /// The number of the next allocation.
    pub(crate) next_allocation_id: u32,
    /// Distinguishes allocations of this allocator from those of other allocators, which may have equal
    /// addresses and numbers.
    identity: u64,
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// An allocated block, to be freed with [`CachingAllocator::free`].
///
/// An allocation of zero bytes has no block; its address is 0, like PyTorch's null pointer. An allocation
/// cannot be freed twice:
///
/// ```compile_fail,E0382
/// # use blockyard_allocator::CachingAllocator;
/// # use blockyard_rules::AllocatorConfig;
/// # use blockyard_device::VirtualDevice;
/// # use blockyard_record::{Bytes, NullSink, StreamId};
/// # let device = VirtualDevice::new(Bytes::gib(1));
/// # let mut allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
/// let allocation = allocator.allocate(Bytes::mib(3), StreamId::DEFAULT)?;
/// allocator.free(allocation)?;
/// allocator.free(allocation)?;
/// # Ok::<(), blockyard_allocator::AllocError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct Allocation {
    addr: DeviceAddr,
    block: Option<(BlockIndex, AllocationId)>,
    allocator: u64,
}

impl Allocation {
    /// The address of the first byte; 0 for an allocation of zero bytes.
    #[must_use]
    pub fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// The number of the allocation; `None` for an allocation of zero bytes.
    #[must_use]
    pub fn id(&self) -> Option<AllocationId> {
        self.block.map(|(_, id)| id)
    }
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// An allocator without segments.
    pub fn new(device: D, config: AllocatorConfig, sink: S) -> Self {
        let mut counters = Counters::default();
        counters.infrequent.max_split_size = config.max_split_size_signed();
        let fraction = config.per_process_memory_fraction();
        let mut allocator = Self {
            device,
            sink,
            config,
            blocks: BlockTable::default(),
            free_lists: FreeLists::default(),
            memory_pools: vec![MemoryPool::new(PoolId::DEFAULT, 1)],
            scopes: Vec::new(),
            captures: 0,
            private_reserved: BTreeMap::new(),
            deferred: Vec::new(),
            pending: PendingFrees::default(),
            counters,
            expandable_segments: ExpandableSegments::default(),
            has_default_rules: false,
            default_lists: [None; 2],
            reserved: Bytes::ZERO,
            limit: None,
            next_segment_id: 0,
            next_allocation_id: 0,
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
        };
        if fraction < 1.0 {
            allocator.limit_to(fraction);
        }
        allocator.note_settings();
        allocator
    }

    /// Allocates `requested` bytes for use on `stream` (`malloc`).
    ///
    /// # Errors
    ///
    /// [`AllocError::OutOfMemory`] when the device has not enough memory even after all was released that may
    /// be released, [`AllocError::TooLarge`] for 2^60 bytes and more, [`AllocError::Device`] when the device
    /// fails for another reason.
    #[expect(
        clippy::inline_always,
        reason = "an allocation that is returned through memory costs as much as making it"
    )]
    #[inline(always)]
    pub fn allocate(&mut self, requested: Bytes, stream: StreamId) -> Result<Allocation, AllocError> {
        if requested.is_zero() {
            return Ok(Allocation { addr: DeviceAddr::default(), block: None, allocator: self.identity });
        }
        let index = self.allocate_block(requested, stream)?;
        // The number of the newest allocation.
        let id = AllocationId::new(self.next_allocation_id.wrapping_sub(1));
        Ok(self.handle(self.addr_of(index), index, id))
    }

    /// Frees an allocation (`free`). If other streams used the block, the free is pending until their work is
    /// done.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when the allocation is not a live one of this allocator,
    /// [`AllocError::Device`] when the device fails to record an event. In both cases nothing changes.
    #[expect(clippy::needless_pass_by_value, reason = "what was freed cannot be freed or used again")]
    #[expect(clippy::inline_always, reason = "as for `allocate`")]
    #[inline(always)]
    pub fn free(&mut self, allocation: Allocation) -> Result<(), AllocError> {
        let Some(index) = self.live_block(&allocation)? else {
            return Ok(());
        };
        self.free_block(index)
    }

    /// Frees an allocated block.
    #[inline]
    pub(crate) fn free_block(&mut self, index: BlockIndex) -> Result<(), AllocError> {
        if self.free_unshared(index) { Ok(()) } else { self.free_used_block(index) }
    }

    /// Frees an allocated block if no other stream used it; returns whether the block was freed.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        expect(clippy::inline_always, reason = "as for `allocate_fast_path`")
    )]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn free_unshared(&mut self, index: BlockIndex) -> bool {
        let block = &self.blocks[index];
        if block.has_uses() {
            return false;
        }
        let (id, pool, size, requested) = (block.id, block.pool, block.size, block.requested);
        let is_oversize = self.note_oversize_free(size);
        if self.sink.is_closed() {
            self.complete_free::<false>(index);
        } else {
            self.sink.record(Event::FreeRequested { block: id, is_oversize });
            self.complete_free::<true>(index);
        }
        self.counters.freed(pool, size, requested);
        true
    }

    fn note_oversize_free(&mut self, size: Bytes) -> bool {
        let is_oversize = self.is_oversize(size);
        if is_oversize {
            self.counters.infrequent.oversize_allocations.decrease(1);
        }
        is_oversize
    }

    #[cold]
    fn free_used_block(&mut self, index: BlockIndex) -> Result<(), AllocError> {
        let waits_later = self.is_capturing();
        if !waits_later {
            self.record_events(index, false)?;
        }
        let block = &mut self.blocks[index];
        block.state = BlockState::PendingFree;
        let (id, pool, size) = (block.id, block.pool, block.size);
        self.counters.free_requested(pool, size);
        let is_oversize = self.note_oversize_free(size);
        self.sink.record(Event::FreeRequested { block: id, is_oversize });
        if waits_later {
            self.deferred.push(index);
        } else {
            self.await_events(index);
        }
        Ok(())
    }

    /// Records that `stream` uses the allocation too (`recordStream`). The free will wait for the work of
    /// that stream.
    ///
    /// The stream of the allocation itself is ignored, except on Ascend, and so are allocations of zero bytes.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when the allocation is not a live one of this allocator.
    pub fn record_stream(&mut self, allocation: &Allocation, stream: StreamId) -> Result<(), AllocError> {
        let Some(index) = self.live_block(allocation)? else {
            return Ok(());
        };
        self.record_stream_of_block(index, stream);
        Ok(())
    }

    pub(crate) fn record_stream_of_block(&mut self, index: BlockIndex, stream: StreamId) {
        let is_capturing = self.is_capturing();
        let block = &self.blocks[index];
        let id = block.id;
        let is_own = self.free_lists[block.list].stream == stream;
        if is_own && !self.config.release().dialect().waits_for_own_stream() {
            return;
        }
        let uses = self.blocks.uses_mut(index);
        if is_capturing {
            uses.in_capture.push(stream);
        }
        if let Err(position) = uses.streams.binary_search(&stream) {
            uses.streams.insert(position, stream);
            self.sink.record(Event::StreamRecorded { block: id, stream });
        }
    }

    /// Waits for all streams and releases every cached segment to the device (`emptyCache`). Private pools in
    /// use keep their cached segments; during a graph capture, nothing is waited for, and the default pool
    /// keeps its cache too. Up to release 2.7 nothing is released inside of a scope of
    /// the program, since its pool alone counts, which is in use.
    ///
    /// # Errors
    ///
    /// [`AllocError::Device`] when the device fails. Segments that were released before stay released.
    pub fn empty_cache(&mut self) -> Result<(), AllocError> {
        if self.active_pool().is_some() { Ok(()) } else { self.release_cached_blocks() }
    }

    /// Limits reserved memory to a fraction of the device; from release 2.10 on 1 removes the limit
    /// (`setMemoryFraction`).
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidFraction`] for a fraction below 0 or above 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), AllocError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(AllocError::InvalidFraction(fraction));
        }
        self.limit_to(fraction);
        Ok(())
    }

    /// Adds an event for a snapshot, as PyTorch's trace does.
    pub fn record_snapshot(&mut self) {
        let active = match self.active_pool() {
            Some(pool) => self.pool_snapshot(pool).segments.iter().map(SegmentSnapshot::active).sum(),
            None => self.counters.active_bytes(),
        };
        self.sink.record(Event::SnapshotTaken { active });
    }

    /// Sets every peak to its current value.
    pub fn reset_peak_stats(&mut self) {
        self.counters.reset_peak();
        self.private_reserved.values_mut().for_each(StatArray::reset_peak);
        self.sink.record(Event::PeakReset);
    }

    /// Sets all accumulated counts to zero.
    pub fn reset_accumulated_stats(&mut self) {
        self.counters.reset_accumulated();
        self.private_reserved.values_mut().for_each(StatArray::reset_accumulated);
        self.sink.record(Event::AccumulatedReset);
    }

    /// Reads further settings, as PyTorch does at run time; see [`AllocatorConfig::apply`].
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a bad setting. Settings before the bad one stay applied.
    pub fn apply_settings(&mut self, text: &str) -> Result<(), ConfigError> {
        let applied = self.config.apply(text);
        self.note_settings();
        applied
    }

    /// The settings in force.
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    /// The statistics, as PyTorch counts them.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// The device that segments are allocated from.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, for advancing its streams. The caller must not allocate or release segments through it.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The sink of the events.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink of the events.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Drops the allocator with its device, and returns the sink. No segment is released.
    pub fn into_sink(self) -> S {
        self.sink
    }

    pub(crate) fn is_oversize(&self, size: Bytes) -> bool {
        size >= self.config.max_split_size()
    }

    fn limit_to(&mut self, fraction: f64) {
        let total = self.device.total_memory();
        let release = self.config.release();
        let has_limit = fraction < 1.0 || !release.whole_device_is_no_limit();
        self.limit = has_limit.then(|| release.memory_limit(total, fraction));
        self.note_settings();
        self.sink.record(Event::FractionSet { limit: self.limit });
    }

    /// A number that no other allocator has.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    #[inline]
    pub(crate) fn handle(&self, addr: DeviceAddr, block: BlockIndex, id: AllocationId) -> Allocation {
        Allocation { addr, block: Some((block, id)), allocator: self.identity }
    }

    /// Numbers new allocations from the one after `taken`.
    pub(crate) fn skip_allocations(&mut self, taken: AllocationId) {
        self.next_allocation_id = self.next_allocation_id.max(taken.get().wrapping_add(1));
    }

    /// Numbers new segments from the one after `taken`.
    pub(crate) fn skip_segments(&mut self, taken: SegmentId) {
        self.next_segment_id = self.next_segment_id.max(taken.get().wrapping_add(1));
    }

    /// The block of a live allocation; `None` for an allocation of zero bytes.
    #[inline]
    fn live_block(&self, allocation: &Allocation) -> Result<Option<BlockIndex>, AllocError> {
        let Some((index, id)) = allocation.block else {
            return Ok(None);
        };
        let is_ours = allocation.allocator == self.identity;
        // A vacant place never has this state, because only inactive blocks are removed.
        let is_live = self.blocks.at(index).is_some_and(|block| {
            is_ours
                && block.state == BlockState::Allocated
                && block.allocation == id
                && block.addr == allocation.addr
        });
        if is_live { Ok(Some(index)) } else { Err(AllocError::InvalidPointer(allocation.addr)) }
    }

    /// The address of the block.
    pub(crate) fn addr_of(&self, index: BlockIndex) -> DeviceAddr {
        self.blocks[index].addr
    }

    /// Whether `index` is an allocated block that starts at the address.
    pub(crate) fn is_live_at(&self, index: BlockIndex, addr: DeviceAddr) -> bool {
        self.blocks.at(index).is_some_and(|block| block.state == BlockState::Allocated && block.addr == addr)
    }

    /// Updates `has_default_rules` from the settings, and from memory that was allocated under other
    /// settings.
    pub(crate) fn note_settings(&mut self) {
        self.has_default_rules = self.config.max_split_size() == size::UNLIMITED
            && !self.config.expandable_segments()
            && self.expandable_segments.is_empty()
            && self.config.roundup_table().iter().all(|divisions| *divisions <= 1)
            && !self.can_collect_garbage()
            && !self.config.release().oldest_block_first()
            && self.config.release().dialect().padding().is_zero();
    }
}
