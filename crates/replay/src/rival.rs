//! Runs of requests through a rival: another allocator than PyTorch's.
//!
//! The loop is not that of [`Replayer`](crate::Replayer). PyTorch's allocator keeps pending frees and retries a failed request by
//! itself, so a replayer only passes requests on. The rivals know neither, so the loop here does both for them.

use std::ops::ControlFlow;

use blockyard_record::{Bytes, StreamId};
use blockyard_rivals::{Allocator, RivalAllocation, Usage};
use blockyard_workload::Request;

use crate::progress::INTERVAL;
use crate::{PreparedWorkload, RunError};

/// The result of a run through a rival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RivalRun {
    /// How many requests were run; fewer than all if one failed.
    pub requests: usize,
    /// The index of the request that failed.
    pub failed: Option<usize>,
}

/// A block that was freed while other streams may still use it.
struct PendingFree {
    allocation: RivalAllocation,
    streams: Vec<StreamId>,
}

/// Runs the requests of a workload through an allocator, up to the first request that fails. `on_request` is called after
/// each request with the usage of the allocator.
///
/// A block that other streams used is freed when their work is done, as in PyTorch's allocator. A request that fails is
/// retried after a wait for all streams and a release of the cache. Requests about memory pools, settings, the memory fraction,
/// statistics and snapshots are skipped, because only PyTorch's allocator has these.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_progress` cancels the run.
pub fn replay_rival(
    workload: &PreparedWorkload,
    allocator: &mut dyn Allocator,
    mut on_request: Option<&mut dyn FnMut(Usage)>,
    on_progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<RivalRun, RunError> {
    let mut dispatcher = RivalDispatcher { allocator, live: Vec::new(), pending: Vec::new() };
    dispatcher.live.resize_with(workload.slots, || None);
    for (index, request) in workload.requests.iter().enumerate() {
        if index.is_multiple_of(INTERVAL) && on_progress(index).is_break() {
            return Err(RunError::Cancelled);
        }
        if !dispatcher.perform(request) {
            return Ok(RivalRun { requests: index, failed: Some(index) });
        }
        if let Some(on_request) = &mut on_request {
            on_request(dispatcher.allocator.usage());
        }
    }
    Ok(RivalRun { requests: workload.requests.len(), failed: None })
}

/// Calls the allocator for each request, and keeps its allocations and pending frees.
struct RivalDispatcher<'a> {
    allocator: &'a mut dyn Allocator,
    /// The allocation of each tensor, with the other streams that used it.
    live: Vec<Option<(RivalAllocation, Vec<StreamId>)>>,
    pending: Vec<PendingFree>,
}

impl RivalDispatcher<'_> {
    /// Runs a request. Returns whether the request was served.
    fn perform(&mut self, request: &Request) -> bool {
        match *request {
            Request::Allocate { size, .. } if size.is_zero() => {}
            Request::Allocate { tensor, size, stream } => {
                let Some(allocation) = self.allocate(size, stream) else { return false };
                if let Some(place) = self.live.get_mut(tensor.get() as usize) {
                    *place = Some((allocation, Vec::new()));
                }
            }
            Request::Free { tensor } => {
                let place = self.live.get_mut(tensor.get() as usize);
                match place.and_then(Option::take) {
                    Some((allocation, streams)) if streams.is_empty() => self.allocator.free(allocation),
                    Some((allocation, streams)) => self.pending.push(PendingFree { allocation, streams }),
                    None => {}
                }
            }
            Request::RecordStream { tensor, stream } => {
                if let Some(Some((allocation, streams))) = self.live.get_mut(tensor.get() as usize)
                    && allocation.stream != stream
                    && !streams.contains(&stream)
                {
                    streams.push(stream);
                }
            }
            Request::Advance { stream } => self.complete(stream),
            Request::EmptyCache => {
                self.complete(None);
                self.allocator.empty_cache();
            }
            // Only PyTorch's allocator has these.
            Request::SetFraction { .. }
            | Request::ResetPeak
            | Request::ResetAccumulated
            | Request::CreatePool { .. }
            | Request::EnterPool { .. }
            | Request::LeavePool { .. }
            | Request::DestroyPool { .. }
            | Request::Set { .. }
            | Request::Snapshot => {}
        }
        true
    }

    fn allocate(&mut self, size: Bytes, stream: StreamId) -> Option<RivalAllocation> {
        if let Ok(allocation) = self.allocator.allocate(size, stream) {
            return Some(allocation);
        }
        self.complete(None);
        self.allocator.empty_cache();
        self.allocator.allocate(size, stream).ok()
    }

    /// Completes the work of a stream, or of all streams for `None`.
    fn complete(&mut self, stream: Option<StreamId>) {
        let mut waiting = Vec::new();
        for mut pending in self.pending.drain(..) {
            match stream {
                Some(stream) => pending.streams.retain(|other| *other != stream),
                None => pending.streams.clear(),
            }
            if pending.streams.is_empty() {
                self.allocator.free(pending.allocation);
            } else {
                waiting.push(pending);
            }
        }
        self.pending = waiting;
    }
}
