//! The device over WebGPU, which the module `web/gpu` opens.

use blockyard_device::{Advance, DeviceError, DeviceMemory, MemoryInfo, StreamEvent};
use blockyard_record::{Bytes, DeviceAddr, StreamId};
use blockyard_replay::{DataCheck, PatternedBlock};
use wasm_bindgen::prelude::*;

use crate::jobs::Adapter;

#[wasm_bindgen]
extern "C" {
    /// The class that the module `web/gpu` exports.
    #[derive(Clone, Debug)]
    pub(super) type Gpu;

    /// A function of `worker.js`: loads the module and opens the adapter.
    #[wasm_bindgen(js_name = openGpu, catch)]
    pub(super) async fn open_gpu(script: &JsValue, wasm: &JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method)]
    fn name(this: &Gpu) -> String;
    #[wasm_bindgen(method)]
    fn is_software(this: &Gpu) -> bool;
    #[wasm_bindgen(method)]
    fn largest_buffer(this: &Gpu) -> u64;
    #[wasm_bindgen(method)]
    fn largest_binding(this: &Gpu) -> u64;
    #[wasm_bindgen(method)]
    fn start(this: &Gpu, capacity: u64);
    #[wasm_bindgen(method, catch)]
    fn free_bytes(this: &Gpu) -> Result<u64, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn allocate(this: &Gpu, size: u64) -> Result<u64, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn release(this: &Gpu, base: u64) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn record(this: &Gpu, stream: u64) -> Result<u64, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn is_complete(this: &Gpu, stream: u64, number: u64) -> Result<bool, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn wait(this: &Gpu, stream: u64, number: u64) -> Result<(), JsValue>;
    #[wasm_bindgen(method)]
    fn advance(this: &Gpu, stream: Option<u64>);
    #[wasm_bindgen(method, catch)]
    fn submit_work(this: &Gpu) -> Result<(), JsValue>;
    #[wasm_bindgen(method)]
    fn fill(this: &Gpu, stream: u64, addr: u64, size: u64, pattern: u32);
    #[wasm_bindgen(method)]
    fn check(this: &Gpu, stream: u64, addr: u64, size: u64, pattern: u32, step: u32);
    #[wasm_bindgen(method, catch)]
    async fn mismatches(this: &Gpu) -> Result<JsValue, JsValue>;
}

/// An open adapter as the device of a run. A clone is another handle of the same device.
#[derive(Clone, Debug)]
pub(super) struct PageDevice {
    gpu: Gpu,
    total: Bytes,
}

impl PageDevice {
    /// A new device with `total` bytes; the memory of the run before is released.
    pub(super) fn start(gpu: &Gpu, total: Bytes) -> Self {
        gpu.start(total.get());
        Self { gpu: gpu.clone(), total }
    }

    /// The results of the checks since the last call: for each step with wrong data, the step and the number
    /// of wrong words.
    pub(super) async fn mismatches(&self) -> Result<Vec<(u32, u32)>, DeviceError> {
        let words = self.gpu.mismatches().await.map_err(|thrown| device_error(&thrown, Bytes::ZERO))?;
        let words = js_sys::Uint32Array::new(&words).to_vec();
        Ok(words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }
}

/// The name and the limits of the adapter.
pub(super) fn adapter(gpu: &Gpu) -> Adapter {
    Adapter {
        name: gpu.name(),
        is_software: gpu.is_software(),
        largest_buffer: gpu.largest_buffer(),
        largest_binding: gpu.largest_binding(),
    }
}

/// The error that was thrown; `size` is the size of the request.
pub(super) fn device_error(thrown: &JsValue, size: Bytes) -> DeviceError {
    let text = |name: &str| {
        let value = js_sys::Reflect::get(thrown, &name.into()).ok();
        value.and_then(|value| value.as_string()).unwrap_or_default()
    };
    match text("name").as_str() {
        "OutOfMemory" => DeviceError::OutOfMemory { requested: size },
        _ => DeviceError::Lost { source: text("message").into() },
    }
}

impl DeviceMemory for PageDevice {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.total
    }

    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        let free = self.gpu.free_bytes().map_err(|thrown| device_error(&thrown, Bytes::ZERO))?;
        Ok(MemoryInfo { index: 0, free: Bytes::new(free), total: self.total, processes: Vec::new() })
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let largest = Bytes::new(self.gpu.largest_buffer());
        if size > largest && size <= self.memory_info()?.free {
            return Err(DeviceError::TooLarge { requested: size, largest });
        }
        self.gpu.allocate(size.get()).map(DeviceAddr::new).map_err(|thrown| device_error(&thrown, size))
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.gpu.release(base.get()).map_err(|thrown| device_error(&thrown, Bytes::ZERO))
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        let number = self.gpu.record(stream.get()).map_err(|thrown| device_error(&thrown, Bytes::ZERO))?;
        Ok(StreamEvent::new(stream, number))
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        let is_complete = self.gpu.is_complete(event.stream().get(), event.number());
        is_complete.map_err(|thrown| device_error(&thrown, Bytes::ZERO))
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        let waited = self.gpu.wait(event.stream().get(), event.number());
        waited.map_err(|thrown| device_error(&thrown, Bytes::ZERO))
    }
}

impl Advance for PageDevice {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        self.gpu.advance(stream.map(StreamId::get));
    }
}

impl DataCheck for PageDevice {
    fn fill(&mut self, stream: StreamId, range: PatternedBlock) -> Result<(), DeviceError> {
        self.gpu.fill(stream.get(), range.addr.get(), range.size.get(), range.pattern);
        Ok(())
    }

    fn check(&mut self, stream: StreamId, range: PatternedBlock, step: u32) -> Result<(), DeviceError> {
        self.gpu.check(stream.get(), range.addr.get(), range.size.get(), range.pattern, step);
        Ok(())
    }

    fn submit_work(&mut self) -> Result<(), DeviceError> {
        self.gpu.submit_work().map_err(|thrown| device_error(&thrown, Bytes::ZERO))
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        self.gpu.advance(None);
        Ok(())
    }
}
