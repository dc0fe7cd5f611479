//! Pinned host memory: the trait, and a virtual implementation.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, HostAddr, StreamId};

use crate::streams::Streams;
use crate::{DeviceError, StreamEvent};

/// How host memory is made accessible to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// The driver allocates the memory (`cudaHostAlloc`).
    Allocated,
    /// The memory is allocated as usual, some threads touch its pages, and the driver registers the memory
    /// (`cudaHostRegister`).
    Registered {
        /// The number of threads, at least 1.
        threads: u64,
    },
}

/// Pinned memory, with the time that the call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedAllocation {
    /// The address of the first byte.
    pub addr: HostAddr,
    /// The time in microseconds.
    pub micros: i64,
}

/// Pinned memory of the host, and streams of device work that use it.
pub trait HostMemory {
    /// A point in a stream's work.
    type Event: std::fmt::Debug;

    /// Pins `size` bytes.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when the host cannot pin this much, other errors as the driver reports
    /// them.
    fn allocate(&mut self, size: Bytes, pinning: Pinning) -> Result<PinnedAllocation, DeviceError>;

    /// Releases memory, which was pinned as `pinning` says. Returns the time in microseconds.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownHostMemory`] when no pinned memory starts at `addr`.
    fn release(&mut self, addr: HostAddr, pinning: Pinning) -> Result<i64, DeviceError>;

    /// Marks the end of the work that `stream` has so far.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`] and [`DeviceError::Driver`] as the driver reports.
    fn record_event(&mut self, stream: StreamId) -> Result<Self::Event, DeviceError>;

    /// Whether the work before `event` is done. Never blocks.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`] and [`DeviceError::Driver`] as the driver reports.
    fn is_complete(&self, event: &Self::Event) -> Result<bool, DeviceError>;
}

/// Host memory without hardware: a model of a host that can pin a given number of bytes.
///
/// Addresses grow and are never reused. The first memory starts at [`VirtualHostMemory::FIRST_ADDR`], and
/// later memory at the next multiple of 4 KiB. Calls take no time, unless
/// [`VirtualHostMemory::set_call_time`] sets one.
#[derive(Clone, Debug)]
pub struct VirtualHostMemory {
    total: Bytes,
    used: Bytes,
    next: HostAddr,
    taken: BTreeMap<HostAddr, (Bytes, Pinning)>,
    streams: Streams,
    call_micros: i64,
}

impl VirtualHostMemory {
    /// The address of the first memory.
    pub const FIRST_ADDR: HostAddr = HostAddr::new(0x7e00_0000_0000);
    const PAGE: u64 = 4096;

    /// A host that can pin `total` bytes.
    #[must_use]
    pub fn new(total: Bytes) -> Self {
        Self {
            total,
            used: Bytes::ZERO,
            next: Self::FIRST_ADDR,
            taken: BTreeMap::new(),
            streams: Streams::default(),
            call_micros: 0,
        }
    }

    /// How many bytes are pinned.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.used
    }

    /// How the memory at `addr` was pinned; `None` if no pinned memory starts there.
    #[must_use]
    pub fn pinning(&self, addr: HostAddr) -> Option<Pinning> {
        self.taken.get(&addr).map(|(_, pinning)| *pinning)
    }

    /// Makes every later call take this number of microseconds.
    pub fn set_call_time(&mut self, micros: i64) {
        self.call_micros = micros;
    }

    /// Completes all work that the stream has so far.
    pub fn advance(&mut self, stream: StreamId) {
        self.streams.advance(stream);
    }

    /// Completes all work of all streams.
    pub fn advance_all(&mut self) {
        self.streams.advance_all();
    }
}

impl HostMemory for VirtualHostMemory {
    type Event = StreamEvent;

    fn allocate(&mut self, size: Bytes, pinning: Pinning) -> Result<PinnedAllocation, DeviceError> {
        let none = || DeviceError::OutOfMemory { requested: size };
        // PyTorch's statistics are signed numbers of 64 bits, so that no more than 8 EiB are pinned.
        let most = self.total.min(Bytes::new(i64::MAX.unsigned_abs()));
        let used = self.used.checked_add(size).filter(|used| *used <= most).ok_or_else(none)?;
        let end = self.next.get().checked_add(size.get());
        let next = end.and_then(|end| end.checked_next_multiple_of(Self::PAGE)).ok_or_else(none)?;
        let addr = self.next;
        self.used = used;
        self.next = HostAddr::new(next);
        self.taken.insert(addr, (size, pinning));
        Ok(PinnedAllocation { addr, micros: self.call_micros })
    }

    fn release(&mut self, addr: HostAddr, pinning: Pinning) -> Result<i64, DeviceError> {
        // Registered memory must not be released as memory that the driver allocated, nor the other way
        // round.
        match self.taken.get(&addr) {
            Some((size, taken)) if *taken == pinning => {
                self.used -= *size;
                self.taken.remove(&addr);
                Ok(self.call_micros)
            }
            _ => Err(DeviceError::UnknownHostMemory(addr)),
        }
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        Ok(self.streams.record(stream))
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        Ok(self.streams.is_complete(*event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gives_no_more_than_it_has_and_takes_back_only_what_it_gave() {
        let mut host = VirtualHostMemory::new(Bytes::mib(1));
        let registered = Pinning::Registered { threads: 4 };
        let first = host.allocate(Bytes::kib(512), registered).unwrap().addr;
        let second = host.allocate(Bytes::new(1), Pinning::Allocated).unwrap().addr;
        assert_eq!(second.get() - first.get(), 512 << 10);
        assert!(matches!(host.allocate(Bytes::kib(512), registered), Err(DeviceError::OutOfMemory { .. })));
        assert!(host.release(first, Pinning::Allocated).is_err());
        host.release(first, registered).unwrap();
        assert!(matches!(host.release(first, registered), Err(DeviceError::UnknownHostMemory(_))));
        assert_eq!(host.used(), Bytes::new(1));
    }
}
