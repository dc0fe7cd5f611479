//! Pictures on a canvas of a page, from a worker or from the page's own thread.

use std::ops::Range;
use std::sync::Arc;

use web_sys::OffscreenCanvas;

use crate::{PALETTE_SIZE, RectRenderer, RectView, RenderError};

/// A canvas with the rectangles that are drawn on it.
#[derive(Debug)]
pub struct CanvasPainter {
    device: wgpu::Device,
    queue: wgpu::Queue,
    surface: wgpu::Surface<'static>,
    config: wgpu::SurfaceConfiguration,
    renderer: RectRenderer,
}

impl CanvasPainter {
    /// Opens the adapter that the browser prefers, for this canvas. `on_failed` gets the reason if the canvas
    /// fails after a call has returned: the device is lost, or out of memory.
    ///
    /// # Errors
    ///
    /// Every [`RenderError`] except [`RenderError::TooLarge`] and [`RenderError::Frame`].
    pub async fn open(canvas: OffscreenCanvas, on_failed: fn(&str)) -> Result<Self, RenderError> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::BROWSER_WEBGPU;
        let instance = wgpu::Instance::new(descriptor);
        let target = wgpu::SurfaceTarget::OffscreenCanvas(canvas);
        let surface = instance.create_surface(target).map_err(RenderError::Surface)?;
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            compatible_surface: Some(&surface),
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = instance.request_adapter(&options).await.map_err(RenderError::NoAdapter)?;
        let descriptor =
            wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..wgpu::DeviceDescriptor::default() };
        let (device, queue) = adapter.request_device(&descriptor).await.map_err(RenderError::Refused)?;
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| on_failed(&error.to_string())));
        device.set_device_lost_callback(move |_, message| on_failed(&message));
        let formats = surface.get_capabilities(&adapter).formats;
        // The page's colors are those that a screen shows, so no color is converted.
        let format = formats.iter().copied().find(|format| !format.is_srgb()).ok_or(RenderError::NoFormat)?;
        let mut config = surface.get_default_config(&adapter, 1, 1).ok_or(RenderError::NoFormat)?;
        config.format = format;
        config.alpha_mode = wgpu::CompositeAlphaMode::PreMultiplied;
        let renderer = RectRenderer::new(&device, format);
        Ok(Self { device, queue, surface, config, renderer })
    }

    /// Replaces the rectangles, as [`RectRenderer::set_rects`] does.
    ///
    /// # Errors
    ///
    /// [`RenderError::TooLarge`].
    pub fn set_rects(&mut self, geometry: &[u32], colors: &[u32]) -> Result<(), RenderError> {
        self.renderer.set_rects(&self.device, &self.queue, geometry, colors)
    }

    /// Replaces the colors of the existing rectangles.
    pub fn set_colors(&mut self, colors: &[u32]) {
        self.renderer.set_colors(&self.queue, colors);
    }

    /// Replaces the colors of the palette.
    pub fn set_palette(&self, palette: &[[f32; 4]; PALETTE_SIZE]) {
        self.renderer.set_palette(&self.queue, palette);
    }

    /// Shows a frame; the canvas takes on the size of the view.
    ///
    /// # Errors
    ///
    /// [`RenderError::Frame`] where the canvas cannot take a picture now.
    pub fn draw(&mut self, view: &RectView, ranges: &[Range<u32>]) -> Result<(), RenderError> {
        if (self.config.width, self.config.height) != (view.width_px, view.height_px) {
            (self.config.width, self.config.height) = (view.width_px.max(1), view.height_px.max(1));
            self.surface.configure(&self.device, &self.config);
        }
        let frame = match self.surface.get_current_texture() {
            wgpu::CurrentSurfaceTexture::Success(frame) | wgpu::CurrentSurfaceTexture::Suboptimal(frame) => {
                frame
            }
            other => return Err(RenderError::Frame(format!("{other:?}"))),
        };
        let picture = frame.texture.create_view(&wgpu::TextureViewDescriptor::default());
        self.renderer.draw(&self.device, &self.queue, &picture, view, ranges);
        self.queue.present(frame);
        Ok(())
    }
}
