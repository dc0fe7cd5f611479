//! What the run of an answer did, where no difference to the solution explains it: the line at its peak, or
//! the line of its last segment.

use std::collections::{BTreeMap, HashMap};

use blockyard_record::{Bytes, Event};

use super::mistake::{Mistake, RunOfLines, at};
use super::{Exercise, Goal};
use crate::quantity::Quantity;

/// The bytes of each line at one moment.
type LineBytes = BTreeMap<u32, Bytes>;

/// The most bytes that are allocated after any request: all, the line that ran, and the bytes of each line.
#[derive(Default)]
struct Peak {
    bytes: Bytes,
    line: u32,
    of_lines: LineBytes,
}

/// The last segment that was taken: its size, its line, and the bytes that were cached and that waited for a
/// stream.
struct LastSegment {
    count: u64,
    size: Bytes,
    line: u32,
    cached: Bytes,
    pending: Bytes,
}

impl Exercise {
    /// What the run did with the memory that the goals are about; `None` for a run without a tensor.
    pub(super) fn outcome(&self, text: &str, own: &RunOfLines<'_>) -> Option<Mistake> {
        let (peak, segment) = follow(own);
        let sentence = match segment.filter(|_| self.goals.iter().any(Goal::is_about_segments)) {
            Some(segment) => segment.sentence(text),
            None if peak.bytes.is_zero() => return None,
            None => peak.sentence(text),
        };
        Some(Mistake::new(sentence, ""))
    }
}

fn follow(run: &RunOfLines<'_>) -> (Peak, Option<LastSegment>) {
    let recording = run.recording;
    let (mut peak, mut last) = (Peak::default(), None::<LastSegment>);
    let (mut held, mut of_lines, mut all) = (HashMap::new(), LineBytes::new(), Bytes::ZERO);
    for step in 0..recording.step_count() {
        let line = run.lines.get(step).copied().unwrap_or(0);
        let Some(events) = recording.step(step) else { continue };
        for event in (events.start..events.end).filter_map(|index| recording.event(index)) {
            match event {
                Event::SegmentAllocated { size, .. } => {
                    let before = step.checked_sub(1).and_then(|before| recording.breakdown_after(before));
                    let before = before.unwrap_or_default();
                    let count = last.map_or(0, |last: LastSegment| last.count).saturating_add(1);
                    let (cached, pending) = (before.cached, before.pending);
                    last = Some(LastSegment { count, size, line, cached, pending });
                }
                Event::Allocated { block, requested, .. } => {
                    held.insert(block, (line, requested));
                    let sum = of_lines.entry(line).or_default();
                    *sum = sum.saturating_add(requested);
                    all = all.saturating_add(requested);
                }
                Event::FreeRequested { block, .. } => {
                    if let Some((line, size)) = held.remove(&block) {
                        let sum = of_lines.entry(line).or_default();
                        *sum = sum.saturating_sub(size);
                        all = all.saturating_sub(size);
                    }
                }
                _ => {}
            }
        }
        if all > peak.bytes {
            peak = Peak { bytes: all, line, of_lines: of_lines.clone() };
        }
    }
    (peak, last)
}

impl Peak {
    fn sentence(&self, text: &str) -> String {
        let runs = at(text, self.line);
        let said = format!("most is in use when {runs} runs: {}", self.bytes);
        // The first of the lines with equal bytes is named.
        match self.of_lines.iter().rev().max_by_key(|(_, bytes)| **bytes) {
            Some((line, bytes)) if *line == self.line => format!("{said}, and this line made {bytes} of it"),
            Some((line, bytes)) => format!("{said}, and {} made {bytes} of it", at(text, *line)),
            None => said,
        }
    }
}

impl LastSegment {
    fn sentence(&self, text: &str) -> String {
        let taken = format!("{} takes a segment of {} from the device", at(text, self.line), self.size);
        match (self.pending, self.cached) {
            (pending, _) if !pending.is_zero() => {
                format!("{taken} while {pending} are freed and wait for a stream")
            }
            (_, cached) if !cached.is_zero() => {
                format!("{taken} while {cached} are cached, in pieces that do not serve it")
            }
            _ => format!("{taken}, and it is segment {} of the program", self.count),
        }
    }
}

impl Goal {
    /// Whether the goal is about memory that is taken from the device, and not about tensors alone.
    fn is_about_segments(&self) -> bool {
        const OF_SEGMENTS: [Quantity; 8] = [
            Quantity::Reserved,
            Quantity::PeakReserved,
            Quantity::MostReserved,
            Quantity::Cached,
            Quantity::Segments,
            Quantity::DeviceAllocs,
            Quantity::DeviceFrees,
            Quantity::DeviceCalls,
        ];
        self.measures().iter().any(|measure| OF_SEGMENTS.contains(&measure.quantity))
    }
}
