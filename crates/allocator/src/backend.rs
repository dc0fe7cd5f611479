//! The allocator that the settings ask for, behind one interface.

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_record::{
    AllocationId, Backend, Bytes, DeviceAddr, EventSink, NullSink, PoolId, Snapshot, Stats, StreamId,
};

use crate::{
    AllocError, Allocation, AllocatorConfig, AsyncAllocation, AsyncAllocator, CachingAllocator, ConfigError,
    Corruption, PoolOptions, size,
};

/// PyTorch's device allocator of the backend that the settings name.
///
/// The requests that a program can make of either. What only one backend can do is refused by the other as PyTorch refuses
/// it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one of them, which never moves")]
pub enum BackendAllocator<D: DeviceMemory, S: EventSink = NullSink> {
    /// `backend:native`.
    Native(CachingAllocator<D, S>),
    /// `backend:cudaMallocAsync`.
    CudaMallocAsync(AsyncAllocator<D, S>),
}

/// A block in a caller's hands: give it back with [`BackendAllocator::free`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub enum BackendAllocation {
    /// One of the native allocator's.
    Native(Allocation),
    /// One of the driver pool's.
    CudaMallocAsync(AsyncAllocation),
    /// Memory of the device itself, made while caching was switched off.
    Uncached(UncachedAllocation),
}

/// A segment of the device that no allocator knows.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct UncachedAllocation {
    addr: DeviceAddr,
    /// The identity of the allocator over its device: other devices may have other memory there.
    allocator: u64,
}

impl BackendAllocation {
    /// Where it starts; 0 for an allocation of zero bytes.
    #[must_use]
    pub fn addr(&self) -> DeviceAddr {
        match self {
            Self::Native(allocation) => allocation.addr(),
            Self::CudaMallocAsync(allocation) => allocation.addr(),
            Self::Uncached(allocation) => allocation.addr,
        }
    }

    /// Its number, if it is not of zero bytes and not uncached.
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

macro_rules! native_only {
    ($self:expr, $what:literal, $allocator:ident => $value:expr) => {
        match $self {
            Self::Native($allocator) => $value,
            Self::CudaMallocAsync(_) => Err(AllocError::NotSupported($what)),
        }
    };
}

impl<D: DeviceMemory, S: EventSink> BackendAllocator<D, S> {
    /// The allocator of the settings' backend, which holds nothing yet.
    pub fn new(device: D, config: AllocatorConfig, sink: S) -> Self {
        match config.backend() {
            Backend::Native => Self::Native(CachingAllocator::new(device, config, sink)),
            Backend::CudaMallocAsync => Self::CudaMallocAsync(AsyncAllocator::new(device, config, sink)),
        }
    }

    /// As [`CachingAllocator::beginning_with`].
    ///
    /// # Errors
    ///
    /// As there, and [`AllocError::NoSnapshot`] under `cudaMallocAsync`, which has no snapshots to begin with.
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

    /// As [`AsyncAllocator::place_as_recorded`]; the native backend's addresses follow from the requests and the device.
    pub fn place_as_recorded(&mut self, placements: impl IntoIterator<Item = Option<DeviceAddr>>) {
        match self {
            Self::Native(_) => {}
            Self::CudaMallocAsync(allocator) => allocator.place_as_recorded(placements),
        }
    }

    /// Hands out `requested` bytes for use on `stream`.
    ///
    /// With caching switched off, the native backend takes them from the device and gives them back to it; no statistic, event,
    /// snapshot or trace shows that.
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::allocate`] and [`AsyncAllocator::allocate`]; without caching
    /// [`AllocError::UncachedOutOfMemory`] when the device has not that much.
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

    /// Takes an allocation back.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when it is not a live allocation of this allocator, [`AllocError::Device`] when the
    /// device fails; in both cases nothing changed.
    pub fn free(&mut self, allocation: BackendAllocation) -> Result<(), AllocError> {
        match (self, allocation) {
            (Self::Native(allocator), BackendAllocation::Native(allocation)) => allocator.free(allocation),
            (Self::CudaMallocAsync(allocator), BackendAllocation::CudaMallocAsync(allocation)) => {
                allocator.free(allocation)
            }
            // Whether caching is on by now does not matter.
            (Self::Native(allocator), BackendAllocation::Uncached(uncached))
                if uncached.allocator == allocator.identity() =>
            {
                Ok(allocator.device.release_segment(uncached.addr)?)
            }
            (_, other) => Err(AllocError::InvalidPointer(other.addr())),
        }
    }

    /// Notes that `stream` uses the allocation too.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when it is not a live allocation of this allocator.
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

    /// Gives what is cached back to the device.
    ///
    /// # Errors
    ///
    /// [`AllocError::Device`] when the device fails; what was given back before stays so.
    pub fn empty_cache(&mut self) -> Result<(), AllocError> {
        either!(self, allocator => allocator.empty_cache())
    }

    /// Limits memory to a share of the device: what is reserved, or under `cudaMallocAsync` what is in use.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidFraction`] outside of 0 to 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), AllocError> {
        either!(self, allocator => allocator.set_memory_fraction(fraction))
    }

    /// The share of the device that is the limit, as PyTorch reads it back.
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

    /// Sets all accumulated counts to zero; under `cudaMallocAsync` there are none, and PyTorch warns that it has no effect.
    pub fn reset_accumulated_stats(&mut self) {
        if let Self::Native(allocator) = self {
            allocator.reset_accumulated_stats();
        }
    }

    /// Notes in the events that somebody took a snapshot.
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

    /// As [`CachingAllocator::create_pool`].
    ///
    /// # Errors
    ///
    /// [`AllocError::NotSupported`] under `cudaMallocAsync`, as for everything else about pools.
    pub fn create_pool(&mut self, options: PoolOptions) -> Result<PoolId, AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => Ok(allocator.create_pool(options)))
    }

    /// As [`CachingAllocator::begin_allocate_to_pool`].
    ///
    /// # Errors
    ///
    /// As there, and [`AllocError::NotSupported`].
    pub fn begin_allocate_to_pool(&mut self, id: PoolId, stream: Option<StreamId>) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.begin_allocate_to_pool(id, stream))
    }

    /// As [`CachingAllocator::end_allocate_to_pool`].
    ///
    /// # Errors
    ///
    /// As there, and [`AllocError::NotSupported`].
    pub fn end_allocate_to_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.end_allocate_to_pool(id))
    }

    /// As [`CachingAllocator::release_pool`].
    ///
    /// # Errors
    ///
    /// As there, and [`AllocError::NotSupported`].
    pub fn release_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.release_pool(id))
    }

    /// As [`CachingAllocator::destroy_pool`].
    ///
    /// # Errors
    ///
    /// As there, and [`AllocError::NotSupported`].
    pub fn destroy_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        native_only!(self, "createOrIncrefPool", allocator => allocator.destroy_pool(id))
    }

    /// Reads further settings, as PyTorch does at run time.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a bad setting; those that stand before it stay applied.
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

    /// The device, to advance its streams.
    pub fn device_mut(&mut self) -> &mut D {
        either!(self, allocator => allocator.device_mut())
    }

    /// The receiver of events.
    pub fn sink(&self) -> &S {
        either!(self, allocator => allocator.sink())
    }

    /// The receiver of events.
    pub fn sink_mut(&mut self) -> &mut S {
        either!(self, allocator => allocator.sink_mut())
    }

    /// Ends the allocator and returns its sink.
    pub fn into_sink(self) -> S {
        either!(self, allocator => allocator.into_sink())
    }
}

fn uncached<D: DeviceMemory, S: EventSink>(
    allocator: &mut CachingAllocator<D, S>,
    requested: Bytes,
) -> Result<BackendAllocation, AllocError> {
    if requested >= size::LARGEST_REQUEST {
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
