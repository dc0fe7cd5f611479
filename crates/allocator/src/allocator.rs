//! The allocator: what it holds, and what callers ask of it.

use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_device::DeviceMemory;
use blockyard_record::{
    AllocationId, BlockState, Bytes, DeviceAddr, Event, EventSink, NullSink, PoolId, SegmentId, Stats,
    StreamId,
};

use crate::block::{BlockIndex, BlockTable};
use crate::counters::Counters;
use crate::expandable::ExpandableSegments;
use crate::pool::{FreeListIndex, FreeLists};
use crate::private_pool::{PrivatePool, Scope};
use crate::stream::PendingFrees;
use crate::{AllocError, AllocatorConfig, ConfigError, size};

/// PyTorch's caching allocator over the device `D`, reporting every step to the sink `S`.
///
/// At every moment, in bytes: allocated ≤ active ≤ reserved, and reserved is the sum of all segments.
#[derive(Debug)]
pub struct CachingAllocator<D: DeviceMemory, S: EventSink = NullSink> {
    pub(crate) device: D,
    pub(crate) sink: S,
    pub(crate) config: AllocatorConfig,
    pub(crate) blocks: BlockTable,
    pub(crate) free_lists: FreeLists,
    /// The default pool first, then pools of programs and captures in the order of their making.
    pub(crate) pools: Vec<PrivatePool>,
    /// Open scopes on pools, the one opened last at the end.
    pub(crate) scopes: Vec<Scope>,
    /// Frees that came while a scope was open and wait for other streams.
    pub(crate) deferred: Vec<BlockIndex>,
    pub(crate) pending: PendingFrees<D::Event>,
    pub(crate) counters: Counters,
    /// The segments that get memory page by page.
    pub(crate) expandable_segments: ExpandableSegments,
    /// Whether the rules for default settings are enough to choose a block.
    pub(crate) has_default_rules: bool,
    /// The free sets that requests of the default pool went to last, for either half.
    pub(crate) default_lists: [Option<(StreamId, FreeListIndex)>; 2],
    /// Bytes of all segments (`total_allocated_memory`).
    pub(crate) reserved: Bytes,
    /// The most that may be reserved, if a memory fraction below 1 is set.
    pub(crate) limit: Option<Bytes>,
    pub(crate) segments: u32,
    pub(crate) allocations: u32,
    /// Tells allocations of this allocator from others, whose addresses and numbers may be the same.
    identity: u64,
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// A block in a caller's hands: give it back with [`CachingAllocator::free`].
///
/// An allocation of zero bytes has no block and address 0, like PyTorch's null pointer. What was freed is gone:
///
/// ```compile_fail,E0382
/// # use blockyard_allocator::{AllocatorConfig, CachingAllocator};
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
    /// Where it starts; 0 for an allocation of zero bytes.
    #[must_use]
    pub fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// Its number, if it is not of zero bytes.
    #[must_use]
    pub fn id(&self) -> Option<AllocationId> {
        self.block.map(|(_, id)| id)
    }
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// An allocator that holds nothing yet.
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
            pools: vec![PrivatePool::new(PoolId::DEFAULT, 1)],
            scopes: Vec::new(),
            deferred: Vec::new(),
            pending: PendingFrees::default(),
            counters,
            expandable_segments: ExpandableSegments::default(),
            has_default_rules: false,
            default_lists: [None; 2],
            reserved: Bytes::ZERO,
            limit: None,
            segments: 0,
            allocations: 0,
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
        };
        if fraction < 1.0 {
            allocator.limit_to(fraction);
        }
        allocator.note_settings();
        allocator
    }

    /// Hands out `requested` bytes for use on `stream` (`malloc`).
    ///
    /// # Errors
    ///
    /// [`AllocError::OutOfMemory`] when nothing fits even after all cached memory was released,
    /// [`AllocError::TooLarge`] from 2^60 bytes on, [`AllocError::Device`] when the device fails otherwise.
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
        // The last number that was given.
        let id = AllocationId::new(self.allocations.wrapping_sub(1));
        Ok(self.handle(self.addr_of(index), index, id))
    }

    /// Takes an allocation back (`free`). If other streams used it, it stays pending until their work is done.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when it is not a live allocation of this allocator, [`AllocError::Device`] when the
    /// device fails to record an event; in both cases nothing changed.
    #[expect(clippy::needless_pass_by_value, reason = "what was freed cannot be freed or used again")]
    #[expect(clippy::inline_always, reason = "as for `allocate`")]
    #[inline(always)]
    pub fn free(&mut self, allocation: Allocation) -> Result<(), AllocError> {
        let Some(index) = self.live_block(&allocation)? else {
            return Ok(());
        };
        self.free_block(index)
    }

    /// Takes back a block that is in a caller's hands.
    #[inline]
    pub(crate) fn free_block(&mut self, index: BlockIndex) -> Result<(), AllocError> {
        if self.free_unshared(index) { Ok(()) } else { self.free_used_block(index) }
    }

    /// Does so where no other stream used the block, and says whether that is the case.
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
        let waits_later = !self.scopes.is_empty();
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

    /// Notes that `stream` uses the allocation too (`recordStream`); its free will wait for that stream's work.
    ///
    /// The stream it was allocated on, and allocations of zero bytes, are ignored.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when it is not a live allocation of this allocator.
    pub fn record_stream(&mut self, allocation: &Allocation, stream: StreamId) -> Result<(), AllocError> {
        let Some(index) = self.live_block(allocation)? else {
            return Ok(());
        };
        self.record_stream_of_block(index, stream);
        Ok(())
    }

    pub(crate) fn record_stream_of_block(&mut self, index: BlockIndex, stream: StreamId) {
        let is_in_scope = !self.scopes.is_empty();
        let block = &self.blocks[index];
        let id = block.id;
        if self.free_lists[block.list].stream == stream {
            return;
        }
        let uses = self.blocks.uses_mut(index);
        if is_in_scope {
            uses.in_scope.push(stream);
        }
        if let Err(position) = uses.streams.binary_search(&stream) {
            uses.streams.insert(position, stream);
            self.sink.record(Event::StreamRecorded { block: id, stream });
        }
    }

    /// Waits for all streams and gives every whole cached segment back to the device (`emptyCache`).
    ///
    /// # Errors
    ///
    /// [`AllocError::Device`] when the device fails; what was released before stays released.
    pub fn empty_cache(&mut self) -> Result<(), AllocError> {
        self.release_cached_blocks()
    }

    /// Limits what may be reserved to a share of the device; 1 lifts the limit (`setMemoryFraction`).
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidFraction`] outside of 0 to 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), AllocError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(AllocError::InvalidFraction(fraction));
        }
        self.limit_to(fraction);
        Ok(())
    }

    /// Notes in the events that somebody took a snapshot, as PyTorch's trace does.
    pub fn record_snapshot(&mut self) {
        let active = Bytes::new(u64::try_from(self.counters.active_bytes()).unwrap_or(0));
        self.sink.record(Event::SnapshotTaken { active });
    }

    /// Sets every peak to its current value.
    pub fn reset_peak_stats(&mut self) {
        self.counters.reset_peak();
        self.sink.record(Event::PeakReset);
    }

    /// Sets all accumulated counts to zero.
    pub fn reset_accumulated_stats(&mut self) {
        self.counters.reset_accumulated();
        self.sink.record(Event::AccumulatedReset);
    }

    /// Reads further settings, as PyTorch does at run time; see [`AllocatorConfig::apply`].
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a bad setting; those that stand before it stay applied.
    pub fn apply_settings(&mut self, text: &str) -> Result<(), ConfigError> {
        let applied = self.config.apply(text);
        self.note_settings();
        applied
    }

    /// The settings in force.
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    /// The counters, as PyTorch keeps them.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, to advance its streams. Segments must not be taken or released behind the allocator's back.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The receiver of events.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The receiver of events.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends the allocator and returns its sink; segments stay with the device, which goes too.
    pub fn into_sink(self) -> S {
        self.sink
    }

    pub(crate) fn is_oversize(&self, size: Bytes) -> bool {
        size >= self.config.max_split_size()
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "PyTorch multiplies doubles and cuts off; the fraction lies in 0 to 1"
    )]
    fn limit_to(&mut self, fraction: f64) {
        let total = self.device.total_memory().get() as f64;
        self.limit = (fraction < 1.0).then(|| Bytes::new((fraction * total) as u64));
        self.note_settings();
        self.sink.record(Event::FractionSet { limit: self.limit });
    }

    /// Tells this allocator from others.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    #[inline]
    pub(crate) fn handle(&self, addr: DeviceAddr, block: BlockIndex, id: AllocationId) -> Allocation {
        Allocation { addr, block: Some((block, id)), allocator: self.identity }
    }

    /// Lets new allocations be numbered behind `taken`.
    pub(crate) fn skip_allocations(&mut self, taken: AllocationId) {
        self.allocations = self.allocations.max(taken.get().wrapping_add(1));
    }

    /// Lets new segments be numbered behind `taken`.
    pub(crate) fn skip_segments(&mut self, taken: SegmentId) {
        self.segments = self.segments.max(taken.get().wrapping_add(1));
    }

    // `None` for an allocation of zero bytes.
    #[inline]
    fn live_block(&self, allocation: &Allocation) -> Result<Option<BlockIndex>, AllocError> {
        let Some((index, id)) = allocation.block else {
            return Ok(None);
        };
        let is_ours = allocation.allocator == self.identity;
        // A vacant place is not in the state, since what goes was free.
        let is_live = self.blocks.at(index).is_some_and(|block| {
            is_ours
                && block.state == BlockState::Allocated
                && block.allocation == id
                && block.addr == allocation.addr
        });
        if is_live { Ok(Some(index)) } else { Err(AllocError::InvalidPointer(allocation.addr)) }
    }

    /// Where the block starts.
    pub(crate) fn addr_of(&self, index: BlockIndex) -> DeviceAddr {
        self.blocks[index].addr
    }

    /// Whether a live block starts at the address, and if so which, given the block that it may be.
    pub(crate) fn is_live_at(&self, index: BlockIndex, addr: DeviceAddr) -> bool {
        self.blocks.at(index).is_some_and(|block| block.state == BlockState::Allocated && block.addr == addr)
    }

    /// Notes whether any setting, or memory that came with one, has a say in which block a request gets.
    pub(crate) fn note_settings(&mut self) {
        self.has_default_rules = self.config.max_split_size() == size::UNLIMITED
            && !self.config.expandable_segments()
            && self.expandable_segments.is_empty()
            && self.config.roundup_table().iter().all(|divisions| *divisions <= 1)
            && !self.can_collect_garbage();
    }
}
