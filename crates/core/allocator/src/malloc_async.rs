//! `backend:cudaMallocAsync`: the driver's stream-ordered memory pool, and PyTorch's thin layer over it
//! (`c10/cuda/CUDAMallocAsyncAllocator.cpp`).
//!
//! Here PyTorch rounds and caches nothing: it compares the bytes in use with the memory fraction, and the
//! driver does the rest. The code of the driver's pool is not public. This model was derived from a recording
//! of the pool (`async-mix`: 672 allocations on one stream of an H200):
//!
//! * Blocks are at multiples of 512 bytes in one range of addresses. Memory is mapped into the range in
//!   granules of 32 MiB.
//! * A request takes the smallest free region that is large enough, mapped or not. Regions that its own
//!   stream has freed and that no stream has used since come first; ties go to the oldest. If none of them is
//!   large enough, all free regions are joined, and ties go to the lowest address. So new addresses are used
//!   last.
//! * Reserved bytes are mapped granules. Granules without live blocks are mapped at new addresses before the
//!   device allocates more; `empty_cache` releases all of them. The pool itself releases nothing. From 2.14
//!   on PyTorch releases them too when a request fails, and asks once more.
//!
//! The statistics equal the recorded ones after every operation, with the recorded addresses and with the
//! addresses of the model. Addresses cannot be predicted exactly, because the driver's choice also depends on
//! when the driver notices that work is done, which depends on time and not on the requests. Given all
//! recorded addresses before, the model predicts 621 of the 672 addresses; without them, 501 are equal. A
//! replay takes the addresses from the recording, as it takes those of segments.

mod check;
mod memory;
mod regions;

use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_device::DeviceMemory;
use blockyard_record::{
    AllocationId, Backend, BlockSnapshot, BlockState, Bytes, DeviceAddr, Event, EventSink, FailureCause,
    NullSink, PoolId, PoolKind, SegmentSnapshot, Snapshot, Stats, StreamId,
};
use blockyard_rules::{AllocatorConfig, ConfigError, size};

use crate::AllocError;
use crate::error::MallocAsyncOutOfMemory;

use memory::Memory;
use regions::FreeAddresses;

/// The stream on which memory is freed that several streams have used; PyTorch makes it wait for all of them.
const UNIFYING_STREAM: StreamId = StreamId::new(u64::MAX);

/// The allocator of `backend:cudaMallocAsync` over the device `D`. It reports every action to the sink `S` as
/// an event.
///
/// The events are those of an allocator with an expandable segment that grows by granules. PyTorch reports
/// three statistics: `allocated_bytes.all` and `active_bytes.all`, which are both the requested bytes in use,
/// and `reserved_bytes.all`, each with its peak; see [`Stats::reported_by`].
#[derive(Debug)]
pub struct MallocAsyncAllocator<D: DeviceMemory, S: EventSink = NullSink> {
    device: D,
    sink: S,
    config: AllocatorConfig,
    memory: Memory,
    free: FreeAddresses,
    stats: Stats,
    /// The most that may be in use, if a memory fraction was set.
    limit: Option<Bytes>,
    /// How many requests there were, those of zero bytes and those that failed included.
    requests: usize,
    /// The recorded address of each request, in order; `None` if the recording has no address.
    placements: Vec<Option<DeviceAddr>>,
    /// How many blocks are at the address that the model predicts.
    placed_as_predicted: usize,
    /// How many blocks were allocated.
    allocations: u32,
    /// Distinguishes allocations of this allocator from those of other allocators, which may have equal
    /// addresses and numbers.
    identity: u64,
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// An allocated block of a [`MallocAsyncAllocator`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct MallocAsyncAllocation {
    addr: DeviceAddr,
    id: Option<AllocationId>,
    allocator: u64,
}

impl MallocAsyncAllocation {
    /// The address of the first byte; 0 for an allocation of zero bytes.
    #[must_use]
    pub fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// The number of the allocation; `None` for an allocation of zero bytes.
    #[must_use]
    pub fn id(&self) -> Option<AllocationId> {
        self.id
    }
}

impl<D: DeviceMemory, S: EventSink> MallocAsyncAllocator<D, S> {
    /// An allocator without memory. No setting changes what this allocator does.
    pub fn new(device: D, config: AllocatorConfig, sink: S) -> Self {
        Self {
            device,
            sink,
            stats: Stats { max_split_size: config.max_split_size_signed(), ..Stats::default() },
            config,
            memory: Memory::default(),
            free: FreeAddresses::default(),
            limit: None,
            requests: 0,
            placements: Vec::new(),
            placed_as_predicted: 0,
            allocations: 0,
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Serves the next requests at recorded addresses, in the order of the requests. The driver's choice also
    /// depends on when the driver notices that work is done, which no recording contains.
    pub fn place_as_recorded(&mut self, placements: impl IntoIterator<Item = Option<DeviceAddr>>) {
        self.placements = placements.into_iter().collect();
    }

    /// Allocates `requested` bytes for use on `stream` (`mallocAsync`).
    ///
    /// # Errors
    ///
    /// [`AllocError::MallocAsyncOutOfMemory`] above the memory fraction or when the device has not enough
    /// memory, [`AllocError::TooLarge`] for 2^60 bytes and more,
    /// [`AllocError::MallocAsyncNeedsVirtualMemory`] when the device has no virtual memory,
    /// [`AllocError::Device`] when the device fails for another reason.
    pub fn allocate(
        &mut self,
        requested: Bytes,
        stream: StreamId,
    ) -> Result<MallocAsyncAllocation, AllocError> {
        let request = self.requests;
        self.requests += 1;
        if requested.is_zero() {
            return Ok(MallocAsyncAllocation {
                addr: DeviceAddr::default(),
                id: None,
                allocator: self.identity,
            });
        }
        if requested >= size::MAX_REQUEST {
            return Err(AllocError::TooLarge { requested });
        }
        let rounded = size::round_up(requested, size::MIN_BLOCK_SIZE);
        if self.limit.is_some_and(|limit| self.used().saturating_add(requested) > limit) {
            self.sink.record(Event::SegmentFailed { size: rounded, cause: FailureCause::Fraction });
            return Err(self.out_of_memory(requested, rounded, stream));
        }
        // The driver has no more memory than the device, so there is no need to search.
        if rounded > self.device.total_memory().min(memory::MAX_RANGE) {
            self.sink.record(Event::SegmentFailed { size: rounded, cause: FailureCause::Device });
            return Err(self.out_of_memory(requested, rounded, stream));
        }
        let mut made = self.make_block_for(rounded, stream, request)?;
        if made.is_none() && self.config.release().trims_before_oom() {
            self.empty_cache()?;
            made = self.make_block_for(rounded, stream, request)?;
        }
        match made {
            Some(addr) => Ok(self.allocate_found_block(addr, requested, stream)),
            None => Err(self.out_of_memory(requested, rounded, stream)),
        }
    }

    /// Makes a block for a request; `None` where the device has not enough memory.
    fn make_block_for(
        &mut self,
        size: Bytes,
        stream: StreamId,
        request: usize,
    ) -> Result<Option<DeviceAddr>, AllocError> {
        let Some(addr) = self.choose_addr(size, stream, request)? else {
            return Ok(None);
        };
        if !self.make_block(addr, size)? {
            return Ok(None);
        }
        self.free.take(addr, size);
        Ok(Some(addr))
    }

    /// The address of the block: the recorded address, if it is free, or else the address by the model's
    /// rule.
    fn choose_addr(
        &mut self,
        size: Bytes,
        stream: StreamId,
        request: usize,
    ) -> Result<Option<DeviceAddr>, AllocError> {
        if self.memory.ranges.is_empty() && !self.reserve_range(size)? {
            return Ok(None);
        }
        let recorded = self.placements.get(request).copied().flatten();
        let mut predicted = self.free.choose(size, stream);
        if let Some(recorded) = recorded.filter(|addr| self.is_free(*addr, size)) {
            self.placed_as_predicted += usize::from(predicted == Some(recorded));
            return Ok(Some(recorded));
        }
        if predicted.is_none() && self.reserve_range(size)? {
            predicted = self.free.choose(size, stream);
        }
        self.placed_as_predicted += usize::from(recorded.is_none());
        Ok(predicted)
    }

    /// Whether all of these addresses are in one range and in no active block.
    fn is_free(&self, addr: DeviceAddr, size: Bytes) -> bool {
        let Some((base, (_, length))) = self.memory.ranges.range(..=addr).next_back() else {
            return false;
        };
        let is_inside = addr.offset(size) <= base.offset(*length);
        let first = self.memory.blocks.range(..=addr).next_back();
        let others = self.memory.blocks.range(addr..addr.offset(size));
        is_inside && first.into_iter().chain(others).all(|(_, block)| !block.state.is_active())
    }

    fn allocate_found_block(
        &mut self,
        addr: DeviceAddr,
        requested: Bytes,
        stream: StreamId,
    ) -> MallocAsyncAllocation {
        let allocation = AllocationId::new(self.allocations);
        self.allocations = self.allocations.wrapping_add(1);
        if let Some(block) = self.memory.blocks.get_mut(&addr) {
            block.state = BlockState::Allocated;
            block.requested = requested;
            block.allocation = Some(allocation);
            block.stream = stream;
            self.stats.allocated(PoolKind::Large, block.size, requested, false);
            self.sink.record(Event::Allocated { block: block.id, allocation, requested, is_oversize: false });
        }
        MallocAsyncAllocation { addr, id: Some(allocation), allocator: self.identity }
    }

    /// Frees an allocation (`freeAsync`). Requests of the same stream can use the memory at once.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when the allocation is not a live one of this allocator. Nothing
    /// changes.
    #[expect(clippy::needless_pass_by_value, reason = "what was freed cannot be freed or used again")]
    pub fn free(&mut self, allocation: MallocAsyncAllocation) -> Result<(), AllocError> {
        let Some(addr) = self.live_block(&allocation)? else {
            return Ok(());
        };
        let Some(block) = self.memory.blocks.get_mut(&addr) else {
            return Ok(());
        };
        let (id, size, requested) = (block.id, block.size, block.requested);
        let stream = if block.streams.is_empty() { block.stream } else { UNIFYING_STREAM };
        block.state = BlockState::Inactive;
        block.allocation = None;
        block.streams = Vec::new();
        self.stats.free_requested(PoolKind::Large, size, false);
        self.sink.record(Event::FreeRequested { block: id, is_oversize: false });
        self.stats.free_completed(PoolKind::Large, size, requested);
        self.sink.record(Event::FreeCompleted { block: id });
        self.memory.stop_using_granules(addr, size);
        self.merge_around(addr);
        self.free.free(addr, size, stream);
        Ok(())
    }

    /// Records that `stream` uses the allocation too. The memory will be freed after the work of all streams
    /// that used it.
    ///
    /// The stream of the allocation itself has no effect; PyTorch warns once.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when the allocation is not a live one of this allocator.
    pub fn record_stream(
        &mut self,
        allocation: &MallocAsyncAllocation,
        stream: StreamId,
    ) -> Result<(), AllocError> {
        let Some(addr) = self.live_block(allocation)? else {
            return Ok(());
        };
        let Some(block) = self.memory.blocks.get_mut(&addr).filter(|block| block.stream != stream) else {
            return Ok(());
        };
        if let Err(position) = block.streams.binary_search(&stream) {
            block.streams.insert(position, stream);
            self.sink.record(Event::StreamRecorded { block: block.id, stream });
        }
        Ok(())
    }

    /// Waits for all streams and releases every granule without live blocks to the device (`emptyCache`).
    ///
    /// # Errors
    ///
    /// [`AllocError::Device`] when the device fails. Granules that were released before stay released.
    pub fn empty_cache(&mut self) -> Result<(), AllocError> {
        self.stats.num_sync_all_streams += 1;
        self.sink.record(Event::StreamsSynchronized);
        self.free.join();
        let idle = self.memory.granules.iter().filter(|(_, users)| **users == 0);
        let idle: Vec<DeviceAddr> = idle.map(|(granule, _)| *granule).collect();
        self.unmap_all(&idle)
    }

    /// Limits the bytes in use to a fraction of the device (`setMemoryFraction`); 1 is the whole device.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidFraction`] for a fraction below 0 or above 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), AllocError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(AllocError::InvalidFraction(fraction));
        }
        self.limit = Some(self.device.total_memory().share(fraction));
        self.sink.record(Event::FractionSet { limit: self.limit });
        Ok(())
    }

    /// The limit as a fraction of the device (`getMemoryFraction`); above 1 while no fraction was set, as in
    /// PyTorch.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "PyTorch divides doubles")]
    pub fn memory_fraction(&self) -> f64 {
        let limit = self.limit.map_or(u64::MAX, Bytes::get);
        limit as f64 / self.device.total_memory().get() as f64
    }

    /// Sets the peaks to the current values.
    pub fn reset_peak_stats(&mut self) {
        self.stats.reset_peak();
        self.sink.record(Event::PeakReset);
    }

    /// The statistics as PyTorch reports them.
    pub fn stats(&self) -> Stats {
        self.stats.reported_by(Backend::CudaMallocAsync)
    }

    /// The statistics with all counts; see [`blockyard_record::MemoryState::stats`].
    pub fn counted_stats(&self) -> Stats {
        self.stats
    }

    /// How many blocks are at the address that the model predicts, and how many blocks were allocated. The
    /// two differ only for recorded addresses.
    pub fn predicted_placements(&self) -> (usize, usize) {
        (self.placed_as_predicted, self.allocations as usize)
    }

    /// The pool's ranges and blocks, by ascending address. PyTorch has no snapshot of this backend.
    pub fn snapshot(&self) -> Snapshot {
        let segments = self.memory.ranges.iter().map(|(base, (id, size))| SegmentSnapshot {
            id: *id,
            addr: *base,
            size: *size,
            stream: StreamId::DEFAULT,
            pool_id: PoolId::DEFAULT,
            pool: PoolKind::Large,
            is_expandable: true,
            blocks: self.blocks_of(*base, *size),
        });
        Snapshot { segments: segments.collect() }
    }

    fn blocks_of(&self, base: DeviceAddr, size: Bytes) -> Vec<BlockSnapshot> {
        let blocks = self.memory.blocks.range(base..base.offset(size));
        let copy = |(addr, block): (&DeviceAddr, &memory::Block)| BlockSnapshot {
            id: block.id,
            addr: *addr,
            size: block.size,
            requested: block.requested,
            state: block.state,
            allocation: block.allocation,
            streams: block.streams.clone(),
        };
        blocks.map(copy).collect()
    }

    /// The settings in force.
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    /// Reads further settings; none of them changes what this allocator does.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a bad setting. Settings before the bad one stay applied.
    pub fn apply_settings(&mut self, text: &str) -> Result<(), ConfigError> {
        self.config.apply(text)
    }

    /// The device, for advancing its streams.
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

    /// Drops the allocator with its device, and returns the sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Requested bytes in use, which are never less than zero.
    fn used(&self) -> Bytes {
        self.stats.requested_bytes.all.current_bytes()
    }

    /// The address of the allocation's block; `None` for an allocation of zero bytes.
    fn live_block(&self, allocation: &MallocAsyncAllocation) -> Result<Option<DeviceAddr>, AllocError> {
        let Some(id) = allocation.id else {
            return Ok(None);
        };
        let block = self.memory.blocks.get(&allocation.addr);
        let is_live = block.is_some_and(|block| {
            let is_ours = allocation.allocator == self.identity;
            is_ours && block.allocation == Some(id) && block.state == BlockState::Allocated
        });
        if is_live { Ok(Some(allocation.addr)) } else { Err(AllocError::InvalidPointer(allocation.addr)) }
    }

    fn out_of_memory(&mut self, requested: Bytes, rounded: Bytes, stream: StreamId) -> AllocError {
        let info = match self.device.memory_info() {
            Ok(info) => info,
            Err(error) => return error.into(),
        };
        self.stats.num_ooms += 1;
        let segment_size = size::round_up(rounded, size::MALLOC_ASYNC_GRANULE);
        let device_free = info.free;
        self.sink.record(Event::OutOfMemory {
            requested,
            rounded,
            segment_size,
            stream,
            device_free,
            is_rejected: false,
        });
        AllocError::MallocAsyncOutOfMemory(Box::new(MallocAsyncOutOfMemory {
            allocated: self.used(),
            requested,
            device: info.index,
            device_total: info.total,
            device_free,
            limit: self.limit,
        }))
    }
}
