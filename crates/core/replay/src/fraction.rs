//! The memory fraction of the program, which a trace does not contain. Garbage collection depends on it.
//!
//! With a higher limit, garbage collection comes later and requests fail later. So the first entry at which a
//! replay and the trace differ says whether the limit was too low or too high, and a binary search finds the
//! fraction.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use blockyard_pytorch::RecordedRun;
use blockyard_pytorch::trace::InferredRun;
use blockyard_record::{Bytes, TraceAction, TraceEntry};
use blockyard_workload::{Request, Workload};

use crate::{OnProgress, Progress, RunError, RunSettings, Runner, device_of};

/// The binary search ends after this many replays.
const MAX_ATTEMPTS: usize = 48;

/// Makes the workload begin with the memory fraction under which the replay equals the longest part of the
/// trace.
///
/// The workload is unchanged if garbage collection is off, if the settings name a fraction, or if no fraction
/// is better than none.
pub(crate) fn infer_fraction(
    run: &RecordedRun,
    settings: &RunSettings,
    inferred: &mut InferredRun,
    on_progress: OnProgress,
) -> Result<(), RunError> {
    let expected = run.trace.as_deref().unwrap_or_default();
    let collects = settings.config.garbage_collection_threshold() > 0.0;
    let releases = expected.iter().any(|entry| entry.action == TraceAction::SegmentFree);
    if !collects || settings.config.per_process_memory_fraction() < 1.0 || !releases {
        return Ok(());
    }
    let total = run.meta.total_memory;
    let (mut low, mut high) = (most_reserved(inferred, expected), total);
    let mut best = attempt(run, settings, inferred, on_progress)?.followed;
    let mut found = None;
    let mut limit = low;
    for _ in 0..MAX_ATTEMPTS {
        let limited = with_limit(inferred, limit, total);
        let Attempt { followed, direction } = attempt(run, settings, &limited, on_progress)?;
        if followed > best {
            best = followed;
            found = Some(limit);
        }
        match direction {
            Some(Ordering::Less) => low = limit,
            Some(_) => high = limit,
            None => break,
        }
        let middle = Bytes::new(low.get().saturating_add(high.saturating_sub(low).get() / 2));
        if middle == limit || middle == low {
            break;
        }
        limit = middle;
    }
    if let Some(limit) = found {
        let notes = std::mem::take(&mut inferred.notes);
        *inferred = with_limit(inferred, limit, total);
        inferred.notes = notes;
        inferred.notes.push(format!(
            "a memory fraction that allows at most {limit} is assumed, since garbage collection behaves accordingly"
        ));
    }
    Ok(())
}

/// The largest reserved memory of the program. The limit cannot have been lower.
fn most_reserved(inferred: &InferredRun, trace: &[TraceEntry]) -> Bytes {
    let mut reserved: Bytes =
        inferred.start.segments.iter().map(blockyard_record::SegmentSnapshot::mapped).sum();
    let mut most = reserved;
    for entry in trace {
        match entry.action {
            TraceAction::SegmentAlloc | TraceAction::SegmentMap => {
                reserved = reserved.saturating_add(entry.size);
            }
            TraceAction::SegmentFree | TraceAction::SegmentUnmap => {
                reserved = reserved.saturating_sub(entry.size);
            }
            _ => {}
        }
        most = most.max(reserved);
    }
    most
}

#[expect(clippy::cast_precision_loss, reason = "the allocator multiplies doubles")]
fn with_limit(inferred: &InferredRun, limit: Bytes, total: Bytes) -> InferredRun {
    // A quarter of a byte is added, so that the product, which is cut off or rounded to whole bytes, is the
    // limit again.
    let fraction = ((limit.get() as f64 + 0.25) / total.get().max(1) as f64).min(1.0);
    let first = Request::SetFraction { fraction };
    let requests = std::iter::once(first).chain(inferred.workload.requests().iter().copied());
    let mut workload = Workload::from_requests(requests.collect());
    let labels = inferred.workload.labels().iter();
    workload.set_labels(
        labels.map(|(at, text)| (if *at == 0 { 0 } else { at.saturating_add(1) }, text.clone())).collect(),
    );
    let first = inferred.entries.first().copied();
    let entries = first.into_iter().chain(inferred.entries.iter().copied()).collect();
    InferredRun { workload, entries, ..inferred.clone() }
}

/// The result of a replay under one limit.
struct Attempt {
    /// How many entries from the beginning equal the recorded ones.
    followed: usize,
    /// Whether the limit was too low (`Less`) or too high; `None` if that is not known, or if nothing
    /// differs.
    direction: Option<Ordering>,
}

fn attempt(
    run: &RecordedRun,
    settings: &RunSettings,
    inferred: &InferredRun,
    on_progress: OnProgress,
) -> Result<Attempt, RunError> {
    let expected = run.trace.as_deref().unwrap_or_default();
    let device = device_of(run, inferred);
    let mut runner =
        Runner::beginning_with(device, settings, &inferred.workload, &inferred.start)?.with_trace();
    let (mut compared, mut index, total) = (0, 0, inferred.workload.requests().len());
    // A run that has left the recording may request memory that the device does not have.
    while let Ok(Some(_)) = runner.step() {
        if Progress::is_due(index)
            && on_progress(Progress::new("inferring", index, total)) == ControlFlow::Break(())
        {
            return Err(RunError::Cancelled);
        }
        index += 1;
        let found = runner.trace();
        if let Some(place) = (compared..found.len()).find(|place| expected.get(*place) != found.get(*place)) {
            return Ok(Attempt { followed: place, direction: direction(expected, found, place) });
        }
        compared = found.len();
    }
    Ok(Attempt { followed: compared, direction: None })
}

/// Decides by the first difference whether the limit is too low or too high. It is too low if the replay
/// releases more or fails where the recording does not, and too high in the opposite cases.
fn direction(expected: &[TraceEntry], found: &[TraceEntry], place: usize) -> Option<Ordering> {
    let released = |trace: &[TraceEntry]| -> Bytes {
        let tail = trace.get(place..).unwrap_or_default().iter();
        tail.take_while(|entry| entry.action == TraceAction::SegmentFree).map(|entry| entry.size).sum()
    };
    let fails =
        |trace: &[TraceEntry]| trace.get(place).is_some_and(|entry| entry.action == TraceAction::OutOfMemory);
    match released(expected).cmp(&released(found)) {
        Ordering::Equal if fails(found) && !fails(expected) => Some(Ordering::Less),
        Ordering::Equal if fails(expected) && !fails(found) => Some(Ordering::Greater),
        Ordering::Equal => None,
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use blockyard_record::StreamId;

    use super::*;

    fn entry(action: TraceAction, mebibytes: u64) -> TraceEntry {
        TraceEntry { action, addr: 1 << 40, size: Bytes::mib(mebibytes), stream: StreamId::DEFAULT }
    }

    #[test]
    fn the_most_reserved_memory_counts_segments_and_pages() {
        use TraceAction::{Alloc, SegmentAlloc, SegmentFree, SegmentMap, SegmentUnmap};
        let trace = [
            entry(SegmentAlloc, 20),
            entry(Alloc, 500),
            entry(SegmentMap, 40),
            entry(SegmentUnmap, 10),
            entry(SegmentFree, 20),
            entry(SegmentAlloc, 25),
        ];
        assert_eq!(most_reserved(&InferredRun::default(), &trace), Bytes::mib(60));
        assert_eq!(most_reserved(&InferredRun::default(), &[]), Bytes::ZERO);
    }

    #[test]
    fn a_limit_is_a_fraction_that_gives_the_limit_again() {
        let total = Bytes::new(150_109_880_320);
        let mut workload = Workload::parse("step \"one\"; a = alloc 1 MiB; step \"two\"; free a").unwrap();
        workload.set_labels(vec![(0, "one".to_owned()), (1, "two".to_owned())]);
        let inferred = InferredRun { workload, ..InferredRun::default() };
        for limit in [1, 3, 512, 12_345_678_901, 100_000_000_001, 150_109_880_319, 150_109_880_320] {
            let limited = with_limit(&inferred, Bytes::new(limit), total);
            let Some(Request::SetFraction { fraction }) = limited.workload.requests().first().copied() else {
                panic!("the first request sets the fraction")
            };
            for release in blockyard_rules::Release::ALL {
                assert_eq!(release.memory_limit(total, fraction), Bytes::new(limit), "{release}");
            }
            assert_eq!(limited.workload.labels(), [(0, "one".to_owned()), (2, "two".to_owned())]);
            assert_eq!(limited.workload.requests().len(), 3);
        }
    }

    #[test]
    fn the_first_difference_says_whether_the_limit_was_too_low() {
        use TraceAction::{Alloc, OutOfMemory, SegmentFree};
        let found = |expected: &[TraceEntry], found: &[TraceEntry]| direction(expected, found, 0);
        let (alloc, oom) = (entry(Alloc, 1), entry(OutOfMemory, 1));
        let (small, large) = (entry(SegmentFree, 2), entry(SegmentFree, 20));
        assert_eq!(
            found(&[alloc], &[small]),
            Some(Ordering::Less),
            "the replay releases, the program did not"
        );
        assert_eq!(found(&[small], &[large]), Some(Ordering::Less));
        assert_eq!(
            found(&[small, large], &[large]),
            Some(Ordering::Greater),
            "the bytes count, not the entries"
        );
        assert_eq!(found(&[alloc], &[oom]), Some(Ordering::Less));
        assert_eq!(found(&[oom], &[alloc]), Some(Ordering::Greater));
        assert_eq!(found(&[alloc], &[entry(Alloc, 3)]), None);
        assert_eq!(direction(&[alloc, oom], &[alloc, alloc], 1), Some(Ordering::Greater));
    }
}
