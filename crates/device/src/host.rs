use std::collections::BTreeMap;

use blockyard_record::{Bytes, HostAddr, StreamId};

use crate::streams::Streams;
use crate::{DeviceError, StreamEvent};

/// How host memory is made accessible to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// The driver allocates it (`cudaHostAlloc`).
    Allocated,
    /// It is allocated as usual, its pages are touched by so many threads, and the driver registers it (`cudaHostRegister`).
    Registered {
        /// The threads, at least 1.
        threads: u64,
    },
}

/// Pinned memory, and how long it took to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedAllocation {
    /// Where it starts.
    pub addr: HostAddr,
    /// The time in microseconds.
    pub micros: i64,
}

/// Pinned memory of the host, and streams of device work that use it.
pub trait HostMemory {
    /// A point in a stream's work.
    type Event: std::fmt::Debug;

    /// Takes `size` bytes.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when the host has not that much to pin, the others as the driver reports.
    fn allocate(&mut self, size: Bytes, pinning: Pinning) -> Result<PinnedAllocation, DeviceError>;

    /// Gives memory back, in the way that fits how it was pinned; returns the time in microseconds.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownHostMemory`] when none starts there.
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

/// A host of so many bytes that can be pinned, without hardware.
///
/// Addresses grow and are never given twice: the first memory starts at [`VirtualHostMemory::FIRST_ADDR`], each later one at
/// the next multiple of 4 KiB. Calls take no time, unless [`VirtualHostMemory::set_call_time`] says otherwise.
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
    /// Where the first memory starts.
    pub const FIRST_ADDR: HostAddr = HostAddr::new(0x7e00_0000_0000);
    const PAGE: u64 = 4096;

    /// A host with `total` bytes to pin.
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

    /// Bytes that are pinned.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.used
    }

    /// How the memory at `addr` was pinned, if any starts there.
    #[must_use]
    pub fn pinning(&self, addr: HostAddr) -> Option<Pinning> {
        self.taken.get(&addr).map(|(_, pinning)| *pinning)
    }

    /// Lets every later call take so many microseconds.
    pub fn set_call_time(&mut self, micros: i64) {
        self.call_micros = micros;
    }

    /// Does all work that the stream has so far.
    pub fn advance(&mut self, stream: StreamId) {
        self.streams.advance(stream);
    }

    /// Does all work of all streams.
    pub fn advance_all(&mut self) {
        self.streams.advance_all();
    }
}

impl HostMemory for VirtualHostMemory {
    type Event = StreamEvent;

    fn allocate(&mut self, size: Bytes, pinning: Pinning) -> Result<PinnedAllocation, DeviceError> {
        let none = || DeviceError::OutOfMemory { requested: size };
        // PyTorch's statistics are signed: a host of 8 EiB and more stops there.
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
        // What was registered must not be given back as if the driver had allocated it, nor the other way round.
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
