//! Figures of many rectangles through wgpu: WebGPU in a browser, Vulkan natively.
//!
//! The rectangles ([`blockyard_figure::Rects`]) are written to the GPU once. A frame writes one small uniform
//! with the part that is shown ([`RectView`]) and draws a prefix of the rectangles, so that the cost of
//! panning and zooming does not grow with the recording. This crate knows nothing of memory. A figure is the
//! same in every renderer.

#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod canvas;
mod rects;

#[cfg(target_arch = "wasm32")]
pub use canvas::CanvasPainter;
pub use rects::{PALETTE_SIZE, RectRenderer, RectView};

/// Why nothing is drawn on a GPU.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The browser or the driver has no adapter.
    #[error("there is no adapter: {0}")]
    NoAdapter(wgpu::RequestAdapterError),
    /// The adapter refuses a device.
    #[error("the adapter refuses a device: {0}")]
    Refused(wgpu::RequestDeviceError),
    /// The canvas cannot be drawn on.
    #[error("the canvas cannot be drawn on: {0}")]
    Surface(wgpu::CreateSurfaceError),
    /// The adapter has no way to show pictures on the canvas.
    #[error("the adapter cannot show pictures on the canvas")]
    NoFormat,
    /// The rectangles are more than one buffer of the adapter holds.
    #[error("{needed} bytes of rectangles are more than the adapter's {most} bytes")]
    TooLarge {
        /// The bytes that the rectangles need.
        needed: u64,
        /// The bytes of the adapter's largest buffer.
        most: u64,
    },
    /// A frame cannot be shown now.
    #[error("the frame cannot be shown: {0}")]
    Frame(String),
}
