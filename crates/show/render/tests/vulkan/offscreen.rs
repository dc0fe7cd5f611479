//! A picture that is drawn without a window, and read back.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use blockyard_render::{PALETTE_SIZE, RectRenderer, RectView};

/// A picture in memory of the adapter.
pub(crate) struct OffscreenPicture {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) texture: wgpu::Texture,
    pub(crate) renderer: RectRenderer,
    pub(crate) adapter: String,
}

/// Native futures of wgpu are ready at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl OffscreenPicture {
    pub(crate) fn open(width_px: u32, height_px: u32, colors: &[[u8; 4]]) -> Option<Self> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN;
        let instance = wgpu::Instance::new(descriptor);
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = ready(instance.request_adapter(&options))?.ok()?;
        let required_limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor { required_limits, ..wgpu::DeviceDescriptor::default() };
        let (device, queue) = ready(adapter.request_device(&descriptor))?.ok()?;
        let texture = device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: wgpu::Extent3d { width: width_px, height: height_px, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: wgpu::TextureFormat::Rgba8Unorm,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let renderer = RectRenderer::new(&device, wgpu::TextureFormat::Rgba8Unorm);
        let mut palette = [[0.0; 4]; PALETTE_SIZE];
        for (color, bytes) in palette.iter_mut().zip(colors) {
            *color = bytes.map(|part| f32::from(part) / 255.0);
        }
        renderer.set_palette(&queue, &palette);
        let info = adapter.get_info();
        Some(Self {
            device,
            queue,
            texture,
            renderer,
            adapter: format!("{} ({})", info.name, info.driver_info),
        })
    }

    pub(crate) fn set_rects(&mut self, geometry: &[u32], colors: &[u32]) {
        let taken = self.renderer.set_rects(&self.device, &self.queue, geometry, colors);
        assert!(taken.is_ok(), "{taken:?}");
    }

    /// Draws a frame, and waits until the adapter has.
    pub(crate) fn show(&self, view: &RectView, count: u32) {
        let picture = self.texture.create_view(&wgpu::TextureViewDescriptor::default());
        self.renderer.draw(&self.device, &self.queue, &picture, view, std::slice::from_ref(&(0..count)));
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
    }
}
