//! A device that shows recorded addresses over the memory of another device.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::{Advance, DeviceError, DeviceMemory, MemoryInfo, RecordedDevice, StreamEvent, VirtualMemory};

/// A device that shows the addresses of a recording and takes the memory from a real device.
///
/// Best fit breaks ties by address, and a real driver chooses its own addresses. So a replay on a real device
/// must be shown the recorded addresses to do the same as the recording. [`RecordedDevice`] decides what the
/// recording decides: addresses, the amount of memory, when work is done. Each segment, page and event is
/// made on the real device too.
#[derive(Debug)]
pub struct MirroredDevice<D> {
    shown: RecordedDevice,
    real: D,
    /// From the shown address of each segment to its real address.
    segments: BTreeMap<DeviceAddr, DeviceAddr>,
    /// From the shown address of each range to its real address.
    ranges: BTreeMap<DeviceAddr, DeviceAddr>,
}

/// An event of the recorded device together with an event of the real device.
#[derive(Debug)]
pub struct MirroredEvent<E> {
    shown: StreamEvent,
    real: E,
}

impl<D: DeviceMemory> MirroredDevice<D> {
    /// Shows `shown` and takes memory from `real`.
    pub fn new(shown: RecordedDevice, real: D) -> Self {
        Self { shown, real, segments: BTreeMap::new(), ranges: BTreeMap::new() }
    }

    /// The device that has the memory.
    pub fn real(&self) -> &D {
        &self.real
    }

    /// The device that has the memory. The caller must not allocate or release segments through it.
    pub fn real_mut(&mut self) -> &mut D {
        &mut self.real
    }

    /// The real address of a shown address.
    #[must_use]
    pub fn real_addr(&self, addr: DeviceAddr) -> Option<DeviceAddr> {
        let nearest = [&self.segments, &self.ranges]
            .into_iter()
            .filter_map(|bases| bases.range(..=addr).next_back())
            .max_by_key(|(shown, _)| **shown);
        nearest.map(|(shown, real)| real.offset(addr.offset_from(*shown)))
    }

    fn real_memory(&mut self) -> Result<&mut dyn VirtualMemory, DeviceError> {
        self.real.virtual_memory().ok_or(DeviceError::NoVirtualMemory)
    }

    fn real_page(&self, addr: DeviceAddr) -> Result<DeviceAddr, DeviceError> {
        let range = self.ranges.range(..=addr).next_back();
        let (shown, real) = range.ok_or(DeviceError::UnknownSegment(addr))?;
        Ok(real.offset(addr.offset_from(*shown)))
    }
}

impl<D: Advance> Advance for MirroredDevice<D> {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        self.real.advance_streams(stream);
        self.shown.advance_streams(stream);
    }

    fn end_failed_request(&mut self) {
        self.real.end_failed_request();
        self.shown.end_failed_request();
    }
}

impl<D: DeviceMemory> DeviceMemory for MirroredDevice<D> {
    type Event = MirroredEvent<D::Event>;

    fn total_memory(&self) -> Bytes {
        self.shown.total_memory()
    }

    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        self.shown.memory_info()
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let shown = self.shown.allocate_segment(size)?;
        match self.real.allocate_segment(size) {
            Ok(real) => {
                self.segments.insert(shown, real);
                Ok(shown)
            }
            Err(error) => {
                self.shown.release_segment(shown)?;
                Err(error)
            }
        }
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        let real = *self.segments.get(&base).ok_or(DeviceError::UnknownSegment(base))?;
        self.real.release_segment(real)?;
        self.segments.remove(&base);
        self.shown.release_segment(base)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<Self::Event, DeviceError> {
        let real = self.real.record_event(stream)?;
        Ok(MirroredEvent { shown: self.shown.record_event(stream)?, real })
    }

    fn is_complete(&self, event: &Self::Event) -> Result<bool, DeviceError> {
        Ok(self.shown.is_complete(&event.shown)? && self.real.is_complete(&event.real)?)
    }

    fn wait(&mut self, event: &Self::Event) -> Result<(), DeviceError> {
        self.real.wait(&event.real)?;
        self.shown.wait(&event.shown)
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        if self.real.virtual_memory().is_some() { Some(self) } else { None }
    }
}

impl<D: DeviceMemory> VirtualMemory for MirroredDevice<D> {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let real = self.real_memory()?.reserve(size)?;
        let shown = match self.shown.reserve(size) {
            Ok(shown) => shown,
            Err(error) => {
                self.real_memory()?.release(real)?;
                return Err(error);
            }
        };
        self.ranges.insert(shown, real);
        Ok(shown)
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        let real = *self.ranges.get(&base).ok_or(DeviceError::UnknownSegment(base))?;
        self.real_memory()?.release(real)?;
        self.ranges.remove(&base);
        self.shown.release(base)
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        let real = self.real_page(addr)?;
        self.shown.map(addr, size, page)?;
        self.real_memory()?.map(real, size, page).or_else(|error| {
            self.shown.unmap(addr, size, page)?;
            Err(error)
        })
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        let real = self.real_page(addr)?;
        self.real_memory()?.unmap(real, size, page)?;
        self.shown.unmap(addr, size, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VirtualDevice;

    #[test]
    fn every_shown_segment_has_real_memory_of_its_own() {
        let recorded = [(0x7000_0000, 2), (0x1000_0000, 20)]
            .map(|(base, size)| (DeviceAddr::new(base), Bytes::mib(size)));
        let shown = RecordedDevice::new(Bytes::gib(1), recorded, [], []);
        let mut device = MirroredDevice::new(shown, VirtualDevice::new(Bytes::mib(24)));
        let first = device.allocate_segment(Bytes::mib(2)).unwrap();
        let second = device.allocate_segment(Bytes::mib(20)).unwrap();
        assert_eq!((first.get(), second.get()), (0x7000_0000, 0x1000_0000));
        assert_eq!(
            device.real_addr(second.offset(Bytes::new(512))),
            Some(VirtualDevice::FIRST_ADDR.offset(Bytes::mib(2)).offset(Bytes::new(512)))
        );
        // The recorded device has enough memory for the segment, the real device does not.
        let third = device.allocate_segment(Bytes::mib(4));
        assert!(matches!(third, Err(DeviceError::OutOfMemory { .. })));
        device.release_segment(first).unwrap();
        assert!(matches!(device.release_segment(first), Err(DeviceError::UnknownSegment(_))));
        device.release_segment(second).unwrap();
        assert_eq!(device.real_mut().memory_info().unwrap().free, Bytes::mib(24));
    }
}
