use std::borrow::Cow;

use blockyard_allocator::{AllocatorConfig, size};
use blockyard_device::{Held, ProcessMemory, RecordedDevice, RecordedFailure, RecordedRefusal};
use blockyard_pytorch::{Inferred, ReadError, RecordedRun, requests, requests_after};
use blockyard_record::{SegmentSnapshot, TraceAction, TraceEntry};

use crate::rewind::{RewindError, Rewound, decide, rewind};
use crate::{OnProgress, RunError, Settings};

/// A recorded run, ready to be replayed.
#[derive(Clone, Debug)]
pub struct Replayable<'a> {
    /// What is to be compared: the run, without an entry that is cut in two where it begins late.
    pub run: Cow<'a, RecordedRun>,
    /// Its requests, what the device did, and what was there before.
    pub inferred: Inferred,
    /// How what was there before was found, for a recording that begins late.
    pub rewound: Option<Rewound>,
}

/// Finds the requests of a recorded run and, if it begins late, what was there before.
///
/// # Errors
///
/// [`RunError::Read`] for recordings that cannot be replayed, [`RunError::Rewind`] for one that begins late and whose final
/// segments contradict its trace, [`RunError::Cancelled`] when `on_progress` breaks off.
pub fn open<'a>(
    run: &'a RecordedRun,
    settings: &Settings,
    on_progress: OnProgress,
) -> Result<Replayable<'a>, RunError> {
    if !run.operations.is_empty() || run.trace.is_none() || run.segments.is_none() {
        return from_nothing(run);
    }
    let (whole, mut rewound) = match rewind_whole_requests(run, &settings.config) {
        Ok(found) => found,
        // What cannot be rewound may still be a recording from its beginning, with other segments at the end.
        Err(error) => {
            return from_nothing(run).map_err(|late| match late {
                RunError::Read(ReadError::BeginsLate { .. }) => RunError::Rewind(error),
                other => other,
            });
        }
    };
    if rewound.start.segments.is_empty() {
        return from_nothing(run);
    }
    rewound = decide(&whole, settings, rewound, on_progress)?;
    let mut inferred = requests_after(&whole, rewound.start.clone())?;
    let mut labels = inferred.workload.labels().to_vec();
    labels.insert(0, (0, "the recording begins".to_owned()));
    inferred.workload.set_labels(labels);
    if matches!(whole, Cow::Owned(_)) {
        inferred.notes.push(
            "the first entry is the second half of something that began before the recording; it is left out"
                .to_owned(),
        );
    }
    Ok(Replayable { run: whole, inferred, rewound: Some(rewound) })
}

fn from_nothing(run: &RecordedRun) -> Result<Replayable<'_>, RunError> {
    Ok(Replayable { run: Cow::Borrowed(run), inferred: requests(run)?, rewound: None })
}

/// Rewinds a trace that may begin in the middle of a request, which no request does the rest of: then without its first entry.
fn rewind_whole_requests<'a>(
    run: &'a RecordedRun,
    config: &AllocatorConfig,
) -> Result<(Cow<'a, RecordedRun>, Rewound), RewindError> {
    let first = run.trace.as_deref().unwrap_or_default().first();
    // A free that waits for nothing is two entries.
    let mut is_half = first.is_some_and(|entry| entry.action == TraceAction::FreeCompleted);
    if !is_half {
        let rewound = rewind(run, config)?;
        is_half = first.is_some_and(|entry| takes_new_segment(entry, &rewound, config));
        if !is_half {
            return Ok((Cow::Borrowed(run), rewound));
        }
    }
    let mut whole = run.clone();
    whole.trace = run.trace.as_ref().map(|trace| trace[1..].to_vec());
    for (_, at, _) in &mut whole.checkpoints {
        *at = at.saturating_sub(1);
    }
    let rewound = rewind(&whole, config)?;
    Ok((Cow::Owned(whole), rewound))
}

/// Whether the entry hands out a whole segment that best fit would refuse it: so the segment was made for it, right before.
fn takes_new_segment(entry: &TraceEntry, rewound: &Rewound, config: &AllocatorConfig) -> bool {
    let limit = config.max_split_size();
    entry.action == TraceAction::Alloc
        && size::rounded(entry.size, config) < limit
        && rewound.start.segments.iter().any(|segment| {
            segment.addr.get() == entry.addr && segment.size >= limit && !segment.is_expandable
        })
}

/// The device that a recording was made on, as far as the recording shows it.
#[must_use]
pub fn device_of(run: &RecordedRun, inferred: &Inferred) -> RecordedDevice {
    let failures = inferred.failures.iter().map(|failure| RecordedFailure {
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
    .with_placements(inferred.placements.iter().copied())
    .holding(inferred.start.segments.iter().map(held))
    .refusing(inferred.refusals.iter().map(|refusal| RecordedRefusal {
        given: refusal.given,
        failed: refusal.failed,
        until_released: refusal.until_released,
    }))
}

fn held(segment: &SegmentSnapshot) -> Held {
    let (base, size) = (segment.addr, segment.size);
    if segment.is_expandable {
        let runs = segment.mapped_runs();
        Held::Range { base, size, mapped: runs.iter().map(|run| (run.addr, run.size)).collect() }
    } else {
        Held::Segment { base, size }
    }
}
