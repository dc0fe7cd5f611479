//! Runs of requests through a rival: another allocator than PyTorch's.
//!
//! The loop is not that of [`Replayer`](crate::Replayer). PyTorch's allocator keeps pending frees and retries
//! a failed request by itself, so a replayer only passes requests on. The rivals know neither, so the loop
//! here does both for them.

use crate::rivals::{RivalAllocation, RivalAllocator, Usage};
use blockyard_record::{Bytes, OnDone, StreamId};
use blockyard_workload::Request;

use crate::Progress;
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

/// Runs the requests of a workload through an allocator, up to the first request that fails. `on_request` is
/// called after each request with the usage of the allocator.
///
/// A block that other streams used is freed when their work is done, as in PyTorch's allocator. A request
/// that fails is retried after a wait for all streams and a release of the cache. Requests about memory
/// pools, settings, the memory fraction, statistics and snapshots are skipped, because only PyTorch's
/// allocator has these.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_done` cancels the run.
pub fn replay_rival(
    workload: &PreparedWorkload,
    allocator: &mut dyn RivalAllocator,
    mut on_request: Option<&mut dyn FnMut(Usage)>,
    on_done: OnDone,
) -> Result<RivalRun, RunError> {
    let mut dispatcher = RivalDispatcher { allocator, live: Vec::new(), pending: Vec::new() };
    dispatcher.live.resize_with(workload.slots, || None);
    for (index, request) in workload.requests.iter().enumerate() {
        if Progress::is_due(index) && on_done(index).is_break() {
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
    allocator: &'a mut dyn RivalAllocator,
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
            // Only PyTorch's allocator has these requests.
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

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use crate::rivals::RivalOutOfMemory;
    use blockyard_workload::Workload;

    use super::*;

    /// Serves requests up to a number of blocks in use, and writes down each call.
    #[derive(Default)]
    struct ScriptedRival {
        most: usize,
        used: usize,
        /// Whether a release of the cache makes room for one more block.
        has_cache: bool,
        calls: Vec<String>,
        next: u64,
    }

    impl RivalAllocator for ScriptedRival {
        fn allocate(&mut self, size: Bytes, stream: StreamId) -> Result<RivalAllocation, RivalOutOfMemory> {
            if self.used >= self.most {
                self.calls.push("refuse".to_owned());
                return Err(RivalOutOfMemory { requested: size });
            }
            self.used += 1;
            self.next += 1;
            self.calls.push(format!("allocate {}", self.next));
            Ok(RivalAllocation { addr: self.next, size, requested: size, stream })
        }

        fn free(&mut self, allocation: RivalAllocation) {
            self.used -= 1;
            self.calls.push(format!("free {}", allocation.addr));
        }

        fn empty_cache(&mut self) {
            self.calls.push("empty".to_owned());
            if std::mem::take(&mut self.has_cache) {
                self.most += 1;
            }
        }

        fn usage(&self) -> Usage {
            Usage { device_allocs: self.used as u64, ..Usage::default() }
        }
    }

    fn replayed(text: &str, mut allocator: ScriptedRival) -> (RivalRun, Vec<String>, Vec<u64>) {
        let prepared = PreparedWorkload::new(&Workload::parse(text).unwrap());
        let mut used = Vec::new();
        let mut on_request = |usage: Usage| used.push(usage.device_allocs);
        let run =
            replay_rival(
                &prepared,
                &mut allocator,
                Some(&mut on_request),
                &mut |_| ControlFlow::Continue(()),
            );
        (run.unwrap(), allocator.calls, used)
    }

    fn room_for(most: usize) -> ScriptedRival {
        ScriptedRival { most, ..ScriptedRival::default() }
    }

    #[test]
    fn a_block_that_another_stream_used_is_freed_when_the_work_of_that_stream_is_done() {
        let text = "stream one; stream two; a = alloc 1 MiB; record_stream a one; record_stream a two; free a
                    advance one; b = alloc 1 MiB; free b; advance two";
        let (run, calls, used) = replayed(text, room_for(9));
        assert_eq!(run, RivalRun { requests: 8, failed: None });
        assert_eq!(calls, ["allocate 1", "allocate 2", "free 2", "free 1"]);
        assert_eq!(used, [1, 1, 1, 1, 1, 2, 1, 0], "a call after each request");
    }

    #[test]
    fn a_block_that_only_its_own_stream_used_is_freed_at_once() {
        let (_, calls, _) =
            replayed("stream one; a = alloc 1 MiB on one; record_stream a one; free a", room_for(9));
        assert_eq!(calls, ["allocate 1", "free 1"]);
    }

    #[test]
    fn a_request_that_fails_waits_for_all_streams_and_releases_the_cache_before_its_second_try() {
        let text =
            "stream one; a = alloc 1 MiB; record_stream a one; free a; b = alloc 1 MiB; c = alloc 1 MiB";
        let (run, calls, _) = replayed(text, room_for(1));
        assert_eq!(
            calls,
            ["allocate 1", "refuse", "free 1", "empty", "allocate 2", "refuse", "empty", "refuse"]
        );
        assert_eq!(run, RivalRun { requests: 4, failed: Some(4) }, "the request that failed is not counted");

        let (run, calls, _) =
            replayed("a = alloc 1 MiB; b = alloc 1 MiB", ScriptedRival { has_cache: true, ..room_for(1) });
        assert_eq!((run.failed, calls.last().map(String::as_str)), (None, Some("allocate 2")));
    }

    #[test]
    fn requests_that_only_pytorch_has_and_those_of_no_bytes_are_skipped() {
        let text =
            "a = alloc 0; reset_peak; set_fraction 0.5; pool p; enter p; b = alloc 1 MiB; leave p; snapshot
                    free a, b; empty_cache";
        let (run, calls, _) = replayed(text, room_for(9));
        assert_eq!(run.failed, None);
        assert_eq!(calls, ["allocate 1", "free 1", "empty"]);
    }
}
