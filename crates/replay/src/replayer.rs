//! A plan on its way through an allocator, as far as its caller lets it go.

use blockyard_allocator::{AllocatorConfig, BackendAllocator};
use blockyard_device::{Advance, DeviceMemory};
use blockyard_record::{EventSink, Snapshot, Stats};

use crate::dispatch::{DispatchError, Dispatched, Dispatcher};
use crate::runner::failure;
use crate::{PreparedWorkload, RunError, StepResult};

/// Feeds a [`PreparedWorkload`] to an allocator, and stops where its caller wants to look.
#[derive(Debug)]
pub struct Replayer<'a, D: DeviceMemory, S: EventSink> {
    plan: &'a PreparedWorkload,
    dispatcher: Dispatcher<D, S>,
    next: usize,
    skipped: u64,
}

/// A request that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// Which request, counted from 0.
    pub request: usize,
    /// Why: [`StepResult::OutOfMemory`] or [`StepResult::Refused`].
    pub result: StepResult,
}

impl<'a, D: DeviceMemory + Advance, S: EventSink> Replayer<'a, D, S> {
    /// A replayer before the first request of the plan.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device cannot have given what the plan begins with.
    pub fn new(
        plan: &'a PreparedWorkload,
        config: &AllocatorConfig,
        device: D,
        sink: S,
    ) -> Result<Self, RunError> {
        let mut live = Vec::with_capacity(plan.places);
        let mut allocator = if plan.start.segments.is_empty() {
            BackendAllocator::new(device, config.clone(), sink)
        } else {
            let began = BackendAllocator::beginning_with(device, config.clone(), sink, &plan.start);
            let (allocator, held) = began.map_err(RunError::Allocator)?;
            live.extend(held.into_iter().map(Some));
            allocator
        };
        allocator.place_as_recorded(plan.placements.iter().copied());
        live.resize_with(plan.places, || None);
        Ok(Self { plan, dispatcher: Dispatcher::new(allocator, live), next: 0, skipped: 0 })
    }

    /// Does the requests before `end`, or those up to and including the first that fails, which is returned.
    ///
    /// The next call goes on behind the failed request.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device fails in another way than for want of memory.
    pub fn run_to(&mut self, end: usize) -> Result<Option<FailedRequest>, RunError> {
        let plan = self.plan;
        let requests = plan.requests.get(self.next..end.min(plan.requests.len())).unwrap_or_default();
        for (index, request) in requests.iter().enumerate() {
            match self.dispatcher.perform(request, |number| plan.settings(number)) {
                Ok(Dispatched::Allocated(_) | Dispatched::Done) => {}
                Ok(Dispatched::Skipped(_)) => self.skipped += 1,
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

    /// The index of the request that is done next.
    #[must_use]
    pub fn next_request(&self) -> usize {
        self.next
    }

    /// How many requests could not be done because an earlier one had failed.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Limits the reserved bytes to a share of the device, as `torch.cuda.set_per_process_memory_fraction` does.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] for a share outside of 0 to 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), RunError> {
        self.dispatcher.allocator.set_memory_fraction(fraction).map_err(RunError::Allocator)
    }

    /// The allocator's counters at this moment, as PyTorch reports them.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.dispatcher.allocator.stats()
    }

    /// Sets every peak to its current value.
    pub fn reset_peaks(&mut self) {
        self.dispatcher.allocator.reset_peak_stats();
    }

    /// The allocator's own snapshot at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.dispatcher.allocator.snapshot()
    }

    /// The receiver of events.
    pub fn sink_mut(&mut self) -> &mut S {
        self.dispatcher.allocator.sink_mut()
    }
}

#[cold]
fn failed(request: usize, error: DispatchError) -> Result<FailedRequest, RunError> {
    Ok(FailedRequest { request, result: failure(error)? })
}
