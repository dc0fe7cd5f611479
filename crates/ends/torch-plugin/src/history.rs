//! The events of an allocator, kept while a recording or a trace is on.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use blockyard_pytorch::stat_values;
use blockyard_record::{
    Bytes, Event, EventSink, MemoryState, PoolId, Snapshot, StateError, Stats, TraceEntry,
};

use crate::python_stack;

/// The receiver of an allocator's events. Without a trace and a recording, an event costs one branch.
#[derive(Debug, Default)]
pub(crate) struct HistorySink {
    /// The history of the trace, for snapshots.
    trace: Option<Box<History>>,
    /// The history of a recording.
    recording: Option<Box<History>>,
    is_open: bool,
}

impl HistorySink {
    /// The history of the trace; `None` while no trace is on.
    pub(crate) fn trace(&self) -> Option<&History> {
        self.trace.as_deref()
    }

    /// Begins a trace, or ends it with `None`; the earlier trace is dropped.
    pub(crate) fn set_trace(&mut self, history: Option<History>) {
        self.trace = history.map(Box::new);
        self.note();
    }

    /// The history of the recording; `None` while nothing is recorded.
    pub(crate) fn recording_mut(&mut self) -> Option<&mut History> {
        self.recording.as_deref_mut()
    }

    /// Begins a recording, or ends it with `None`; returns the earlier one.
    pub(crate) fn set_recording(&mut self, history: Option<History>) -> Option<Box<History>> {
        let before = std::mem::replace(&mut self.recording, history.map(Box::new));
        self.note();
        before
    }

    fn note(&mut self) {
        self.is_open = self.trace.is_some() || self.recording.is_some();
    }

    #[cold]
    fn pass_on(&mut self, event: Event) {
        for history in [&mut self.trace, &mut self.recording].into_iter().flatten() {
            history.record(&event);
        }
    }
}

impl EventSink for HistorySink {
    #[inline]
    fn record(&mut self, event: Event) {
        if self.is_open {
            self.pass_on(event);
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        !self.is_open
    }
}

/// A trace entry and when it happened, in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedEntry {
    pub(crate) entry: TraceEntry,
    pub(crate) micros: u64,
    /// The Python stack of the thread: see [`crate::python_stack`].
    pub(crate) stack: u32,
    /// The memory pool that the entry is about.
    pub(crate) pool_id: PoolId,
}

/// The trace from some moment on, with the memory that it leads to.
#[derive(Debug)]
pub(crate) struct History {
    entries: VecDeque<TimedEntry>,
    most: usize,
    state: MemoryState,
    checkpoints: Vec<(String, usize, Vec<i64>)>,
    /// Whether streams were waited for, and no event that a trace can show has followed yet.
    has_waited: bool,
    error: Option<StateError>,
}

impl History {
    /// A history that begins with the memory of `snapshot` and keeps the last `most` entries.
    pub(crate) fn new(
        capacity: Bytes,
        snapshot: &Snapshot,
        max_split_size: i64,
        most: usize,
    ) -> Result<Self, StateError> {
        let state = MemoryState::beginning_with(capacity, snapshot, max_split_size)?;
        Ok(Self {
            entries: VecDeque::new(),
            most,
            state,
            checkpoints: Vec::new(),
            has_waited: false,
            error: None,
        })
    }

    /// The entries in order; the oldest may have been dropped.
    pub(crate) fn entries(&self) -> &VecDeque<TimedEntry> {
        &self.entries
    }

    /// Statistics as a replay of the entries counts them: never reset, and without waits that no entry shows.
    pub(crate) fn stats(&self) -> &Stats {
        self.state.stats()
    }

    /// The checkpoints: label, how many entries came before, and the statistics.
    pub(crate) fn checkpoints(&self) -> &[(String, usize, Vec<i64>)] {
        &self.checkpoints
    }

    /// Writes the statistics of this moment under a label.
    pub(crate) fn add_checkpoint(&mut self, label: String) {
        self.checkpoints.push((label, self.entries.len(), stat_values(self.state.stats())));
    }

    /// The first event that does not fit, if there is one.
    pub(crate) fn error(&self) -> Option<StateError> {
        self.error
    }

    fn record(&mut self, event: &Event) {
        if self.error.is_some() {
            return;
        }
        match event {
            // A trace has no entry for a reset, so a replay of the trace would not see the reset.
            Event::PeakReset | Event::AccumulatedReset => return,
            // A trace has no entry for emptying an empty cache either: the wait counts once another event
            // shows it.
            Event::StreamsSynchronized => {
                self.has_waited = true;
                return;
            }
            Event::SegmentReleased { .. } | Event::Unmapped { .. } | Event::RetryStarted
                if self.has_waited =>
            {
                self.apply(&Event::StreamsSynchronized);
                self.has_waited = false;
            }
            Event::FreeCompleted { .. } | Event::Merged { .. } => {}
            Event::SegmentAllocated { .. }
            | Event::SegmentReleased { .. }
            | Event::RangeReserved { .. }
            | Event::RangeReleased { .. }
            | Event::Mapped { .. }
            | Event::Unmapped { .. }
            | Event::SegmentFailed { .. }
            | Event::Split { .. }
            | Event::Allocated { .. }
            | Event::StreamRecorded { .. }
            | Event::FreeRequested { .. }
            | Event::RetryStarted
            | Event::OutOfMemory { .. }
            | Event::SnapshotTaken { .. }
            | Event::FractionSet { .. } => self.has_waited = false,
        }
        if let Some((entry, pool_id)) = self.state.pooled_trace_entry(event) {
            if self.entries.len() >= self.most {
                self.entries.pop_front();
            }
            let stack = python_stack::current();
            self.entries.push_back(TimedEntry { entry, micros: micros(), stack, pool_id });
        }
        self.apply(event);
    }

    fn apply(&mut self, event: &Event) {
        self.error = self.state.apply(event).err();
    }
}

fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Enough for half a million years.
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
