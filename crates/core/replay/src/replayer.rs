//! A prepared workload that runs through an allocator in parts.

use blockyard_allocator::BackendAllocator;
use blockyard_device::{Advance, DeviceMemory};
use blockyard_record::{EventSink, Snapshot, Stats, StepOutcome};
use blockyard_rules::AllocatorConfig;

use crate::dispatch::{DispatchError, Dispatcher, RequestResult};
use crate::runner::failure;
use crate::{PreparedWorkload, RunError};

/// Runs a [`PreparedWorkload`] through an allocator, and stops at any request that the caller names.
#[derive(Debug)]
pub struct Replayer<'a, D: DeviceMemory, S: EventSink> {
    workload: &'a PreparedWorkload,
    dispatcher: Dispatcher<D, S>,
    next: usize,
    skipped: u64,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure {
    /// The index of the request, counted from 0.
    pub request: usize,
    /// The outcome: [`StepOutcome::OutOfMemory`] or [`StepOutcome::Refused`].
    pub result: StepOutcome,
}

impl<'a, D: DeviceMemory + Advance, S: EventSink> Replayer<'a, D, S> {
    /// A replayer before the first request.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device cannot have allocated the memory that the workload begins
    /// with.
    pub fn new(
        workload: &'a PreparedWorkload,
        config: &AllocatorConfig,
        device: D,
        sink: S,
    ) -> Result<Self, RunError> {
        let mut live = Vec::with_capacity(workload.slots);
        let mut allocator = if workload.start.segments.is_empty() {
            BackendAllocator::new(device, config.clone(), sink)
        } else {
            let began = BackendAllocator::beginning_with(device, config.clone(), sink, &workload.start);
            let (allocator, initial) = began.map_err(RunError::Allocator)?;
            live.extend(initial.into_iter().map(Some));
            allocator
        };
        allocator.place_as_recorded(workload.placements.iter().copied());
        live.resize_with(workload.slots, || None);
        Ok(Self { workload, dispatcher: Dispatcher::new(allocator, live), next: 0, skipped: 0 })
    }

    /// Runs the requests before `end`, and stops after the first request that fails, which is returned.
    ///
    /// The next call continues after the failed request.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device fails for another reason than a lack of memory.
    pub fn run_to(&mut self, end: usize) -> Result<Option<RequestFailure>, RunError> {
        let workload = self.workload;
        let requests = workload.requests.get(self.next..end.min(workload.requests.len())).unwrap_or_default();
        for (index, request) in requests.iter().enumerate() {
            match self.dispatcher.perform(request, |number| workload.settings(number)) {
                Ok(RequestResult::Allocated(_) | RequestResult::Done) => {}
                Ok(RequestResult::Skipped(_)) => self.skipped = self.skipped.saturating_add(1),
                Err(error) => {
                    let request = self.next + index;
                    self.next = request + 1;
                    return failed(request, error).map(Some);
                }
            }
        }
        self.next += requests.len();
        Ok(None)
    }

    /// The index of the next request.
    pub fn next_request(&self) -> usize {
        self.next
    }

    /// How many requests were skipped because an earlier request had failed.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Limits reserved memory to a fraction of the device, as `torch.cuda.set_per_process_memory_fraction`
    /// does.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] for a fraction below 0 or above 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), RunError> {
        self.dispatcher.allocator.set_memory_fraction(fraction).map_err(RunError::Allocator)
    }

    /// The statistics at this moment, as PyTorch reports them.
    pub fn stats(&self) -> Stats {
        self.dispatcher.allocator.stats()
    }

    /// Sets every peak to its current value.
    pub fn reset_peaks(&mut self) {
        self.dispatcher.allocator.reset_peak_stats();
    }

    /// The snapshot of the allocator at this moment.
    pub fn snapshot(&self) -> Snapshot {
        self.dispatcher.allocator.snapshot()
    }

    /// The sink of the events.
    pub fn sink_mut(&mut self) -> &mut S {
        self.dispatcher.allocator.sink_mut()
    }
}

#[cold]
fn failed(request: usize, error: DispatchError) -> Result<RequestFailure, RunError> {
    Ok(RequestFailure { request, result: failure(error)? })
}
