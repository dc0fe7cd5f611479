//! The certificate of a snapshot: whether our allocator puts each block where PyTorch put it.

use blockyard_answers::CertificateAnswer;
use blockyard_pytorch::snapshot::{SnapshotError, SnapshotFile};
use blockyard_pytorch::{ReadError, RecordedRun};
use blockyard_record::{PoolId, Recording, TraceAction, TraceEntry, grouped};
use blockyard_rules::{Release, known_config, left_out_note};

use crate::verify::verify;
use crate::{OnProgress, RunError};

/// The placements of our allocator for the trace of a snapshot, compared with PyTorch's.
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    /// What is identical. Allocations at the beginning of the trace are not among the placements if they
    /// belong to a request from before the trace.
    pub answer: CertificateAnswer,
    /// The run of our allocator, with exact sizes of blocks; `None` if nothing was compared.
    pub recording: Option<Recording>,
}

/// The certificate in one line: `52,141 of 52,141 placements identical`.
fn sentence(placements: u64, identical: u64, is_complete: bool) -> String {
    if placements == 0 {
        return NOTHING_COMPARED.to_owned();
    }
    let counts = format!("{} of {} placements identical", grouped(identical), grouped(placements));
    if is_complete {
        counts
    } else if identical == placements {
        format!("{counts}, but not everything else")
    } else {
        format!("differs: {counts}")
    }
}

/// The sentence where there is nothing to compare.
const NOTHING_COMPARED: &str = "nothing to compare";

/// Lets our allocator decide each placement of the device at `place` of [`SnapshotFile::memories`].
/// Placements of host memory are not compared.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_progress` cancels the work. Everything else that prevents a comparison is
/// a reason in the certificate.
pub fn certify(file: &SnapshotFile, place: usize, on_progress: OnProgress) -> Result<Certificate, RunError> {
    if file.host_place() == Some(place) {
        return Ok(nothing_compared(
            "not replayed: host (pinned) memory has another allocator than a GPU".to_owned(),
        ));
    }
    let mut run = match blockyard_pytorch::trace::recorded_run(file, place, "") {
        Ok(run) => run,
        Err(SnapshotError::Cancelled) => return Err(RunError::Cancelled),
        Err(error) => return Ok(nothing_compared(error.to_string())),
    };
    if run.trace.as_ref().is_none_or(Vec::is_empty) {
        return Ok(nothing_compared("the snapshot has no trace, so there is nothing to verify".to_owned()));
    }
    let (config, left_out) = known_config(&run.meta.conf, run.meta.release());
    run.meta.conf = config;
    let verified = match verify(&run, on_progress) {
        Ok(verified) => verified,
        Err(RunError::Cancelled) => return Err(RunError::Cancelled),
        Err(RunError::Read(error @ ReadError::BeginsLate { .. })) => {
            return Ok(nothing_compared(format!("{error}; the trace has lost entries in between")));
        }
        Err(error) => return Ok(nothing_compared(error.to_string())),
    };
    let found = verified.recording.trace()?;
    let (placements, identical) = placements(&run, &found);
    let comparison = verified.comparison;
    let is_complete = comparison.is_identical();
    let reasons = if is_complete { Vec::new() } else { reasons(file, place, &run) };
    let mut notes = comparison.notes;
    notes.extend(run.meta.release().dialect().note().map(str::to_owned));
    notes.extend(left_out_note(&left_out));
    let answer = CertificateAnswer {
        sentence: sentence(placements, identical, is_complete),
        release: run.meta.release().to_string(),
        placements,
        identical,
        is_complete,
        first_difference: comparison.first_difference,
        reasons,
        notes,
    };
    Ok(Certificate { answer, recording: Some(verified.recording) })
}

fn nothing_compared(reason: String) -> Certificate {
    let answer = CertificateAnswer {
        sentence: NOTHING_COMPARED.to_owned(),
        release: Release::default().to_string(),
        reasons: vec![reason],
        ..CertificateAnswer::default()
    };
    Certificate { answer, recording: None }
}

/// How many allocations of the trace the replay decided, and how many of them have the same address, size and
/// stream in the replay.
fn placements(run: &RecordedRun, found: &[TraceEntry]) -> (u64, u64) {
    let allocations = |trace: &[TraceEntry]| -> Vec<TraceEntry> {
        trace.iter().filter(|entry| entry.action == TraceAction::Alloc).copied().collect()
    };
    let mut expected = allocations(run.trace.as_deref().unwrap_or_default());
    let found = allocations(found);
    // The first entries may belong to a request from before the trace. Then the replay has one allocation
    // less.
    let cut = expected.len().saturating_sub(found.len());
    let shifted = expected.get(cut..).is_some_and(|rest| rest.first() == found.first())
        && expected.first() != found.first();
    if shifted {
        expected.drain(..cut);
    }
    let identical = expected.iter().zip(&found).filter(|(expected, found)| expected == found).count();
    (expected.len() as u64, identical as u64)
}

/// Reasons why a replay may differ from the snapshot, the most likely first.
fn reasons(file: &SnapshotFile, place: usize, run: &RecordedRun) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut note = |applies: bool, text: &str| {
        if applies {
            reasons.push(text.to_owned());
        }
    };
    let trace = run.trace.as_deref().unwrap_or_default();
    let has = |action| trace.iter().any(|entry| entry.action == action);
    let segments = file.devices.get(place).map(|device| device.segments.as_slice()).unwrap_or_default();
    note(
        run.trace_pools.is_empty() && segments.iter().any(|segment| segment.pool_id != PoolId::DEFAULT),
        "some memory is in private pools (CUDA graphs, MemPool), and the trace does not say which \
         allocations were meant for them",
    );
    note(
        has(TraceAction::OutOfMemory) || has(TraceAction::SegmentFree),
        "a snapshot contains neither the memory fraction nor the reason why cached segments were released: empty_cache, garbage \
         collection or a retry",
    );
    note(
        file.settings.values.is_empty(),
        "the snapshot does not contain the allocator's settings; the defaults are assumed",
    );
    note(
        !run.meta.conf.is_empty(),
        "settings in the snapshot are those of its moment; they may have been changed while the program ran",
    );
    reasons.push(format!(
        "another release of PyTorch, another vendor's allocator or a plug-in may decide differently from PyTorch {}",
        run.meta.release()
    ));
    reasons
}

#[cfg(test)]
mod tests {
    use blockyard_record::{Bytes, StreamId};

    use super::*;

    fn allocation(addr: u64) -> TraceEntry {
        TraceEntry { action: TraceAction::Alloc, addr, size: Bytes::mib(1), stream: StreamId::DEFAULT }
    }

    fn run(addrs: &[u64]) -> RecordedRun {
        RecordedRun {
            trace: Some(addrs.iter().map(|addr| allocation(*addr)).collect()),
            ..RecordedRun::default()
        }
    }

    fn counted(expected: &[u64], found: &[u64]) -> (u64, u64) {
        let found: Vec<TraceEntry> = found.iter().map(|addr| allocation(*addr)).collect();
        placements(&run(expected), &found)
    }

    #[test]
    fn placements_are_compared_in_their_order() {
        assert_eq!(counted(&[1, 2, 3], &[1, 2, 3]), (3, 3));
        assert_eq!(counted(&[1, 2, 3], &[1, 9, 3]), (3, 2));
        assert_eq!(counted(&[1, 2, 3], &[1, 2]), (3, 2), "an allocation that the replay lacks differs");
    }

    #[test]
    fn allocations_of_a_request_from_before_the_trace_are_not_counted() {
        assert_eq!(counted(&[1, 2, 3], &[2, 3]), (2, 2));
        assert_eq!(counted(&[7, 2, 3], &[2, 9]), (2, 1));
        assert_eq!(
            counted(&[2, 2, 3], &[2, 3]),
            (3, 1),
            "the first one is the replay's first: nothing was cut"
        );
        assert_eq!(counted(&[1], &[]), (0, 0), "the only one");
    }

    #[test]
    fn other_entries_are_no_placements() {
        let mut found = vec![allocation(1)];
        found.push(TraceEntry { action: TraceAction::FreeCompleted, ..allocation(1) });
        assert_eq!(placements(&run(&[1]), &found), (1, 1));
    }

    #[test]
    fn the_reasons_name_the_release_that_decided() {
        let mut run = run(&[1]);
        for (torch, release) in [("2.12.1", "PyTorch 2.12"), ("2.14.0", "PyTorch 2.14")] {
            run.meta.torch = torch.to_owned();
            let reasons = reasons(&SnapshotFile::default(), 0, &run);
            assert!(reasons.last().is_some_and(|reason| reason.ends_with(release)), "{reasons:?}");
        }
    }

    #[test]
    fn the_sentence_says_whether_more_than_the_placements_differs() {
        assert_eq!(sentence(2000, 2000, true), "2,000 of 2,000 placements identical");
        let partly = "2,000 of 2,000 placements identical, but not everything else";
        assert_eq!(sentence(2000, 2000, false), partly);
        assert_eq!(sentence(2000, 1999, false), "differs: 1,999 of 2,000 placements identical");
        assert_eq!(nothing_compared(String::new()).answer.sentence, "nothing to compare");
    }
}
