//! The contenders: our allocator, and the allocators of the device's driver.

use anyhow::{Context as _, anyhow};
use blockyard_allocator::{Allocation, CachingAllocator, SharedAllocator};
use blockyard_device::{Advance, DeviceMemory, VirtualDevice};
use blockyard_device_cuda::{CudaDevice, StreamOrderedAllocator};
use blockyard_measure::Contender;
use blockyard_record::{Bytes, DeviceAddr, NullSink, StreamId};
use blockyard_rules::{AllocatorConfig, Release};

/// An allocator that is measured on a device.
pub(crate) type BoxedContender = Box<dyn Contender<Error = anyhow::Error>>;

/// A device that can be measured, with the allocators of its driver.
pub(crate) trait Device: DeviceMemory + Advance + Sized + 'static {
    /// Whether work on the device is done only when a caller advances a stream.
    const IS_SIMULATED: bool;

    fn peers(self) -> anyhow::Result<Vec<BoxedContender>>;
}

impl Device for VirtualDevice {
    const IS_SIMULATED: bool = true;

    fn peers(self) -> anyhow::Result<Vec<BoxedContender>> {
        Ok(Vec::new())
    }
}

impl Device for CudaDevice {
    const IS_SIMULATED: bool = false;

    fn peers(mut self) -> anyhow::Result<Vec<BoxedContender>> {
        let index = self.index();
        let pool = StreamOrderedAllocator::new(&mut self).context("the driver's stream-ordered pool")?;
        let ordered = DriverPool { pool, device: self, live: Vec::new() };
        let plain = DriverContender { device: CudaDevice::open(index)?, live: Vec::new() };
        Ok(vec![Box::new(ordered), Box::new(plain)])
    }
}

/// All contenders, ours first; each has its own device.
pub(crate) fn all<D: Device>(open: &dyn Fn() -> anyhow::Result<D>) -> anyhow::Result<Vec<BoxedContender>> {
    let mut contenders: Vec<BoxedContender> = vec![
        Box::new(OurContender::new(open()?, false)?),
        Box::new(OurContender::new(open()?, true)?),
        Box::new(LockedAllocator::new(open()?)),
    ];
    contenders.extend(open()?.peers()?);
    Ok(contenders)
}

struct OurContender<D: DeviceMemory> {
    allocator: CachingAllocator<D>,
    live: Vec<Option<Allocation>>,
    expands: bool,
}

impl<D: DeviceMemory> OurContender<D> {
    fn new(device: D, expands: bool) -> anyhow::Result<Self> {
        let conf = if expands { "expandable_segments:True" } else { "" };
        let config = AllocatorConfig::parse(conf, Release::default())?;
        Ok(Self { allocator: CachingAllocator::new(device, config, NullSink), live: Vec::new(), expands })
    }
}

impl<D: Device> Contender for OurContender<D> {
    type Error = anyhow::Error;

    fn name(&self) -> &'static str {
        if self.expands { "blockyard, expandable" } else { "blockyard" }
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize_with(count.max(self.live.len()), || None);
    }

    fn allocate(&mut self, slot: usize, size: Bytes, stream: StreamId) -> anyhow::Result<()> {
        self.live[slot] = Some(self.allocator.allocate(size, stream)?);
        Ok(())
    }

    fn free(&mut self, slot: usize) -> anyhow::Result<()> {
        let allocation = self.live[slot].take().ok_or_else(|| not_live(slot))?;
        Ok(self.allocator.free(allocation)?)
    }

    fn empty_cache(&mut self) -> anyhow::Result<()> {
        Ok(self.allocator.empty_cache()?)
    }

    fn expands(&self) -> bool {
        self.expands
    }

    fn record_stream(&mut self, slot: usize, stream: StreamId) -> anyhow::Result<()> {
        let allocation = self.live[slot].as_ref().ok_or_else(|| not_live(slot))?;
        Ok(self.allocator.record_stream(allocation, stream)?)
    }

    fn advance(&mut self, stream: Option<StreamId>) {
        if D::IS_SIMULATED {
            self.allocator.device_mut().advance_streams(stream);
        }
    }
}

/// Our allocator behind its lock, with frees by address, as programs with several threads call it.
struct LockedAllocator<D: DeviceMemory> {
    allocator: SharedAllocator<D>,
    live: Vec<DeviceAddr>,
}

impl<D: DeviceMemory> LockedAllocator<D> {
    fn new(device: D) -> Self {
        let allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
        Self { allocator: SharedAllocator::new(allocator), live: Vec::new() }
    }
}

impl<D: Device> Contender for LockedAllocator<D> {
    type Error = anyhow::Error;

    fn name(&self) -> &'static str {
        "blockyard, shared"
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize(count.max(self.live.len()), DeviceAddr::default());
    }

    fn allocate(&mut self, slot: usize, size: Bytes, stream: StreamId) -> anyhow::Result<()> {
        self.live[slot] = self.allocator.allocate(size, stream)?;
        Ok(())
    }

    fn free(&mut self, slot: usize) -> anyhow::Result<()> {
        Ok(self.allocator.free(self.live[slot])?)
    }

    fn empty_cache(&mut self) -> anyhow::Result<()> {
        Ok(self.allocator.with(CachingAllocator::empty_cache)?)
    }

    fn record_stream(&mut self, slot: usize, stream: StreamId) -> anyhow::Result<()> {
        Ok(self.allocator.record_stream(self.live[slot], stream)?)
    }

    fn advance(&mut self, stream: Option<StreamId>) {
        if D::IS_SIMULATED {
            self.allocator.with(|allocator| allocator.device_mut().advance_streams(stream));
        }
    }
}

/// The driver's call for whole segments, for every request.
struct DriverContender {
    device: CudaDevice,
    live: Vec<DeviceAddr>,
}

impl Contender for DriverContender {
    type Error = anyhow::Error;

    fn name(&self) -> &'static str {
        "cuMemAlloc"
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize(count.max(self.live.len()), DeviceAddr::default());
    }

    fn allocate(&mut self, slot: usize, size: Bytes, _stream: StreamId) -> anyhow::Result<()> {
        self.live[slot] =
            if size.is_zero() { DeviceAddr::default() } else { self.device.allocate_segment(size)? };
        Ok(())
    }

    fn free(&mut self, slot: usize) -> anyhow::Result<()> {
        let addr = std::mem::take(&mut self.live[slot]);
        if addr != DeviceAddr::default() {
            self.device.release_segment(addr)?;
        }
        Ok(())
    }

    fn caches(&self) -> bool {
        false
    }
}

/// The driver's stream-ordered allocator, which caches freed memory.
struct DriverPool {
    pool: StreamOrderedAllocator,
    device: CudaDevice,
    live: Vec<(DeviceAddr, StreamId)>,
}

impl Contender for DriverPool {
    type Error = anyhow::Error;

    fn name(&self) -> &'static str {
        "cuMemAllocAsync"
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize(count.max(self.live.len()), (DeviceAddr::default(), StreamId::DEFAULT));
    }

    fn allocate(&mut self, slot: usize, size: Bytes, stream: StreamId) -> anyhow::Result<()> {
        let addr = if size.is_zero() {
            DeviceAddr::default()
        } else {
            self.pool.allocate(&mut self.device, size, stream)?
        };
        self.live[slot] = (addr, stream);
        Ok(())
    }

    fn free(&mut self, slot: usize) -> anyhow::Result<()> {
        let (addr, stream) = std::mem::take(&mut self.live[slot]);
        if addr != DeviceAddr::default() {
            self.pool.free(&mut self.device, addr, stream)?;
        }
        Ok(())
    }

    fn empty_cache(&mut self) -> anyhow::Result<()> {
        self.device.synchronize()?;
        Ok(self.pool.trim(&mut self.device)?)
    }
}

fn not_live(slot: usize) -> anyhow::Error {
    anyhow!("block {slot} is not in use")
}
