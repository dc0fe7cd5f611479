//! The device without an allocator.

use std::sync::Arc;
use std::thread;

use blockyard_allocator::{CachingAllocator, SharedAllocator};
use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_device_cuda::{CudaDevice, CudaOpenError, device_count, driver_version};
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::AllocatorConfig;
use blockyard_tests::conformance;
use blockyard_tests::cuda::{CudaMemory, on_cuda};

#[test]
fn segments_are_as_the_trait_says() {
    on_cuda(|mut device| conformance::check_segments(&mut device));
}

#[test]
fn what_does_not_fit_is_out_of_memory() {
    on_cuda(|mut device| conformance::check_out_of_memory(&mut device));
}

#[test]
fn events_are_as_the_trait_says() {
    on_cuda(|device| conformance::check_events(&mut CudaMemory::new(device)));
}

#[test]
fn virtual_memory_is_as_the_trait_says() {
    on_cuda(|mut device| {
        assert!(device.virtual_memory().is_some(), "every device of these years has it");
        conformance::check_virtual_memory(&mut device);
    });
}

#[test]
fn data_is_as_the_trait_says() {
    on_cuda(|device| conformance::check_data(&mut CudaMemory::new(device)));
}

#[test]
fn a_device_tells_what_it_is() {
    on_cuda(|device| {
        let info = device.memory_info().unwrap();
        println!(
            "{} (driver for CUDA {}): {} bytes in all, {} bytes by memory info, {} bytes free",
            device.name(),
            driver_version().unwrap(),
            device.total_memory().get(),
            info.total.get(),
            info.free.get()
        );
        println!("who has what, by NVML: {:?}", info.processes);
        assert!(!device.name().is_empty() && info.free <= info.total);
    });
}

#[test]
fn a_number_that_no_device_has_is_reported_with_those_that_exist() {
    on_cuda(|_| {
        let count = device_count().unwrap();
        match CudaDevice::open(count) {
            Err(CudaOpenError::NoSuchDevice { index, count: found }) => {
                assert_eq!((index, found), (count, count));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_budget_is_all_that_a_device_has() {
    on_cuda(|device| {
        let mut device = device.with_capacity(Bytes::mib(256));
        conformance::check_segments(&mut device);
        conformance::check_out_of_memory(&mut device);
        conformance::check_virtual_memory(&mut device);
        assert_eq!(device.memory_info().unwrap().total, Bytes::mib(256));
    });
}

#[test]
fn what_is_dropped_gives_everything_back() {
    on_cuda(|mut device| {
        let page = Bytes::mib(2);
        device.allocate_segment(Bytes::mib(20)).unwrap();
        let memory = device.virtual_memory().unwrap();
        let base = memory.reserve(Bytes::mib(64)).unwrap();
        memory.map(base, Bytes::mib(8), page).unwrap();
        let event = device.record_event(StreamId::new(5)).unwrap();
        drop(device);
        // An event may outlive its device.
        drop(event);
    });
}

#[test]
fn calls_work_from_any_thread() {
    on_cuda(|device| {
        let allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
        let shared = Arc::new(SharedAllocator::new(allocator));
        thread::scope(|scope| {
            for stream in 0..4 {
                let shared = Arc::clone(&shared);
                scope.spawn(move || {
                    let stream = StreamId::new(stream);
                    for size in 1..200 {
                        let addr = shared.allocate(Bytes::kib(size * 37), stream).unwrap();
                        shared.record_stream(addr, StreamId::new(7)).unwrap();
                        shared.free(addr).unwrap();
                    }
                });
            }
        });
        shared.with(|allocator| {
            allocator.empty_cache().unwrap();
            assert_eq!(allocator.stats().reserved_bytes.all.current, 0);
        });
    });
}

#[test]
fn an_address_of_nobody_is_refused() {
    on_cuda(|mut device| {
        let base = device.allocate_segment(Bytes::mib(2)).unwrap();
        let beyond = base.offset(Bytes::mib(64));
        assert!(matches!(device.release_segment(beyond), Err(DeviceError::UnknownSegment(_))));
        device.release_segment(base).unwrap();
    });
}
