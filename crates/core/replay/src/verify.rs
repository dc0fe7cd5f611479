//! Verification: a recorded run through our allocator, compared step by step.

mod segments;
mod steps;
mod traces;

use std::ops::ControlFlow;

use blockyard_allocator::BackendAllocator;
use blockyard_device::{Advance, AnyDevice, DeviceMemory, RecordedDevice};
use blockyard_pytorch::trace::RewoundMemory;
use blockyard_pytorch::{RecordedRun, memory_summary};
use blockyard_record::{Backend, EventSink, Recording, SegmentSnapshot, Stats};
use blockyard_rules::AllocatorConfig;
use blockyard_workload::Workload;

use crate::replayable::{ReplayableRun, device_of, open};
use crate::{Comparison, OnProgress, Progress, RunError, RunSettings, Runner};

use self::segments::{compare_segments, first_new_block};
use self::steps::StepComparer;
use self::traces::compare_traces;

/// The replay of a recorded run, with the comparison.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The requests of the recording.
    pub workload: Workload,
    /// The run of our allocator.
    pub recording: Recording,
    /// The comparison.
    pub comparison: Comparison,
}

/// Replays a recording of PyTorch's allocator and compares everything that it contains.
///
/// Compared are, where recorded: the trace entry by entry (`events`); the address or the error text of each
/// allocation (`placements`); all 122 statistics after each operation (`statistics`), at moments of a program
/// (`checkpoints`) or at the end (`final statistics`); the final segments with their sums (`segments`) and
/// their blocks with stale requested sizes (`blocks`); `memory_summary`. Under `backend:cudaMallocAsync` only
/// the statistics and `memory_summary` are compared, for a reason that a note gives.
///
/// # Errors
///
/// [`RunError::Config`] for settings that are not modeled, [`RunError::Read`] for recordings that cannot be
/// replayed, [`RunError::Cancelled`] when `on_progress` cancels the work.
pub fn verify(run: &RecordedRun, on_progress: OnProgress) -> Result<Verification, RunError> {
    verify_on(run, AnyDevice::new, on_progress)
}

/// Replays and compares as [`verify`] does, on the device that `device_for` returns for the recorded device.
///
/// # Errors
///
/// The errors of [`verify`], and [`RunError::Allocator`] when the device fails for another reason than a lack
/// of memory.
pub fn verify_on<D: DeviceMemory + Advance>(
    run: &RecordedRun,
    device_for: impl FnOnce(RecordedDevice) -> D,
    on_progress: OnProgress,
) -> Result<Verification, RunError> {
    let config = AllocatorConfig::parse(&run.meta.conf, run.meta.release())?;
    let settings = RunSettings { title: run.meta.name.clone(), config, capacity: run.meta.total_memory };
    let ReplayableRun { run, inferred, rewound } = open(run, &settings, on_progress)?;
    let run = run.as_ref();
    let device = device_for(device_of(run, &inferred));
    let mut runner = Runner::beginning_with(device, &settings, &inferred.workload, &inferred.start)?
        .with_placements(&inferred.placements)
        .with_trace();
    let mut comparison = Comparison::default();
    comparison.notes.extend(rewound.as_ref().map(RewoundMemory::notes).into_iter().flatten());
    comparison.notes.extend(inferred.notes.iter().cloned());
    // The driver's pool has no trace and no segments, and its blocks get their recorded addresses.
    let is_native = settings.config.backend() == Backend::Native;
    if run.trace.is_some() && is_native {
        // The headline is the first count; its numbers are set at the end.
        comparison.counts.push(crate::Count { kind: "events".to_owned(), identical: 0, total: 0 });
    }
    let mut comparer = StepComparer::new(run, &inferred, rewound.as_ref());
    let total = inferred.workload.requests().len();
    comparer.at_start(&runner.stats(), &mut comparison);
    let mut trace_ends = Vec::with_capacity(total);
    for index in 0..total {
        if Progress::is_due(index)
            && on_progress(Progress::new("replaying", index, total)) == ControlFlow::Break(())
        {
            return Err(RunError::Cancelled);
        }
        let outcome = runner.step()?;
        trace_ends.push(runner.trace().len());
        comparer.after(index, outcome.as_ref(), &runner, &mut comparison);
    }
    let stats = runner.stats();
    let snapshot = runner.snapshot();
    comparer.at_end(&stats, &mut comparison);
    comparison.notes.extend(comparer.earlier_note());
    comparison.notes.extend(pool_note(runner.allocator()));
    let (recording, trace) = runner.finish()?;
    if is_native {
        if let Some(expected) = &run.trace {
            compare_traces(expected, &trace, &trace_ends, &mut comparison);
        }
        if let Some(expected) = &run.segments {
            let found: Vec<SegmentSnapshot> =
                snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs).collect();
            compare_segments(expected, &found, first_new_block(&inferred.start), &mut comparison);
        }
    }
    compare_summary(run, rewound.is_some(), &stats, &mut comparison);
    Ok(Verification { workload: inferred.workload, recording, comparison })
}

/// A note on what is not compared under `backend:cudaMallocAsync`, with the reason.
fn pool_note<D: DeviceMemory, S: EventSink>(allocator: &BackendAllocator<D, S>) -> Option<String> {
    let BackendAllocator::CudaMallocAsync(pool) = allocator else {
        return None;
    };
    let (predicted, placed) = pool.predicted_placements();
    Some(format!(
        "backend:cudaMallocAsync: the driver's pool has no trace and no segments to compare; its choice of addresses also \
         depends on when it notices that work is done, so blocks were put where they were recorded: {predicted} of {placed} \
         are where the model puts them by itself"
    ))
}

fn compare_summary(run: &RecordedRun, begins_late: bool, stats: &Stats, comparison: &mut Comparison) {
    let Some(expected) = &run.memory_summary else { return };
    if begins_late {
        let note = "memory_summary counts from before the recording, so it is not compared";
        comparison.notes.push(note.to_owned());
        return;
    }
    let found = memory_summary(stats, 0, false);
    comparison
        .compare("memory_summary", expected, &found, None, || first_line_that_differs(expected, &found));
}

fn first_line_that_differs(expected: &str, found: &str) -> (String, String, String) {
    let lines = expected.lines().zip(found.lines()).enumerate();
    let differing = lines.into_iter().find(|(_, (expected, found))| expected != found);
    match differing {
        Some((index, (expected, found))) => {
            (format!("memory_summary, line {}", index + 1), expected.to_owned(), found.to_owned())
        }
        None => (
            "memory_summary".to_owned(),
            format!("{} lines", expected.lines().count()),
            format!("{} lines", found.lines().count()),
        ),
    }
}
