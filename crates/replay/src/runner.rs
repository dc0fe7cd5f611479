use blockyard_allocator::{AllocError, BackendAllocation, BackendAllocator};
use blockyard_device::{Advance, DeviceError, DeviceMemory};
use blockyard_pytorch::Allocated;
use blockyard_record::{
    BlockId, BlockSnapshot, DeviceAddr, Event, EventSink, Outcome, Recorder, Recording, RunInfo, Snapshot,
    Stats, TraceEntry,
};
use blockyard_workload::{Request, TensorId, Workload};

use crate::arrange::words;
use crate::dispatch::{DispatchError, Dispatched, Dispatcher};
use crate::{RunError, RunSettings};

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
    dispatcher: Dispatcher<D, TraceRecorder>,
    workload: &'a Workload,
    next: usize,
    next_label: usize,
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
    pub fn new(device: D, settings: &RunSettings, workload: &'a Workload) -> Self {
        let sink = TraceRecorder { recorder: recorder(settings, workload), trace: None, handed_out: None };
        Self::over(BackendAllocator::new(device, settings.config.clone(), sink), Vec::new(), workload)
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
        settings: &RunSettings,
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
        Ok(Self::over(allocator, live.into_iter().map(Some).collect(), workload))
    }

    fn over(
        allocator: BackendAllocator<D, TraceRecorder>,
        live: Vec<Option<BackendAllocation>>,
        workload: &'a Workload,
    ) -> Self {
        Self { dispatcher: Dispatcher::new(allocator, live), workload, next: 0, next_label: 0 }
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
        self.dispatcher.allocator.sink_mut().handed_out = None;
        let result = self.perform(request)?;
        let outcome = match &result {
            StepResult::Allocated(_) | StepResult::Done => Outcome::Done,
            StepResult::OutOfMemory(text) => Outcome::OutOfMemory(text.clone()),
            StepResult::Refused(text) => Outcome::Refused(self.refused(request, text)),
            StepResult::Skipped(text) => Outcome::Skipped(text.clone()),
        };
        self.dispatcher.allocator.sink_mut().recorder.finish_step(outcome);
        Ok(Some(result))
    }

    /// The block that the last request took, if it did.
    #[must_use]
    pub fn handed_out(&self) -> Option<BlockSnapshot> {
        let sink = self.dispatcher.allocator.sink();
        sink.recorder.state().block(sink.handed_out?)
    }

    /// The counters of the allocator at this moment.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.dispatcher.allocator.stats()
    }

    /// The allocator's own snapshot at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.dispatcher.allocator.snapshot()
    }

    /// The allocator, to test its invariants.
    #[must_use]
    pub fn allocator(&self) -> &BackendAllocator<D, TraceRecorder> {
        &self.dispatcher.allocator
    }

    /// Puts blocks of the backend `cudaMallocAsync` where a recording has them ([`blockyard_pytorch::Inferred::placements`]).
    #[must_use]
    pub fn with_placements(mut self, placements: &[Option<DeviceAddr>]) -> Self {
        self.dispatcher.allocator.place_as_recorded(placements.iter().copied());
        self
    }

    /// Keeps PyTorch's trace too, which a recording can also tell afterwards ([`Recording::trace`]).
    #[must_use]
    pub fn with_trace(mut self) -> Self {
        self.dispatcher.allocator.sink_mut().trace.get_or_insert_default();
        self
    }

    /// PyTorch's trace so far; empty without [`Runner::with_trace`].
    #[must_use]
    pub fn trace(&self) -> &[TraceEntry] {
        self.dispatcher.allocator.sink().trace.as_deref().unwrap_or_default()
    }

    /// The recorder, which holds the state that the events so far add up to.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.dispatcher.allocator.sink().recorder
    }

    /// The whole run, and PyTorch's trace of it; the trace is empty without [`Runner::with_trace`].
    ///
    /// # Errors
    ///
    /// [`RunError::Recording`] when the run is too long to record.
    pub fn finish(mut self) -> Result<(Recording, Vec<TraceEntry>), RunError> {
        self.set_labels();
        let sink = self.dispatcher.allocator.into_sink();
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
            self.dispatcher.allocator.sink_mut().recorder.label(text);
            self.next_label += 1;
        }
    }

    fn perform(&mut self, request: Request) -> Result<StepResult, RunError> {
        let recorder = &mut self.dispatcher.allocator.sink_mut().recorder;
        if let Request::Allocate { tensor, .. } = request {
            recorder.name_next_allocation(self.workload.tensor_name(tensor).as_deref());
        }
        // No event tells of memory pools and settings.
        if let Some((title, sentence)) = words(self.workload, request) {
            recorder.note(title, sentence);
        }
        match self.dispatcher.perform(&request, |number| self.workload.settings(number)) {
            Ok(Dispatched::Allocated(addr)) => Ok(StepResult::Allocated(addr)),
            Ok(Dispatched::Done) => Ok(StepResult::Done),
            Ok(Dispatched::Skipped(tensor)) => Ok(self.skipped(tensor)),
            Err(error) => failure(error),
        }
    }

    fn skipped(&self, tensor: TensorId) -> StepResult {
        let name = self.workload.tensor_name(tensor);
        let name = name.as_deref().map_or_else(|| format!("tensor {tensor}"), ToOwned::to_owned);
        StepResult::Skipped(format!("{name} was never allocated: its request failed"))
    }
}

fn recorder(settings: &RunSettings, workload: &Workload) -> Recorder {
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
pub(crate) fn failure(error: DispatchError) -> Result<StepResult, RunError> {
    let error = match error {
        DispatchError::RunSettings(error) => return Ok(StepResult::Refused(error.to_string())),
        DispatchError::Allocator(error) => error,
    };
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
