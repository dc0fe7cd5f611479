//! Everything that PyTorch keeps in globals: devices, modes, workspaces, estimates.

mod workspaces;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use blockyard_allocator::{HostAllocation, HostAllocator};
use blockyard_answers::EstimatedOperator;
use blockyard_device::VirtualHostMemory;
use blockyard_gpus::GpuProfile;
use blockyard_record::{Bytes, HostStats, PoolId, StreamId};
use blockyard_rules::{AllocatorConfig, Release};

pub(crate) use self::workspaces::Library;
use self::workspaces::Workspaces;
use crate::autocast::Autocast;
use crate::autograd::Modes;
use crate::memory::{Category, OwnedBlock, Phase, SimulatedGpu};
use crate::{Device, Dtype, Result, TorchError};

/// What a session runs programs on: GPUs and their settings.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// The GPU profile of every device.
    pub profile: GpuProfile,
    /// How many devices the session has.
    pub devices: u8,
    /// The allocator's settings (`PYTORCH_CUDA_ALLOC_CONF`).
    pub config: AllocatorConfig,
    /// The non-PyTorch memory of each GPU: bytes that no segment can have.
    pub non_pytorch: Bytes,
    /// Whether a recording is made.
    pub is_recorded: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            profile: GpuProfile::H200,
            devices: 1,
            config: AllocatorConfig::of(Release::OF_RECORDED_OPERATORS),
            non_pytorch: Bytes::ZERO,
            is_recorded: false,
        }
    }
}

/// The operator or the node of autograd that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveCall {
    pub(crate) name: &'static str,
    /// Whether the kernels of the operator copy or fill at most (`Entry::copies_or_fills`).
    pub(crate) copies_or_fills: bool,
}

impl ActiveCall {
    /// The value between operators: nothing runs.
    pub(crate) const NOTHING: Self = Self { name: "", copies_or_fills: true };
}

/// Where the program is; every allocation notes it.
pub(crate) struct CurrentOrigin {
    line: Cell<u32>,
    source: RefCell<Option<LineSource>>,
    pub(crate) running: Cell<ActiveCall>,
    pub(crate) phase: Cell<Phase>,
    /// Where the running operator's result goes (`out=`), until its kernel takes it.
    pub(crate) out: RefCell<Option<crate::Tensor>>,
}

type LineSource = Rc<dyn Fn() -> u32>;

impl fmt::Debug for CurrentOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentOrigin")
            .field("line", &self.line)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl CurrentOrigin {
    /// The source line that runs: that of the line source, if one is set.
    pub(crate) fn line(&self) -> u32 {
        let source = self.source.borrow().clone();
        source.map_or_else(|| self.line.get(), |source| source())
    }
}

/// A thread of PyTorch's: each has its own handles of libraries, and so its own workspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thread {
    /// The program's thread.
    #[default]
    Main,
    /// The autograd engine's thread for the device with this number.
    Backward(u8),
}

/// Which kernels `scaled_dot_product_attention` may take (`torch.nn.attention.sdpa_kernel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "PyTorch has a switch for each kernel")]
pub struct AttentionKernels {
    /// Whether plain products of matrices and a softmax may run.
    pub allows_math: bool,
    /// Whether flash attention may run.
    pub allows_flash: bool,
    /// Whether the memory-efficient kernel may run.
    pub allows_efficient: bool,
    /// Whether cuDNN's attention may run.
    pub allows_cudnn: bool,
}

impl AttentionKernels {
    /// All kernels, among which PyTorch chooses.
    pub const ALL: Self =
        Self { allows_math: true, allows_flash: true, allows_efficient: true, allows_cudnn: true };
}

/// One run of a program: what PyTorch keeps in globals.
#[derive(Debug)]
pub struct Session {
    profile: GpuProfile,
    non_pytorch: Bytes,
    release: Cell<Release>,
    devices: Vec<Rc<SimulatedGpu>>,
    /// The allocator of pinned host memory.
    host: RefCell<HostAllocator<VirtualHostMemory>>,
    /// The line, the operator and the phase that run, which every allocation notes.
    pub(crate) current_origin: Rc<CurrentOrigin>,
    pub(crate) modes: Modes,
    pub(crate) autocast: Autocast,
    /// The thread of PyTorch that runs.
    thread: Cell<Thread>,
    current_device: Cell<u8>,
    workspaces: Workspaces,
    /// The estimates so far; equal ones are listed once.
    estimates: RefCell<Vec<EstimatedOperator>>,
    /// How often an estimate was noted, repeated ones included.
    estimate_count: Cell<u64>,
    /// The handle of the next stream that a program makes.
    next_stream: Cell<u64>,
    /// The number of the next memory pool that a program makes, on whichever device.
    next_pool: Cell<u32>,
    dropout_states: RefCell<Vec<(u8, Option<OwnedBlock>)>>,
    default_dtype: Cell<Dtype>,
    default_device: Cell<Device>,
    attention_kernels: Cell<AttentionKernels>,
    /// The setting of `torch.backends.cudnn` under which convolutions may run other engines than the recorded
    /// ones.
    engine_setting: Cell<Option<&'static str>>,
    /// The generators of the host's random numbers.
    pub(crate) generators: crate::generator::Generators,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Session>>> = const { RefCell::new(None) };
}

/// The session of this thread; one with the default settings if none was installed.
pub fn session() -> Rc<Session> {
    CURRENT.with(|current| {
        Rc::clone(
            current.borrow_mut().get_or_insert_with(|| Rc::new(Session::new(SessionSettings::default()))),
        )
    })
}

/// Makes the session that of this thread; returns the session before, `None` if none was installed.
///
/// Tensors of an earlier session keep their device and free their blocks there.
pub fn install(session: Rc<Session>) -> Option<Rc<Session>> {
    CURRENT.with(|current| current.borrow_mut().replace(session))
}

impl Session {
    /// A session before the first statement of a program.
    #[must_use]
    pub fn new(settings: SessionSettings) -> Self {
        let current_origin = Rc::new(CurrentOrigin {
            line: Cell::new(0),
            source: RefCell::new(None),
            running: Cell::new(ActiveCall::NOTHING),
            phase: Cell::default(),
            out: RefCell::default(),
        });
        let SessionSettings { profile, devices, config, non_pytorch, is_recorded } = settings;
        let devices = (0..devices)
            .map(|index| {
                Rc::new(SimulatedGpu::new(
                    index,
                    &profile,
                    non_pytorch,
                    &config,
                    is_recorded,
                    Rc::clone(&current_origin),
                ))
            })
            .collect();
        Self {
            host: RefCell::new(HostAllocator::new(VirtualHostMemory::new(Bytes::gib(1024)), config.pinned())),
            profile,
            non_pytorch,
            release: Cell::new(config.release()),
            devices,
            current_origin,
            modes: Modes::default(),
            autocast: Autocast::default(),
            thread: Cell::default(),
            current_device: Cell::new(0),
            workspaces: Workspaces::default(),
            estimates: RefCell::default(),
            estimate_count: Cell::new(0),
            next_stream: Cell::new(1),
            next_pool: Cell::new(1),
            dropout_states: RefCell::default(),
            default_dtype: Cell::new(Dtype::F32),
            default_device: Cell::new(Device::Cpu),
            attention_kernels: Cell::new(AttentionKernels::ALL),
            engine_setting: Cell::new(None),
            generators: crate::generator::Generators::default(),
        }
    }

    /// Takes other settings of the allocator, as PyTorch does when its environment changes before the first
    /// allocation on a GPU. Returns whether the settings were taken.
    pub fn configure(&self, config: &AllocatorConfig) -> bool {
        let is_taken = self.devices.iter().all(|device| device.configure(&self.profile, config));
        if is_taken {
            self.release.set(config.release());
        }
        is_taken
    }

    /// The GPU profile of all devices.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// `torch.cuda.device_count()`.
    pub fn device_count(&self) -> u8 {
        // `SessionSettings::devices` has 8 bits too.
        u8::try_from(self.devices.len()).unwrap_or(u8::MAX)
    }

    /// How many allocations and frees there were on all GPUs so far.
    pub fn request_count(&self) -> u64 {
        self.devices.iter().map(|device| device.request_count()).sum()
    }

    /// The GPU with this number.
    ///
    /// # Errors
    ///
    /// [`TorchError::Accelerator`] with the driver's text when no GPU has that number.
    pub fn device(&self, index: u8) -> Result<&Rc<SimulatedGpu>> {
        self.devices.get(usize::from(index)).ok_or_else(|| {
            TorchError::Accelerator(
                "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\nCUDA kernel errors might be asynchronously reported at some other \
                 API call, so the stacktrace below might be incorrect.\nFor debugging consider passing \
                 CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
                    .to_owned(),
            )
        })
    }

    /// The device that `"cuda"` means.
    pub fn current_device(&self) -> u8 {
        self.current_device.get()
    }

    /// `torch.cuda.set_device`; returns the number of the device before.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`] when no GPU has that number.
    pub fn set_current_device(&self, index: u8) -> Result<u8> {
        self.device(index)?;
        Ok(self.current_device.replace(index))
    }

    /// `torch.cuda.Stream()`: a new stream's handle.
    pub fn create_stream(&self) -> StreamId {
        let number = self.next_stream.get();
        self.next_stream.set(number + 1);
        StreamId::new(number)
    }

    /// The identity of the next memory pool that the program makes.
    pub(crate) fn next_pool(&self) -> PoolId {
        let user = self.next_pool.get();
        self.next_pool.set(user + 1);
        PoolId { capture: 0, user }
    }

    /// Allocates cuDNN's state for dropout, as the first recurrent layer with dropout does on each device.
    /// The state is kept until [`Session::release_dropout_states`].
    ///
    /// # Errors
    ///
    /// [`TorchError::OutOfMemory`] with PyTorch's text.
    pub fn allocate_dropout_state(&self, device: u8) -> Result<()> {
        // The recorded size of 132 multiprocessors; it grows with their number.
        const BYTES_PER_MULTIPROCESSOR: u64 = 6_488_064 / 132;
        if self.dropout_states.borrow().iter().any(|(index, _)| *index == device) {
            return Ok(());
        }
        let cuda = self.device(device)?;
        drop(cuda.allocate(Bytes::new(8), Category::Workspace)?);
        let bytes = BYTES_PER_MULTIPROCESSOR * u64::from(self.profile.multiprocessors);
        let block = cuda.allocate(Bytes::new(bytes), Category::Workspace)?;
        self.dropout_states.borrow_mut().push((device, block));
        Ok(())
    }

    /// Frees cuDNN's states for dropout, which a new process would not have.
    pub fn release_dropout_states(&self) {
        let states = self.dropout_states.take();
        drop(states);
    }

    /// `torch.get_default_dtype`.
    pub fn default_dtype(&self) -> Dtype {
        self.default_dtype.get()
    }

    /// `torch.set_default_dtype`.
    pub fn set_default_dtype(&self, dtype: Dtype) {
        self.default_dtype.set(dtype);
    }

    /// The device of new tensors that name none (`torch.get_default_device`).
    pub fn default_device(&self) -> Device {
        self.default_device.get()
    }

    /// `torch.set_default_device`; returns the device before.
    pub fn set_default_device(&self, device: Device) -> Device {
        self.default_device.replace(device)
    }

    /// From now on, convolutions run the engines that PyTorch chooses without settings (`None`), or may run
    /// other engines for this reason, with which every number that depends on these engines is marked.
    pub fn set_engine_setting(&self, reason: Option<&'static str>) {
        self.engine_setting.set(reason);
    }

    /// The reason of [`Session::set_engine_setting`].
    pub(crate) fn engine_setting(&self) -> Option<&'static str> {
        self.engine_setting.get()
    }

    /// The kernels that `scaled_dot_product_attention` may take.
    pub fn attention_kernels(&self) -> AttentionKernels {
        self.attention_kernels.get()
    }

    /// Allows and forbids kernels of `scaled_dot_product_attention`.
    pub fn set_attention_kernels(&self, kernels: AttentionKernels) {
        self.attention_kernels.set(kernels);
    }

    /// Sets the source line that allocations and frees are noted with.
    pub fn set_line(&self, line: u32) {
        self.current_origin.line.set(line);
    }

    /// Calls `source` for the source line at each allocation and free, in place of [`Session::set_line`];
    /// `None` ends this.
    pub fn set_line_source(&self, source: Option<Rc<dyn Fn() -> u32>>) {
        *self.current_origin.source.borrow_mut() = source;
    }

    /// Sets the part of an iteration that runs from now on; returns the part before.
    pub fn set_phase(&self, phase: Phase) -> Phase {
        self.current_origin.phase.replace(phase)
    }

    /// The thread of PyTorch that runs.
    pub fn thread(&self) -> Thread {
        self.thread.get()
    }

    /// Changes the thread that runs; returns the thread before.
    pub(crate) fn set_thread(&self, thread: Thread) -> Thread {
        self.thread.replace(thread)
    }

    /// The unverified estimates in the order in which they were first noted; equal ones are listed once.
    pub fn estimates(&self) -> Vec<EstimatedOperator> {
        self.estimates.borrow().clone()
    }

    /// How often an estimate was noted so far, estimates that equal an earlier one included.
    pub fn estimate_count(&self) -> u64 {
        self.estimate_count.get()
    }

    /// Removes the estimates so far and returns them.
    pub fn take_estimates(&self) -> Vec<EstimatedOperator> {
        self.estimates.take()
    }

    /// Counts an estimate that the caller reports in its own words.
    pub fn count_estimate(&self) {
        self.estimate_count.set(self.estimate_count.get() + 1);
    }

    /// Notes that the bytes of this operator are an unverified estimate.
    pub fn note_estimate(&self, operator: &str, reason: &str) {
        self.count_estimate();
        let estimate = EstimatedOperator {
            operator: operator.to_owned(),
            line: self.current_origin.line(),
            reason: reason.to_owned(),
        };
        let mut estimates = self.estimates.borrow_mut();
        if !estimates.contains(&estimate) {
            estimates.push(estimate);
        }
    }

    /// The non-PyTorch memory of each GPU.
    pub const fn non_pytorch(&self) -> Bytes {
        self.non_pytorch
    }

    /// The release of PyTorch whose rules hold.
    pub fn release(&self) -> Release {
        self.release.get()
    }

    /// The numbers of the blocks of a device that libraries keep until the process ends, with the library's
    /// name.
    pub fn library_blocks(&self, device: u8) -> Vec<(u32, &'static str)> {
        let mut blocks = self.workspaces.blocks(device);
        if let Ok(states) = self.dropout_states.try_borrow() {
            for (_, block) in states.iter().filter(|(index, _)| *index == device) {
                blocks.extend(block.as_ref().map(|block| (block.number(), "cuDNN")));
            }
        }
        blocks
    }

    /// The name of the running operator or of the running node of autograd; empty where nothing runs.
    pub fn operator(&self) -> &'static str {
        self.current_origin.running.get().name
    }

    /// The part of an iteration that runs.
    pub fn phase(&self) -> Phase {
        self.current_origin.phase.get()
    }

    /// Pinned host memory; `None` for no bytes.
    pub(crate) fn allocate_pinned(&self, bytes: Bytes) -> Result<Option<HostAllocation>> {
        if bytes.is_zero() {
            return Ok(None);
        }
        let allocation = self.host.borrow_mut().allocate(bytes);
        allocation.map(Some).map_err(|error| TorchError::Runtime(error.to_string()))
    }

    /// Frees pinned host memory of this session.
    pub(crate) fn free_pinned(&self, allocation: HostAllocation) {
        // Only a foreign allocation can fail, and a storage keeps the session that its own came from.
        let _freed = self.host.borrow_mut().free(allocation);
    }

    /// The counters of `torch.cuda.host_memory_stats`.
    pub fn host_stats(&self) -> HostStats {
        self.host.borrow().stats()
    }
}
