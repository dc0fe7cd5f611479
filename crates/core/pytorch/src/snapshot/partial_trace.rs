//! Memory over time of the part of a trace that has been read: a figure that grows while a long file is read.

use blockyard_record::{Bytes, TraceAction, TraceEntry};

/// Columns are joined in pairs when there are this many.
const MAX_COLUMNS: usize = 1024;

/// Memory over time of the entries that have been read, in at most 1,024 columns of equally many entries.
///
/// The memory before the trace is known only when the whole trace has been read. Until then the bytes count
/// from the first entry on, plus the bytes that frees of older blocks prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialTrace {
    columns: Vec<Moment>,
    entries: usize,
    entries_per_column: usize,
    now: Moment,
    lowest: Moment,
}

/// Requested and reserved bytes since the first entry: negative where more was freed than allocated. In a
/// column, the largest values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moment {
    requested: i64,
    reserved: i64,
}

impl Moment {
    fn most(self, other: Self) -> Self {
        Self { requested: self.requested.max(other.requested), reserved: self.reserved.max(other.reserved) }
    }

    fn least(self, other: Self) -> Self {
        Self { requested: self.requested.min(other.requested), reserved: self.reserved.min(other.reserved) }
    }
}

impl PartialTrace {
    /// The number of entries so far.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// How many entries each column has; the last column may have fewer.
    #[must_use]
    pub fn entries_per_column(&self) -> usize {
        self.entries_per_column
    }

    /// The most requested and the most reserved bytes of each column.
    pub fn columns(&self) -> impl Iterator<Item = (Bytes, Bytes)> + '_ {
        let above =
            |bytes: i64, lowest: i64| Bytes::new(bytes.saturating_sub(lowest).try_into().unwrap_or(0));
        self.columns.iter().map(move |column| {
            let requested = above(column.requested, self.lowest.requested);
            // A free may name a block in a segment from before the trace.
            (requested, above(column.reserved, self.lowest.reserved).max(requested))
        })
    }

    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.columns.capacity() * size_of::<Moment>()
    }

    pub(super) fn push(&mut self, entry: &TraceEntry) {
        let size = i64::try_from(entry.size.get()).unwrap_or(i64::MAX);
        let Moment { requested, reserved } = &mut self.now;
        match entry.action {
            TraceAction::Alloc => *requested = requested.saturating_add(size),
            TraceAction::FreeCompleted => *requested = requested.saturating_sub(size),
            TraceAction::SegmentAlloc | TraceAction::SegmentMap => *reserved = reserved.saturating_add(size),
            TraceAction::SegmentFree | TraceAction::SegmentUnmap => *reserved = reserved.saturating_sub(size),
            TraceAction::FreeRequested | TraceAction::OutOfMemory | TraceAction::Snapshot => {}
        }
        self.lowest = self.lowest.least(self.now);
        self.entries_per_column = self.entries_per_column.max(1);
        if !self.entries.is_multiple_of(self.entries_per_column)
            && let Some(last) = self.columns.last_mut()
        {
            *last = last.most(self.now);
        } else {
            if self.columns.len() == MAX_COLUMNS {
                self.join_columns();
            }
            self.columns.push(self.now);
        }
        self.entries = self.entries.saturating_add(1);
    }

    fn join_columns(&mut self) {
        let joined = self.columns.chunks(2).filter_map(|pair| pair.iter().copied().reduce(Moment::most));
        self.columns = joined.collect();
        self.entries_per_column = self.entries_per_column.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use blockyard_record::StreamId;

    use super::*;

    fn entry(action: TraceAction, size: u64) -> TraceEntry {
        TraceEntry { action, addr: 0, size: Bytes::new(size), stream: StreamId::DEFAULT }
    }

    fn of(entries: &[(TraceAction, u64)]) -> PartialTrace {
        let mut so_far = PartialTrace::default();
        for (action, size) in entries {
            so_far.push(&entry(*action, *size));
        }
        so_far
    }

    fn columns(so_far: &PartialTrace) -> Vec<(u64, u64)> {
        so_far.columns().map(|(requested, reserved)| (requested.get(), reserved.get())).collect()
    }

    #[test]
    fn each_entry_is_a_column_at_first() {
        use TraceAction::{Alloc, FreeCompleted, FreeRequested, SegmentAlloc};
        let so_far =
            of(&[(SegmentAlloc, 100), (Alloc, 60), (Alloc, 20), (FreeRequested, 60), (FreeCompleted, 60)]);
        assert_eq!(columns(&so_far), [(0, 100), (60, 100), (80, 100), (80, 100), (20, 100)]);
    }

    #[test]
    fn what_was_there_before_the_trace_shows_when_it_goes() {
        use TraceAction::{Alloc, FreeCompleted, SegmentFree};
        let so_far = of(&[(Alloc, 10), (FreeCompleted, 70), (SegmentFree, 100)]);
        assert_eq!(columns(&so_far), [(70, 100), (0, 100), (0, 0)]);
    }

    #[test]
    fn columns_stay_few_and_keep_their_highest_moments() {
        let mut so_far = PartialTrace::default();
        for round in 0..10_000_u64 {
            so_far.push(&entry(TraceAction::Alloc, if round == 7_777 { 1 << 30 } else { 1 }));
            so_far.push(&entry(TraceAction::FreeCompleted, if round == 7_777 { 1 << 30 } else { 1 }));
        }
        assert_eq!((so_far.entries(), so_far.entries_per_column()), (20_000, 32));
        let columns = columns(&so_far);
        assert_eq!(columns.len(), 625);
        assert_eq!(columns.iter().filter(|column| column.0 == 1 << 30).count(), 1);
        assert_eq!(columns.iter().position(|column| column.0 == 1 << 30), Some(15_554 / 32));
    }
}
