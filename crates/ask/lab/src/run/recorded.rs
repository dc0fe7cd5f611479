//! The run of a recording: its requests as they are inferred, with what they leave open.

use std::sync::Arc;

use blockyard_pytorch::trace::{InferredRun, steps_of_entries};
use blockyard_pytorch::{AllocationResult, OperationKind, RecordedRun};
use blockyard_record::{BlockState, Bytes, PoolId, Snapshot, TraceAction, counted};
use blockyard_replay::{OnProgress, RunSettings, open};
use blockyard_rules::{AllocatorConfig, size};
use blockyard_workload::{Request, TensorId, Workload};

use super::{Addresses, RecordedFacts, RunNote};
use crate::implied_limit::{implied_limit, recorded_limit};
use crate::request_numbers::{RequestNumbers, asks_for_memory};
use crate::{LabError, Run};

impl Run {
    /// The run of a recording.
    ///
    /// # Errors
    ///
    /// [`LabError::Config`] where its settings are wrong, [`LabError::Run`] where its requests cannot be
    /// found, [`LabError::Cancelled`].
    pub fn from_recorded(recorded: &RecordedRun, on_progress: OnProgress) -> Result<Self, LabError> {
        Self::from_recorded_as(recorded, Figures::OfReplay, on_progress)
    }

    /// The run of a recording whose figures show the recorded events or a replay.
    pub(crate) fn from_recorded_as(
        recorded: &RecordedRun,
        figures: Figures,
        on_progress: OnProgress,
    ) -> Result<Self, LabError> {
        let settings = RunSettings {
            title: recorded.meta.name.clone(),
            config: AllocatorConfig::parse(&recorded.meta.conf, recorded.meta.release())?,
            capacity: recorded.meta.total_memory,
        };
        let replayable = open(recorded, &settings, on_progress)?;
        let mut inferred = replayable.inferred;
        let recorded_limit = recorded_limit(&replayable.run, &inferred, &settings.config);
        let steps = match figures {
            Figures::OfReplay => (1..).take(inferred.workload.requests().len()).collect(),
            Figures::OfTrace => steps_of_requests(recorded, &inferred),
        };
        let all = inferred.workload.requests().len();
        let fraction = without_inferred_fraction(&replayable.run, &mut inferred);
        let left_out = all.saturating_sub(inferred.workload.requests().len());
        let unrounded = guess_failed_sizes(&replayable.run, &mut inferred, &settings.config);
        let failed = failed_requests(&replayable.run, &inferred);
        let InferredRun { workload, start, notes, failed_size_note, segments, ranges, .. } = inferred;
        let (workload, from_before) = with_memory_from_before(&workload, &start);
        let failed: Vec<usize> = failed.into_iter().map(|request| request + from_before).collect();
        let continues = failed.first().is_some_and(|first| {
            let later = workload.requests().iter().skip(first + 1);
            later.into_iter().any(asks_for_memory)
        });
        let mut run =
            Self::new(&recorded.meta.name, workload, &recorded.meta.conf, recorded.meta.total_memory);
        run.release = recorded.meta.release();
        run.addresses = Arc::new(Addresses { segments, ranges });
        let oom = failed.first().copied();
        run.recorded = RecordedFacts {
            oom,
            refused: failed,
            keepers: Some(&recorded.keepers)
                .filter(|keepers| !keepers.is_empty())
                .map(|keepers| (Arc::from(keepers.as_str()), 0)),
            continues_after_oom: continues,
            ends_at_failure: oom.is_some() && !continues,
            ..RecordedFacts::default()
        };
        run.implied_limit = implied_limit(recorded_limit, fraction);
        let steps = steps.get(left_out..).unwrap_or_default();
        run.requests.numbers = RequestNumbers::of_steps(from_before, steps);
        let note = |(index, text)| match failed_size_note {
            Some(of_sizes) if of_sizes == index => RunNote::FailedSizes(text),
            _ => RunNote::Other(text),
        };
        run.notes = notes.into_iter().enumerate().map(note).collect();
        run.add_notes(&unrounded);
        if from_before > 0 {
            run.add_note(format!(
                "the recording begins late: the {} that were live then are requested first, by ascending \
                 address; earlier requests are not known",
                counted(run.start_allocations(), "block")
            ));
        }
        run.adjust_implied_limit(on_progress)?;
        Ok(run)
    }
}

/// What the figures of a run show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figures {
    /// A replay, with a step for each request.
    OfReplay,
    /// The entries of a trace.
    OfTrace,
}

/// The step of each inferred request in the figures of a trace.
fn steps_of_requests(recorded: &RecordedRun, inferred: &InferredRun) -> Vec<u32> {
    let steps = steps_of_entries(recorded.trace.as_deref().unwrap_or_default());
    inferred.entries.iter().map(|entry| steps.get(*entry).copied().unwrap_or_default()).collect()
}

/// Removes an inferred memory fraction from the requests; returns the limit of this fraction.
fn without_inferred_fraction(run: &RecordedRun, inferred: &mut InferredRun) -> Option<Bytes> {
    let Some(Request::SetFraction { fraction }) = inferred.workload.requests().first().copied() else {
        return None;
    };
    if !run.operations.is_empty() {
        return None;
    }
    let labels = inferred.workload.labels().iter();
    let labels = labels.map(|(at, text)| (at.saturating_sub(1), text.clone())).collect();
    let mut workload =
        Workload::from_requests(inferred.workload.requests().iter().skip(1).copied().collect());
    workload.set_labels(labels);
    inferred.workload = workload;
    Some(run.meta.total_memory.share(fraction))
}

/// A trace has the size of a failed request only after rounding. Replaces it by the size of an earlier
/// request with the same rounded size, and says so in a note.
fn guess_failed_sizes(
    run: &RecordedRun,
    inferred: &mut InferredRun,
    config: &AllocatorConfig,
) -> Vec<String> {
    if !run.operations.is_empty() || !config.has_roundup() {
        return Vec::new();
    }
    let failed = failed_requests(run, inferred);
    let mut requests = inferred.workload.requests().to_vec();
    let mut notes = Vec::new();
    for index in failed {
        let (earlier, rest) = requests.split_at_mut(index);
        let Some(Request::Allocate { size, .. }) = rest.first_mut() else { continue };
        let like = earlier.iter().rev().find_map(|request| match request {
            Request::Allocate { size: other, .. } if size::rounded(*other, config) == *size => Some(*other),
            _ => None,
        });
        if let Some(like) = like.filter(|like| like != size) {
            notes.push(format!(
                "the recording has only the rounded size of the failed request, {size}; {like} is assumed, \
                 as in an earlier request with the same rounded size"
            ));
            *size = like;
        }
    }
    let labels = inferred.workload.labels().to_vec();
    inferred.workload = Workload::from_requests(requests);
    inferred.workload.set_labels(labels);
    notes
}

/// The requests, with new requests before them that allocate the live blocks of `start`, and the number of
/// these new requests.
///
/// Tensors keep their numbers, since the live blocks are the first tensors.
fn with_memory_from_before(workload: &Workload, start: &Snapshot) -> (Workload, usize) {
    let mut before = Vec::new();
    let mut tensor = 0_u32;
    for segment in &start.segments {
        let is_private = segment.pool_id != PoolId::DEFAULT;
        let live = segment.blocks.iter().filter(|block| block.state == BlockState::Allocated);
        for block in live {
            if is_private {
                before.push(Request::EnterPool { pool_id: segment.pool_id });
            }
            let size = if block.requested.is_zero() { block.size } else { block.requested };
            before.push(Request::Allocate { tensor: TensorId::new(tensor), size, stream: segment.stream });
            if is_private {
                before.push(Request::LeavePool { pool_id: segment.pool_id });
            }
            // A file with 2^32 live blocks would take hundreds of gigabytes to read.
            tensor = tensor.saturating_add(1);
        }
    }
    if before.is_empty() {
        return (workload.clone(), 0);
    }
    let count = before.len();
    // A label whose position is too large moves to the end, after the last request.
    let moved = |at: u32| at.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    before.extend_from_slice(workload.requests());
    let mut all = Workload::from_requests(before);
    all.set_labels(workload.labels().iter().map(|(at, text)| (moved(*at), text.clone())).collect());
    (all, count)
}

/// The requests that ran out of memory when the run was recorded, as indices.
fn failed_requests(run: &RecordedRun, inferred: &InferredRun) -> Vec<usize> {
    let requests = inferred.workload.requests().iter().enumerate();
    let allocations = requests.filter(|(_, request)| asks_for_memory(request));
    if run.operations.is_empty() {
        let is_request = |action| matches!(action, TraceAction::Alloc | TraceAction::OutOfMemory);
        let entries = run.trace.iter().flatten().filter(|entry| is_request(entry.action));
        let failed = allocations.zip(entries).filter(|(_, entry)| entry.action == TraceAction::OutOfMemory);
        return failed.map(|((index, _), _)| index).collect();
    }
    let has_failed = |request: &usize| {
        let operation = inferred.operations.get(*request).and_then(|index| run.operations.get(*index));
        let kind = operation.map(|operation| &operation.kind);
        matches!(kind, Some(OperationKind::Allocate { result: Some(AllocationResult::OutOfMemory(_)), .. }))
    };
    allocations.map(|(index, _)| index).filter(has_failed).collect()
}
