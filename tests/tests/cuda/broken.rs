//! Work that breaks the device for its whole process, so the test runs in a separate process.

use std::error::Error as _;
use std::process::Command;

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_device_cuda::{CudaDevice, CudaError};
use blockyard_record::{Bytes, StreamId};
use blockyard_replay::PatternedBlock;
use blockyard_tests::PatternMemory;
use blockyard_tests::cuda::{CudaMemory, on_cuda};

const IS_CHILD: &str = "BLOCKYARD_BREAKS_ITS_DEVICE";

#[test]
fn work_that_breaks_the_device_is_reported_as_such_from_then_on() {
    if std::env::var_os(IS_CHILD).is_some() {
        break_the_device();
        return;
    }
    on_cuda(|_| {
        let name = "broken::work_that_breaks_the_device_is_reported_as_such_from_then_on";
        let this = std::env::current_exe().unwrap();
        let child =
            Command::new(this).args(["--exact", name, "--nocapture"]).env(IS_CHILD, "1").output().unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{output}\n{}", String::from_utf8_lossy(&child.stderr));
        assert!(output.contains("broken as it should be"), "{output}");
        println!("{output}");
    });
}

fn break_the_device() {
    let mut memory = CudaMemory::new(CudaDevice::open(0).unwrap());
    let base = memory.virtual_memory().unwrap().reserve(Bytes::mib(64)).unwrap();
    // The addresses are reserved and have no memory, which the device notices when the work runs.
    let block = PatternedBlock { addr: base, size: Bytes::mib(2), pattern: 1 };
    memory.fill(StreamId::DEFAULT, block).unwrap();
    let error = memory.device_mut().synchronize().unwrap_err();
    let DeviceError::Sticky { source, .. } = &error else { panic!("{error:?}") };
    let word = source.downcast_ref::<CudaError>().unwrap();
    println!("broken as it should be: {error}: {word}");
    assert_eq!(word.name(), "CUDA_ERROR_ILLEGAL_ADDRESS");
    for error in [
        memory.allocate_segment(Bytes::mib(2)).unwrap_err(),
        memory.record_event(StreamId::DEFAULT).unwrap_err(),
        memory.memory_info().unwrap_err(),
    ] {
        assert!(matches!(error, DeviceError::Sticky { .. }), "{error:?}");
        assert!(error.source().is_some());
    }
}
