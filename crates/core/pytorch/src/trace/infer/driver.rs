//! The calls of the driver and its error messages, as far as a recording shows them.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, DeviceAddr, Snapshot, TraceAction, TraceEntry};

use super::OomReport;
use crate::{AllocationResult, OperationKind, RecordedRun};

/// Addresses of an expandable segment that has memory.
struct MappedRange {
    mapped: u64,
    /// The most bytes of addresses that the range has.
    reach: u64,
}

/// The first addresses of expandable segments, in the order in which they appear. A mapping outside of every
/// live range starts a new range, at its first page; a range ends when none of its pages is mapped.
pub(super) fn ranges(trace: &[TraceEntry], total: Bytes, start: &Snapshot) -> Vec<DeviceAddr> {
    // Ranges hold an eighth more than the device; their ends are not recorded, but ranges never overlap.
    let reach = total.saturating_add(Bytes::new(total.get() / 8)).get();
    let there = start.segments.iter().filter(|segment| segment.is_expandable);
    let there = there.map(|segment| {
        let range = MappedRange { mapped: segment.mapped().get(), reach: segment.size.get().min(reach) };
        (segment.addr.get(), range)
    });
    let mut live: BTreeMap<u64, MappedRange> = there.collect();
    let mut starts = Vec::new();
    for entry in trace {
        let below = live.range_mut(..=entry.addr).next_back();
        let within = below
            .filter(|(start, range)| entry.addr.saturating_sub(**start) < range.reach)
            .map(|(start, range)| (*start, range));
        match (entry.action, within) {
            (TraceAction::SegmentMap, Some((_, range))) => {
                range.mapped = range.mapped.saturating_add(entry.size.get());
            }
            (TraceAction::SegmentMap, None) => {
                starts.push(DeviceAddr::new(entry.addr));
                live.insert(entry.addr, MappedRange { mapped: entry.size.get(), reach });
            }
            (TraceAction::SegmentUnmap, Some((start, range))) => {
                range.mapped = range.mapped.saturating_sub(entry.size.get());
                if range.mapped == 0 {
                    live.remove(&start);
                }
            }
            _ => {}
        }
    }
    starts
}

pub(super) fn failures(run: &RecordedRun, trace: &[TraceEntry]) -> Vec<OomReport> {
    let texts: Vec<&str> = run
        .operations
        .iter()
        .filter_map(|operation| match &operation.kind {
            OperationKind::Allocate { result: Some(AllocationResult::OutOfMemory(text)), .. } => {
                Some(text.as_str())
            }
            _ => None,
        })
        .collect();
    let free = trace
        .iter()
        .filter(|entry| entry.action == TraceAction::OutOfMemory)
        .map(|entry| Bytes::new(entry.addr));
    let texts = texts.into_iter().map(Some).chain(std::iter::repeat(None));
    free.zip(texts)
        .map(|(free, text)| OomReport { free, processes: text.map(processes).unwrap_or_default() })
        .collect()
}

/// Reads "this process has 2.21 GiB memory in use" and "Process 423 has 2.05 GiB memory in use" out of a
/// message.
fn processes(message: &str) -> Vec<(Option<u32>, Bytes)> {
    let ours = "Including non-PyTorch memory, this process";
    let mut found = Vec::new();
    for sentence in message.split(" memory in use.") {
        let Some((who, used)) = sentence.rsplit_once(" has ") else {
            continue;
        };
        let process = if who.trim_start().ends_with(ours) {
            None
        } else {
            match who.rsplit_once("Process ").map(|(_, id)| id.parse()) {
                Some(Ok(id)) => Some(id),
                _ => continue,
            }
        };
        found.extend(parse_size(used).map(|used| (process, used)));
    }
    found
}

// The smallest whole number of bytes that prints as the same text again.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a message's number is positive and small"
)]
fn parse_size(text: &str) -> Option<Bytes> {
    let (number, unit) = text.trim().split_once(' ')?;
    let value: f64 = number.parse().ok().filter(|value: &f64| (0.0..1e9).contains(value))?;
    let scale = match unit {
        "bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(Bytes::new((value * scale).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_read_out_of_a_message() {
        let message = "which 104.16 GiB is free. Process 423 has 2.05 GiB memory in use. Including non-PyTorch memory, \
                       this process has 2.21 GiB memory in use. Process 415 has 616.00 MiB memory in use. 2.00 GiB allowed; ";
        let found = processes(message);
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [Some(423), None, Some(415)]);
        assert_eq!(found[2].1, Bytes::mib(616));
    }
}
