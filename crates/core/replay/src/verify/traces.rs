//! Compares the trace of the replay with the recorded trace.

use blockyard_record::{TraceAction, TraceEntry, counted};

use crate::Comparison;

/// Compares the traces entry by entry. `ends` has the number of entries of the replay after each request.
pub(super) fn compare_traces(
    expected: &[TraceEntry],
    found: &[TraceEntry],
    ends: &[usize],
    comparison: &mut Comparison,
) {
    let mut reordered = 0;
    let mut index = 0;
    while index < expected.len().max(found.len()) {
        let (left, right) = (expected.get(index), found.get(index));
        let same_in_other_order =
            if left == right { None } else { reordered_completions(expected, found, index) };
        if let Some(length) = same_in_other_order {
            (0..length).for_each(|_| comparison.count("events", true));
            reordered += length;
            index += length;
            continue;
        }
        let step = ends.partition_point(|end| *end <= index);
        comparison.compare("events", &left, &right, Some(step.min(ends.len().saturating_sub(1))), || {
            (format!("trace entry {index}"), entry_text(left), entry_text(right))
        });
        index += 1;
    }
    if reordered > 0 {
        comparison.notes.push(format!(
            "{} of several streams completed together, in another order than recorded; PyTorch leaves that order to a hash \
             table, so only the set is compared",
            counted(reordered, "free")
        ));
    }
}

/// Returns how many entries from `index` on are the same completed frees in another order. Frees that
/// complete together complete stream by stream, and PyTorch takes the streams in the order of a hash table.
fn reordered_completions(expected: &[TraceEntry], found: &[TraceEntry], index: usize) -> Option<usize> {
    let run = |trace: &[TraceEntry]| {
        let tail = trace.get(index..).unwrap_or_default();
        let mut run: Vec<TraceEntry> =
            tail.iter().take_while(|entry| entry.action == TraceAction::FreeCompleted).copied().collect();
        run.sort_by_key(|entry| (entry.addr, entry.size, entry.stream));
        run
    };
    let (left, right) = (run(expected), run(found));
    (left.len() > 1 && left == right).then_some(left.len())
}

fn entry_text(entry: Option<&TraceEntry>) -> String {
    entry.map_or_else(
        || "nothing".to_owned(),
        |TraceEntry { action, addr, size, stream }| {
            format!("{action} {addr:#x} of {} bytes on stream {stream}", size.get())
        },
    )
}
