//! A CUDA device with contents, and whether a test may go without one.

use std::sync::{Mutex, PoisonError};

use blockyard_device::{Advance, DeviceError, DeviceMemory, forward_device};
use blockyard_device_cuda::{CudaDevice, CudaEvent, CudaMismatch, CudaOpenError, Patterns};
use blockyard_record::StreamId;
use blockyard_replay::PatternedBlock;

use crate::pattern_memory::patterned;
use crate::{Fault, PatternMemory};

/// A CUDA device whose memory is filled and checked on the device.
///
/// Checks run a little late, so that a block that is allocated too early is overwritten before its check.
#[derive(Debug)]
pub struct CudaMemory {
    /// The patterns are dropped before the device, since they have memory on it.
    patterns: Patterns,
    device: CudaDevice,
}

const DELAY_NANOS: u64 = 20_000;

/// Runs a test on the first CUDA device, one test at a time, and sees to it that nothing leaks.
///
/// Without a device the function prints that the test is skipped; with `REQUIRE_CUDA=1` it panics.
pub fn on_cuda(test: impl Fn(CudaDevice)) {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed does not make the others fail.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let observer = match CudaDevice::open(0) {
        Ok(device) => device,
        Err(error @ (CudaOpenError::NoDriver { .. } | CudaOpenError::NoDevice { .. })) => {
            assert!(!is_required(), "REQUIRE_CUDA=1, but {error}");
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}: {error:?}"),
    };
    let open = || CudaDevice::open(0).expect("it was opened before");
    let free = || observer.memory_info().expect("the device tells").free;
    let before = free();
    test(open());
    let after = free();
    if after < before {
        // The driver's own memory after the first run stays constant, and a leak grows.
        test(open());
        let again = free();
        println!(
            "free bytes: {} before, {} after, {} after once more",
            before.get(),
            after.get(),
            again.get()
        );
        assert!(again >= after, "{} bytes are gone after each run", after.get() - again.get());
    }
}

fn is_required() -> bool {
    std::env::var_os("REQUIRE_CUDA").is_some_and(|value| value == "1")
}

impl CudaMemory {
    /// Loads the code that fills and checks memory onto the device.
    #[must_use]
    pub fn new(mut device: CudaDevice) -> Self {
        let patterns = Patterns::new(&mut device).expect("the device takes the code");
        Self { patterns, device }
    }

    /// The device itself.
    pub fn device_mut(&mut self) -> &mut CudaDevice {
        &mut self.device
    }
}

impl Advance for CudaMemory {
    forward_device!(|device| device.device => advance_streams);
}

impl PatternMemory for CudaMemory {
    fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.patterns.fill(&mut self.device, stream, block.addr, block.size, block.pattern)
    }

    fn check(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.patterns.delay(&mut self.device, stream, DELAY_NANOS)?;
        self.patterns.check(&mut self.device, stream, block.addr, block.size, block.pattern)
    }

    fn hold(&mut self, stream: StreamId) -> Result<(), DeviceError> {
        self.patterns.hold(&mut self.device, stream)
    }

    fn resume(&mut self, _stream: StreamId) -> Result<(), DeviceError> {
        self.patterns.resume();
        Ok(())
    }

    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError> {
        let faults = self.patterns.mismatches(&mut self.device)?;
        Ok(faults.into_iter().map(fault).collect())
    }
}

fn fault(CudaMismatch { addr, size, pattern, wrong, at, found }: CudaMismatch) -> Fault {
    Fault { block: patterned(addr, size, pattern), wrong: wrong.into(), first: at, found: Some(found) }
}

impl DeviceMemory for CudaMemory {
    type Event = CudaEvent;

    forward_device!(|device| device.device => total_memory, memory_info, allocate_segment, release_segment);
    forward_device!(|device| device.device => record_event, is_complete, wait, virtual_memory);
}
