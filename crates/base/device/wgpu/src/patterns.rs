//! Filling ranges with patterns and comparing them, in compute passes.

use blockyard_device::DeviceError;
use blockyard_record::Bytes;

use crate::device::WgpuDevice;
use crate::work::{Pass, PatternRange};

/// Addresses and sizes of filled and checked ranges are multiples of this number, as blocks of PyTorch's
/// allocator are.
pub const PATTERN_ALIGNMENT: Bytes = Bytes::new(512);

/// The most bytes of one pass, so that the index of a word stays far below 32 bits.
const MAX_WINDOW: u64 = 1 << 30;

/// How many words a workgroup fills or checks; each of its threads takes a share.
const WORKGROUP_WORDS: u64 = 8192;
/// The number of workgroups that every adapter of WebGPU has. For more words, each workgroup takes more
/// words.
const MAX_WORKGROUPS: u64 = 65_535;

/// Parameters of passes begin at multiples of this, the largest alignment that an adapter may ask for.
const PARAMETERS: usize = 256;

/// The bytes of one check's result; equal to the size of `Found` in the shader.
const FOUND: u64 = 12;

impl WgpuDevice {
    /// Writes a range's pattern, in the order of the queue.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] where the range is not inside one segment or its address or size is
    /// not a multiple of [`PATTERN_ALIGNMENT`]; [`DeviceError::Lost`].
    pub fn fill(&mut self, range: PatternRange) -> Result<(), DeviceError> {
        self.plan_passes(range, None)
    }

    /// Compares a range with its pattern, in the order of the queue; [`WgpuDevice::mismatches`] returns the
    /// difference with this tag.
    ///
    /// # Errors
    ///
    /// The errors of [`WgpuDevice::fill`].
    pub fn check(&mut self, range: PatternRange, tag: u32) -> Result<(), DeviceError> {
        self.plan_passes(range, Some(tag))
    }

    fn plan_passes(&mut self, range: PatternRange, tag: Option<u32>) -> Result<(), DeviceError> {
        self.gpu.health.check()?;
        let (window, start) = self.find(range.addr, range.size)?;
        let window = window.clone();
        let alignment = PATTERN_ALIGNMENT.get();
        let size = range.size.get();
        if !start.is_multiple_of(alignment) || !size.is_multiple_of(alignment) {
            return Err(DeviceError::UnknownSegment(range.addr));
        }
        if self.work.is_full() {
            self.submit()?;
        }
        let most = self.gpu.info().largest_binding.get().min(MAX_WINDOW) / alignment * alignment;
        let check = tag.and_then(|tag| self.work.add_check(range, tag));
        let mut done = 0;
        while done < size {
            let size = (size - done).min(most);
            let (offset, first_word) = (start + done, low_bits(done / 4));
            let window = window.clone();
            self.work.plan(Pass { window, offset, size, first_word, pattern: range.pattern, check });
            done += size;
        }
        Ok(())
    }
}

/// The pipelines of the passes, which are made once for an adapter.
#[derive(Debug)]
pub(crate) struct Passes {
    layout: wgpu::BindGroupLayout,
    fill: wgpu::ComputePipeline,
    check: wgpu::ComputePipeline,
}

impl Passes {
    pub(crate) fn new(device: &wgpu::Device) -> Self {
        let module = device.create_shader_module(wgpu::include_wgsl!("patterns.wgsl"));
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let storage = wgpu::BufferBindingType::Storage { read_only: false };
        let entries = [entry(0, storage), entry(1, wgpu::BufferBindingType::Uniform), entry(2, storage)];
        let layout = device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            bind_group_layouts: &[Some(&layout)],
            ..wgpu::PipelineLayoutDescriptor::default()
        });
        let pipeline = |entry_point| {
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(entry_point),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            })
        };
        let (fill, check) = (pipeline("fill"), pipeline("check"));
        Self { layout, fill, check }
    }

    /// Submits the passes in order; the results of `checks` checks can be mapped when the passes are done.
    pub(crate) fn submit(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        passes: &[Pass],
        checks: usize,
    ) -> wgpu::Buffer {
        let buffer = |size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage,
                mapped_at_creation: false,
            })
        };
        let parameters = parameters(passes);
        let uniforms =
            buffer(parameters.len() as u64, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST);
        queue.write_buffer(&uniforms, 0, &parameters);
        let found_size = checks.max(1) as u64 * FOUND;
        // A new buffer holds zeros.
        let found = buffer(found_size, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let readable = buffer(found_size, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);

        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut run = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for (index, pass) in passes.iter().enumerate() {
                let group = self.group(device, pass, &uniforms, (index * PARAMETERS) as u64, &found);
                run.set_pipeline(if pass.check.is_some() { &self.check } else { &self.fill });
                run.set_bind_group(0, &group, &[]);
                let workgroups = (pass.size / 4).div_ceil(WORKGROUP_WORDS).min(MAX_WORKGROUPS);
                run.dispatch_workgroups(low_bits(workgroups), 1, 1);
            }
        }
        if checks > 0 {
            encoder.copy_buffer_to_buffer(&found, 0, &readable, 0, found_size);
        }
        queue.submit([encoder.finish()]);
        readable
    }

    fn group(
        &self,
        device: &wgpu::Device,
        pass: &Pass,
        uniforms: &wgpu::Buffer,
        parameters: u64,
        found: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        let part = |buffer, offset, size| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset,
                size: wgpu::BufferSize::new(size),
            })
        };
        let resources =
            [part(&pass.window, pass.offset, pass.size), part(uniforms, parameters, 16), part(found, 0, 0)];
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &self.layout, entries: &entries };
        device.create_bind_group(&descriptor)
    }
}

/// The `Pass` of the shader for each pass, at multiples of [`PARAMETERS`].
fn parameters(passes: &[Pass]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (count, pass) in (1..).zip(passes) {
        for word in [low_bits(pass.size / 4), pass.first_word, pass.pattern, pass.check.unwrap_or(0)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(count * PARAMETERS, 0);
    }
    bytes
}

/// The low 32 bits.
fn low_bits(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
