//! The suite on a fake driver, and cases that are rare with a real driver. Each test runs in a separate
//! process, which ends with an error if a resource is left when the last context is released.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use blockyard_allocator::CachingAllocator;
use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_device_cuda::{CudaDevice, CudaError, CudaOpenError, Patterns};
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::AllocatorConfig;

/// The bytes of the device of the recordings.
const RECORDED_MEMORY: &str = "150109880320";
const IS_CHILD: &str = "BLOCKYARD_ON_STAND_IN";

/// A folder in which the fake driver is called as the driver and NVML are; `None` where the tests were
/// carried to another machine without the library.
fn library() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(make_library).clone()
}

fn make_library() -> Option<PathBuf> {
    let this = std::env::current_exe().unwrap();
    let target = this.parent().and_then(|deps| deps.parent()).unwrap();
    let built = target.join("examples/libfake_cuda.so");
    // `cargo test` builds examples beside the tests, but not when it is asked for one test.
    if !built.exists() {
        let Some(cargo) = std::env::var_os("CARGO") else {
            println!("skipped: the fake driver is not here");
            return None;
        };
        let profile = if target.ends_with("release") { "release" } else { "dev" };
        let arguments =
            ["build", "--package", "blockyard-tests", "--example", "fake_cuda", "--profile", profile];
        assert!(Command::new(cargo).args(arguments).status().unwrap().success());
    }
    let place = target.join("examples/fake_cuda_library");
    std::fs::create_dir_all(&place).unwrap();
    for name in ["libcuda.so", "libnvidia-ml.so.1"] {
        let link = place.join(name);
        let made = std::os::unix::fs::symlink(&built, &link);
        assert!(made.is_ok() || link.exists(), "{made:?}");
    }
    Some(place)
}

/// Runs the test of that name again, with the fake driver; in that process it calls `act`.
fn on_fake_driver(name: &str, settings: &[(&str, &str)], act: impl FnOnce()) {
    if std::env::var_os(IS_CHILD).is_some() {
        act();
        println!("done as it should be");
        return;
    }
    let Some(folder) = library() else { return };
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("fake_driver::{name}"), "--nocapture"])
        .env("LD_LIBRARY_PATH", folder)
        .env(IS_CHILD, "1")
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let output =
        format!("{}\n{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && output.contains("done as it should be"), "{output}");
}

fn open() -> CudaDevice {
    CudaDevice::open(0).unwrap()
}

fn free(device: &mut CudaDevice) -> Bytes {
    device.memory_info().unwrap().free
}

fn word(error: &DeviceError) -> &str {
    let (DeviceError::Sticky { source, .. }
    | DeviceError::Lost { source }
    | DeviceError::Driver { source, .. }) = error
    else {
        panic!("{error:?}")
    };
    source.downcast_ref::<CudaError>().unwrap().name()
}

#[test]
fn the_whole_suite_passes() {
    if std::env::var_os("BLOCKYARD_SUITE_ON_STAND_IN").is_some() {
        return;
    }
    let Some(folder) = library() else { return };
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "fake_driver::"])
        .env("LD_LIBRARY_PATH", folder)
        .env("BLOCKYARD_SUITE_ON_STAND_IN", "1")
        .env("REQUIRE_CUDA", "1")
        .env("FAKE_CUDA_MEMORY", RECORDED_MEMORY)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{out}\n{err}");
}

#[test]
fn a_driver_without_devices_is_reported() {
    on_fake_driver("a_driver_without_devices_is_reported", &[("FAKE_CUDA_DEVICES", "0")], || {
        assert!(matches!(CudaDevice::open(0), Err(CudaOpenError::NoDevice { source: None })));
    });
}

#[test]
fn a_driver_that_starts_with_no_device_is_reported() {
    let name = "a_driver_that_starts_with_no_device_is_reported";
    on_fake_driver(name, &[("FAKE_CUDA_FAIL", "cuInit:1:100")], || match CudaDevice::open(0) {
        Err(CudaOpenError::NoDevice { source: Some(word) }) => {
            assert_eq!(word.name(), "CUDA_ERROR_NO_DEVICE");
        }
        other => panic!("{other:?}"),
    });
}

#[test]
fn a_device_number_is_held_against_the_devices() {
    let name = "a_device_number_is_held_against_the_devices";
    on_fake_driver(name, &[("FAKE_CUDA_DEVICES", "2")], || {
        assert!(CudaDevice::open(1).is_ok());
        assert!(matches!(CudaDevice::open(2), Err(CudaOpenError::NoSuchDevice { index: 2, count: 2 })));
    });
}

#[test]
fn a_context_that_does_not_fit_is_reported() {
    let name = "a_context_that_does_not_fit_is_reported";
    on_fake_driver(
        name,
        &[("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain:1:2,cuDeviceTotalMem:1:400")],
        || {
            assert!(matches!(CudaDevice::open(0), Err(CudaOpenError::OutOfMemory { .. })));
            // The second try fails with its context retained, which is released again.
            match CudaDevice::open(0) {
                Err(CudaOpenError::Driver { operation: "cuDeviceTotalMem", source }) => {
                    assert_eq!(source.code(), 400);
                }
                other => panic!("{other:?}"),
            }
            drop(open());
        },
    );
}

#[test]
fn pages_are_mapped_all_or_none() {
    let name = "pages_are_mapped_all_or_none";
    // The third page cannot be made; then the second cannot be mapped; then access is refused.
    let failures = "cuMemCreate:3:2,cuMemMap:4:1,cuMemSetAccess:1:1";
    on_fake_driver(name, &[("FAKE_CUDA_FAIL", failures)], || {
        let mut device = open();
        let (before, page, size) = (free(&mut device), Bytes::mib(2), Bytes::mib(8));
        let base = device.virtual_memory().unwrap().reserve(Bytes::mib(64)).unwrap();
        let map = |device: &mut CudaDevice| device.virtual_memory().unwrap().map(base, size, page);
        assert!(matches!(map(&mut device), Err(DeviceError::OutOfMemory { .. })));
        assert_eq!(free(&mut device), before);
        assert!(matches!(map(&mut device), Err(DeviceError::Driver { operation: "cuMemMap", .. })));
        assert_eq!(free(&mut device), before);
        assert!(matches!(map(&mut device), Err(DeviceError::Driver { operation: "cuMemSetAccess", .. })));
        assert_eq!(free(&mut device), before);
        map(&mut device).unwrap();
        let memory = device.virtual_memory().unwrap();
        memory.unmap(base, size, page).unwrap();
        memory.release(base).unwrap();
    });
}

/// Ten processes are more than the first call has room for; processes without a known size are left out.
#[test]
fn memory_that_runs_out_is_reported_with_who_has_it() {
    let name = "memory_that_runs_out_is_reported_with_who_has_it";
    let mut held: Vec<String> = (1..=8).map(|id| format!("{}:{}", 700 + id, id << 20)).collect();
    held.push(format!("0:{}", 3u64 << 30));
    held.push(format!("999:{}", u64::MAX));
    let settings = [("FAKE_CUDA_MEMORY", "4294967296"), ("FAKE_CUDA_PROCESSES", &held.join(","))];
    on_fake_driver(name, &settings, || {
        let device = open();
        let processes = device.memory_info().unwrap().processes;
        assert_eq!(processes.len(), 9);
        assert_eq!((processes[1].process, processes[1].used), (Some(702), Bytes::mib(2)));
        assert_eq!((processes[8].process, processes[8].used), (None, Bytes::gib(3)));
        let mut allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
        let error = allocator.allocate(Bytes::gib(5), StreamId::DEFAULT).unwrap_err().to_string();
        let words = "Process 708 has 8.00 MiB memory in use. \
                     Including non-PyTorch memory, this process has 3.00 GiB memory in use. Of the allocated";
        assert!(error.contains(words), "{error}");
    });
}

#[test]
fn a_sticky_error_is_reported_by_every_later_call() {
    let name = "a_sticky_error_is_reported_by_every_later_call";
    on_fake_driver(name, &[("FAKE_CUDA_FAIL", "cuEventRecord:1:719")], || {
        let mut device = open();
        let error = device.record_event(StreamId::DEFAULT).unwrap_err();
        assert!(matches!(error, DeviceError::Sticky { operation: "cuEventRecord", .. }), "{error:?}");
        assert_eq!(word(&error), "CUDA_ERROR_LAUNCH_FAILED");
        let error = device.allocate_segment(Bytes::mib(2)).unwrap_err();
        assert!(matches!(error, DeviceError::Sticky { .. }), "{error:?}");
    });
}

#[test]
fn a_lost_device_is_reported() {
    on_fake_driver("a_lost_device_is_reported", &[("FAKE_CUDA_FAIL", "cuMemAlloc:1:709")], || {
        let error = open().allocate_segment(Bytes::mib(2)).unwrap_err();
        assert!(matches!(error, DeviceError::Lost { .. }), "{error:?}");
        assert_eq!(word(&error), "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    });
}

#[test]
fn what_goes_wrong_while_streams_go_on_is_reported_by_the_next_call() {
    let name = "what_goes_wrong_while_streams_go_on_is_reported_by_the_next_call";
    on_fake_driver(name, &[("FAKE_CUDA_FAIL", "cuStreamSynchronize:1:1")], || {
        use blockyard_device::Advance as _;
        let mut device = open();
        device.advance_streams(Some(StreamId::new(3)));
        // A question is answered and takes nothing away.
        device.memory_info().unwrap();
        assert_eq!(word(&device.allocate_segment(Bytes::mib(2)).unwrap_err()), "CUDA_ERROR_INVALID_VALUE");
        device.allocate_segment(Bytes::mib(2)).unwrap();
    });
}

#[test]
fn code_that_cannot_be_brought_to_the_device_leaves_nothing_behind() {
    let name = "code_that_cannot_be_brought_to_the_device_leaves_nothing_behind";
    let failures = "cuModuleGetFunction:2:1,cuMemAlloc:1:2,cuMemHostAlloc:1:2,cuMemsetD32Async:1:1";
    on_fake_driver(name, &[("FAKE_CUDA_FAIL", failures)], || {
        let mut device = open();
        let before = free(&mut device);
        assert!(matches!(Patterns::new(&mut device), Err(DeviceError::Driver { .. })));
        assert!(matches!(Patterns::new(&mut device), Err(DeviceError::OutOfMemory { .. })));
        assert!(Patterns::new(&mut device).is_err());
        assert!(Patterns::new(&mut device).is_err());
        assert_eq!(free(&mut device), before);
        drop(Patterns::new(&mut device).unwrap());
        assert_eq!(free(&mut device), before);
    });
}
