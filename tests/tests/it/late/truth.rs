//! The memory at a moment of a run: segments with their memory, and blocks in use.

use std::collections::BTreeMap;

use blockyard_record::{BlockState, Bytes, Recording, SegmentSnapshot, Snapshot, StreamId};

/// Segments and active blocks by address, with the facts that a rewound state can have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryAtCut {
    pub(crate) segments: BTreeMap<u64, (Bytes, StreamId, String)>,
    /// Size, requested size and whether the free waits.
    pub(crate) blocks: BTreeMap<u64, (Bytes, Bytes, bool)>,
}

impl MemoryAtCut {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut moment = Self::default();
        for segment in snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs) {
            let kind = format!("{} {}", segment.pool, segment.is_expandable);
            moment.segments.insert(segment.addr.get(), (segment.size, segment.stream, kind));
            for block in segment.blocks.iter().filter(|block| block.state.is_active()) {
                let waits = block.state == BlockState::PendingFree;
                moment.blocks.insert(block.addr.get(), (block.size, block.requested, waits));
            }
        }
        moment
    }
}

impl MemoryAtCut {
    /// Segments without their kind, which a trace does not always show.
    pub(crate) fn where_segments_are(&self) -> Vec<(u64, Bytes, StreamId)> {
        self.segments.iter().map(|(addr, (size, stream, _))| (*addr, *size, *stream)).collect()
    }
}

impl MemoryAtCut {
    pub(crate) fn has_touching_ranges(&self) -> bool {
        let mut expandable = self.segments.iter().filter(|(_, (.., kind))| kind.ends_with("true"));
        let mut end = None;
        expandable.any(|(addr, (size, ..))| end.replace(addr + size.get()) == Some(*addr))
    }
}

/// The memory of a recording after each of these numbers of trace entries; `cuts` ascend.
pub(crate) fn moments(recording: &Recording, cuts: &[usize]) -> Vec<MemoryAtCut> {
    let mut state = recording.initial_state();
    let mut moments = Vec::new();
    let mut entries = 0;
    let mut cuts = cuts.iter().peekable();
    for index in 0..=recording.event_count() {
        let event = recording.event(index);
        let is_entry = event.is_none_or(|event| state.trace_entry(&event).is_some());
        while is_entry && cuts.next_if(|cut| **cut == entries).is_some() {
            moments.push(MemoryAtCut::of(&state.snapshot()));
        }
        if let Some(event) = event {
            state.apply(&event).unwrap();
            entries += usize::from(is_entry);
        }
    }
    assert!(cuts.peek().is_none(), "the recording has only {entries} entries");
    moments
}
