//! Snapshots of any length: a real trace, of which a stretch is repeated that ends in the memory that it
//! began with.

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::Range;
use std::rc::Rc;

use blockyard_pytorch::snapshot::{DeviceTrace, SnapshotEntry, SnapshotFile};
use blockyard_record::TraceAction;
use rustc_hash::FxHashMap;

/// The longest stretch of a trace that ends in the memory that it began with, so that it can be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The range of the entries.
    pub entries: Range<usize>,
}

impl Loop {
    /// Finds the longest stretch; `None` if the memory never returns to an earlier state.
    pub fn find(trace: &DeviceTrace) -> Option<Self> {
        // Equal memory has equal sums of what its blocks and segments are, whatever the order in which they
        // came.
        let mut memory = 0_u64;
        let mut first = FxHashMap::from_iter([(memory, 0)]);
        let mut longest = 0..0;
        for (index, entry) in trace.iter().enumerate() {
            memory = memory.wrapping_add(change(&entry));
            let begin = *first.entry(memory).or_insert(index + 1);
            if index + 1 - begin > longest.len() {
                longest = begin..index + 1;
            }
        }
        (!longest.is_empty()).then_some(Self { entries: longest })
    }
}

/// The number that an entry adds to the sum of its moment; the entry that undoes it subtracts the same
/// number.
fn change(entry: &SnapshotEntry) -> u64 {
    let of = |kind: u64| {
        let entry = &entry.entry;
        let mut hash = (kind << 56) ^ entry.stream.get().rotate_left(40);
        for part in [entry.addr, entry.size.get(), kind] {
            hash = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        hash
    };
    match entry.entry.action {
        TraceAction::Alloc => of(1),
        TraceAction::FreeRequested => of(2).wrapping_sub(of(1)),
        TraceAction::FreeCompleted => 0_u64.wrapping_sub(of(2)),
        TraceAction::SegmentAlloc => of(3),
        TraceAction::SegmentFree => 0_u64.wrapping_sub(of(3)),
        TraceAction::SegmentMap => of(4),
        TraceAction::SegmentUnmap => 0_u64.wrapping_sub(of(4)),
        _ => 0,
    }
}

/// Writes the snapshot as a pickle of at least this many bytes: the loop of each trace is repeated as often
/// as that takes.
///
/// Entries are written as they are made, so that memory does not grow with the file. They have PyTorch's
/// fields: the loop of `llama_generate` takes 97 bytes an entry here and 99 where Python's own `pickle.dump`
/// writes the same loop. The whole recorded trace, of which the loop is a part with shorter stacks, takes
/// 114.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_long(file: &SnapshotFile, out: impl Write, least_bytes: u64) -> io::Result<()> {
    let written = Cell::new(0);
    let out = CountingWriter { out, written: &written };
    file.write_pickle_with(out, |device| {
        let trace = &device.trace;
        let Some(Loop { entries }) = Loop::find(trace) else { return Box::new(trace.iter()) };
        let time_at = |index: usize| trace.get(index).map_or(0, |entry| entry.time_us);
        let duration =
            time_at(entries.end).max(time_at(entries.end - 1)).saturating_sub(time_at(entries.start));
        let written = &written;
        let (first, end) = (entries.start, entries.end);
        // How often the loop was begun.
        let rounds = Rc::new(Cell::new(0));
        let begun = rounds.clone();
        let times = std::iter::from_fn(move || {
            let round = begun.get();
            let has_more = round == 0 || written.get() < least_bytes;
            begun.set(round + u64::from(has_more));
            has_more.then_some(round)
        });
        let repeated = times.flat_map(move |round| {
            entries.clone().filter_map(move |index| later(trace, index, round * duration))
        });
        let before = (0..first).filter_map(|index| trace.get(index));
        let after = (end..trace.len())
            .filter_map(move |index| later(trace, index, rounds.get().saturating_sub(1) * duration));
        Box::new(before.chain(repeated).chain(after))
    })
}

fn later(trace: &DeviceTrace, index: usize, by_us: u64) -> Option<SnapshotEntry> {
    let entry = trace.get(index)?;
    Some(SnapshotEntry { time_us: entry.time_us.saturating_add(by_us), ..entry })
}

/// Counts the bytes that go through.
struct CountingWriter<'a, W> {
    out: W,
    written: &'a Cell<u64>,
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.written.set(self.written.get() + count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use blockyard_pytorch::snapshot::{SnapshotFile, read};

    use super::*;

    const RESNET: &[u8] = include_bytes!("../../../../tests/fixtures/snapshots/resnet50_amp.pickle.gz");

    fn opened(bytes: &[u8]) -> SnapshotFile {
        read(bytes, &mut |_| ControlFlow::Continue(())).unwrap()
    }

    #[test]
    fn a_repeated_trace_is_a_whole_snapshot() {
        let file = opened(RESNET);
        let once = Loop::find(&file.devices[0].trace).unwrap();
        let mut bytes = Vec::new();
        write_long(&file, &mut bytes, 3_000_000).unwrap();
        assert!((3_000_000..4_500_000).contains(&bytes.len()), "{}", bytes.len());
        let long = opened(&bytes);
        let added = long.devices[0].trace.len() - file.devices[0].trace.len();
        assert!(added > 0 && added.is_multiple_of(once.entries.len()));
        assert_eq!(long.devices[0].segments, file.devices[0].segments);
        let times: Vec<u64> = long.devices[0].trace.iter().map(|entry| entry.time_us).collect();
        assert!(times.is_sorted());
        let short =
            blockyard_pytorch::trace::record(&file, 0, "", &mut |_| ControlFlow::Continue(())).unwrap();
        let long =
            blockyard_pytorch::trace::record(&long, 0, "", &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(long.misfits, short.misfits);
        let end = |recording: &blockyard_record::Recording| {
            recording.state_at(recording.event_count()).unwrap().breakdown()
        };
        assert_eq!(end(&long.recording), end(&short.recording));
    }
}
