//! The allocator of the backend that the settings name, behind one interface.

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_record::{
    AllocationId, Backend, Bytes, DeviceAddr, EventSink, NullSink, PoolId, SegmentSnapshot, Snapshot, Stats,
    StreamId,
};
use blockyard_rules::{AllocatorConfig, ConfigError, size};

use crate::{
    AllocError, Allocation, CachingAllocator, Corruption, MallocAsyncAllocation, MallocAsyncAllocator,
    PoolOptions,
};

/// PyTorch's device allocator of the backend that the settings name.
///
/// This type has the calls of both backends. A call that a backend does not support fails with PyTorch's
/// error.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one of them, which never moves")]
pub enum BackendAllocator<D: DeviceMemory, S: EventSink = NullSink> {
    /// `backend:native`.
    Native(CachingAllocator<D, S>),
    /// `backend:cudaMallocAsync`.
    CudaMallocAsync(MallocAsyncAllocator<D, S>),
}

/// An allocated block, to be freed with [`BackendAllocator::free`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub enum BackendAllocation {
    /// An allocation of the native allocator.
    Native(Allocation),
    /// An allocation of the driver's memory pool.
    CudaMallocAsync(MallocAsyncAllocation),
    /// Memory that the device allocated while caching was switched off.
    Uncached(UncachedAllocation),
}

/// Memory of the device that is not in the segments of the allocator.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct UncachedAllocation {
    addr: DeviceAddr,
    /// The identity of the allocator: another device may have other memory at the same address.
    allocator: u64,
}

impl BackendAllocation {
    /// The address of the first byte; 0 for an allocation of zero bytes.
    #[must_use]
    pub fn addr(&self) -> DeviceAddr {
        match self {
            Self::Native(allocation) => allocation.addr(),
            Self::CudaMallocAsync(allocation) => allocation.addr(),
            Self::Uncached(allocation) => allocation.addr,
        }
    }

    /// The number of the allocation; `None` for zero bytes and for uncached memory.
    #[must_use]
    pub fn id(&self) -> Option<AllocationId> {
        match self {
            Self::Native(allocation) => allocation.id(),
            Self::CudaMallocAsync(allocation) => allocation.id(),
            Self::Uncached(_) => None,
        }
    }
}

macro_rules! either {
    ($self:expr, $allocator:ident => $value:expr) => {
        match $self {
            Self::Native($allocator) => $value,
            Self::CudaMallocAsync($allocator) => $value,
        }
    };
}

// The name is the one in PyTorch's message. All calls about memory pools fail where PyTorch makes the pool,
// in `createOrIncrefPool`.
macro_rules! native_only {
    ($self:expr, $what:literal, $allocator:ident => $value:expr) => {
        match $self {
            Self::Native($allocator) => $value,
            Self::CudaMallocAsync(_) => Err(AllocError::NotSupported($what)),
        }
    };
}

impl<D: DeviceMemory, S: EventSink> BackendAllocator<D, S> {
    /// An allocator of the backend that the settings name, without segments.
    pub fn new(device: D, config: AllocatorConfig, sink: S) -> Self {
        match config.backend() {
            Backend::Native => Self::Native(CachingAllocator::new(device, config, sink)),
            Backend::CudaMallocAsync => {
                Self::CudaMallocAsync(MallocAsyncAllocator::new(device, config, sink))
            }
        }
    }

    /// An allocator that begins with the memory of a snapshot, and its live allocations by ascending address;
    /// see [`CachingAllocator::beginning_with`].
    ///
    /// # Errors
    ///
    /// The errors of [`CachingAllocator::beginning_with`], and [`AllocError::NoSnapshot`] under
    /// `cudaMallocAsync`, which has no snapshots.
    pub fn beginning_with(
        device: D,
        config: AllocatorConfig,
        sink: S,
        snapshot: &Snapshot,
    ) -> Result<(Self, Vec<BackendAllocation>), AllocError> {
        match config.backend() {
            Backend::Native => {
                let (allocator, live) = CachingAllocator::beginning_with(device, config, sink, snapshot)?;
                let live = live.into_iter().map(BackendAllocation::Native).collect();
                Ok((Self::Native(allocator), live))
            }
            Backend::CudaMallocAsync => Err(AllocError::NoSnapshot),
        }
    }

    /// Serves the next requests at recorded addresses ([`MallocAsyncAllocator::place_as_recorded`]). The
    /// native backend ignores the call, because its addresses follow from the requests and the device.
    pub fn place_as_recorded(&mut self, placements: impl IntoIterator<Item = Option<DeviceAddr>>) {
        match self {
            Self::Native(_) => {}
            Self::CudaMallocAsync(allocator) => allocator.place_as_recorded(placements),
        }
    }

    /// Allocates `requested` bytes for use on `stream`.
    ///
    /// With caching switched off, the native backend allocates from the device and releases to the device. No
    /// statistic, event, snapshot or trace entry shows such memory, as in PyTorch.
    ///
    /// # Errors
    ///
    /// The errors of [`CachingAllocator::allocate`] or [`MallocAsyncAllocator::allocate`]; without caching
    /// [`AllocError::UncachedOutOfMemory`] when the device has not enough memory.
    pub fn allocate(&mut self, requested: Bytes, stream: StreamId) -> Result<BackendAllocation, AllocError> {
        match self {
            Self::Native(allocator) if !allocator.config.is_caching() && !requested.is_zero() => {
                uncached(allocator, requested)
            }
            Self::Native(allocator) => allocator.allocate(requested, stream).map(BackendAllocation::Native),
            Self::CudaMallocAsync(allocator) => {
                allocator.allocate(requested, stream).map(BackendAllocation::CudaMallocAsync)
            }
        }
    }

    /// Frees an allocation.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when the allocation is not a live one of this allocator,
    /// [`AllocError::Device`] when the device fails. In both cases nothing changes.
    pub fn free(&mut self, allocation: BackendAllocation) -> Result<(), AllocError> {
        match (self, allocation) {
            (Self::Native(allocator), BackendAllocation::Native(allocation)) => allocator.free(allocation),
            (Self::CudaMallocAsync(allocator), BackendAllocation::CudaMallocAsync(allocation)) => {
                allocator.free(allocation)
            }
            // Whether caching is on at the moment does not matter.
            (Self::Native(allocator), BackendAllocation::Uncached(uncached))
                if uncached.allocator == allocator.identity() =>
            {
                Ok(allocator.device.release_segment(uncached.addr)?)
            }
            (_, other) => Err(AllocError::InvalidPointer(other.addr())),
        }
    }

    /// Records that `stream` uses the allocation too.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when the allocation is not a live one of this allocator.
    pub fn record_stream(
        &mut self,
        allocation: &BackendAllocation,
        stream: StreamId,
    ) -> Result<(), AllocError> {
        match (self, allocation) {
            (Self::Native(allocator), BackendAllocation::Native(allocation)) => {
                allocator.record_stream(allocation, stream)
            }
            (Self::CudaMallocAsync(allocator), BackendAllocation::CudaMallocAsync(allocation)) => {
                allocator.record_stream(allocation, stream)
            }
            (Self::Native(allocator), BackendAllocation::Uncached(uncached))
                if uncached.allocator == allocator.identity() =>
            {
                Ok(())
            }
            (_, other) => Err(AllocError::InvalidPointer(other.addr())),
        }
    }

    /// Releases cached memory to the device.
    ///
    /// # Errors
    ///
    /// [`AllocError::Device`] when the device fails. Memory that was released before stays released.
    pub fn empty_cache(&mut self) -> Result<(), AllocError> {
        either!(self, allocator => allocator.empty_cache())
    }

    /// Limits memory to a fraction of the device: reserved memory, or under `cudaMallocAsync` memory in use.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidFraction`] for a fraction below 0 or above 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), AllocError> {
        either!(self, allocator => allocator.set_memory_fraction(fraction))
    }

    /// The limit as a fraction of the device, as PyTorch returns it.
    pub fn memory_fraction(&self) -> f64 {
        either!(self, allocator => allocator.memory_fraction())
    }

    /// Switches caching on or off (`caching_allocator_enable`); without effect under `cudaMallocAsync`.
    pub fn set_caching(&mut self, is_caching: bool) {
        if let Self::Native(allocator) = self {
            allocator.config.set_caching(is_caching);
        }
    }

    /// Sets every peak to its current value.
    pub fn reset_peak_stats(&mut self) {
        either!(self, allocator => allocator.reset_peak_stats());
    }

    /// Sets all accumulated counts to zero. `cudaMallocAsync` has none; PyTorch warns that the call has no
    /// effect.
    pub fn reset_accumulated_stats(&mut self) {
        if let Self::Native(allocator) = self {
            allocator.reset_accumulated_stats();
        }
    }

    /// Adds an event for a snapshot.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoSnapshot`] under `cudaMallocAsync`.
    pub fn record_snapshot(&mut self) -> Result<(), AllocError> {
        match self {
            Self::Native(allocator) => {
                allocator.record_snapshot();
                Ok(())
            }
            Self::CudaMallocAsync(_) => Err(AllocError::NoSnapshot),
        }
    }

    /// Creates a pool for the program ([`CachingAllocator::create_pool`]).
    ///
    /// # Errors
    ///
    /// [`AllocError::NotSupported`] under `cudaMallocAsync`, as for all calls about pools.
    pub fn create_pool(&mut self, options: PoolOptions) -> Result<PoolId, AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => Ok(allocator.create_pool(options)))
    }

    /// Creates a pool with an identity ([`CachingAllocator::create_pool_with_id`]).
    ///
    /// # Errors
    ///
    /// [`AllocError::NotSupported`] under `cudaMallocAsync`.
    pub fn create_pool_with_id(&mut self, id: PoolId, options: PoolOptions) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => {
            allocator.create_pool_with_id(id, options);
            Ok(())
        })
    }

    /// Directs requests to the pool ([`CachingAllocator::begin_allocate_to_pool`]).
    ///
    /// # Errors
    ///
    /// The errors of that function, and [`AllocError::NotSupported`] under `cudaMallocAsync`.
    pub fn begin_allocate_to_pool(&mut self, id: PoolId, stream: Option<StreamId>) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.begin_allocate_to_pool(id, stream))
    }

    /// Directs some requests to the pool ([`CachingAllocator::begin_allocate_to_pool_if`]).
    ///
    /// # Errors
    ///
    /// The errors of that function, and [`AllocError::NotSupported`] under `cudaMallocAsync`.
    pub fn begin_allocate_to_pool_if(
        &mut self,
        id: PoolId,
        accepts: impl Fn(StreamId) -> bool + Send + 'static,
    ) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.begin_allocate_to_pool_if(id, accepts))
    }

    /// Ends the scope on the pool ([`CachingAllocator::end_allocate_to_pool`]).
    ///
    /// # Errors
    ///
    /// The errors of that function, and [`AllocError::NotSupported`] under `cudaMallocAsync`.
    pub fn end_allocate_to_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.end_allocate_to_pool(id))
    }

    /// Releases one use of the pool ([`CachingAllocator::release_pool`]).
    ///
    /// # Errors
    ///
    /// The errors of that function, and [`AllocError::NotSupported`] under `cudaMallocAsync`.
    pub fn release_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.release_pool(id))
    }

    /// Destroys a pool of the program ([`CachingAllocator::destroy_pool`]).
    ///
    /// # Errors
    ///
    /// The errors of that function, and [`AllocError::NotSupported`] under `cudaMallocAsync`.
    pub fn destroy_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.destroy_pool(id))
    }

    /// Reads further settings, as PyTorch does at run time.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a bad setting. Settings before the bad one stay applied.
    pub fn apply_settings(&mut self, text: &str) -> Result<(), ConfigError> {
        either!(self, allocator => allocator.apply_settings(text))
    }

    /// The statistics as PyTorch reports them.
    pub fn stats(&self) -> Stats {
        either!(self, allocator => allocator.stats())
    }

    /// All segments and blocks, by ascending address.
    pub fn snapshot(&self) -> Snapshot {
        either!(self, allocator => allocator.snapshot())
    }

    /// The segments that PyTorch's snapshot of all memory pools lists, or that of one pool: of an expandable
    /// segment each run of mapped memory.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoSnapshot`] under `cudaMallocAsync`.
    pub fn listed_segments(&self, pool: PoolId) -> Result<Vec<SegmentSnapshot>, AllocError> {
        let Self::Native(allocator) = self else { return Err(AllocError::NoSnapshot) };
        let pool = if pool == PoolId::DEFAULT { allocator.active_pool() } else { Some(pool) };
        let snapshot = pool.map_or_else(|| allocator.snapshot(), |pool| allocator.pool_snapshot(pool));
        Ok(snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs).collect())
    }

    /// The use count of the pool ([`CachingAllocator::pool_use_count`]).
    pub fn pool_use_count(&self, id: PoolId) -> u32 {
        match self {
            Self::Native(allocator) => allocator.pool_use_count(id),
            Self::CudaMallocAsync(_) => 0,
        }
    }

    /// Tests every invariant; meant for tests.
    ///
    /// # Errors
    ///
    /// [`Corruption`] names the first invariant that does not hold.
    pub fn check(&self) -> Result<(), Corruption> {
        either!(self, allocator => allocator.check())
    }

    /// The settings in force.
    pub fn config(&self) -> &AllocatorConfig {
        either!(self, allocator => allocator.config())
    }

    /// The device, for advancing its streams.
    pub fn device_mut(&mut self) -> &mut D {
        either!(self, allocator => allocator.device_mut())
    }

    /// The sink of the events.
    pub fn sink(&self) -> &S {
        either!(self, allocator => allocator.sink())
    }

    /// The sink of the events.
    pub fn sink_mut(&mut self) -> &mut S {
        either!(self, allocator => allocator.sink_mut())
    }

    /// Drops the allocator with its device, and returns the sink.
    pub fn into_sink(self) -> S {
        either!(self, allocator => allocator.into_sink())
    }
}

fn uncached<D: DeviceMemory, S: EventSink>(
    allocator: &mut CachingAllocator<D, S>,
    requested: Bytes,
) -> Result<BackendAllocation, AllocError> {
    if requested >= size::MAX_REQUEST {
        return Err(AllocError::TooLarge { requested });
    }
    match allocator.device.allocate_segment(requested) {
        Ok(addr) => {
            let allocator = allocator.identity();
            Ok(BackendAllocation::Uncached(UncachedAllocation { addr, allocator }))
        }
        Err(DeviceError::OutOfMemory { .. }) => Err(AllocError::UncachedOutOfMemory { requested }),
        Err(error) => Err(error.into()),
    }
}
