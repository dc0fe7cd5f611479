//! The changes that a range of events made.

use std::collections::BTreeSet;

use blockyard_record::{BlockId, Bytes, DeviceAddr, Event, PoolId, PoolKind, Recording, SegmentId, StreamId};

/// The changes that a range of events made, for the segment map to emphasize.
///
/// Blocks that existed only within the range may be included; a figure draws only the blocks that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Segments that the device allocated.
    pub new_segments: BTreeSet<SegmentId>,
    /// Segments that were released to the device, by ascending address.
    pub released: Vec<ReleasedSegment>,
    /// Fronts of splits: the edge at their end is new.
    pub split_fronts: BTreeSet<BlockId>,
    /// Blocks that a neighbor was merged into.
    pub merged: BTreeSet<BlockId>,
    /// Blocks that were allocated.
    pub allocated: BTreeSet<BlockId>,
    /// Blocks whose free is pending.
    pub pending: BTreeSet<BlockId>,
    /// Blocks whose free completed.
    pub freed: BTreeSet<BlockId>,
    /// Blocks that another stream used.
    pub stream_recorded: BTreeSet<BlockId>,
    /// Whether a request failed.
    pub has_failure: bool,
}

/// A segment that was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasedSegment {
    /// The id of the segment.
    pub segment: SegmentId,
    /// The address of the segment.
    pub addr: DeviceAddr,
    /// The size of the segment.
    pub size: Bytes,
    /// The stream that could use the segment.
    pub stream: StreamId,
    /// The memory pool that owned the segment.
    pub pool_id: PoolId,
    /// The block pool that owned the segment.
    pub pool: PoolKind,
}

impl Changes {
    /// The changes by the events from `from_event` up to `to_event`; no changes if the recording is damaged.
    ///
    /// The cost grows with the number of events, so this is for one step or a few steps.
    #[must_use]
    pub fn of(recording: &Recording, from_event: usize, to_event: usize) -> Self {
        let mut changes = Self::default();
        let mut releases = Vec::new();
        for index in from_event..to_event.min(recording.event_count()) {
            match recording.event(index) {
                Some(Event::SegmentReleased { segment, .. }) => releases.push((index, segment)),
                Some(event) => changes.note(&event),
                None => {}
            }
        }
        if !releases.is_empty() {
            changes.released = released_segments(recording, from_event, &releases);
        }
        changes
    }

    /// Whether there are no changes that a map shows.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn note(&mut self, event: &Event) {
        match *event {
            Event::SegmentAllocated { segment, .. } | Event::RangeReserved { segment, .. } => {
                self.new_segments.insert(segment);
            }
            Event::Split { front, .. } => {
                self.split_fronts.insert(front);
            }
            Event::Allocated { block, .. } => {
                self.allocated.insert(block);
            }
            Event::StreamRecorded { block, .. } => {
                self.stream_recorded.insert(block);
            }
            Event::FreeRequested { block, .. } => {
                self.allocated.remove(&block);
                self.pending.insert(block);
            }
            Event::FreeCompleted { block } => {
                self.pending.remove(&block);
                self.freed.insert(block);
            }
            Event::Merged { block, .. } => {
                self.merged.insert(block);
            }
            Event::OutOfMemory { .. } => self.has_failure = true,
            Event::SegmentReleased { .. }
            | Event::RangeReleased { .. }
            | Event::Mapped { .. }
            | Event::Unmapped { .. }
            | Event::SegmentFailed { .. }
            | Event::RetryStarted
            | Event::StreamsSynchronized
            | Event::SnapshotTaken { .. }
            | Event::PeakReset
            | Event::AccumulatedReset
            | Event::FractionSet { .. } => {}
        }
    }
}

/// The segments of `releases` (event index and segment), as they were just before the release; by ascending
/// address.
fn released_segments(
    recording: &Recording,
    from_event: usize,
    releases: &[(usize, SegmentId)],
) -> Vec<ReleasedSegment> {
    let Ok(mut state) = recording.state_at(from_event) else { return Vec::new() };
    let mut at = from_event;
    let mut ghosts = Vec::new();
    for (index, id) in releases {
        if recording.advance(&mut state, at, *index).is_err() {
            return ghosts;
        }
        at = *index;
        if let Some(segment) = state.segment(*id) {
            ghosts.push(ReleasedSegment {
                segment: *id,
                addr: segment.addr,
                size: segment.size,
                stream: segment.stream,
                pool_id: segment.pool_id,
                pool: segment.pool,
            });
        }
    }
    ghosts.sort_by_key(|ghost| (ghost.addr, ghost.segment));
    ghosts
}
