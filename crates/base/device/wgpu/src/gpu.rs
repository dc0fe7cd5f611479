//! Finding an adapter and opening it.

use std::rc::Rc;

use blockyard_record::Bytes;

use crate::health::Health;
use crate::patterns::Passes;

/// An open adapter; a handle that is cloned freely.
///
/// All clones share one queue, which no other handle uses. The buffers are released with the last handle and
/// the last device.
#[derive(Clone, Debug)]
pub struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) health: Health,
    pub(crate) passes: Rc<Passes>,
    info: Rc<GpuInfo>,
}

/// An adapter's name, kind and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// The adapter's name, or its vendor and architecture if a browser gives no name; never empty.
    pub name: String,
    /// `Vulkan` or `WebGPU`.
    pub backend: &'static str,
    /// Whether the adapter is software, which computes on the processor.
    pub is_software: bool,
    /// The largest buffer, and so the largest segment.
    pub largest_buffer: Bytes,
    /// The most bytes that one compute pass sees.
    pub largest_binding: Bytes,
}

/// Why no [`Gpu`] could be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WgpuOpenError {
    /// No adapter exists: the machine has no driver, or the browser has no WebGPU.
    #[error("no adapter was found")]
    NoAdapter(#[source] wgpu::RequestAdapterError),
    /// The adapter exists and refuses to open a device.
    #[error("{name} did not open")]
    Refused {
        /// The name of the adapter.
        name: String,
        /// The error of the adapter.
        #[source]
        source: wgpu::RequestDeviceError,
    },
}

impl Gpu {
    /// Opens the adapter that the system prefers for heavy work.
    ///
    /// # Errors
    ///
    /// [`WgpuOpenError::NoAdapter`] if no adapter exists, [`WgpuOpenError::Refused`] with the driver's error.
    pub async fn open() -> Result<Self, WgpuOpenError> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::BROWSER_WEBGPU;
        let instance = wgpu::Instance::new(descriptor);
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = instance.request_adapter(&options).await.map_err(WgpuOpenError::NoAdapter)?;
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            required_limits: limits.clone(),
            // A released segment is returned to the driver and not cached by wgpu.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let adapter_info = adapter.get_info();
        let (device, queue) = match adapter.request_device(&descriptor).await {
            Ok(opened) => opened,
            Err(source) => return Err(WgpuOpenError::Refused { name: adapter_info.name, source }),
        };
        let info = GpuInfo {
            name: name(&device, &adapter_info),
            backend: if cfg!(target_arch = "wasm32") { "WebGPU" } else { "Vulkan" },
            is_software: adapter_info.device_type == wgpu::DeviceType::Cpu,
            largest_buffer: Bytes::new(limits.max_buffer_size),
            largest_binding: Bytes::new(limits.max_storage_buffer_binding_size),
        };
        let health = Health::of(&device);
        let passes = Rc::new(Passes::new(&device));
        Ok(Self { device, queue, health, passes, info: Rc::new(info) })
    }

    /// The adapter's name, kind and limits.
    #[must_use]
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Closes the adapter at once: every device on it is lost.
    pub fn close(&self) {
        self.device.destroy();
        // The driver reports the loss too, but not every driver does so before the next call.
        self.health.fail("it was closed");
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn name(_device: &wgpu::Device, info: &wgpu::AdapterInfo) -> String {
    if info.name.is_empty() { "an adapter without a name".to_owned() } else { info.name.clone() }
}

/// The adapter's name, or its vendor and architecture, which most browsers give instead of the name.
#[cfg(target_arch = "wasm32")]
fn name(device: &wgpu::Device, info: &wgpu::AdapterInfo) -> String {
    let words = device.as_webgpu().map_or_else(Vec::new, |device| {
        let info = device.adapter_info();
        vec![info.vendor(), info.architecture()]
    });
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    match (info.name.as_str(), words.is_empty()) {
        ("", true) => "an adapter without a name".to_owned(),
        ("", false) => words.join(" "),
        (name, _) => name.to_owned(),
    }
}
