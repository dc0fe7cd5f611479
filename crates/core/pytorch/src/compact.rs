//! A trace in columns, the shortest form that needs no allocator to read it. The samples of the page have
//! this form.
//!
//! Programs free what they allocated a moment ago and get the same places again. So a free is encoded as the
//! number of younger live blocks, and a place as the earlier free of the same size that left it; only other
//! places are encoded as addresses.

use std::collections::HashMap;
use std::vec::IntoIter;

use blockyard_record::{Bytes, StreamId, TraceAction, TraceEntry, index_u32};
use blockyard_rules::size::MIN_BLOCK_SIZE;
use serde::{Deserialize, Serialize};

/// A trace in columns; the member `compact_trace` of a line of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactTrace {
    /// One letter for each entry, except `f`, which is two entries: a free that completes at once.
    actions: String,
    /// For each `f`: how many live blocks are younger.
    ages: Vec<u32>,
    /// The different sizes, in the order of their first use.
    sizes: Vec<u64>,
    /// For each entry but `f`: the index of its size in `sizes`.
    size: Vec<u32>,
    /// For each `a`: which free of the same size left the place, 1 for the last one; 0 for a place of
    /// `steps`.
    places: Vec<u32>,
    /// For each other place: the distance from the end of the place before, in bytes; it wraps.
    steps: Vec<i64>,
    /// Streams, each with the number of successive entries on it.
    streams: Vec<(u64, u32)>,
}

const LETTERS: [(TraceAction, char); 9] = [
    (TraceAction::Alloc, 'a'),
    (TraceAction::FreeRequested, 'r'),
    (TraceAction::FreeCompleted, 'c'),
    (TraceAction::SegmentAlloc, 'S'),
    (TraceAction::SegmentFree, 'F'),
    (TraceAction::SegmentMap, 'M'),
    (TraceAction::SegmentUnmap, 'U'),
    (TraceAction::Snapshot, 's'),
    (TraceAction::OutOfMemory, 'o'),
];

/// A free that completes at once.
const FREE: char = 'f';

/// Frees of blocks that are older than this many others are written in full: a list of all would take long to
/// search.
const OLDEST: usize = 65_536;

/// The state that encoder and decoder keep of the entries so far.
#[derive(Default)]
struct EntryHistory {
    /// Address, size and stream of live blocks, oldest first.
    live: Vec<(u64, u64, u64)>,
    freed: HashMap<u64, Vec<u64>>,
    /// Where the block before ends.
    end: u64,
}

impl EntryHistory {
    fn takes_in(&mut self, entry: &TraceEntry) {
        let size = entry.size.get().checked_next_multiple_of(MIN_BLOCK_SIZE.get()).unwrap_or_default();
        self.end = entry.addr.wrapping_add(size);
        if entry.action == TraceAction::Alloc {
            self.live.push((entry.addr, entry.size.get(), entry.stream.get()));
        }
    }
}

/// Columns that are not those of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A column ends before the others.
    #[error("there are fewer {0}")]
    Short(&'static str),
    /// A free names an age that no live block has.
    #[error("a free of a block that does not exist, of age {0}")]
    Age(u32),
    /// An action without a meaning.
    #[error("unknown action \"{0}\"")]
    Action(char),
    /// An allocation at a place that no block of its size left.
    #[error("a place that was not freed")]
    Place,
}

impl CompactTrace {
    /// The trace in columns.
    #[must_use]
    pub fn of(trace: &[TraceEntry]) -> Self {
        let mut columns = Self::default();
        let mut indices = HashMap::new();
        let mut history = EntryHistory::default();
        let mut rest = trace;
        while let [entry, following @ ..] = rest {
            rest = following;
            columns.add_stream(entry.stream.get());
            if let Some(age) = age_of_free(entry, following, &history) {
                columns.actions.push(FREE);
                columns.ages.push(index_u32(age));
                history.live.remove(history.live.len() - 1 - age);
                history.freed.entry(entry.size.get()).or_default().push(entry.addr);
                rest = &following[1..];
                columns.add_stream(entry.stream.get());
                continue;
            }
            columns
                .actions
                .extend(LETTERS.iter().find(|(action, _)| *action == entry.action).map(|(_, it)| it));
            let next = index_u32(indices.len());
            columns.size.push(*indices.entry(entry.size).or_insert_with(|| {
                columns.sizes.push(entry.size.get());
                next
            }));
            columns.add_place(entry, &mut history);
        }
        columns
    }

    fn add_stream(&mut self, stream: u64) {
        match self.streams.last_mut() {
            Some((last, count)) if *last == stream && *count < u32::MAX => *count = count.saturating_add(1),
            _ => self.streams.push((stream, 1)),
        }
    }

    fn add_place(&mut self, entry: &TraceEntry, history: &mut EntryHistory) {
        if entry.action == TraceAction::Alloc {
            let freed = history.freed.entry(entry.size.get()).or_default();
            let place = freed.iter().rev().take(OLDEST).position(|addr| *addr == entry.addr);
            let place = place.map_or(0, |younger| younger + 1);
            self.places.push(index_u32(place));
            if place > 0 {
                freed.remove(freed.len() - place);
                return history.takes_in(entry);
            }
        }
        self.steps.push(entry.addr.wrapping_sub(history.end).cast_signed());
        history.takes_in(entry);
    }

    /// The trace entry by entry.
    ///
    /// # Errors
    ///
    /// [`CompactError`] says why the columns do not fit each other.
    pub(crate) fn entries(self) -> Result<Vec<TraceEntry>, CompactError> {
        let mut left = RemainingColumns {
            ages: self.ages.into_iter(),
            sizes: self.sizes,
            size: self.size.into_iter(),
            places: self.places.into_iter(),
            steps: self.steps.into_iter(),
            history: EntryHistory::default(),
        };
        let mut streams = self.streams.into_iter().flat_map(|(stream, count)| {
            std::iter::repeat_n(StreamId::new(stream), usize::try_from(count).unwrap_or(0))
        });
        let mut entries = Vec::new();
        for letter in self.actions.chars() {
            let stream = streams.next().ok_or(CompactError::Short("streams than actions"))?;
            if letter == FREE {
                let (addr, size) = left.free()?;
                let entry = |action| TraceEntry { action, addr, size, stream };
                entries.extend([entry(TraceAction::FreeRequested), entry(TraceAction::FreeCompleted)]);
                streams.next();
                continue;
            }
            let action = LETTERS.iter().find(|(_, known)| *known == letter).map(|(action, _)| *action);
            let action = action.ok_or(CompactError::Action(letter))?;
            let size = left.size.next().and_then(|index| left.sizes.get(index as usize));
            let size = Bytes::new(*size.ok_or(CompactError::Short("sizes than actions"))?);
            let entry = TraceEntry { action, addr: left.place(action, size)?, size, stream };
            left.history.takes_in(&entry);
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The rest of the columns.
struct RemainingColumns {
    ages: IntoIter<u32>,
    sizes: Vec<u64>,
    size: IntoIter<u32>,
    places: IntoIter<u32>,
    steps: IntoIter<i64>,
    history: EntryHistory,
}

impl RemainingColumns {
    /// The address and the size of the block that the next entry frees.
    fn free(&mut self) -> Result<(u64, Bytes), CompactError> {
        let age = self.ages.next().ok_or(CompactError::Short("ages than frees"))?;
        let older = usize::try_from(age).ok().filter(|age| *age < OLDEST).and_then(|age| age.checked_add(1));
        let index = older.and_then(|older| self.history.live.len().checked_sub(older));
        let index = index.ok_or(CompactError::Age(age))?;
        let (addr, size, _) = self.history.live.remove(index);
        self.history.freed.entry(size).or_default().push(addr);
        Ok((addr, Bytes::new(size)))
    }

    fn place(&mut self, action: TraceAction, size: Bytes) -> Result<u64, CompactError> {
        let place = match action {
            TraceAction::Alloc => {
                self.places.next().ok_or(CompactError::Short("places than allocations"))? as usize
            }
            _ => 0,
        };
        if place == 0 {
            let step = self.steps.next().ok_or(CompactError::Short("steps than places"))?;
            return Ok(self.history.end.wrapping_add_signed(step));
        }
        let freed = self.history.freed.entry(size.get()).or_default();
        let index = freed.len().checked_sub(place).filter(|_| place <= OLDEST);
        Ok(freed.remove(index.ok_or(CompactError::Place)?))
    }
}

/// How many blocks are younger than the one that is freed, if `entry` and the next one are a free that
/// completes at once.
fn age_of_free(entry: &TraceEntry, following: &[TraceEntry], history: &EntryHistory) -> Option<usize> {
    let completed = TraceEntry { action: TraceAction::FreeCompleted, ..*entry };
    if entry.action != TraceAction::FreeRequested || following.first() != Some(&completed) {
        return None;
    }
    let block = (entry.addr, entry.size.get(), entry.stream.get());
    history.live.iter().rev().take(OLDEST).position(|live| *live == block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: TraceAction, addr: u64, size: u64, stream: u64) -> TraceEntry {
        TraceEntry { action, addr, size: Bytes::new(size), stream: StreamId::new(stream) }
    }

    #[test]
    fn every_trace_comes_back() {
        use TraceAction::{
            Alloc, FreeCompleted, FreeRequested, OutOfMemory, SegmentAlloc, SegmentFree, SegmentMap,
            SegmentUnmap, Snapshot,
        };
        let trace = [
            entry(SegmentAlloc, 1 << 40, 2 << 20, 0),
            entry(Alloc, 1 << 40, 1000, 0),
            entry(Alloc, (1 << 40) + 1024, 1000, 7),
            entry(FreeRequested, 1 << 40, 1000, 0),
            entry(FreeCompleted, 1 << 40, 1000, 0),
            entry(Alloc, 1 << 40, 1000, 0),
            // Not what was allocated, and twice.
            entry(FreeRequested, 1 << 40, 999, 0),
            entry(FreeCompleted, 1 << 40, 999, 0),
            entry(FreeRequested, (1 << 40) + 1024, 1000, 7),
            entry(OutOfMemory, 12345, u64::MAX, 3),
            entry(FreeCompleted, (1 << 40) + 1024, 1000, 7),
            entry(SegmentMap, u64::MAX, 20 << 20, 0),
            entry(SegmentUnmap, 0, 20 << 20, 0),
            entry(Snapshot, 0, 0, 0),
            entry(SegmentFree, 1 << 40, 2 << 20, 0),
        ];
        for length in 0..=trace.len() {
            let part = &trace[..length];
            assert_eq!(CompactTrace::of(part).entries().unwrap(), part);
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_reported() {
        let good = CompactTrace::of(&[
            entry(TraceAction::Alloc, 512, 512, 0),
            entry(TraceAction::FreeRequested, 512, 512, 0),
            entry(TraceAction::FreeCompleted, 512, 512, 0),
            entry(TraceAction::Alloc, 512, 512, 0),
        ]);
        assert_eq!(good.actions, "afa");
        assert!(good.clone().entries().is_ok());
        let damaged = [
            CompactTrace { actions: "ax".to_owned(), ..good.clone() },
            CompactTrace { ages: Vec::new(), ..good.clone() },
            CompactTrace { ages: vec![1], ..good.clone() },
            CompactTrace { ages: vec![u32::MAX], ..good.clone() },
            CompactTrace { sizes: Vec::new(), ..good.clone() },
            CompactTrace { size: vec![0, 9], ..good.clone() },
            CompactTrace { places: vec![0], ..good.clone() },
            CompactTrace { places: vec![0, 2], ..good.clone() },
            CompactTrace { places: vec![0, 0], ..good.clone() },
            CompactTrace { steps: Vec::new(), ..good.clone() },
            CompactTrace { streams: vec![(0, 1)], ..good.clone() },
        ];
        for columns in damaged {
            assert!(columns.clone().entries().is_err(), "{columns:?}");
        }
    }
}
