//! The suite over Vulkan: on Mesa's lavapipe, or on the adapter that the system prefers. With
//! `REQUIRE_VULKAN_GPU=1` a software adapter is a failure.

use std::task::{Context, Poll, Waker};

use blockyard_allocator::CachingAllocator;
use blockyard_device::{DeviceError, DeviceMemory, VirtualDevice};
use blockyard_device_wgpu::{Gpu, PATTERN_ALIGNMENT, WgpuDevice};
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::AllocatorConfig;
use blockyard_tests::conformance;
use blockyard_tests::workload::{RandomWorkload, check_reuse_waits, run};

use crate::streamed::StreamedDevice;
use crate::{BUDGET, PLAN, range};

pub(crate) fn open() -> Gpu {
    let mut opening = std::pin::pin!(Gpu::open());
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(opened) = opening.as_mut().poll(&mut context) {
            let gpu = opened.expect("Vulkan is there; `cargo xtask test` installs lavapipe");
            let info = gpu.info();
            assert!(!(is_gpu_required() && info.is_software), "REQUIRE_VULKAN_GPU=1, but {info:?}");
            return gpu;
        }
    }
}

fn is_gpu_required() -> bool {
    std::env::var_os("REQUIRE_VULKAN_GPU").is_some_and(|value| value == "1")
}

/// The random workload and its device, both larger where the adapter is a GPU.
fn workload(gpu: &Gpu) -> (RandomWorkload, Bytes) {
    if gpu.info().is_software {
        return (PLAN, BUDGET);
    }
    (
        RandomWorkload { requests: 4000, largest: Bytes::mib(64), most_live: Bytes::gib(1), ..PLAN },
        Bytes::gib(2),
    )
}

#[test]
fn an_adapter_has_a_name_and_limits() {
    let gpu = open();
    let info = gpu.info();
    println!("{info:?}");
    assert!(!info.name.is_empty());
    assert_eq!(info.backend, "Vulkan");
    assert!(info.largest_buffer >= Bytes::mib(256));
    assert!(info.largest_binding >= Bytes::mib(128));
}

#[test]
fn the_device_does_what_every_device_does() {
    let gpu = open();
    conformance::check_segments(&mut StreamedDevice::new(&gpu, Bytes::mib(256)));
    conformance::check_out_of_memory(&mut StreamedDevice::new(&gpu, Bytes::mib(256)));
    conformance::check_events(&mut StreamedDevice::new(&gpu, Bytes::mib(64)));
    conformance::check_virtual_memory(&mut StreamedDevice::new(&gpu, Bytes::mib(64)));
    conformance::check_data(&mut StreamedDevice::new(&gpu, Bytes::mib(64)));
}

#[test]
fn blocks_keep_their_data_under_the_allocator() {
    let gpu = open();
    let (plan, capacity) = workload(&gpu);
    for seed in 1..=2 {
        let device = StreamedDevice::new(&gpu, capacity);
        let mut blocks = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
        let report = run(&mut blocks, plan.with_seed(seed)).unwrap();
        println!(
            "seed {seed}: {} blocks, {} filled, {} on two streams",
            report.blocks, report.filled, report.crossings
        );
        assert!(report.blocks > 100 && report.crossings > 10 && report.reused > 10, "{report:?}");
        assert_eq!(report.faults, []);
    }
}

#[test]
fn a_block_waits_for_the_streams_that_use_it() {
    let device = StreamedDevice::new(&open(), Bytes::mib(256));
    let mut blocks = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
    assert_eq!(check_reuse_waits(&mut blocks).unwrap(), []);
}

#[test]
fn addresses_are_those_of_the_virtual_device() {
    let mut device = WgpuDevice::new(&open(), Bytes::mib(64));
    let mut planned = VirtualDevice::new(Bytes::mib(64));
    for size in [Bytes::mib(20), Bytes::mib(2), Bytes::new(512), Bytes::mib(10)] {
        assert_eq!(device.allocate_segment(size).unwrap(), planned.allocate_segment(size).unwrap());
    }
}

#[test]
fn the_budget_decides_at_once_and_is_given_back() {
    let mut device = WgpuDevice::new(&open(), Bytes::mib(64));
    let first = device.allocate_segment(Bytes::mib(40)).unwrap();
    assert!(matches!(device.allocate_segment(Bytes::mib(40)), Err(DeviceError::OutOfMemory { .. })));
    assert_eq!(device.memory_info().unwrap().free, Bytes::mib(24));
    device.release_segment(first).unwrap();
    assert!(matches!(device.release_segment(first), Err(DeviceError::UnknownSegment(_))));
    device.allocate_segment(Bytes::mib(40)).unwrap();
}

#[test]
fn a_segment_beyond_the_largest_buffer_is_refused_with_the_limit() {
    let gpu = open();
    let largest = gpu.info().largest_buffer;
    let mut device = WgpuDevice::new(&gpu, Bytes::new(u64::MAX));
    let error = device.allocate_segment(largest + Bytes::mib(2)).unwrap_err();
    assert!(
        matches!(error, DeviceError::TooLarge { largest: reported, .. } if reported == largest),
        "{error}"
    );
    device.allocate_segment(Bytes::mib(2)).unwrap();
}

#[test]
fn data_stays_until_something_else_is_written() {
    let mut device = WgpuDevice::new(&open(), Bytes::mib(64));
    let base = device.allocate_segment(Bytes::mib(20)).unwrap();
    let other = device.allocate_segment(Bytes::mib(2)).unwrap();
    let second = base.offset(Bytes::mib(3));
    device.fill(range(base, Bytes::mib(3), 1)).unwrap();
    device.fill(range(second, Bytes::mib(5), 2)).unwrap();
    device.fill(range(other, Bytes::mib(2), 3)).unwrap();
    device.check(range(base, Bytes::mib(3), 1), 0).unwrap();
    device.check(range(second, Bytes::mib(5), 2), 0).unwrap();
    device.check(range(other, Bytes::mib(2), 3), 0).unwrap();
    assert_eq!(device.mismatches_now().unwrap(), []);
    // An overlap of one allocation granule: every word of it counts.
    device.fill(range(second.offset(Bytes::new(512)), Bytes::new(512), 9)).unwrap();
    device.check(range(base, Bytes::mib(3), 1), 5).unwrap();
    device.check(range(second, Bytes::mib(5), 2), 6).unwrap();
    device.check(range(other, Bytes::mib(2), 2), 7).unwrap();
    let [overlapped, other] = device.mismatches_now().unwrap()[..] else {
        panic!("two checks find something")
    };
    assert_eq!((overlapped.tag, overlapped.wrong), (6, 128));
    assert_eq!((other.tag, other.wrong), (7, 524_288), "another pattern differs everywhere");
    assert!(device.mismatches_now().unwrap().is_empty());
}

#[test]
fn what_is_larger_than_a_binding_is_checked_in_parts() {
    let gpu = open();
    let largest = gpu.info().largest_binding;
    // Bindings end at any word, blocks at whole granules.
    let behind = Bytes::new(largest.get().next_multiple_of(PATTERN_ALIGNMENT.get()));
    let size = behind + Bytes::mib(2);
    if size > gpu.info().largest_buffer {
        return;
    }
    let mut device = WgpuDevice::new(&gpu, size);
    let base = device.allocate_segment(size).unwrap();
    device.fill(range(base, size, 7)).unwrap();
    device.check(range(base, size, 7), 0).unwrap();
    device.fill(range(base.offset(behind), Bytes::new(512), 8)).unwrap();
    device.check(range(base, size, 7), 1).unwrap();
    let [mismatch] = device.mismatches_now().unwrap()[..] else { panic!("one check finds it") };
    assert_eq!((mismatch.tag, mismatch.wrong), (1, 128));
    assert!(mismatch.at >= base.offset(behind), "{mismatch:?}");
}

#[test]
fn many_passes_keep_their_order_and_their_counts() {
    let mut device = WgpuDevice::new(&open(), Bytes::mib(2));
    let base = device.allocate_segment(Bytes::mib(2)).unwrap();
    let size = Bytes::new(512);
    for round in 0..1000 {
        device.fill(range(base, size, round)).unwrap();
        device.check(range(base, size, round - round % 2), round).unwrap();
    }
    let found: Vec<_> = device.mismatches_now().unwrap().iter().map(|it| (it.tag, it.wrong)).collect();
    let wanted: Vec<_> = (0..1000).filter(|round| round % 2 == 1).map(|round| (round, 128)).collect();
    assert_eq!(found, wanted);
}

#[test]
fn only_whole_granules_inside_one_segment_are_touched() {
    let mut device = WgpuDevice::new(&open(), Bytes::mib(64));
    let base = device.allocate_segment(Bytes::mib(2)).unwrap();
    device.allocate_segment(Bytes::mib(2)).unwrap();
    let half = Bytes::new(256);
    for (addr, size) in [
        (base, Bytes::mib(3)),
        (base, half),
        (base.offset(half), Bytes::new(512)),
        (base.offset(Bytes::mib(16)), Bytes::new(512)),
        (base, Bytes::new(u64::MAX - 511)),
    ] {
        assert!(
            matches!(device.fill(range(addr, size, 1)), Err(DeviceError::UnknownSegment(_))),
            "{addr} {size}"
        );
    }
    device.release_segment(base).unwrap();
    assert!(matches!(device.check(range(base, Bytes::mib(2), 1), 0), Err(DeviceError::UnknownSegment(_))));
}

#[test]
fn events_complete_when_the_queue_has_done_their_work() {
    let mut device = WgpuDevice::new(&open(), Bytes::mib(64));
    let nothing = device.record_event(StreamId::DEFAULT).unwrap();
    assert!(device.is_complete(&nothing).unwrap(), "there is no work before it");
    let base = device.allocate_segment(Bytes::mib(20)).unwrap();
    device.fill(range(base, Bytes::mib(20), 1)).unwrap();
    let first = device.record_event(StreamId::DEFAULT).unwrap();
    device.fill(range(base, Bytes::mib(20), 2)).unwrap();
    let second = device.record_event(StreamId::new(1)).unwrap();
    device.wait(&second).unwrap();
    assert!(device.is_complete(&first).unwrap());
    assert!(device.is_complete(&second).unwrap());
    while !device.is_complete(&second).unwrap() {}
}

fn is_lost<T>(result: Result<T, DeviceError>) -> bool {
    matches!(result, Err(DeviceError::Lost { source }) if source.to_string() == "it was closed")
}

#[test]
fn a_lost_adapter_is_reported_by_every_later_call() {
    let gpu = open();
    let mut device = WgpuDevice::new(&gpu, Bytes::mib(64));
    let base = device.allocate_segment(Bytes::mib(2)).unwrap();
    device.fill(range(base, Bytes::mib(2), 1)).unwrap();
    let event = device.record_event(StreamId::DEFAULT).unwrap();
    gpu.close();
    assert!(is_lost(device.memory_info()));
    assert!(is_lost(device.allocate_segment(Bytes::mib(2))));
    assert!(is_lost(device.fill(range(base, Bytes::mib(2), 1))));
    assert!(is_lost(device.check(range(base, Bytes::mib(2), 1), 0)));
    assert!(is_lost(device.mismatches_now()));
    assert!(is_lost(device.record_event(StreamId::DEFAULT)));
    assert!(is_lost(device.is_complete(&event)));
    assert!(is_lost(device.wait(&event)));
    assert!(is_lost(device.release_segment(base)));
}
