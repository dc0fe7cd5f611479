//! Runs requests one by one and collects their results.

use blockyard_allocator::{AllocError, BackendAllocation, BackendAllocator};
use blockyard_device::{Advance, DeviceError, DeviceMemory};
use blockyard_pytorch::AllocationResult;
use blockyard_record::{
    BlockId, BlockSnapshot, DeviceAddr, Event, EventSink, Recorder, Recording, RunInfo, Snapshot, Stats,
    StepOutcome, TraceEntry,
};
use blockyard_workload::{Request, TensorId, Workload};

use crate::dispatch::{DispatchError, Dispatcher, RequestResult};
use crate::notes::note_of;
use crate::{RunError, RunSettings};

/// Runs a workload through an allocator, one request at a time, and records the run.
#[derive(Debug)]
pub struct Runner<'a, D: DeviceMemory> {
    dispatcher: Dispatcher<D, TraceRecorder>,
    workload: &'a Workload,
    next: usize,
    next_label: usize,
    /// The address that the last request got; 0 for a request of zero bytes.
    addr: Option<DeviceAddr>,
}

/// Records the run and, if asked, PyTorch's trace of the run.
#[derive(Debug)]
pub struct TraceRecorder {
    recorder: Recorder,
    trace: Option<Vec<TraceEntry>>,
    /// The block that the current step allocated.
    allocated_block: Option<BlockId>,
}

impl EventSink for TraceRecorder {
    fn record(&mut self, event: Event) {
        if let Some(trace) = &mut self.trace {
            trace.extend(self.recorder.state().trace_entry(&event));
        }
        if let Event::Allocated { block, .. } = event {
            self.allocated_block = Some(block);
        }
        self.recorder.record(event);
    }
}

impl<'a, D: DeviceMemory + Advance> Runner<'a, D> {
    /// A runner before the first request.
    pub fn new(device: D, settings: &RunSettings, workload: &'a Workload) -> Self {
        let sink =
            TraceRecorder { recorder: recorder(settings, workload), trace: None, allocated_block: None };
        Self::over(BackendAllocator::new(device, settings.config.clone(), sink), Vec::new(), workload)
    }

    /// A runner before the first request that begins with the memory of `start`. The device must have
    /// allocated this memory.
    ///
    /// The allocated blocks of `start` are the workload's first tensors, by ascending address.
    ///
    /// # Errors
    ///
    /// [`RunError::Recording`] and [`RunError::Allocator`] for a snapshot that is not one of a valid
    /// allocator.
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
        let sink = TraceRecorder { recorder, trace: None, allocated_block: None };
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
        Self { dispatcher: Dispatcher::new(allocator, live), workload, next: 0, next_label: 0, addr: None }
    }

    /// Runs the next request; `None` after the last request.
    ///
    /// The text of a refused allocation has less than the recording's, which also says what was asked for.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device fails for another reason than a lack of memory.
    pub fn step(&mut self) -> Result<Option<StepOutcome>, RunError> {
        let Some(request) = self.workload.requests().get(self.next).copied() else {
            return Ok(None);
        };
        self.set_labels();
        self.next += 1;
        self.dispatcher.allocator.sink_mut().allocated_block = None;
        self.addr = None;
        let outcome = self.perform(request)?;
        let recorded = match &outcome {
            StepOutcome::Refused(text) => StepOutcome::Refused(self.refused(request, text)),
            StepOutcome::Done | StepOutcome::OutOfMemory(_) | StepOutcome::Skipped(_) => outcome.clone(),
        };
        self.dispatcher.allocator.sink_mut().recorder.finish_step(recorded);
        Ok(Some(outcome))
    }

    /// The result of the last request, whose outcome is given, as a recorded run writes it; `None` for requests
    /// without a result.
    pub fn answer(&self, outcome: &StepOutcome) -> Option<AllocationResult> {
        match outcome {
            StepOutcome::Done => self.addr.map(|addr| AllocationResult::At(addr.get())),
            StepOutcome::OutOfMemory(text) | StepOutcome::Refused(text) => {
                Some(AllocationResult::OutOfMemory(text.clone()))
            }
            StepOutcome::Skipped(_) => None,
        }
    }

    /// The block that the last request allocated, if it allocated one.
    pub fn allocated_block(&self) -> Option<BlockSnapshot> {
        let sink = self.dispatcher.allocator.sink();
        sink.recorder.state().block(sink.allocated_block?)
    }

    /// The statistics at this moment.
    pub fn stats(&self) -> Stats {
        self.dispatcher.allocator.stats()
    }

    /// The snapshot of the allocator at this moment.
    pub fn snapshot(&self) -> Snapshot {
        self.dispatcher.allocator.snapshot()
    }

    /// The allocator, for tests of its invariants.
    pub fn allocator(&self) -> &BackendAllocator<D, TraceRecorder> {
        &self.dispatcher.allocator
    }

    /// Allocates at recorded addresses under `cudaMallocAsync`
    /// ([`blockyard_pytorch::trace::InferredRun::placements`]).
    #[must_use]
    pub fn with_placements(mut self, placements: &[Option<DeviceAddr>]) -> Self {
        self.dispatcher.allocator.place_as_recorded(placements.iter().copied());
        self
    }

    /// Keeps PyTorch's trace too. A recording can also make the trace later ([`Recording::trace`]).
    #[must_use]
    pub fn with_trace(mut self) -> Self {
        self.dispatcher.allocator.sink_mut().trace.get_or_insert_default();
        self
    }

    /// PyTorch's trace so far; empty without [`Runner::with_trace`].
    pub fn trace(&self) -> &[TraceEntry] {
        self.dispatcher.allocator.sink().trace.as_deref().unwrap_or_default()
    }

    /// The recorder, which has the state after the events so far.
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

    /// The text for a refused request, which causes no event.
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

    fn perform(&mut self, request: Request) -> Result<StepOutcome, RunError> {
        let recorder = &mut self.dispatcher.allocator.sink_mut().recorder;
        if let Request::Allocate { tensor, .. } = request {
            recorder.name_next_allocation(self.workload.tensor_name(tensor).as_deref());
        }
        // Requests about memory pools and settings cause no event.
        if let Some((title, sentence)) = note_of(self.workload, request) {
            recorder.note(title, sentence);
        }
        match self.dispatcher.perform(&request, |number| self.workload.settings(number)) {
            Ok(RequestResult::Allocated(addr)) => {
                self.addr = Some(addr);
                Ok(StepOutcome::Done)
            }
            Ok(RequestResult::Done) => Ok(StepOutcome::Done),
            Ok(RequestResult::Skipped(tensor)) => Ok(self.skipped(tensor)),
            Err(error) => failure(error),
        }
    }

    fn skipped(&self, tensor: TensorId) -> StepOutcome {
        let name = self.workload.tensor_name(tensor);
        let name = name.as_deref().map_or_else(|| format!("tensor {tensor}"), ToOwned::to_owned);
        StepOutcome::Skipped(format!("{name} was never allocated: its request failed"))
    }
}

fn recorder(settings: &RunSettings, workload: &Workload) -> Recorder {
    let info = RunInfo {
        title: settings.title.clone(),
        conf: settings.config.text().to_owned(),
        capacity: settings.capacity,
        is_capacity_unknown: false,
        max_split_size: settings.config.max_split_size_signed(),
        backend: settings.config.backend(),
        release: settings.config.release(),
    };
    let mut recorder = Recorder::new(info);
    for (stream, name) in workload.streams() {
        recorder.name_stream(stream, name);
    }
    recorder
}

// A lack of memory and a bad request are results of a step; a device that fails ends the run.
pub(crate) fn failure(error: DispatchError) -> Result<StepOutcome, RunError> {
    let error = match error {
        DispatchError::Config(error) => return Ok(StepOutcome::Refused(error.to_string())),
        DispatchError::Allocator(error) => error,
    };
    match error {
        AllocError::OutOfMemory(out_of_memory) => Ok(StepOutcome::OutOfMemory(out_of_memory.to_string())),
        AllocError::MallocAsyncOutOfMemory(out_of_memory) => {
            Ok(StepOutcome::OutOfMemory(out_of_memory.to_string()))
        }
        AllocError::UncachedOutOfMemory { .. } => Ok(StepOutcome::OutOfMemory(error.to_string())),
        AllocError::AlreadyInPool(_)
        | AllocError::NotInPool(_)
        | AllocError::NoExpandablePool
        | AllocError::UnknownPool(_)
        | AllocError::NoVirtualMemory
        | AllocError::MallocAsyncNeedsVirtualMemory
        | AllocError::NotSupported(_)
        | AllocError::NoSnapshot
        | AllocError::TooLarge { .. }
        | AllocError::InvalidFraction(_)
        | AllocError::InvalidPointer(_)
        | AllocError::Device(DeviceError::TooLarge { .. }) => Ok(StepOutcome::Refused(error.to_string())),
        error => Err(RunError::Allocator(error)),
    }
}

#[cfg(test)]
mod tests {
    use blockyard_device::{InitialMemory, RecordedDevice, VirtualDevice};
    use blockyard_record::Bytes;
    use blockyard_rules::AllocatorConfig;

    use super::*;

    fn settings(mebibytes: u64) -> RunSettings {
        RunSettings {
            title: "test".to_owned(),
            config: AllocatorConfig::default(),
            capacity: Bytes::mib(mebibytes),
        }
    }

    fn runner(workload: &Workload, mebibytes: u64) -> Runner<'_, VirtualDevice> {
        let settings = settings(mebibytes);
        Runner::new(VirtualDevice::new(settings.capacity), &settings, workload)
    }

    fn results(runner: &mut Runner<'_, VirtualDevice>) -> Vec<StepOutcome> {
        std::iter::from_fn(|| runner.step().unwrap()).collect()
    }

    #[test]
    fn a_request_that_fails_is_a_result_and_the_run_goes_on() {
        let workload =
            Workload::parse("a = alloc 3 MiB; big = alloc 100 MiB; free big; b = alloc 3 MiB; free a, b")
                .unwrap();
        let mut runner = runner(&workload, 64);
        let mut answers = 0;
        let results: Vec<StepOutcome> = std::iter::from_fn(|| {
            let outcome = runner.step().unwrap()?;
            answers += usize::from(runner.answer(&outcome).is_some());
            Some(outcome)
        })
        .collect();
        assert!(
            matches!(&results[1], StepOutcome::OutOfMemory(text) if text.contains("Tried to allocate 100.00 MiB"))
        );
        let skipped = "big was never allocated: its request failed".to_owned();
        assert_eq!(results[2], StepOutcome::Skipped(skipped.clone()));
        assert_eq!(results[3], StepOutcome::Done);
        assert_eq!(answers, 3);

        let (recording, _) = runner.finish().unwrap();
        assert_eq!(recording.step_count(), workload.requests().len());
        let failed: Vec<u32> = recording.failed_steps().iter().map(|(step, _)| *step).collect();
        assert_eq!(failed, [1, 2]);
        assert_eq!(*recording.outcome(2), StepOutcome::Skipped(skipped));
        assert_eq!(*recording.outcome(3), StepOutcome::Done);
    }

    #[test]
    fn a_refused_request_names_its_tensor_and_its_bytes() {
        let workload =
            Workload::parse("huge = alloc 18446744073709551615\nset max_split_size_mb:1\na = alloc 1 MiB")
                .unwrap();
        let mut runner = runner(&workload, 64);
        let results = results(&mut runner);
        assert!(matches!(&results[0], StepOutcome::Refused(_)), "{results:?}");
        assert!(matches!(&results[1], StepOutcome::Refused(text) if text.contains("max_split_size_mb")));
        assert_eq!(results[2], StepOutcome::Done);
        let (recording, _) = runner.finish().unwrap();
        let StepOutcome::Refused(text) = recording.outcome(0) else { panic!("{:?}", recording.outcome(0)) };
        assert!(text.starts_with("huge = alloc 18446744073709551615 B: "), "{text}");
        assert_eq!(recording.step(0).map(|step| step.end - step.start), Some(0), "nothing happened");
    }

    #[test]
    fn labels_come_before_their_request_and_also_after_the_last_one() {
        let text = "step \"one\"; a = alloc 3 MiB; step \"two\"; free a; step \"end\"";
        let workload = Workload::parse(text).unwrap();
        let mut runner = runner(&workload, 64);
        results(&mut runner);
        let (recording, _) = runner.finish().unwrap();
        let labels: Vec<_> =
            recording.labels().iter().map(|label| (label.step, label.text.as_str())).collect();
        assert_eq!(labels, [(0, "one"), (1, "two"), (2, "end")]);
    }

    #[test]
    fn the_allocated_block_is_that_of_the_last_request() {
        let workload = Workload::parse("a = alloc 3 MiB; b = alloc 0; free a").unwrap();
        let mut runner = runner(&workload, 64);
        runner.step().unwrap();
        assert_eq!(runner.allocated_block().map(|block| block.size), Some(Bytes::mib(3)));
        runner.step().unwrap();
        assert_eq!(runner.allocated_block(), None, "zero bytes have no block");
        runner.step().unwrap();
        assert_eq!(runner.allocated_block(), None, "the block of an earlier request");
        assert_eq!(runner.step().unwrap(), None);
    }

    #[test]
    fn a_run_begins_with_the_memory_of_another() {
        let first = Workload::parse("a = alloc 3 MiB; b = alloc 5 MiB; free a").unwrap();
        let mut earlier = runner(&first, 64);
        results(&mut earlier);
        let start = earlier.snapshot();

        let second = Workload::from_requests(vec![Request::Free { tensor: TensorId::new(0) }]);
        let settings = settings(64);
        let memory = start
            .segments
            .iter()
            .map(|segment| InitialMemory::Segment { base: segment.addr, size: segment.size });
        let device = RecordedDevice::new(settings.capacity, [], [], []).with_initial_memory(memory);
        let mut later = Runner::beginning_with(device, &settings, &second, &start).unwrap();
        assert_eq!(later.step().unwrap(), Some(StepOutcome::Done));
        assert_eq!(
            later.stats().allocated_bytes.all.current,
            0,
            "the one allocated block is the first tensor"
        );
    }

    #[test]
    fn a_device_that_is_lost_ends_the_run() {
        let lost = DeviceError::Lost { source: "unplugged".into() };
        let error = failure(DispatchError::Allocator(AllocError::Device(lost)));
        assert!(matches!(error, Err(RunError::Allocator(AllocError::Device(DeviceError::Lost { .. })))));
        let refused = failure(DispatchError::Allocator(AllocError::MallocAsyncNeedsVirtualMemory));
        assert!(matches!(refused, Ok(StepOutcome::Refused(_))));
    }
}
