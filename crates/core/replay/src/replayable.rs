//! What a replay of a recorded run needs: requests, the device's answers, the memory before.

use std::borrow::Cow;

use blockyard_device::{InitialMemory, ProcessMemory, RecordedDevice, RecordedDeviceFailure, RecordedOom};
use blockyard_pytorch::trace::{InferredRun, requests, requests_after};
use blockyard_pytorch::trace::{RewindError, RewoundMemory, rewind};
use blockyard_pytorch::{ReadError, RecordedRun};
use blockyard_record::{BlockState, PoolKind, SegmentSnapshot, TraceAction, TraceEntry, counted};
use blockyard_rules::{AllocatorConfig, size};

use crate::decide::decide;
use crate::fraction::infer_fraction;
use crate::{OnProgress, RunError, RunSettings};

/// A recorded run, ready to be replayed.
#[derive(Clone, Debug)]
pub struct ReplayableRun<'a> {
    /// The run to compare with. If it begins late, an entry that is cut in two is left out.
    pub run: Cow<'a, RecordedRun>,
    /// The requests, what the device did, and the memory before the first request.
    pub inferred: InferredRun,
    /// How the memory before the first request was found, for a recording that begins late.
    pub rewound: Option<RewoundMemory>,
}

/// Finds the requests of a recorded run and, if the run begins late, the memory before its first request.
///
/// # Errors
///
/// [`RunError::Read`] for recordings that cannot be replayed, [`RunError::Rewind`] for one that begins late
/// and whose final segments contradict its trace, [`RunError::Cancelled`] when `on_progress` cancels the
/// work.
pub fn open<'a>(
    run: &'a RecordedRun,
    settings: &RunSettings,
    on_progress: OnProgress,
) -> Result<ReplayableRun<'a>, RunError> {
    if !run.operations.is_empty() || run.trace.is_none() || run.segments.is_none() {
        return from_empty_device(run);
    }
    let mut replayable = open_rewound(run, settings, on_progress)?;
    let ReplayableRun { run, inferred, .. } = &mut replayable;
    infer_fraction(run, settings, inferred, on_progress)?;
    Ok(replayable)
}

fn open_rewound<'a>(
    run: &'a RecordedRun,
    settings: &RunSettings,
    on_progress: OnProgress,
) -> Result<ReplayableRun<'a>, RunError> {
    let (whole, mut rewound) = match rewind_whole_requests(run, &settings.config) {
        Ok(found) => found,
        // A trace that cannot be rewound may still begin with the program, and its final segments may be
        // wrong.
        Err(error) => {
            return from_empty_device(run).map_err(|late| match late {
                RunError::Read(ReadError::BeginsLate { .. }) => RunError::Rewind(error),
                other => other,
            });
        }
    };
    if rewound.start.segments.is_empty() && matches!(whole, Cow::Borrowed(_)) {
        return from_empty_device(run);
    }
    rewound = decide(&whole, settings, rewound, on_progress)?;
    let mut inferred = requests_after(&whole, rewound.start.clone())?;
    let mut labels = inferred.workload.labels().to_vec();
    labels.insert(0, (0, "the recording begins".to_owned()));
    inferred.workload.set_labels(labels);
    let cached = rewound.start.segments.iter().filter(|segment| {
        let is_whole = segment.blocks.iter().all(|block| block.state == BlockState::Inactive);
        is_whole && segment.pool == PoolKind::Large && !segment.is_expandable
    });
    let cached = cached.count();
    if settings.config.garbage_collection_threshold() > 0.0 && cached > 0 {
        inferred.notes.push(format!(
            "garbage collection depends on how long segments have been cached, which is not known for {} at the beginning of the \
             recording; equal ages are assumed",
            counted(cached, "segment")
        ));
    }
    let entries = |run: &RecordedRun| run.trace.as_ref().map_or(0, Vec::len);
    let cut = entries(run) - entries(&whole);
    for entry in &mut inferred.entries {
        *entry += cut;
    }
    if cut > 0 {
        let what = if cut == 1 { "entry" } else { "entries" };
        inferred.notes.push(format!(
            "{cut} {what} at the beginning may be the end of a request from before the recording; left out"
        ));
    }
    Ok(ReplayableRun { run: whole, inferred, rewound: Some(rewound) })
}

/// The requests of a run that begins with an empty device.
fn from_empty_device(run: &RecordedRun) -> Result<ReplayableRun<'_>, RunError> {
    Ok(ReplayableRun { run: Cow::Borrowed(run), inferred: requests(run)?, rewound: None })
}

/// Rewinds a trace. If the trace begins in the middle of a request, the entries of this request are left out.
fn rewind_whole_requests<'a>(
    run: &'a RecordedRun,
    config: &AllocatorConfig,
) -> Result<(Cow<'a, RecordedRun>, RewoundMemory), RewindError> {
    let trace = run.trace.as_deref().unwrap_or_default();
    let rewound = rewind(run, config)?;
    let cut = match trace.first() {
        _ if rewound.start.segments.is_empty() => 0,
        Some(first) if takes_new_memory(first, &rewound, config) => 1,
        _ => end_of_a_request(trace),
    };
    if cut == 0 {
        return Ok((Cow::Borrowed(run), rewound));
    }
    let mut whole = run.clone();
    whole.trace = Some(trace[cut..].to_vec());
    whole.trace_pools.drain(..cut.min(whole.trace_pools.len()));
    whole.checkpoints.retain(|(_, at, _)| *at >= cut);
    for (_, at, _) in &mut whole.checkpoints {
        *at -= cut;
    }
    let rewound = rewind(&whole, config)?;
    Ok((Cow::Owned(whole), rewound))
}

/// How many entries at the beginning may be the end of a request whose first entries are missing. An
/// allocation that fails or takes new memory has several entries, such as completed frees before it, and a
/// free that waits for nothing has two.
fn end_of_a_request(trace: &[TraceEntry]) -> usize {
    let count = |from: usize, actions: &[TraceAction]| {
        trace[from..].iter().take_while(|entry| actions.contains(&entry.action)).count()
    };
    let completions = count(0, &[TraceAction::FreeCompleted]);
    let before = count(0, &[TraceAction::FreeCompleted, TraceAction::SegmentFree, TraceAction::SegmentUnmap]);
    let given = count(before, &[TraceAction::SegmentAlloc, TraceAction::SegmentMap]);
    match trace.get(before + given).map(|entry| entry.action) {
        Some(TraceAction::OutOfMemory) => before + given + 1,
        Some(TraceAction::Alloc) if given > 0 => before + given + 1,
        _ if completions > 0 => 1,
        _ => 0,
    }
}

/// Whether the entry allocates space that best fit would not choose among the cached blocks. Then the device
/// allocated this space just before, for the same request.
fn takes_new_memory(entry: &TraceEntry, rewound: &RewoundMemory, config: &AllocatorConfig) -> bool {
    let limit = config.max_split_size();
    let mut blocks = rewound.start.segments.iter().flat_map(|segment| &segment.blocks);
    entry.action == TraceAction::Alloc
        && size::rounded(entry.size, config) < limit
        && blocks.any(|block| {
            block.addr.get() == entry.addr && block.state == BlockState::Inactive && block.size >= limit
        })
}

/// The device of a recording, as far as the recording shows it.
pub fn device_of(run: &RecordedRun, inferred: &InferredRun) -> RecordedDevice {
    let failures = inferred.failures.iter().map(|failure| RecordedOom {
        free: failure.free,
        processes: failure
            .processes
            .iter()
            .map(|(process, used)| ProcessMemory { process: *process, used: *used })
            .collect(),
    });
    RecordedDevice::new(
        run.meta.total_memory,
        inferred.segments.iter().copied(),
        inferred.ranges.iter().copied(),
        failures,
    )
    .with_initial_memory(inferred.start.segments.iter().map(initial_memory))
    .with_failures(inferred.device_failures.iter().map(|device_failure| RecordedDeviceFailure {
        given: device_failure.given,
        failed: device_failure.failed,
        until_released: device_failure.until_released,
    }))
}

fn initial_memory(segment: &SegmentSnapshot) -> InitialMemory {
    let (base, size) = (segment.addr, segment.size);
    if segment.is_expandable {
        let runs = segment.mapped_runs();
        InitialMemory::ReservedRange {
            base,
            size,
            mapped: runs.iter().map(|run| (run.addr, run.size)).collect(),
        }
    } else {
        InitialMemory::Segment { base, size }
    }
}
