//! States that do not begin with an empty device.

use super::{BlockEntry, MemoryState, SegmentEntry, StateError};
use crate::{BlockState, Bytes, DeviceAddr, SegmentSnapshot, Snapshot, Stats};

impl MemoryState {
    /// A device of `capacity` bytes with the segments of the snapshot. [`Stats::beginning_with`] explains the
    /// statistics.
    ///
    /// # Errors
    ///
    /// [`StateError::Overlap`] for segments that overlap or are out of order, [`StateError::UnknownSegment`]
    /// for one without blocks, [`StateError::Unfitting`] for a block that does not follow the one before it,
    /// ends elsewhere than its segment, or has the id of another block.
    pub fn beginning_with(
        capacity: Bytes,
        snapshot: &Snapshot,
        max_split_size: i64,
    ) -> Result<Self, StateError> {
        let mut state = Self::new(capacity);
        state.stats = Stats::beginning_with(snapshot, max_split_size);
        let mut end = DeviceAddr::default();
        for segment in &snapshot.segments {
            if segment.addr < end {
                return Err(StateError::Overlap(segment.id));
            }
            end = segment.addr.offset(segment.size);
            state.add_whole_segment(segment)?;
        }
        Ok(state)
    }

    fn add_whole_segment(&mut self, segment: &SegmentSnapshot) -> Result<(), StateError> {
        let mut addr = segment.addr;
        let mut previous = None;
        for block in &segment.blocks {
            if block.addr != addr || block.size.is_zero() || self.block_slots.contains_key(&block.id) {
                return Err(StateError::Unfitting(block.id));
            }
            addr = addr.offset(block.size);
            let slot = self.insert_existing(BlockEntry {
                id: block.id,
                segment: segment.addr,
                addr: block.addr,
                size: block.size,
                requested: block.requested,
                state: block.state,
                allocation: block.allocation,
                streams: block.streams.clone(),
                previous,
                next: None,
            })?;
            if let Some(previous) = previous.and_then(|slot: u32| self.slots.get_mut(slot as usize)) {
                previous.next = Some(slot);
            } else {
                let entry = SegmentEntry {
                    id: segment.id,
                    size: segment.size,
                    stream: segment.stream,
                    pool_id: segment.pool_id,
                    pool: segment.pool,
                    is_expandable: segment.is_expandable,
                    first: slot,
                };
                self.segments.insert(segment.addr, entry);
                self.segment_addrs.insert(segment.id, segment.addr);
            }
            if block.state == BlockState::Allocated {
                self.requested = self.requested.saturating_add(block.requested);
            }
            previous = Some(slot);
        }
        match segment.blocks.last() {
            Some(last) if addr != segment.addr.offset(segment.size) => Err(StateError::Unfitting(last.id)),
            Some(_) => Ok(()),
            None => Err(StateError::UnknownSegment(segment.id)),
        }
    }
}
