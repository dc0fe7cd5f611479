//! A device that gives out the addresses of a recording, in the recorded order.

use std::collections::{HashMap, VecDeque};

use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::{
    Advance, DeviceError, DeviceMemory, MemoryInfo, ProcessMemory, StreamEvent, VirtualDevice, VirtualMemory,
};

/// A device that returns the segment addresses of a recording, in the recorded order.
///
/// Real drivers choose the addresses of segments, and best fit breaks ties by address, so that an exact
/// replay needs the recorded addresses. If a segment has another size than the next recorded one, or its
/// address is still in use, the run has left the recording. This segment and all later ones get addresses
/// above every recorded address, by the rule of [`VirtualDevice`].
#[derive(Clone, Debug)]
pub struct RecordedDevice {
    device: VirtualDevice,
    segments: VecDeque<(DeviceAddr, Bytes)>,
    ranges: VecDeque<DeviceAddr>,
    failures: VecDeque<RecordedOom>,
    device_failures: HashMap<(usize, usize), RecordedDeviceFailure>,
    counts: CallCounts,
    has_left: bool,
}

/// The calls so far.
#[derive(Clone, Copy, Debug, Default)]
struct CallCounts {
    /// Allocations of segments and mappings of pages that succeeded.
    calls_before: usize,
    /// Releases of segments and of pages.
    released: usize,
    /// Requests that failed.
    failed: usize,
}

/// What the driver reported when a request of the recording ran out of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedOom {
    /// Bytes that no process used.
    pub free: Bytes,
    /// How much each process used.
    pub processes: Vec<ProcessMemory>,
}

/// A moment of the recording at which the driver's call failed, although memory was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedDeviceFailure {
    /// How many calls had succeeded before: allocations of segments, and mappings of pages.
    pub given: usize,
    /// How many requests had failed before.
    pub failed: usize,
    /// After how many releases calls succeed again; `None` if the request failed.
    pub until_released: Option<usize>,
}

/// Memory that a program had already allocated when its recording begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialMemory {
    /// A segment.
    Segment {
        /// The address of the first byte.
        base: DeviceAddr,
        /// The size.
        size: Bytes,
    },
    /// Addresses of an expandable segment.
    ReservedRange {
        /// The first address.
        base: DeviceAddr,
        /// How many addresses are reserved.
        size: Bytes,
        /// The mapped runs, each as address and size, by ascending address.
        mapped: Vec<(DeviceAddr, Bytes)>,
    },
}

impl RecordedDevice {
    /// A device of `total` bytes that returns `segments` (address and size) and `ranges` (addresses of
    /// expandable segments) in order, and reports `failures` in order.
    #[must_use]
    pub fn new(
        total: Bytes,
        segments: impl IntoIterator<Item = (DeviceAddr, Bytes)>,
        ranges: impl IntoIterator<Item = DeviceAddr>,
        failures: impl IntoIterator<Item = RecordedOom>,
    ) -> Self {
        let segments: VecDeque<_> = segments.into_iter().collect();
        let ranges: VecDeque<_> = ranges.into_iter().collect();
        // The size of a range is not recorded. No device reserves more than twice its memory at once.
        let twice = total.saturating_add(total);
        let ends = segments.iter().map(|(base, size)| base.offset(*size));
        let end = ends.chain(ranges.iter().map(|base| base.offset(twice))).max();
        // Addresses at the end of 64 bits, which only a damaged recording has, leave no room above them.
        // Other segments then have addresses below, and the recording of the run reports an overlap.
        let alignment = VirtualDevice::ALIGNMENT.get();
        let next = end.and_then(|end| end.get().checked_next_multiple_of(alignment)).map(DeviceAddr::new);
        Self {
            device: VirtualDevice::starting_at(total, next.unwrap_or(VirtualDevice::FIRST_ADDR)),
            segments,
            ranges,
            failures: failures.into_iter().collect(),
            device_failures: HashMap::new(),
            counts: CallCounts::default(),
            has_left: false,
        }
    }

    /// Marks this memory as allocated before the recording begins. If the sum exceeds the memory of the
    /// device, all memory counts as allocated.
    #[must_use]
    pub fn with_initial_memory(mut self, memory: impl IntoIterator<Item = InitialMemory>) -> Self {
        for memory in memory {
            self.device.add_initial_memory(memory);
        }
        self
    }

    /// Makes the driver's calls fail at these moments, until the run leaves the recording.
    #[must_use]
    pub fn with_failures(mut self, device_failures: impl IntoIterator<Item = RecordedDeviceFailure>) -> Self {
        let moments = device_failures.into_iter();
        self.device_failures = moments.map(|moment| ((moment.given, moment.failed), moment)).collect();
        self
    }

    fn device_failure(&self) -> Option<RecordedDeviceFailure> {
        let CallCounts { calls_before: given, released, failed } = self.counts;
        let device_failure = self.device_failures.get(&(given, failed)).filter(|_| !self.has_left)?;
        let until = device_failure.until_released;
        until.is_none_or(|until| released < until).then_some(*device_failure)
    }

    fn allocate_recorded(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        if self.device_failure().is_some() {
            return Err(DeviceError::OutOfMemory { requested: size });
        }
        match self.segments.front() {
            Some((base, recorded))
                if *recorded == size && !self.has_left && self.device.is_free(*base, size) =>
            {
                let base = self.device.allocate_at(*base, size)?;
                self.segments.pop_front();
                Ok(base)
            }
            _ => {
                self.has_left = true;
                self.device.allocate_segment(size)
            }
        }
    }

    /// Whether a segment was requested that the recording does not have at that point.
    #[must_use]
    pub fn has_left_recording(&self) -> bool {
        self.has_left
    }

    /// Completes all work that the stream has so far.
    pub fn advance(&mut self, stream: StreamId) {
        self.device.advance(stream);
    }

    /// Completes all work of all streams.
    pub fn advance_all(&mut self) {
        self.device.advance_all();
    }
}

impl Advance for RecordedDevice {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        match stream {
            Some(stream) => self.advance(stream),
            None => self.advance_all(),
        }
    }

    fn end_failed_request(&mut self) {
        self.counts.failed += 1;
        self.failures.pop_front();
    }
}

impl DeviceMemory for RecordedDevice {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.device.total_memory()
    }

    /// The free memory that the recording has for its next failed request. Allocators ask only after a
    /// failure. The device itself cannot see the failure, because a request above the memory fraction makes
    /// no call of the device.
    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        let info = self.device.memory_info()?;
        Ok(match self.failures.front() {
            Some(RecordedOom { free, processes }) => {
                MemoryInfo { free: *free, processes: processes.clone(), ..info }
            }
            None => info,
        })
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let base = self.allocate_recorded(size)?;
        self.counts.calls_before += 1;
        Ok(base)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.counts.released += 1;
        self.device.release_segment(base)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        self.device.record_event(stream)
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        self.device.is_complete(event)
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        self.device.wait(event)
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        Some(self)
    }
}

impl VirtualMemory for RecordedDevice {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        // A trace has no entry for addresses without memory. If the request fails, its addresses never get
        // memory, so they are not among the recorded ones.
        if self.device_failure().is_some_and(|device_failure| device_failure.until_released.is_none()) {
            return self.device.reserve(size);
        }
        match self.ranges.pop_front() {
            Some(base) if !self.has_left && self.device.is_free(base, size) => {
                Ok(self.device.reserve_at(base, size))
            }
            _ => {
                self.has_left = true;
                self.device.reserve(size)
            }
        }
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.device.release(base)
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        if self.device_failure().is_some() {
            return Err(DeviceError::OutOfMemory { requested: size });
        }
        self.device.map(addr, size, page)?;
        self.counts.calls_before += 1;
        Ok(())
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        self.counts.released += 1;
        self.device.unmap(addr, size, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_addresses_come_in_order_until_a_size_differs() {
        let recorded = [(0x7000_0000, 2), (0x1000_0000, 20), (0x9000_0000, 2)]
            .map(|(base, size)| (DeviceAddr::new(base), Bytes::mib(size)));
        let mut device = RecordedDevice::new(Bytes::gib(1), recorded, [], []);
        assert_eq!(device.allocate_segment(Bytes::mib(2)).unwrap().get(), 0x7000_0000);
        assert_eq!(device.allocate_segment(Bytes::mib(20)).unwrap().get(), 0x1000_0000);
        assert!(!device.has_left_recording());
        assert_eq!(device.allocate_segment(Bytes::mib(4)).unwrap().get(), 0x9020_0000);
        assert_eq!(device.allocate_segment(Bytes::mib(2)).unwrap().get(), 0x9060_0000);
        assert!(device.has_left_recording());
    }

    #[test]
    fn initial_memory_counts_as_used_until_it_is_released() {
        let base = DeviceAddr::new(0x7000_0000);
        let mut device = RecordedDevice::new(Bytes::mib(64), [], [], [])
            .with_initial_memory([InitialMemory::Segment { base, size: Bytes::mib(40) }]);
        assert_eq!(device.memory_info().unwrap().free, Bytes::mib(24));
        device.release_segment(base).unwrap();
        assert_eq!(device.memory_info().unwrap().free, Bytes::mib(64));
    }

    #[test]
    fn a_question_about_memory_changes_nothing() {
        let failure = |mib| RecordedOom { free: Bytes::mib(mib), processes: Vec::new() };
        let moment = |failed| RecordedDeviceFailure { given: 0, failed, until_released: None };
        let mut device = RecordedDevice::new(Bytes::gib(1), [], [], [failure(7), failure(5)])
            .with_failures([moment(0), moment(1)]);
        let free = |device: &RecordedDevice| device.memory_info().unwrap().free;
        for mib in [7, 5] {
            // An allocator tries again once it has released what it can.
            for _ in 0..2 {
                assert!(device.allocate_segment(Bytes::mib(2)).is_err());
                assert_eq!([free(&device), free(&device)], [Bytes::mib(mib); 2]);
            }
            device.end_failed_request();
        }
        assert_eq!(free(&device), Bytes::gib(1));
        assert!(device.allocate_segment(Bytes::mib(2)).is_ok());
    }

    #[test]
    fn calls_fail_where_the_recording_says_so() {
        let base = |mib: u64| DeviceAddr::new(mib << 20);
        let recorded = [(base(100), Bytes::mib(2)), (base(200), Bytes::mib(4))];
        let device_failures = [
            RecordedDeviceFailure { given: 1, failed: 0, until_released: None },
            RecordedDeviceFailure { given: 1, failed: 1, until_released: Some(1) },
        ];
        let mut device = RecordedDevice::new(Bytes::gib(1), recorded, [], []).with_failures(device_failures);
        assert!(device.allocate_segment(Bytes::mib(2)).is_ok());
        assert!(device.allocate_segment(Bytes::mib(30)).is_err());
        device.end_failed_request();
        assert!(device.allocate_segment(Bytes::mib(4)).is_err());
        device.release_segment(base(100)).unwrap();
        assert_eq!(device.allocate_segment(Bytes::mib(4)).unwrap(), base(200));
        assert!(!device.has_left_recording());
    }
}
