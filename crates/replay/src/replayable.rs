use std::borrow::Cow;

use blockyard_device::{Held, ProcessMemory, RecordedDevice, RecordedFailure, RecordedRefusal};
use blockyard_pytorch::{Inferred, ReadError, RecordedRun, requests, requests_after};
use blockyard_record::{SegmentSnapshot, TraceAction, TraceEntry};

use crate::rewind::{Rewound, decide, rewind};
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
    let whole = without_half_a_free(run);
    match rewind(&whole, &settings.config) {
        Ok(rewound) if rewound.start.segments.is_empty() => from_nothing(run),
        Ok(rewound) => {
            let rewound = decide(&whole, settings, rewound, on_progress)?;
            let mut inferred = requests_after(&whole, rewound.start.clone())?;
            let mut labels = inferred.workload.labels().to_vec();
            labels.insert(0, (0, "the recording begins".to_owned()));
            inferred.workload.set_labels(labels);
            if matches!(whole, Cow::Owned(_)) {
                inferred.notes.push(
                    "the first entry only completes a free from before the recording; it is left out"
                        .to_owned(),
                );
            }
            Ok(Replayable { run: whole, inferred, rewound: Some(rewound) })
        }
        // What cannot be rewound may still be a recording from its beginning, with other segments at the end.
        Err(error) => from_nothing(run).map_err(|late| match late {
            RunError::Read(ReadError::BeginsLate { .. }) => RunError::Rewind(error),
            other => other,
        }),
    }
}

fn from_nothing(run: &RecordedRun) -> Result<Replayable<'_>, RunError> {
    Ok(Replayable { run: Cow::Borrowed(run), inferred: requests(run)?, rewound: None })
}

/// A free without waiting is two entries. A trace that begins with the second one would need a request that only completes it,
/// which there is not: such an entry goes, unless an allocation follows, which does complete frees.
fn without_half_a_free(run: &RecordedRun) -> Cow<'_, RecordedRun> {
    let trace = run.trace.as_deref().unwrap_or_default();
    let is_completion = |entry: &&TraceEntry| entry.action == TraceAction::FreeCompleted;
    let completions = trace.iter().take_while(is_completion).count();
    let next = trace.get(completions).map(|entry| entry.action);
    if completions == 0 || !matches!(next, None | Some(TraceAction::FreeRequested | TraceAction::Snapshot)) {
        return Cow::Borrowed(run);
    }
    let mut whole = run.clone();
    whole.trace = Some(trace[1..].to_vec());
    for (_, at, _) in &mut whole.checkpoints {
        *at = at.saturating_sub(1);
    }
    Cow::Owned(whole)
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
        Held::Range { base, size, mapped: segment.mapped() }
    } else {
        Held::Segment { base, size }
    }
}
