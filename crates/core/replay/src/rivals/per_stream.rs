//! Allocators with a separate policy for each stream over a common device.

use blockyard_record::{Bytes, StreamId};

use crate::rivals::device::Device;
use crate::rivals::{RivalAllocation, RivalAllocator, RivalOutOfMemory, Usage, rounded};

/// The blocks of one stream, and the rule by which a request gets one of them.
pub trait Policy: Default {
    /// Allocates a block of at least `size` bytes, a multiple of 512: its address and its size. `None` if no
    /// memory is left.
    #[doc(hidden)]
    fn allocate(&mut self, device: &mut RivalDevice, size: u64) -> Option<(u64, u64)>;

    /// Frees the block of `size` bytes at `addr`.
    #[doc(hidden)]
    fn free(&mut self, device: &mut RivalDevice, addr: u64, size: u64);

    /// Releases every region without an allocated block to the device.
    #[doc(hidden)]
    fn empty_cache(&mut self, device: &mut RivalDevice);
}

/// The device, as policies see it.
#[derive(Clone, Debug)]
pub struct RivalDevice(pub(crate) Device);

/// An allocator with a separate policy for each stream, over one device.
#[derive(Clone, Debug)]
pub struct PerStream<P> {
    device: RivalDevice,
    streams: Vec<(StreamId, P)>,
}

impl<P: Policy> PerStream<P> {
    /// An allocator over a device of this many bytes.
    #[must_use]
    pub fn new(capacity: Bytes) -> Self {
        Self { device: RivalDevice(Device::new(capacity)), streams: Vec::new() }
    }

    fn policy(&mut self, stream: StreamId) -> Option<(&mut P, &mut RivalDevice)> {
        let index = self.streams.iter().position(|(other, _)| *other == stream).unwrap_or_else(|| {
            self.streams.push((stream, P::default()));
            self.streams.len() - 1
        });
        let Self { device, streams } = self;
        streams.get_mut(index).map(|(_, policy)| (policy, device))
    }
}

impl<P: Policy> RivalAllocator for PerStream<P> {
    fn allocate(&mut self, requested: Bytes, stream: StreamId) -> Result<RivalAllocation, RivalOutOfMemory> {
        let size = rounded(requested).ok_or(RivalOutOfMemory { requested })?;
        let (policy, device) = self.policy(stream).ok_or(RivalOutOfMemory { requested })?;
        let (addr, size) = policy.allocate(device, size).ok_or(RivalOutOfMemory { requested })?;
        let size = Bytes::new(size);
        self.device.0.allocated(requested, size);
        Ok(RivalAllocation { addr, size, requested, stream })
    }

    fn free(&mut self, allocation: RivalAllocation) {
        let RivalAllocation { addr, size, requested, stream } = allocation;
        if let Some((policy, device)) = self.policy(stream) {
            policy.free(device, addr, size.get());
            self.device.0.came_back(requested, size);
        }
    }

    fn empty_cache(&mut self) {
        let Self { device, streams } = self;
        for (_, policy) in streams {
            policy.empty_cache(device);
        }
    }

    fn usage(&self) -> Usage {
        self.device.0.usage
    }
}
