use std::collections::BTreeMap;

use blockyard_allocator::{AllocError, BackendAllocation, BackendAllocator, PoolOptions};
use blockyard_device::{Advance, DeviceError, DeviceMemory};
use blockyard_pytorch::Allocated;
use blockyard_record::{
    BlockId, BlockSnapshot, DeviceAddr, Event, EventSink, Outcome, PoolId, Recorder, Recording, RunInfo,
    Snapshot, Stats, TraceEntry,
};
use blockyard_workload::{Request, TensorId, Workload};

use crate::arrange::words;
use crate::{RunError, Settings};

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Memory at this address; 0 for a request of zero bytes.
    Allocated(DeviceAddr),
    /// Done; there is nothing to return.
    Done,
    /// No memory; the text is PyTorch's.
    OutOfMemory(String),
    /// Refused for the reason given; nothing changed.
    Refused(String),
    /// Not possible, since an earlier request failed.
    Skipped(String),
}

impl StepResult {
    /// The result as a recording writes it; `None` for requests that have none.
    #[must_use]
    pub fn answer(&self) -> Option<Allocated> {
        match self {
            Self::Allocated(addr) => Some(Allocated::At(addr.get())),
            Self::OutOfMemory(text) | Self::Refused(text) => Some(Allocated::OutOfMemory(text.clone())),
            Self::Done | Self::Skipped(_) => None,
        }
    }
}

/// Feeds a workload to an allocator, one request at a time, and records the run.
#[derive(Debug)]
pub struct Runner<'a, D: DeviceMemory> {
    allocator: BackendAllocator<D, TraceRecorder>,
    workload: &'a Workload,
    next: usize,
    next_label: usize,
    live: Vec<Option<BackendAllocation>>,
    /// The allocator's number of each memory pool of the program that the workload has made or entered.
    user_pools: BTreeMap<PoolId, PoolId>,
}

/// Records the run and, if asked, PyTorch's trace of it beside.
#[derive(Debug)]
pub struct TraceRecorder {
    recorder: Recorder,
    trace: Option<Vec<TraceEntry>>,
    /// The block that the running step took.
    handed_out: Option<BlockId>,
}

impl EventSink for TraceRecorder {
    fn record(&mut self, event: Event) {
        if let Some(trace) = &mut self.trace {
            trace.extend(self.recorder.state().trace_entry(&event));
        }
        if let Event::Allocated { block, .. } = event {
            self.handed_out = Some(block);
        }
        self.recorder.record(event);
    }
}

impl<'a, D: DeviceMemory + Advance> Runner<'a, D> {
    /// A runner before the first request.
    pub fn new(device: D, settings: &Settings, workload: &'a Workload) -> Self {
        let sink = TraceRecorder { recorder: recorder(settings, workload), trace: None, handed_out: None };
        Self::over(BackendAllocator::new(device, settings.config.clone(), sink), workload)
    }

    /// A runner before the first request, with the memory of `start` there already; the device must have given it.
    ///
    /// The allocated blocks of `start` are the workload's first tensors, by ascending address.
    ///
    /// # Errors
    ///
    /// [`RunError::Recording`] and [`RunError::Allocator`] for memory that no allocator can hold like this.
    pub fn beginning_with(
        device: D,
        settings: &Settings,
        workload: &'a Workload,
        start: &Snapshot,
    ) -> Result<Self, RunError> {
        if start.segments.is_empty() {
            return Ok(Self::new(device, settings, workload));
        }
        let mut recorder = recorder(settings, workload);
        recorder.begin_with(start)?;
        let sink = TraceRecorder { recorder, trace: None, handed_out: None };
        let (allocator, live) =
            BackendAllocator::beginning_with(device, settings.config.clone(), sink, start)
                .map_err(RunError::Allocator)?;
        let mut runner = Self::over(allocator, workload);
        runner.live = live.into_iter().map(Some).collect();
        Ok(runner)
    }

    fn over(allocator: BackendAllocator<D, TraceRecorder>, workload: &'a Workload) -> Self {
        Self { allocator, workload, next: 0, next_label: 0, live: Vec::new(), user_pools: BTreeMap::new() }
    }

    /// Does the next request; `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device fails in another way than for want of memory.
    pub fn step(&mut self) -> Result<Option<StepResult>, RunError> {
        let Some(request) = self.workload.requests().get(self.next).copied() else {
            return Ok(None);
        };
        self.set_labels();
        self.next += 1;
        self.allocator.sink_mut().handed_out = None;
        let result = self.perform(request)?;
        let outcome = match &result {
            StepResult::Allocated(_) | StepResult::Done => Outcome::Done,
            StepResult::OutOfMemory(text) => Outcome::OutOfMemory(text.clone()),
            StepResult::Refused(text) => Outcome::Refused(self.refused(request, text)),
            StepResult::Skipped(text) => Outcome::Skipped(text.clone()),
        };
        self.allocator.sink_mut().recorder.finish_step(outcome);
        Ok(Some(result))
    }

    /// The block that the last request took, if it did.
    #[must_use]
    pub fn handed_out(&self) -> Option<BlockSnapshot> {
        let sink = self.allocator.sink();
        sink.recorder.state().block(sink.handed_out?)
    }

    /// The counters of the allocator at this moment.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.allocator.stats()
    }

    /// The allocator's own snapshot at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.allocator.snapshot()
    }

    /// The allocator, to test its invariants.
    #[must_use]
    pub fn allocator(&self) -> &BackendAllocator<D, TraceRecorder> {
        &self.allocator
    }

    /// Keeps PyTorch's trace too, which a recording can also tell afterwards ([`Recording::trace`]).
    #[must_use]
    pub fn with_trace(mut self) -> Self {
        self.allocator.sink_mut().trace.get_or_insert_default();
        self
    }

    /// PyTorch's trace so far; empty without [`Runner::with_trace`].
    #[must_use]
    pub fn trace(&self) -> &[TraceEntry] {
        self.allocator.sink().trace.as_deref().unwrap_or_default()
    }

    /// The recorder, which holds the state that the events so far add up to.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.allocator.sink().recorder
    }

    /// The whole run, and PyTorch's trace of it; the trace is empty without [`Runner::with_trace`].
    ///
    /// # Errors
    ///
    /// [`RunError::Recording`] when the run is too long to record.
    pub fn finish(mut self) -> Result<(Recording, Vec<TraceEntry>), RunError> {
        self.set_labels();
        let sink = self.allocator.into_sink();
        Ok((sink.recorder.finish()?, sink.trace.unwrap_or_default()))
    }

    /// Says what was refused, since no event tells of it.
    fn refused(&self, request: Request, text: &str) -> String {
        match request {
            Request::Allocate { tensor, size, .. } => {
                let name =
                    self.workload.tensor_name(tensor).map_or_else(String::new, |name| format!("{name} = "));
                format!("{name}alloc {} B: {text}", size.get())
            }
            _ => text.to_owned(),
        }
    }

    fn set_labels(&mut self) {
        while let Some((at, text)) = self.workload.labels().get(self.next_label) {
            if *at as usize > self.next {
                break;
            }
            self.allocator.sink_mut().recorder.label(text);
            self.next_label += 1;
        }
    }

    fn perform(&mut self, request: Request) -> Result<StepResult, RunError> {
        match request {
            Request::Allocate { tensor, size, stream } => {
                let name = self.workload.tensor_name(tensor);
                self.allocator.sink_mut().recorder.name_next_allocation(name.as_deref());
                let result = self.allocator.allocate(size, stream);
                return match result {
                    Ok(allocation) => {
                        let addr = allocation.addr();
                        self.keep(tensor, allocation);
                        Ok(StepResult::Allocated(addr))
                    }
                    Err(error) => failure(error),
                };
            }
            Request::Free { tensor } => {
                let Some(allocation) = self.take(tensor) else {
                    return Ok(self.skipped(tensor));
                };
                if let Err(error) = self.allocator.free(allocation) {
                    return failure(error);
                }
            }
            Request::RecordStream { tensor, stream } => {
                let live = self.live.get(tensor.get() as usize).and_then(Option::as_ref);
                let Some(allocation) = live else {
                    return Ok(self.skipped(tensor));
                };
                if let Err(error) = self.allocator.record_stream(allocation, stream) {
                    return failure(error);
                }
            }
            Request::Advance { stream } => self.allocator.device_mut().advance_streams(stream),
            Request::EmptyCache => {
                if let Err(error) = self.allocator.empty_cache() {
                    return failure(error);
                }
            }
            Request::SetFraction { fraction } => {
                if let Err(error) = self.allocator.set_memory_fraction(fraction) {
                    return failure(error);
                }
            }
            Request::CreatePool { .. }
            | Request::EnterPool { .. }
            | Request::LeavePool { .. }
            | Request::DestroyPool { .. }
            | Request::Set { .. } => return self.arrange(request),
            Request::ResetPeak => self.allocator.reset_peak_stats(),
            Request::ResetAccumulated => self.allocator.reset_accumulated_stats(),
            Request::Snapshot => {
                if let Err(error) = self.allocator.record_snapshot() {
                    return failure(error);
                }
            }
        }
        Ok(StepResult::Done)
    }

    /// Does a request about memory pools or settings, of which no event tells.
    fn arrange(&mut self, request: Request) -> Result<StepResult, RunError> {
        if let Some((title, sentence)) = words(self.workload, request) {
            self.allocator.sink_mut().recorder.note(title, sentence);
        }
        let done = match request {
            Request::CreatePool { pool, never_splits, serves_on_oom } => {
                let made = self.allocator.create_pool(PoolOptions { never_splits, serves_on_oom });
                made.map(|made| {
                    self.user_pools.insert(pool, made);
                })
            }
            Request::EnterPool { pool } => self.enter_pool(pool),
            Request::LeavePool { pool } => {
                // `use_mem_pool` gives up its own use of the pool, not the owner's.
                let pool = self.number_of(pool);
                let left = self.allocator.end_allocate_to_pool(pool);
                left.and_then(|()| self.allocator.release_pool(pool))
            }
            Request::DestroyPool { pool } => self.allocator.destroy_pool(self.number_of(pool)),
            Request::Set { settings } => {
                let text = self.workload.settings(settings).unwrap_or_default();
                return Ok(match self.allocator.apply_settings(text) {
                    Ok(()) => StepResult::Done,
                    Err(error) => StepResult::Refused(error.to_string()),
                });
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => Ok(StepResult::Done),
            Err(error) => failure(error),
        }
    }

    fn enter_pool(&mut self, pool: PoolId) -> Result<(), AllocError> {
        // Pools of a program keep their memory after they are left: a first scope's use stands for their owner's.
        if pool.user > 0 && self.user_pools.insert(pool, self.number_of(pool)).is_none() {
            self.allocator.begin_allocate_to_pool(pool, None)?;
            self.allocator.end_allocate_to_pool(pool)?;
        }
        self.allocator.begin_allocate_to_pool(self.number_of(pool), None)
    }

    fn number_of(&self, pool: PoolId) -> PoolId {
        self.user_pools.get(&pool).copied().unwrap_or(pool)
    }

    fn keep(&mut self, tensor: TensorId, allocation: BackendAllocation) {
        let index = tensor.get() as usize;
        if index >= self.live.len() {
            self.live.resize_with(index + 1, || None);
        }
        self.live[index] = Some(allocation);
    }

    fn take(&mut self, tensor: TensorId) -> Option<BackendAllocation> {
        self.live.get_mut(tensor.get() as usize).and_then(Option::take)
    }

    fn skipped(&self, tensor: TensorId) -> StepResult {
        let name = self.workload.tensor_name(tensor);
        let name = name.as_deref().map_or_else(|| format!("tensor {tensor}"), ToOwned::to_owned);
        StepResult::Skipped(format!("{name} was never allocated: its request failed"))
    }
}

fn recorder(settings: &Settings, workload: &Workload) -> Recorder {
    let info = RunInfo {
        title: settings.title.clone(),
        config: settings.config.text().to_owned(),
        capacity: settings.capacity,
        max_split_size: settings.config.max_split_size_signed(),
        backend: settings.config.backend(),
    };
    let mut recorder = Recorder::new(info);
    for (stream, name) in workload.streams() {
        recorder.name_stream(stream, name);
    }
    recorder
}

// Want of memory and bad requests belong to the run; a device that fails ends it.
fn failure(error: AllocError) -> Result<StepResult, RunError> {
    match error {
        AllocError::OutOfMemory(out_of_memory) => Ok(StepResult::OutOfMemory(out_of_memory.to_string())),
        AllocError::MallocAsyncOutOfMemory(out_of_memory) => {
            Ok(StepResult::OutOfMemory(out_of_memory.to_string()))
        }
        AllocError::UncachedOutOfMemory { .. } => Ok(StepResult::OutOfMemory(error.to_string())),
        AllocError::AlreadyInPool(_)
        | AllocError::NotInPool(_)
        | AllocError::UnknownPool(_)
        | AllocError::NoVirtualMemory
        | AllocError::NoMemoryPool
        | AllocError::NotSupported(_)
        | AllocError::NoSnapshot
        | AllocError::TooLarge { .. }
        | AllocError::InvalidFraction(_)
        | AllocError::InvalidPointer(_)
        | AllocError::Device(DeviceError::TooLarge { .. }) => Ok(StepResult::Refused(error.to_string())),
        error => Err(RunError::Allocator(error)),
    }
}
