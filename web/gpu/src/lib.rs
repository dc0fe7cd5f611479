//! The page's use of WebGPU: a device, as a class of JavaScript, and figures of many rectangles, drawn in a
//! separate worker (`painter`).
//!
//! This is a separate WebAssembly module, because only readers with a GPU need it. It contains no allocator:
//! the allocator is in the module `web/worker`, which calls this one in the same worker. Addresses, sizes and
//! numbers of events are `BigInt`s. Errors are thrown as a JavaScript `Error` whose name is the variant of
//! `DeviceError`.

#[cfg(target_arch = "wasm32")]
mod painter;

#[cfg(target_arch = "wasm32")]
pub use painter::worker_main;

use std::error::Error;

use blockyard_device::{Advance, DeviceError, DeviceMemory, StreamEvent};
use blockyard_device_wgpu::{PatternRange, StreamedWgpu, WgpuDevice};
use blockyard_record::{Bytes, DeviceAddr, StreamId};
use wasm_bindgen::prelude::*;

/// An open adapter, and the device of the present run.
#[wasm_bindgen]
#[derive(Debug)]
pub struct OpenGpu {
    gpu: blockyard_device_wgpu::Gpu,
    device: StreamedWgpu,
}

/// Opens the adapter that the browser prefers.
///
/// # Errors
///
/// An `Error` with the browser's message, if there is no adapter or the adapter cannot be opened.
#[wasm_bindgen]
pub async fn open() -> Result<OpenGpu, JsValue> {
    let gpu = blockyard_device_wgpu::Gpu::open().await.map_err(|error| thrown("Driver", &error))?;
    let device = StreamedWgpu::new(WgpuDevice::new(&gpu, Bytes::ZERO));
    Ok(OpenGpu { gpu, device })
}

#[wasm_bindgen]
#[allow(clippy::missing_errors_doc, reason = "the module says how errors are reported")]
impl OpenGpu {
    /// The adapter's name.
    pub fn name(&self) -> String {
        self.gpu.info().name.clone()
    }

    /// Whether the adapter is software, which computes on the processor.
    pub fn is_software(&self) -> bool {
        self.gpu.info().is_software
    }

    /// The largest segment, in bytes.
    pub fn largest_buffer(&self) -> u64 {
        self.gpu.info().largest_buffer.get()
    }

    /// The most bytes that one compute pass can access.
    pub fn largest_binding(&self) -> u64 {
        self.gpu.info().largest_binding.get()
    }

    /// Begins a run on a device of `capacity` bytes. The memory of the former run is released.
    pub fn start(&mut self, capacity: u64) {
        self.device = StreamedWgpu::new(WgpuDevice::new(&self.gpu, Bytes::new(capacity)));
    }

    /// Bytes of the capacity that are free.
    pub fn free_bytes(&mut self) -> Result<u64, JsValue> {
        self.device.memory_info().map(|info| info.free.get()).map_err(|error| js_error(&error))
    }

    /// Allocates a segment of `size` bytes and returns its address.
    pub fn allocate(&mut self, size: u64) -> Result<u64, JsValue> {
        self.device.allocate_segment(Bytes::new(size)).map(DeviceAddr::get).map_err(|error| js_error(&error))
    }

    /// Releases a segment.
    pub fn release(&mut self, base: u64) -> Result<(), JsValue> {
        self.device.release_segment(DeviceAddr::new(base)).map_err(|error| js_error(&error))
    }

    /// Records an event on the stream and returns the event's number.
    pub fn record(&mut self, stream: u64) -> Result<u64, JsValue> {
        let event = self.device.record_event(StreamId::new(stream));
        event.map(|event| event.number()).map_err(|error| js_error(&error))
    }

    /// Whether the stream has reached the event.
    pub fn is_complete(&self, stream: u64, number: u64) -> Result<bool, JsValue> {
        self.device.is_complete(&event(stream, number)).map_err(|error| js_error(&error))
    }

    /// Submits the work of the stream up to the event.
    pub fn wait(&mut self, stream: u64, number: u64) -> Result<(), JsValue> {
        self.device.wait(&event(stream, number)).map_err(|error| js_error(&error))
    }

    /// Submits all work of a stream, or of all streams.
    pub fn advance(&mut self, stream: Option<u64>) {
        self.device.advance_streams(stream.map(StreamId::new));
    }

    /// Submits the work of all streams that wait for no event.
    pub fn submit_work(&mut self) -> Result<(), JsValue> {
        self.device.submit_work().map_err(|error| js_error(&error))
    }

    /// Fills a range with a pattern.
    pub fn fill(&mut self, stream: u64, addr: u64, size: u64, pattern: u32) {
        self.device.fill(StreamId::new(stream), range(addr, size, pattern));
    }

    /// Compares a range with a pattern. `step` is the step that a mismatch is reported for.
    pub fn check(&mut self, stream: u64, addr: u64, size: u64, pattern: u32, step: u32) {
        self.device.check(StreamId::new(stream), range(addr, size, pattern), step);
    }

    /// The mismatches that the checks since the last call found, as pairs: the step, and the number of wrong
    /// 32-bit words.
    pub async fn mismatches(&mut self) -> Result<Vec<u32>, JsValue> {
        let found = self.device.mismatches().await.map_err(|error| js_error(&error))?;
        Ok(found.iter().flat_map(|mismatch| [mismatch.tag, mismatch.wrong]).collect())
    }
}

fn event(stream: u64, number: u64) -> StreamEvent {
    StreamEvent::new(StreamId::new(stream), number)
}

fn range(addr: u64, size: u64, pattern: u32) -> PatternRange {
    PatternRange { addr: DeviceAddr::new(addr), size: Bytes::new(size), pattern }
}

fn js_error(error: &DeviceError) -> JsValue {
    match error {
        DeviceError::OutOfMemory { .. } => thrown("OutOfMemory", error),
        DeviceError::UnknownSegment(_) => thrown("UnknownSegment", error),
        DeviceError::TooLarge { .. } => thrown("TooLarge", error),
        DeviceError::Lost { source } => thrown("Lost", source.as_ref()),
        error => thrown("Driver", error),
    }
}

fn thrown(name: &str, error: &dyn Error) -> JsValue {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    let thrown = js_sys::Error::new(&text);
    thrown.set_name(name);
    thrown.into()
}
