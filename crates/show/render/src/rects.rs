//! Rectangles of one color each, drawn as instances of a quad.

use std::ops::Range;

use blockyard_figure::{RECT_UNIT, RECT_WORDS, px};

use crate::RenderError;

/// How many colors a palette has: 32 colors, and the pale form of each. Place 30 is reserved memory, and its
/// pale place has the color of the dots; place 31 is the ground of the figure.
pub const PALETTE_SIZE: usize = 64;

const UNIFORM_BYTES: u64 = 48;
const WORD: u64 = 4;
/// How many words are written to the GPU at a time: the bytes of each piece are a copy, which stays small.
const PIECE: usize = 1 << 18;

/// The part of the rectangles that a frame shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RectView {
    /// The step at the left edge.
    pub first_step: f64,
    /// The step at the right edge.
    pub last_step: f64,
    /// The byte at the lower edge.
    pub low: f64,
    /// The byte at the upper edge.
    pub high: f64,
    /// The width of the picture in pixels.
    pub width_px: u32,
    /// The height of the picture in pixels.
    pub height_px: u32,
    /// Whether all but chosen rectangles are pale.
    pub is_dimmed: bool,
    /// How many pixels of the picture are as wide as one of the page, for the dots of cached memory; 0 leaves
    /// the dots out.
    pub pixel_ratio: f64,
}

impl RectView {
    /// The view as the shader reads it.
    fn words(&self) -> [u32; 12] {
        let (step, step_fraction) = split(self.first_step);
        #[expect(clippy::cast_precision_loss, reason = "512 is exact")]
        let unit_bytes = RECT_UNIT as f64;
        let (unit, unit_fraction) = split(self.low / unit_bytes);
        let scale = |count: u32, span: f64| px(f64::from(count) / span.max(f64::MIN_POSITIVE)).to_bits();
        let size = |count: u32| px(f64::from(count)).to_bits();
        [
            step,
            unit,
            step_fraction.to_bits(),
            unit_fraction.to_bits(),
            scale(self.width_px, self.last_step - self.first_step),
            scale(self.height_px, (self.high - self.low) / unit_bytes),
            size(self.width_px),
            size(self.height_px),
            u32::from(self.is_dimmed),
            px(self.pixel_ratio).to_bits(),
            0,
            0,
        ]
    }
}

/// The whole number below a value, and the fraction above that number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is out of range is at an end"
)]
fn split(value: f64) -> (u32, f32) {
    let whole = value.floor().clamp(0.0, f64::from(u32::MAX));
    (whole as u32, px(value - whole))
}

/// Draws rectangles that live on the GPU.
#[derive(Debug)]
pub struct RectRenderer {
    pipeline: wgpu::RenderPipeline,
    view: wgpu::Buffer,
    palette: wgpu::Buffer,
    bindings: wgpu::BindGroup,
    rects: Option<RectBuffers>,
}

#[derive(Debug)]
struct RectBuffers {
    geometry: wgpu::Buffer,
    colors: wgpu::Buffer,
    count: u32,
}

impl RectRenderer {
    /// A renderer for pictures of this format, without any rectangles.
    #[must_use]
    pub fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Self {
        let shader = device.create_shader_module(wgpu::include_wgsl!("rects.wgsl"));
        let uniform = |size: u64| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        let view = uniform(UNIFORM_BYTES);
        let palette = uniform(PALETTE_SIZE as u64 * 16);
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: None,
            layout: None,
            vertex: wgpu::VertexState {
                module: &shader,
                entry_point: Some("corner"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[
                    Some(wgpu::VertexBufferLayout {
                        array_stride: RECT_WORDS as u64 * WORD,
                        step_mode: wgpu::VertexStepMode::Instance,
                        attributes: &wgpu::vertex_attr_array![0 => Uint32x4],
                    }),
                    Some(wgpu::VertexBufferLayout {
                        array_stride: WORD,
                        step_mode: wgpu::VertexStepMode::Instance,
                        attributes: &wgpu::vertex_attr_array![1 => Uint32],
                    }),
                ],
            },
            primitive: wgpu::PrimitiveState {
                topology: wgpu::PrimitiveTopology::TriangleStrip,
                ..wgpu::PrimitiveState::default()
            },
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &shader,
                entry_point: Some("paint"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(format.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: view.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: palette.as_entire_binding() },
            ],
        });
        Self { pipeline, view, palette, bindings, rects: None }
    }

    /// Replaces the rectangles: [`RECT_WORDS`] words of geometry for each, and a word of color.
    ///
    /// # Errors
    ///
    /// [`RenderError::TooLarge`] where the rectangles do not fit a buffer; then nothing is drawn until the
    /// next rectangles.
    pub fn set_rects(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        geometry: &[u32],
        colors: &[u32],
    ) -> Result<(), RenderError> {
        self.rects = None;
        let count = colors.len().min(geometry.len() / RECT_WORDS);
        let needed = (count * RECT_WORDS) as u64 * WORD;
        let most = device.limits().max_buffer_size;
        if needed > most {
            return Err(RenderError::TooLarge { needed, most });
        }
        let (Some(geometry), Some(colors)) = (geometry.get(..count * RECT_WORDS), colors.get(..count)) else {
            return Ok(());
        };
        self.rects = Some(RectBuffers {
            geometry: column(device, queue, geometry),
            colors: column(device, queue, colors),
            count: u32::try_from(count).unwrap_or(u32::MAX),
        });
        Ok(())
    }

    /// Replaces the colors of the existing rectangles; `colors` has a word for each rectangle.
    pub fn set_colors(&mut self, queue: &wgpu::Queue, colors: &[u32]) {
        if let Some(rects) = self.rects.as_ref().filter(|rects| rects.count as usize == colors.len()) {
            queue.write_buffer(&rects.colors, 0, &bytes_of(colors));
        }
    }

    /// Replaces the colors of the palette: red, green, blue and opacity from 0 to 1.
    pub fn set_palette(&self, queue: &wgpu::Queue, palette: &[[f32; 4]; PALETTE_SIZE]) {
        let words: Vec<u32> = palette.iter().flatten().map(|part| part.to_bits()).collect();
        queue.write_buffer(&self.palette, 0, &bytes_of(&words));
    }

    /// Replaces the picture by these ranges of rectangles, one over the other.
    pub fn draw(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        picture: &wgpu::TextureView,
        view: &RectView,
        ranges: &[Range<u32>],
    ) {
        queue.write_buffer(&self.view, 0, &bytes_of(&view.words()));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: picture,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations {
                        load: wgpu::LoadOp::Clear(wgpu::Color::TRANSPARENT),
                        store: wgpu::StoreOp::Store,
                    },
                })],
                ..wgpu::RenderPassDescriptor::default()
            });
            if let Some(rects) = &self.rects {
                pass.set_pipeline(&self.pipeline);
                pass.set_bind_group(0, &self.bindings, &[]);
                pass.set_vertex_buffer(0, rects.geometry.slice(..));
                pass.set_vertex_buffer(1, rects.colors.slice(..));
                for range in ranges {
                    pass.draw(0..4, range.start.min(rects.count)..range.end.min(rects.count));
                }
            }
        }
        queue.submit([encoder.finish()]);
    }
}

/// A column on the GPU; at least one word, since empty buffers cannot be bound.
fn column(device: &wgpu::Device, queue: &wgpu::Queue, words: &[u32]) -> wgpu::Buffer {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: (words.len() as u64 * WORD).max(16),
        usage: wgpu::BufferUsages::VERTEX | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    for (index, piece) in words.chunks(PIECE).enumerate() {
        queue.write_buffer(&buffer, (index * PIECE) as u64 * WORD, &bytes_of(piece));
    }
    buffer
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
