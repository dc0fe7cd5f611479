//! One GPU's memory: our allocator over the virtual device, and what is noted about each allocation.

mod addresses;
mod block;
mod lines;
mod origin;
mod pools;
mod watch;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

pub use blockyard_allocator::PoolOptions;
use blockyard_allocator::{AllocError, BackendAllocator};
use blockyard_device::VirtualDevice;
use blockyard_gpus::GpuProfile;
use blockyard_record::{
    Bytes, Event, EventSink, PoolId, Recorder, Recording, RunInfo, Snapshot, StatArray, Stats, StepOutcome,
    StreamId, index_u32,
};
use blockyard_rules::AllocatorConfig;

use crate::error::runtime;
use crate::session::CurrentOrigin;
use crate::{Result, TorchError};

pub use addresses::Dependence;
use addresses::OtherAddresses;
pub use block::OwnedBlock;
pub use origin::{Category, LogEntry, Origin, Phase};
use watch::StepCallback;

/// The receiver of the allocator's events; without a recorder it drops them.
#[derive(Debug)]
struct Sink {
    recorder: Option<Recorder>,
}

impl EventSink for Sink {
    fn record(&mut self, event: Event) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(event);
        }
    }
}

type Allocator = BackendAllocator<VirtualDevice, Sink>;

/// One GPU of a session.
#[derive(Debug)]
pub struct SimulatedGpu {
    index: u8,
    non_pytorch: Bytes,
    allocator: RefCell<Option<Allocator>>,
    /// The same requests under other orders of addresses.
    others: RefCell<OtherAddresses>,
    /// The stream that operators run on.
    stream: Cell<StreamId>,
    current_origin: Rc<CurrentOrigin>,
    /// The origin of each allocation so far, by the allocation's number.
    origins: RefCell<Vec<Origin>>,
    /// The source line of each step of the recording.
    step_lines: RefCell<Vec<u32>>,
    /// The requests since the last [`SimulatedGpu::take_log`]; `None` before [`SimulatedGpu::start_log`].
    log: RefCell<Option<Vec<LogEntry>>>,
    /// Whether a kernel ran that does more than copy or fill.
    has_loaded_kernels: Cell<bool>,
    /// How many allocations and frees there were so far.
    requests: Cell<u64>,
    watch: StepCallback,
}

/// How far below the first segments the later ones lie: those that are allocated after the driver loaded
/// kernels.
const BELOW_FIRST_SEGMENTS: Bytes = Bytes::gib(1024);

fn new_allocator(
    index: u8,
    profile: &GpuProfile,
    non_pytorch: Bytes,
    config: &AllocatorConfig,
    is_recorded: bool,
) -> BackendAllocator<VirtualDevice, Sink> {
    let recorder = is_recorded.then(|| {
        Recorder::new(RunInfo {
            title: format!("cuda:{index}"),
            conf: config.text().to_owned(),
            capacity: profile.total_memory.saturating_sub(non_pytorch),
            is_capacity_unknown: false,
            max_split_size: config.max_split_size_signed(),
            backend: config.backend(),
            release: config.release(),
        })
    });
    let mut device = VirtualDevice::new(profile.total_memory).with_non_pytorch(non_pytorch);
    device.set_next_address(VirtualDevice::FIRST_ADDR.offset(BELOW_FIRST_SEGMENTS));
    BackendAllocator::new(device, config.clone(), Sink { recorder })
}

impl SimulatedGpu {
    pub(crate) fn new(
        index: u8,
        profile: &GpuProfile,
        non_pytorch: Bytes,
        config: &AllocatorConfig,
        is_recorded: bool,
        current_origin: Rc<CurrentOrigin>,
    ) -> Self {
        Self {
            index,
            non_pytorch,
            allocator: RefCell::new(Some(new_allocator(index, profile, non_pytorch, config, is_recorded))),
            others: RefCell::new(OtherAddresses::new(profile.total_memory, config)),
            stream: Cell::new(StreamId::DEFAULT),
            current_origin,
            origins: RefCell::default(),
            step_lines: RefCell::default(),
            log: RefCell::default(),
            has_loaded_kernels: Cell::new(false),
            requests: Cell::new(0),
            watch: StepCallback::default(),
        }
    }

    /// Called after each allocation. The first kernel that does more than copy or fill makes the driver load
    /// code, and later segments have lower addresses than earlier ones, as in the recordings. Best fit breaks
    /// ties by address, so the order matters.
    fn note_kernels(&self) {
        if self.has_loaded_kernels.get() || self.current_origin.running.get().copies_or_fills {
            return;
        }
        self.has_loaded_kernels.set(true);
        if let Some(allocator) = self.allocator.borrow_mut().as_mut() {
            allocator.device_mut().set_next_address(VirtualDevice::FIRST_ADDR);
        }
    }

    /// Takes another profile and other settings, unless something was allocated already. Returns whether they
    /// were taken.
    pub(crate) fn configure(&self, profile: &GpuProfile, config: &AllocatorConfig) -> bool {
        let Ok(mut allocator) = self.allocator.try_borrow_mut() else { return false };
        let Some(before) = allocator.as_ref().filter(|_| self.origins.borrow().is_empty()) else {
            return false;
        };
        let is_recorded = before.sink().recorder.is_some();
        *allocator = Some(new_allocator(self.index, profile, self.non_pytorch, config, is_recorded));
        self.others.replace(OtherAddresses::new(profile.total_memory, config));
        true
    }

    /// The device's number, as in `cuda:0`.
    pub fn index(&self) -> u8 {
        self.index
    }

    /// The stream that operators of this device run on.
    pub fn current_stream(&self) -> StreamId {
        self.stream.get()
    }

    /// Makes operators of this device run on another stream; returns the stream before.
    pub fn set_current_stream(&self, stream: StreamId) -> StreamId {
        self.stream.replace(stream)
    }

    /// Allocates a block on the current stream; `None` for no bytes.
    ///
    /// # Errors
    ///
    /// [`TorchError::OutOfMemory`] with PyTorch's text.
    pub fn allocate(self: &Rc<Self>, requested: Bytes, category: Category) -> Result<Option<OwnedBlock>> {
        if requested.is_zero() {
            return Ok(None);
        }
        self.call_if_due(false);
        let result = self.step(|allocator| allocator.allocate(requested, self.stream.get()));
        let others = self.others.borrow_mut().allocate(requested, self.stream.get(), &result);
        let allocation = result?;
        self.note_kernels();
        let mut origins = self.origins.borrow_mut();
        let number = index_u32(origins.len());
        origins.push(Origin {
            allocation: allocation.id(),
            requested,
            line: self.current_origin.line(),
            operator: self.current_origin.running.get().name,
            phase: self.current_origin.phase.get(),
            category,
        });
        self.note_request(LogEntry::Allocate(number, requested.get()));
        Ok(Some(OwnedBlock {
            device: Rc::clone(self),
            allocation: RefCell::new(Some(allocation)),
            others,
            number,
        }))
    }

    /// Counts an allocation or a free.
    fn note_request(&self, entry: LogEntry) {
        self.requests.set(self.requests.get().saturating_add(1));
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log.push(entry);
        }
    }

    /// Calls `callback` once, before the step that follows the first `steps` steps. The callback's argument
    /// says whether that step frees memory: the owner of the memory is then partly dropped.
    pub fn call_before_step(&self, steps: usize, callback: impl FnOnce(bool) + 'static) {
        self.watch.set(steps, Box::new(callback));
    }

    fn call_if_due(&self, is_free: bool) {
        self.watch.check(|| self.step_count(), is_free);
    }

    /// Does one request and ends the recording's step.
    fn step<T>(
        &self,
        request: impl FnOnce(&mut Allocator) -> std::result::Result<T, AllocError>,
    ) -> Result<T> {
        let mut borrowed = self.allocator.borrow_mut();
        let Some(allocator) = borrowed.as_mut() else {
            return runtime("the recording of this device is finished");
        };
        let result = request(allocator);
        let (outcome, result) = match result {
            Ok(value) => (StepOutcome::Done, Ok(value)),
            Err(error) => {
                let text = error.to_string();
                let has_process = matches!(&error, AllocError::OutOfMemory(error) if !error.is_rejected);
                match error {
                    AllocError::OutOfMemory(_)
                    | AllocError::MallocAsyncOutOfMemory(_)
                    | AllocError::UncachedOutOfMemory { .. }
                    | AllocError::TooLarge { .. } => (
                        StepOutcome::OutOfMemory(text.clone()),
                        Err(TorchError::OutOfMemory { text, has_process }),
                    ),
                    _ => (StepOutcome::Refused(text.clone()), Err(TorchError::Runtime(text))),
                }
            }
        };
        if let Some(recorder) = &mut allocator.sink_mut().recorder {
            recorder.finish_step(outcome);
            self.step_lines.borrow_mut().push(self.current_origin.line());
        }
        result
    }

    /// [`SimulatedGpu::step`], under every order of addresses.
    fn step_everywhere<T>(
        &self,
        request: impl Fn(&mut Allocator) -> std::result::Result<T, AllocError>,
    ) -> Result<T> {
        self.call_if_due(false);
        self.others.borrow_mut().each(|other| {
            // What an allocator refuses is refused by this device's own allocator, too, and reported from
            // there.
            let _same = request(other);
        });
        self.step(request)
    }

    /// `torch.cuda.empty_cache` for this device.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`] when the device fails.
    pub fn empty_cache(&self) -> Result<()> {
        self.step_everywhere(Allocator::empty_cache)
    }

    /// `torch.cuda.synchronize`: all work of all streams is done.
    pub fn synchronize(&self) {
        if let Some(allocator) = self.allocator.borrow_mut().as_mut() {
            allocator.device_mut().advance_all();
        }
        self.others.borrow_mut().each(|other| other.device_mut().advance_all());
    }

    /// `torch.cuda.Stream.synchronize`: all work of one stream is done.
    pub fn synchronize_stream(&self, stream: StreamId) {
        if let Some(allocator) = self.allocator.borrow_mut().as_mut() {
            allocator.device_mut().advance(stream);
        }
        self.others.borrow_mut().each(|other| other.device_mut().advance(stream));
    }

    /// `torch.cuda.set_per_process_memory_fraction`.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`] for a fraction outside of 0 to 1.
    pub fn set_memory_fraction(&self, fraction: f64) -> Result<()> {
        self.step_everywhere(|allocator| allocator.set_memory_fraction(fraction))
    }

    /// `torch.cuda.reset_peak_memory_stats`.
    pub fn reset_peak_stats(&self) {
        self.quietly(|allocator| {
            allocator.reset_peak_stats();
            Ok(())
        });
    }

    /// `torch.cuda.reset_accumulated_memory_stats`.
    pub fn reset_accumulated_stats(&self) {
        self.quietly(|allocator| {
            allocator.reset_accumulated_stats();
            Ok(())
        });
    }

    fn quietly(&self, request: impl Fn(&mut Allocator) -> std::result::Result<(), AllocError>) {
        // After the recording was finished no allocator exists, so that the request has no effect.
        let _finished = self.step_everywhere(request);
    }

    /// The counters that `torch.cuda.memory_stats` shows.
    pub fn stats(&self) -> Stats {
        self.allocator.borrow().as_ref().map(BackendAllocator::stats).unwrap_or_default()
    }

    /// Bytes of the segments of each memory pool that ever had a segment.
    pub fn reserved_by_private_pools(&self) -> BTreeMap<PoolId, StatArray> {
        match self.allocator.borrow().as_ref() {
            Some(BackendAllocator::Native(allocator)) => allocator.reserved_by_private_pools().clone(),
            _ => BTreeMap::new(),
        }
    }

    /// Whether a value that `read` takes from the statistics would be another if the driver handed out other
    /// addresses: best fit breaks ties by address.
    pub fn depends_on_addresses<T: PartialEq>(&self, read: impl Fn(&Stats) -> T) -> bool {
        let value = read(&self.stats());
        self.others.borrow().stats().any(|stats| read(&stats) != value)
    }

    /// All segments and blocks at this moment.
    pub fn snapshot(&self) -> Snapshot {
        self.allocator.borrow().as_ref().map_or(Snapshot { segments: Vec::new() }, BackendAllocator::snapshot)
    }

    /// The settings of the allocator; `None` after the recording was finished.
    pub fn config(&self) -> Option<AllocatorConfig> {
        self.allocator.borrow().as_ref().map(|allocator| allocator.config().clone())
    }

    /// Where each allocation so far came from, by the allocation's number.
    pub fn origins(&self) -> Vec<Origin> {
        self.origins.borrow().clone()
    }

    /// How many allocations the device has made so far: the length of [`SimulatedGpu::origins`].
    pub fn origin_count(&self) -> u32 {
        index_u32(self.origins.borrow().len())
    }

    /// The source line of each of the recording's steps; 0 for a step outside of a line.
    pub fn step_lines(&self) -> Vec<u32> {
        self.step_lines.borrow().clone()
    }

    /// How many allocations and frees there were so far.
    pub fn request_count(&self) -> u64 {
        self.requests.get()
    }

    /// How many steps the recording has so far.
    pub fn step_count(&self) -> usize {
        self.step_lines.borrow().len()
    }

    /// Gives the recording a label for the steps that begin now (`record_function`).
    pub fn label(&self, text: &str) {
        if let Some(recorder) =
            self.allocator.borrow_mut().as_mut().and_then(|allocator| allocator.sink_mut().recorder.as_mut())
        {
            recorder.label(text);
        }
    }

    /// Whether a recording is made.
    pub fn is_recorded(&self) -> bool {
        self.allocator.borrow().as_ref().is_some_and(|allocator| allocator.sink().recorder.is_some())
    }

    /// Gives allocations of the recording the names that the program has for them. The numbers are indices
    /// into [`SimulatedGpu::origins`].
    pub fn name_allocations(&self, names: impl IntoIterator<Item = (u32, String)>) {
        let origins = self.origins.borrow();
        let named = names.into_iter().filter_map(|(number, name)| {
            let origin = origins.get(usize::try_from(number).ok()?)?;
            Some((origin.allocation?, name))
        });
        if let Some(recorder) =
            self.allocator.borrow_mut().as_mut().and_then(|allocator| allocator.sink_mut().recorder.as_mut())
        {
            recorder.name_allocations(named);
        }
    }

    /// Notes every request from now on, until [`SimulatedGpu::take_log`].
    pub fn start_log(&self) {
        *self.log.borrow_mut() = Some(Vec::new());
    }

    /// The requests since the last call. Requests are noted further on.
    pub fn take_log(&self) -> Vec<LogEntry> {
        self.log.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes in the log that the next `count` frees have an order that PyTorch leaves to a hash table.
    pub(crate) fn log_unordered(&self, count: u32) {
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log.push(LogEntry::Unordered(count));
        }
    }

    /// Looks at the requests since the last [`SimulatedGpu::take_log`].
    pub fn with_log<T>(&self, look: impl FnOnce(&[LogEntry]) -> T) -> T {
        look(self.log.borrow().as_deref().unwrap_or_default())
    }

    /// How many requests were noted since the last [`SimulatedGpu::take_log`].
    pub fn log_count(&self) -> usize {
        self.log.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Ends the recording; later frees are not in it. `None` if nothing was recorded, or if the recording is
    /// finished already. The stack of each allocation is the allocation's line of `file`, the program.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`] when the run is too long to record.
    pub fn finish(&self, file: &str) -> Result<Option<Recording>> {
        let Some(allocator) = self.allocator.borrow_mut().take() else { return Ok(None) };
        let Some(mut recorder) = allocator.into_sink().recorder else { return Ok(None) };
        lines::set(&mut recorder, file, &self.origins.borrow());
        recorder.finish().map(Some).map_err(|error| TorchError::Runtime(error.to_string()))
    }
}
