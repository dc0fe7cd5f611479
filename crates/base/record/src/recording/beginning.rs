//! Recordings that begin in the middle of a run.

use super::{NO_STEP, Recorder, Recording, RecordingError};
use crate::{Breakdown, MemoryState, Snapshot};

impl Recording {
    /// Whether memory was allocated or cached before the first event, because the run began before its
    /// recording.
    #[must_use]
    pub fn begins_late(&self) -> bool {
        self.start.is_some()
    }

    /// The breakdown before the first step.
    #[must_use]
    pub fn breakdown_before(&self) -> Breakdown {
        let empty = Breakdown { free: self.info.capacity, ..Breakdown::default() };
        self.start.as_ref().map_or(empty, |start| start.breakdown())
    }
}

impl Recorder {
    /// Makes the recording begin with this memory instead of an empty device. The allocations of the snapshot
    /// are numbered from 0, in any order; no step made them.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Begun`] once there are events or steps, [`RecordingError::Start`] for a snapshot
    /// that is not consistent. After an error, the recorder is unchanged.
    pub fn begin_with(&mut self, snapshot: &Snapshot) -> Result<(), RecordingError> {
        let recording = &mut self.recording;
        if recording.event_count() > 0 || recording.step_count() > 0 {
            return Err(RecordingError::Begun);
        }
        let info = &recording.info;
        let state = MemoryState::beginning_with(info.capacity, snapshot, info.max_split_size)
            .map_err(RecordingError::Start)?;
        let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        let ids = blocks.filter_map(|block| block.allocation).map(|id| id.get() as usize + 1);
        let allocations = ids.max().unwrap_or(0);
        recording.allocation_steps = vec![NO_STEP; allocations];
        recording.start = Some(Box::new(state.clone()));
        self.state = state;
        Ok(())
    }
}
