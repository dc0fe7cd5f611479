//! The suite over WebGPU in a browser, where no call blocks: the tests await the faults that the device
//! found.

use blockyard_allocator::CachingAllocator;
use blockyard_device::{DeviceError, DeviceMemory, VirtualDevice};
use blockyard_device_wgpu::{Gpu, WgpuDevice};
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::AllocatorConfig;
use blockyard_tests::conformance;
use blockyard_tests::workload::{check_reuse_waits, run};
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

use crate::streamed::StreamedDevice;
use crate::{BUDGET, PLAN, range};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

async fn open() -> Gpu {
    Gpu::open().await.expect("the browser was started with an adapter for WebGPU")
}

#[wasm_bindgen_test]
async fn an_adapter_has_a_name_and_limits() {
    let gpu = open().await;
    let info = gpu.info();
    console_log!("{info:?}");
    assert!(info.name.to_lowercase().contains("swiftshader"), "{}", info.name);
    assert_eq!(info.backend, "WebGPU");
    assert!(info.largest_buffer >= Bytes::mib(256));
    assert!(info.largest_binding >= Bytes::mib(128));
}

#[wasm_bindgen_test]
async fn the_device_does_what_every_device_does() {
    let gpu = open().await;
    conformance::check_segments(&mut StreamedDevice::new(&gpu, Bytes::mib(256)));
    conformance::check_out_of_memory(&mut StreamedDevice::new(&gpu, Bytes::mib(256)));
    conformance::check_events(&mut StreamedDevice::new(&gpu, Bytes::mib(64)));
}

#[wasm_bindgen_test]
async fn what_is_overwritten_is_found() {
    let gpu = open().await;
    let mut device = WgpuDevice::new(&gpu, Bytes::mib(64));
    let base = device.allocate_segment(Bytes::mib(20)).unwrap();
    device.fill(range(base, Bytes::mib(20), 1)).unwrap();
    device.check(range(base, Bytes::mib(20), 1), 7).unwrap();
    assert_eq!(device.mismatches().await.unwrap(), []);
    let inner = base.offset(Bytes::mib(5));
    device.fill(range(inner, Bytes::new(512), 2)).unwrap();
    device.check(range(base, Bytes::mib(20), 1), 8).unwrap();
    let [mismatch] = device.mismatches().await.unwrap()[..] else { panic!("one check found it") };
    assert_eq!((mismatch.tag, mismatch.wrong), (8, 128));
    assert!(mismatch.at >= inner && mismatch.at < inner.offset(Bytes::new(512)), "{mismatch:?}");
}

#[wasm_bindgen_test]
async fn blocks_keep_their_data_under_the_allocator() {
    let gpu = open().await;
    for seed in 1..=2 {
        let device = StreamedDevice::new(&gpu, BUDGET);
        let mut blocks = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
        let report = run(&mut blocks, PLAN.with_seed(seed)).unwrap();
        assert!(report.blocks > 100 && report.crossings > 10 && report.reused > 10, "{report:?}");
        assert_eq!(blocks.device_mut().0.mismatches().await.unwrap(), []);
    }
}

#[wasm_bindgen_test]
async fn a_block_waits_for_the_streams_that_use_it() {
    let gpu = open().await;
    let device = StreamedDevice::new(&gpu, Bytes::mib(256));
    let mut blocks = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
    check_reuse_waits(&mut blocks).unwrap();
    assert_eq!(blocks.device_mut().0.mismatches().await.unwrap(), []);
}

#[wasm_bindgen_test]
async fn a_segment_beyond_the_largest_buffer_is_refused_with_the_limit() {
    let gpu = open().await;
    let largest = gpu.info().largest_buffer;
    let mut device = WgpuDevice::new(&gpu, Bytes::new(u64::MAX));
    let mut planned = VirtualDevice::new(Bytes::mib(64));
    let error = device.allocate_segment(largest + Bytes::mib(2)).unwrap_err();
    assert!(
        matches!(error, DeviceError::TooLarge { largest: reported, .. } if reported == largest),
        "{error}"
    );
    let size = Bytes::mib(2);
    assert_eq!(device.allocate_segment(size).unwrap(), planned.allocate_segment(size).unwrap());
}

#[wasm_bindgen_test]
async fn waiting_does_not_block_and_awaiting_completes_events() {
    let gpu = open().await;
    let mut device = WgpuDevice::new(&gpu, Bytes::mib(64));
    let base = device.allocate_segment(Bytes::mib(2)).unwrap();
    device.fill(range(base, Bytes::mib(2), 1)).unwrap();
    let first = device.record_event(StreamId::DEFAULT).unwrap();
    assert!(!device.is_complete(&first).unwrap(), "a browser tells between tasks only");
    device.mismatches().await.unwrap();
    device.check(range(base, Bytes::mib(2), 1), 0).unwrap();
    device.mismatches().await.unwrap();
    assert!(device.is_complete(&first).unwrap());
    device.fill(range(base, Bytes::mib(2), 2)).unwrap();
    let second = device.record_event(StreamId::DEFAULT).unwrap();
    device.wait(&second).unwrap();
    assert!(device.is_complete(&second).unwrap());
}

#[wasm_bindgen_test]
async fn an_error_that_comes_late_is_reported_by_the_next_call() {
    let gpu = open().await;
    let mut device = WgpuDevice::new(&gpu, Bytes::mib(64));
    let base = device.allocate_segment(Bytes::mib(2)).unwrap();
    gpu.close();
    let error = device.allocate_segment(Bytes::mib(2)).unwrap_err();
    assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
    assert!(matches!(device.fill(range(base, Bytes::mib(2), 1)), Err(DeviceError::Lost { .. })));
    assert!(matches!(device.mismatches().await, Err(DeviceError::Lost { .. })));
    // The lost device of one adapter does not affect another adapter.
    WgpuDevice::new(&open().await, Bytes::mib(64)).allocate_segment(Bytes::mib(2)).unwrap();
}
