//! The allocator: each operation reads as the list of its steps.

use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_record::{
    AllocationId, BlockState, Bytes, DeviceAddr, Event, EventSink, PoolId, PoolKind, Refusal, SegmentId,
    Silent, Stats, StreamId,
};

use crate::block::{Block, BlockIndex, BlockTable};
use crate::private_pool::{Pool, PoolIndex, Scope};
use crate::stream::PendingFrees;
use crate::{AllocError, AllocatorConfig, ConfigError, OutOfMemory, size};

/// PyTorch's caching allocator over the device `D`, reporting every step to the sink `S`.
///
/// At every moment, in bytes: allocated ≤ active ≤ reserved, and reserved is the sum of all segments.
#[derive(Debug)]
pub struct CachingAllocator<D: DeviceMemory, S: EventSink = Silent> {
    pub(crate) device: D,
    pub(crate) sink: S,
    pub(crate) config: AllocatorConfig,
    pub(crate) blocks: BlockTable,
    /// The default pool first, then pools of programs and captures in the order of their making.
    pub(crate) pools: Vec<Pool>,
    /// Open scopes on pools, the one opened last at the end.
    pub(crate) scopes: Vec<Scope>,
    /// Frees that came while a scope was open and wait for other streams.
    pub(crate) deferred: Vec<BlockIndex>,
    pub(crate) pending: PendingFrees<D::Event>,
    pub(crate) stats: Stats,
    /// Bytes of all segments (`total_allocated_memory`).
    pub(crate) reserved: Bytes,
    /// The most that may be reserved, if a memory fraction below 1 is set.
    pub(crate) limit: Option<Bytes>,
    pub(crate) segments: u32,
    allocations: u32,
    /// Tells allocations of this allocator from others, whose addresses and numbers may be the same.
    identity: u64,
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// A block in a caller's hands: give it back with [`CachingAllocator::free`].
///
/// An allocation of zero bytes has no block and address 0, like PyTorch's null pointer.
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

/// A request on its way through [`CachingAllocator::allocate`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) requested: Bytes,
    pub(crate) rounded: Bytes,
    pub(crate) segment_size: Bytes,
    pub(crate) stream: StreamId,
    /// The memory pool that serves it.
    pub(crate) owner: PoolIndex,
    pub(crate) pool: PoolKind,
    /// Whether new memory comes page by page, and blocks are cut as finely as those of such segments.
    pub(crate) expands: bool,
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// An allocator that holds nothing yet.
    pub fn new(device: D, config: AllocatorConfig, sink: S) -> Self {
        let stats = Stats { max_split_size: config.max_split_size_signed(), ..Stats::default() };
        let fraction = config.per_process_memory_fraction();
        let mut allocator = Self {
            device,
            sink,
            config,
            blocks: BlockTable::default(),
            pools: vec![Pool::new(PoolId::DEFAULT, 1)],
            scopes: Vec::new(),
            deferred: Vec::new(),
            pending: PendingFrees::default(),
            stats,
            reserved: Bytes::ZERO,
            limit: None,
            segments: 0,
            allocations: 0,
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
        };
        if fraction < 1.0 {
            allocator.limit_to(fraction);
        }
        allocator
    }

    /// Hands out `requested` bytes for use on `stream` (`malloc`).
    ///
    /// # Errors
    ///
    /// [`AllocError::OutOfMemory`] when nothing fits even after all cached memory was released,
    /// [`AllocError::TooLarge`] from 2^60 bytes on, [`AllocError::Device`] when the device fails otherwise.
    pub fn allocate(&mut self, requested: Bytes, stream: StreamId) -> Result<Allocation, AllocError> {
        if requested.is_zero() {
            return Ok(Allocation { addr: DeviceAddr::default(), block: None, allocator: self.identity });
        }
        if requested >= size::LARGEST_REQUEST {
            return Err(AllocError::TooLarge { requested });
        }
        if self.scopes.is_empty() {
            self.process_events()?;
        }
        let rounded = size::rounded(requested, &self.config);
        let search = Search {
            requested,
            rounded,
            segment_size: size::segment_size(rounded, &self.config),
            stream,
            owner: self.pool_for(stream),
            pool: size::pool_kind(rounded),
            expands: self.config.expandable_segments(),
        };
        let block = match self.find_free_block(&search) {
            Some(block) => Some(block),
            None => self.find_new_block(&search)?,
        };
        match block {
            Some(block) => Ok(self.hand_out(block, &search)),
            None => Err(self.out_of_memory(&search)),
        }
    }

    /// Takes an allocation back (`free`). If other streams used it, it stays pending until their work is done.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when it is not a live allocation of this allocator, [`AllocError::Device`] when the
    /// device fails to record an event; in both cases nothing changed.
    #[expect(clippy::needless_pass_by_value, reason = "what was freed cannot be freed or used again")]
    pub fn free(&mut self, allocation: Allocation) -> Result<(), AllocError> {
        let Some(index) = self.live_block(&allocation)? else {
            return Ok(());
        };
        let block = &self.blocks[index];
        let (pool, size, is_oversize) = (block.pool, block.size, self.is_oversize(block.size));
        let waits_later = !self.scopes.is_empty() && !block.streams.is_empty();
        let streams = if waits_later { Vec::new() } else { block.streams.clone() };
        let events = self.record_events(&streams)?;
        let block = &mut self.blocks[index];
        block.state = BlockState::PendingFree;
        let id = block.id;
        self.stats.free_requested(pool, size, is_oversize);
        self.sink.record(Event::FreeRequested { block: id, is_oversize });
        if waits_later {
            self.deferred.push(index);
        } else {
            self.await_events(index, events);
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
        let is_in_scope = !self.scopes.is_empty();
        let block = &mut self.blocks[index];
        if block.stream == stream {
            return Ok(());
        }
        if is_in_scope {
            block.streams_in_scope.push(stream);
        }
        if let Err(position) = block.streams.binary_search(&stream) {
            block.streams.insert(position, stream);
            let block = block.id;
            self.sink.record(Event::StreamRecorded { block, stream });
        }
        Ok(())
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
        let active = Bytes::new(u64::try_from(self.stats.active_bytes.all.current).unwrap_or(0));
        self.sink.record(Event::SnapshotTaken { active });
    }

    /// Sets every peak to its current value.
    pub fn reset_peak_stats(&mut self) {
        self.stats.reset_peak();
        self.sink.record(Event::PeakReset);
    }

    /// Sets all accumulated counts to zero.
    pub fn reset_accumulated_stats(&mut self) {
        self.stats.reset_accumulated();
        self.sink.record(Event::AccumulatedReset);
    }

    /// Reads further settings, as PyTorch does at run time; see [`AllocatorConfig::apply`].
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a bad setting; those that stand before it stay applied.
    pub fn apply_settings(&mut self, text: &str) -> Result<(), ConfigError> {
        self.config.apply(text)
    }

    /// The settings in force.
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    /// The counters, as PyTorch keeps them.
    pub fn stats(&self) -> Stats {
        self.stats
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
        self.sink.record(Event::FractionSet { limit: self.limit });
    }

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
    fn live_block(&self, allocation: &Allocation) -> Result<Option<BlockIndex>, AllocError> {
        let Some((index, id)) = allocation.block else {
            return Ok(None);
        };
        let is_ours = allocation.allocator == self.identity;
        let is_live = self.blocks.get(index).is_some_and(|block| {
            is_ours
                && block.state == BlockState::Allocated
                && block.allocation == Some(id)
                && block.addr == allocation.addr
        });
        if is_live { Ok(Some(index)) } else { Err(AllocError::InvalidPointer(allocation.addr)) }
    }

    /// Best fit among cached blocks of the stream (`get_free_block`).
    pub(crate) fn find_free_block(&mut self, search: &Search) -> Option<BlockIndex> {
        if self.can_collect_garbage() {
            self.pools[search.owner].set_mut(search.pool).calls += 1;
        }
        let (limit, rounding) = (self.config.max_split_size(), self.config.max_non_split_rounding());
        let index = self.best_fit(search)?;
        let size = self.blocks[index].size;
        // Only the best candidate is looked at: PyTorch does not search on behind a refused one.
        if search.rounded < limit && size >= limit {
            return None;
        }
        if search.rounded >= limit && size >= search.rounded.saturating_add(rounding) {
            return None;
        }
        self.take_from_pool(index);
        Some(index)
    }

    /// Takes a new segment from the device (`alloc_block`); `None` when the limit or the device refuses.
    pub(crate) fn allocate_segment(
        &mut self,
        search: &Search,
        is_retry: bool,
    ) -> Result<Option<BlockIndex>, AllocError> {
        if is_retry {
            self.stats.num_alloc_retries += 1;
            self.sink.record(Event::RetryStarted);
        }
        let size = search.segment_size;
        // The limit is held against a whole segment even where a few pages would do, as in PyTorch.
        if self.limit.is_some_and(|limit| self.reserved.saturating_add(size) > limit) {
            self.sink.record(Event::SegmentRefused { size, refusal: Refusal::Fraction });
            return Ok(None);
        }
        if search.expands {
            return self.expand(search);
        }
        let addr = match self.device.allocate_segment(size) {
            Ok(addr) => addr,
            Err(DeviceError::OutOfMemory { .. }) => {
                self.sink.record(Event::SegmentRefused { size, refusal: Refusal::Device });
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let segment = self.mint_segment();
        let (stream, owner, pool, is_oversize) =
            (search.stream, search.owner, search.pool, self.is_oversize(size));
        let pool_id = self.pools[owner].id;
        self.pools[owner].device_allocations += 1;
        let id = self.blocks.mint();
        let index = self.blocks.insert(Block::of_segment(id, segment, (addr, size), search, None));
        self.reserved += size;
        self.stats.segment_allocated(pool, size, is_oversize);
        self.sink.record(Event::SegmentAllocated {
            segment,
            block: id,
            addr,
            size,
            stream,
            pool_id,
            pool,
            is_oversize,
        });
        Ok(Some(index))
    }

    /// Splits the block if the rules say so, and makes it the caller's (`alloc_found_block`).
    fn hand_out(&mut self, index: BlockIndex, search: &Search) -> Allocation {
        let block = &self.blocks[index];
        let (was_split, size, pool, is_expandable) =
            (block.is_split(), block.size, block.pool, block.is_expandable);
        let splits = !self.pools[block.owner].options.never_splits
            && size::should_split(size, search.rounded, pool, search.expands, &self.config);
        let index = if splits { self.split(index, search.rounded) } else { index };
        let (rest, taken) = ((size - search.rounded).signed(), search.rounded.signed());
        match (was_split, splits) {
            _ if is_expandable => {}
            (false, false) => {}
            (false, true) => self.stats.inactive_split_changed(pool, 1, rest),
            (true, true) => self.stats.inactive_split_changed(pool, 0, -taken),
            (true, false) => self.stats.inactive_split_changed(pool, -1, -size.signed()),
        }
        let allocation = AllocationId::new(self.allocations);
        self.allocations = self.allocations.wrapping_add(1);
        let block = &mut self.blocks[index];
        block.state = BlockState::Allocated;
        block.requested = search.requested;
        block.allocation = Some(allocation);
        let (id, size, addr) = (block.id, block.size, block.addr);
        let is_oversize = self.is_oversize(size);
        self.stats.allocated(pool, size, search.requested, is_oversize);
        self.sink.record(Event::Allocated {
            block: id,
            allocation,
            requested: search.requested,
            is_oversize,
        });
        Allocation { addr, block: Some((index, allocation)), allocator: self.identity }
    }

    fn out_of_memory(&mut self, search: &Search) -> AllocError {
        let info = match self.device.memory_info() {
            Ok(info) => info,
            Err(error) => return error.into(),
        };
        self.stats.num_ooms += 1;
        self.sink.record(Event::OutOfMemory {
            requested: search.requested,
            rounded: search.rounded,
            segment_size: search.segment_size,
            stream: search.stream,
            device_free: info.free,
        });
        let current = |bytes: i64| Bytes::new(u64::try_from(bytes).unwrap_or(0));
        AllocError::OutOfMemory(Box::new(OutOfMemory {
            requested: search.requested,
            rounded: search.rounded,
            segment_size: search.segment_size,
            stream: search.stream,
            device_free: info.free,
            device_total: info.total,
            processes: info.processes,
            limit: self.limit,
            allocated: current(self.stats.allocated_bytes.all.current),
            reserved: current(self.stats.reserved_bytes.all.current),
            private_cached: self.private_cached(),
        }))
    }
}
