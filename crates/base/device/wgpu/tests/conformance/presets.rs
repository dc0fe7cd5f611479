//! The presets run on the adapter as they do on the virtual device, with every block's contents checked.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use blockyard_device::{Advance, AnyDevice, DeviceError, DeviceMemory, StreamEvent, forward_device};
use blockyard_device_wgpu::{Gpu, StreamedWgpu, WgpuDevice};
use blockyard_record::{Bytes, StreamId};
use blockyard_replay::{CheckedRun, DataCheck, PatternedBlock, RunSettings, run};
use blockyard_rules::AllocatorConfig;
use blockyard_workload::Workload;
use blockyard_workload::presets::presets;

use crate::{range, vulkan::open};

/// Device memory, small enough for a software adapter.
const SWEPT: Bytes = Bytes::mib(512);

/// One device with two interfaces: the allocator's device memory, and the contents that the run writes and
/// checks.
#[derive(Clone, Debug)]
struct SharedDevice(Rc<RefCell<StreamedWgpu>>);

impl SharedDevice {
    fn new(gpu: &Gpu, capacity: Bytes) -> Self {
        Self(Rc::new(RefCell::new(StreamedWgpu::new(WgpuDevice::new(gpu, capacity)))))
    }
}

impl DataCheck for SharedDevice {
    fn fill(&mut self, stream: StreamId, it: PatternedBlock) -> Result<(), DeviceError> {
        self.0.borrow_mut().fill(stream, range(it.addr, it.size, it.pattern));
        Ok(())
    }

    fn check(&mut self, stream: StreamId, it: PatternedBlock, step: u32) -> Result<(), DeviceError> {
        self.0.borrow_mut().check(stream, range(it.addr, it.size, it.pattern), step);
        Ok(())
    }

    fn submit_work(&mut self) -> Result<(), DeviceError> {
        self.0.borrow_mut().submit_work()
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        self.0.borrow_mut().advance_streams(None);
        Ok(())
    }
}

impl Advance for SharedDevice {
    forward_device!(|device| device.0.borrow_mut() => advance_streams);
}

impl DeviceMemory for SharedDevice {
    type Event = StreamEvent;

    forward_device!(|device| device.0.borrow_mut() => total_memory, memory_info, allocate_segment);
    forward_device!(|device| device.0.borrow_mut() => release_segment, record_event, is_complete, wait);
}

#[test]
fn presets_run_as_on_the_virtual_device_and_keep_their_data() {
    let gpu = open();
    for preset in presets().iter().filter(|preset| preset.id != "two-tensors") {
        let workload = Workload::parse(preset.text).unwrap();
        let settings = RunSettings {
            title: preset.title.to_owned(),
            config: AllocatorConfig::default(),
            capacity: preset.capacity,
        };
        let shared = SharedDevice::new(&gpu, preset.capacity);
        let mut checked =
            CheckedRun::new(AnyDevice::new(shared.clone()), shared.clone(), SWEPT, &settings, &workload);
        while checked.step().unwrap() {}
        assert_eq!(shared.0.borrow_mut().mismatches_now().unwrap(), [], "{}", preset.id);
        let (recording, steps) = checked.finish().unwrap();
        let planned = run(&workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(recording.to_bytes().unwrap() == planned.to_bytes().unwrap(), "{} runs otherwise", preset.id);
        assert_eq!(steps.len(), recording.step_count());
        let filled: Bytes = steps.iter().map(|step| step.filled).sum();
        let checked: Bytes = steps.iter().map(|step| step.checked).sum();
        println!("{}: {filled} filled, {checked} checked", preset.id);
        assert!(filled > Bytes::ZERO && checked >= filled, "{}", preset.id);
    }
}

#[test]
fn a_block_that_is_damaged_is_found_in_its_step() {
    let gpu = open();
    let workload = Workload::parse("a = alloc 3 MiB\nb = alloc 1 MiB\nfree a\nfree b").unwrap();
    let settings =
        RunSettings { title: String::new(), config: AllocatorConfig::default(), capacity: Bytes::mib(64) };
    let shared = SharedDevice::new(&gpu, Bytes::mib(64));
    let mut checked =
        CheckedRun::new(AnyDevice::new(shared.clone()), shared.clone(), SWEPT, &settings, &workload);
    checked.step().unwrap();
    checked.step().unwrap();
    let base = blockyard_device::VirtualDevice::FIRST_ADDR;
    shared.0.borrow_mut().fill(StreamId::DEFAULT, range(base, Bytes::new(512), 1));
    while checked.step().unwrap() {}
    for mismatch in shared.0.borrow_mut().mismatches_now().unwrap() {
        checked.found(mismatch.tag, mismatch.wrong);
    }
    let (_, steps) = checked.finish().unwrap();
    let wrong: Vec<u32> = steps.iter().map(|step| step.wrong).collect();
    assert_eq!(wrong, [0, 0, 128, 0], "a was checked before its free, b was not touched");
}
