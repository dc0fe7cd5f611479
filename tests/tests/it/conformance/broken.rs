//! The suite finds defects: broken devices and broken allocators do not pass it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use blockyard_allocator::{AllocError, Allocation, CachingAllocator};
use blockyard_device::{Advance, DeviceError, DeviceMemory, forward_device};
use blockyard_record::{Bytes, DeviceAddr, NullSink, StreamId};
use blockyard_replay::PatternedBlock;
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_tests::workload::{BlockAllocator, WorkloadReport, check_reuse_waits, run};
use blockyard_tests::{Fault, PatternMemory, SimulatedMemory, conformance};

use super::simulated::PLAN;

type Memory = SimulatedMemory;
type Event = <Memory as DeviceMemory>::Event;

/// The defect of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    /// No defect: the wrapper itself changes nothing.
    Nothing,
    /// Events are complete before the work is done.
    EarlyEvents,
    /// Every second segment begins inside the segment before it.
    Overlap,
    /// Two neighboring pages are the same memory.
    Alias,
    /// Memory that is given back is counted, but kept.
    Leak,
}

#[derive(Debug)]
struct DefectiveDevice {
    memory: Memory,
    defect: Defect,
    last: Option<(DeviceAddr, DeviceAddr)>,
    segments: u32,
}

impl DefectiveDevice {
    fn new(defect: Defect) -> Self {
        Self { memory: Memory::new(Bytes::gib(4)), defect, last: None, segments: 0 }
    }

    fn place(&self, block: PatternedBlock) -> PatternedBlock {
        if self.defect != Defect::Alias {
            return block;
        }
        PatternedBlock { addr: DeviceAddr::new(block.addr.get() & !(32 << 20)), ..block }
    }
}

impl Advance for DefectiveDevice {
    forward_device!(|device| device.memory => advance_streams);
}

impl PatternMemory for DefectiveDevice {
    fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.memory.fill(stream, self.place(block))
    }

    fn check(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.memory.check(stream, self.place(block))
    }

    fn hold(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.memory.hold(stream)
    }

    fn resume(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.memory.resume(stream)
    }

    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError> {
        self.memory.faults()
    }
}

impl DeviceMemory for DefectiveDevice {
    type Event = Event;

    forward_device!(|device| device.memory => total_memory, memory_info, record_event, wait, virtual_memory);

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let base = self.memory.allocate_segment(size)?;
        self.segments += 1;
        if self.defect == Defect::Overlap && self.segments.is_multiple_of(2) {
            let shown = DeviceAddr::new(base.get() - Bytes::mib(1).get());
            self.last = Some((shown, base));
            return Ok(shown);
        }
        Ok(base)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        let real = self.last.filter(|(shown, _)| *shown == base).map_or(base, |(_, real)| real);
        if self.defect == Defect::Leak { Ok(()) } else { self.memory.release_segment(real) }
    }

    fn is_complete(&self, event: &Event) -> Result<bool, DeviceError> {
        if self.defect == Defect::EarlyEvents { Ok(true) } else { self.memory.is_complete(event) }
    }
}

/// The defect of an allocator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    /// Uses by other streams are not recorded.
    ForgetsStreams,
    /// Every tenth block is 512 bytes smaller than it should be.
    CutsShort,
}

#[derive(Debug)]
struct DefectiveAllocator {
    allocator: CachingAllocator<Memory>,
    mistake: Mistake,
    calls: u32,
}

impl DefectiveAllocator {
    fn new(mistake: Mistake) -> Self {
        let device = Memory::new(Bytes::gib(4));
        Self {
            allocator: CachingAllocator::new(device, AllocatorConfig::default(), NullSink),
            mistake,
            calls: 0,
        }
    }
}

impl BlockAllocator for DefectiveAllocator {
    type Device = Memory;
    type Block = Allocation;

    fn allocate(&mut self, size: Bytes, stream: StreamId) -> Result<Allocation, AllocError> {
        self.calls += 1;
        let cuts = self.mistake == Mistake::CutsShort && self.calls.is_multiple_of(10);
        let size = if cuts { Bytes::new(size.get().saturating_sub(512).max(1)) } else { size };
        self.allocator.allocate(size, stream)
    }

    fn addr(block: &Allocation) -> DeviceAddr {
        block.addr()
    }

    fn free(&mut self, block: Allocation) -> Result<(), AllocError> {
        self.allocator.free(block)
    }

    fn record_stream(&mut self, block: &Allocation, stream: StreamId) -> Result<(), AllocError> {
        match self.mistake {
            Mistake::ForgetsStreams => Ok(()),
            Mistake::CutsShort => self.allocator.record_stream(block, stream),
        }
    }

    fn empty_cache(&mut self) -> Result<(), AllocError> {
        self.allocator.empty_cache()
    }

    fn device(&mut self) -> &mut Memory {
        self.allocator.device_mut()
    }
}

fn over(defect: Defect, conf: &str) -> WorkloadReport {
    let mut allocator = CachingAllocator::new(
        DefectiveDevice::new(defect),
        AllocatorConfig::parse(conf, Release::default()).unwrap(),
        NullSink,
    );
    run(&mut allocator, PLAN).unwrap()
}

fn fails(check: impl FnOnce(&mut DefectiveDevice), defect: Defect) -> bool {
    let mut device = DefectiveDevice::new(defect);
    catch_unwind(AssertUnwindSafe(|| check(&mut device))).is_err()
}

#[test]
fn what_is_not_broken_passes() {
    assert_eq!(over(Defect::Nothing, "").faults, []);
    assert!(!fails(conformance::check_segments, Defect::Nothing));
    assert!(!fails(conformance::check_events, Defect::Nothing));
    assert!(!fails(conformance::check_data, Defect::Nothing));
}

#[test]
fn events_that_complete_too_early_are_found() {
    assert!(over(Defect::EarlyEvents, "").faults.len() > 10);
    assert!(fails(conformance::check_events, Defect::EarlyEvents));
    let mut allocator = CachingAllocator::new(
        DefectiveDevice::new(Defect::EarlyEvents),
        AllocatorConfig::default(),
        NullSink,
    );
    let held = catch_unwind(AssertUnwindSafe(|| check_reuse_waits(&mut allocator)));
    assert!(held.is_err() || held.is_ok_and(|faults| !faults.unwrap().is_empty()));
}

#[test]
fn segments_that_overlap_are_found() {
    assert!(fails(conformance::check_segments, Defect::Overlap));
    assert!(fails(conformance::check_data, Defect::Overlap));
}

#[test]
fn memory_that_shows_in_two_places_is_found() {
    assert!(!over(Defect::Alias, "expandable_segments:True").faults.is_empty());
}

#[test]
fn memory_that_does_not_come_back_is_found() {
    assert!(fails(conformance::check_segments, Defect::Leak));
}

#[test]
fn an_allocator_that_forgets_other_streams_is_found() {
    let mut mistaken = DefectiveAllocator::new(Mistake::ForgetsStreams);
    assert!(run(&mut mistaken, PLAN).unwrap().faults.len() > 10);
    let held = catch_unwind(AssertUnwindSafe(|| {
        check_reuse_waits(&mut DefectiveAllocator::new(Mistake::ForgetsStreams))
    }));
    assert!(held.is_err() || held.is_ok_and(|faults| !faults.unwrap().is_empty()));
}

#[test]
fn blocks_that_are_too_short_are_found() {
    let report = run(&mut DefectiveAllocator::new(Mistake::CutsShort), PLAN).unwrap();
    assert!(report.faults.len() > 10, "{}", report.faults.len());
}
