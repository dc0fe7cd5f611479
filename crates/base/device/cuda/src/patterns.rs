//! Patterns that the device writes into its memory and reads back: proof of a block's data.

use std::ffi::CStr;
use std::sync::Arc;

use blockyard_device::DeviceError;
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::CudaDevice;
use crate::context::DeviceContext;
use crate::driver::{self, ContextGuard, Function, Module, SharedWord};
use crate::error::DriverError;

/// Fills and checks memory of a [`CudaDevice`] with patterns, on its streams.
///
/// The i-th word of 4 bytes of a pattern `p` is `p + i * 0x9e3779b1`, modulo 2^32. The value itself takes 64
/// KiB of device memory.
#[derive(Debug)]
pub struct Patterns {
    context: Arc<DeviceContext>,
    /// `None` only while the value is dropped.
    code: Option<Code>,
    results: DeviceAddr,
    checks: Vec<Check>,
    found: Vec<CudaMismatch>,
    /// How often a stream was stopped, and the number up to which streams may continue.
    held: u32,
    gate: Option<SharedWord>,
}

#[derive(Debug)]
struct Code {
    module: Module,
    fill: Function,
    check: Function,
    gate: Function,
}

#[derive(Clone, Copy, Debug)]
struct Check {
    addr: DeviceAddr,
    size: Bytes,
    pattern: u32,
}

/// Memory that does not hold the pattern that was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaMismatch {
    /// The first address of the check.
    pub addr: DeviceAddr,
    /// How many bytes were checked.
    pub size: Bytes,
    /// The pattern that was expected.
    pub pattern: u32,
    /// How many words of 4 bytes are wrong, modulo 2^32 and never 0.
    pub wrong: u32,
    /// The address of one of the wrong words.
    pub at: DeviceAddr,
    /// The word in memory at `at`.
    pub found: u32,
}

const CODE: &CStr = match CStr::from_bytes_with_nul(concat!(include_str!("patterns.ptx"), "\0").as_bytes()) {
    Ok(code) => code,
    Err(_) => c"",
};
const THREADS: u32 = 256;
const MAX_BLOCKS: u64 = 1056;
/// A result is two numbers of 64 bits. The first has the count of wrong words in its low half and one wrong
/// word in its high half; the second is the address of that word.
const RESULT: Bytes = Bytes::new(16);
const MAX_CHECKS: usize = 4096;
/// A stream that is never released continues after a time limit, so that a mistake ends in an error and not
/// in a hang.
const MAX_HOLD_NANOS: u64 = 5_000_000_000;

impl Patterns {
    /// Compiles the kernels.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    pub fn new(device: &mut CudaDevice) -> Result<Self, DeviceError> {
        let current = device.enter()?;
        let module = Module::load(&current, CODE)?;
        let function = |name: &CStr| module.function(&current, name);
        let functions =
            (function(c"blockyard_fill"), function(c"blockyard_check"), function(c"blockyard_gate"));
        let (fill, check, gate) = match functions {
            (Ok(fill), Ok(check), Ok(gate)) => (fill, check, gate),
            (Err(failure), ..) | (_, Err(failure), _) | (.., Err(failure)) => {
                module.unload(&current);
                return Err(failure.into());
            }
        };
        let mut patterns = Self {
            context: Arc::clone(&device.context),
            code: Some(Code { module, fill, check, gate }),
            results: DeviceAddr::default(),
            checks: Vec::new(),
            found: Vec::new(),
            held: 0,
            gate: None,
        };
        // From here on, dropping `patterns` releases its resources.
        let size = Bytes::new(RESULT.get() * MAX_CHECKS as u64);
        patterns.results = driver::allocate(&current, size).map_err(|failure| failure.of_request(size))?;
        patterns.gate = Some(SharedWord::allocate(&current)?);
        patterns.clear_results(&current)?;
        driver::synchronize(&current)?;
        Ok(patterns)
    }

    /// Writes the pattern to `size` bytes from `addr` on, in the order of the stream.
    ///
    /// Addresses of a reserved range that have no memory break the device for the rest of the process.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] for addresses that are not the device's; others as the driver reports.
    pub fn fill(
        &mut self,
        device: &mut CudaDevice,
        stream: StreamId,
        addr: DeviceAddr,
        size: Bytes,
        pattern: u32,
    ) -> Result<(), DeviceError> {
        let words = self.words(device, addr, size)?;
        let parameters = &mut [addr.get(), words, pattern.into()];
        self.launch(device, stream, |code| &code.fill, blocks(words), parameters)
    }

    /// Compares `size` bytes from `addr` on with the pattern, in the order of the stream.
    ///
    /// # Errors
    ///
    /// The errors of [`Patterns::fill`].
    pub fn check(
        &mut self,
        device: &mut CudaDevice,
        stream: StreamId,
        addr: DeviceAddr,
        size: Bytes,
        pattern: u32,
    ) -> Result<(), DeviceError> {
        let words = self.words(device, addr, size)?;
        if self.checks.len() == MAX_CHECKS {
            self.collect(device)?;
        }
        let result = self.results.offset(Bytes::new(RESULT.get() * self.checks.len() as u64));
        let parameters = &mut [addr.get(), words, pattern.into(), result.get()];
        self.launch(device, stream, |code| &code.check, blocks(words), parameters)?;
        self.checks.push(Check { addr, size, pattern });
        Ok(())
    }

    /// Makes work that is given to the stream from now on wait for [`Patterns::resume`], at most 5 seconds.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    pub fn hold(&mut self, device: &mut CudaDevice, stream: StreamId) -> Result<(), DeviceError> {
        self.held += 1;
        let held = self.held;
        self.wait_at_gate(device, stream, held, MAX_HOLD_NANOS)
    }

    /// Releases all streams that were stopped.
    pub fn resume(&mut self) {
        let held = self.held;
        if let Some(gate) = &mut self.gate {
            gate.set(held);
        }
    }

    /// Delays work that is given to the stream from now on by this time.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    pub fn delay(
        &mut self,
        device: &mut CudaDevice,
        stream: StreamId,
        nanos: u64,
    ) -> Result<(), DeviceError> {
        self.wait_at_gate(device, stream, u32::MAX, nanos)
    }

    /// Waits for all streams and returns the mismatches since the last call, in the order of the checks.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    pub fn mismatches(&mut self, device: &mut CudaDevice) -> Result<Vec<CudaMismatch>, DeviceError> {
        self.collect(device)?;
        Ok(std::mem::take(&mut self.found))
    }

    fn collect(&mut self, device: &mut CudaDevice) -> Result<(), DeviceError> {
        let current = device.enter()?;
        driver::synchronize(&current)?;
        let mut results = vec![0; self.checks.len() * 2];
        if results.is_empty() {
            return Ok(());
        }
        driver::copy_to_host(&current, &mut results, self.results)?;
        for (check, result) in self.checks.drain(..).zip(results.chunks_exact(2)) {
            let (wrong, found) = halves(result[0]);
            let Check { addr, size, pattern } = check;
            if wrong != 0 {
                let at = DeviceAddr::new(result[1]);
                self.found.push(CudaMismatch { addr, size, pattern, wrong, at, found });
            }
        }
        self.clear_results(&current)?;
        Ok(driver::synchronize(&current)?)
    }

    fn clear_results(&self, current: &ContextGuard) -> Result<(), DriverError> {
        let words = RESULT.get() / 4 * MAX_CHECKS as u64;
        driver::set_words(current, self.results, 0, words, &driver::Stream::default())
    }

    fn words(&self, device: &CudaDevice, addr: DeviceAddr, size: Bytes) -> Result<u64, DeviceError> {
        let is_ours = Arc::ptr_eq(&self.context, &device.context) && device.holds(addr, size);
        let is_whole = addr.get().is_multiple_of(4) && size.get().is_multiple_of(4);
        if is_ours && is_whole { Ok(size.get() / 4) } else { Err(DeviceError::UnknownSegment(addr)) }
    }

    fn wait_at_gate(
        &mut self,
        device: &mut CudaDevice,
        stream: StreamId,
        number: u32,
        nanos: u64,
    ) -> Result<(), DeviceError> {
        let gate = self.gate.as_ref().map_or(DeviceAddr::default(), SharedWord::addr);
        let parameters = &mut [gate.get(), number.into(), nanos];
        self.launch(device, stream, |code| &code.gate, (1, 1), parameters)
    }

    fn launch(
        &self,
        device: &mut CudaDevice,
        stream: StreamId,
        function: impl Fn(&Code) -> &Function,
        shape: (u32, u32),
        parameters: &mut [u64],
    ) -> Result<(), DeviceError> {
        let Some(code) = &self.code else { return Ok(()) };
        let current = device.enter()?;
        let stream = device.stream(&current, stream)?;
        #[expect(unsafe_code, reason = "only this module knows what its code takes")]
        // SAFETY: the three functions take numbers of 64 bits, as many as their callers here pass; `words`
        // saw to it that they stay within the device's own memory.
        unsafe {
            function(code).launch(&current, stream, shape, parameters)?;
        }
        Ok(())
    }
}

impl Drop for Patterns {
    fn drop(&mut self) {
        self.resume();
        let Ok(current) = self.context.enter() else { return };
        let _ = driver::synchronize(&current);
        if self.results != DeviceAddr::default() {
            let _ = driver::free(&current, self.results);
        }
        if let Some(gate) = self.gate.take() {
            gate.free(&current);
        }
        if let Some(code) = self.code.take() {
            code.module.unload(&current);
        }
    }
}

fn blocks(words: u64) -> (u32, u32) {
    let blocks = words.div_ceil(THREADS.into()).clamp(1, MAX_BLOCKS);
    (u32::try_from(blocks).unwrap_or(1), THREADS)
}

fn halves(number: u64) -> (u32, u32) {
    let [low, high] =
        [number & 0xffff_ffff, number >> 32].map(|half| u32::try_from(half).unwrap_or_default());
    (low, high)
}
