use std::sync::Arc;

use blockyard_record::{MemoryState, Recording, RecordingError};

/// How many events forward are applied to the state at hand before a saved one is worth decoding.
const NEAR: usize = 1024;

/// The memory at a moment that moves: cheap while it moves forward a little, as in playing.
#[derive(Clone, Debug)]
pub struct StateCursor {
    recording: Arc<Recording>,
    // The memory after `events` events; `None` after an error, since the state may then be half changed.
    state: Option<MemoryState>,
    events: usize,
}

impl StateCursor {
    /// A cursor at the beginning of the recording.
    #[must_use]
    pub fn new(recording: Arc<Recording>) -> Self {
        let state = Some(recording.initial_state());
        Self { recording, state, events: 0 }
    }

    /// The recording that it moves over.
    #[must_use]
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// The memory after `events` events, or after the last one where there are fewer.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] when the recording does not add up; other moments can still be asked for.
    pub fn at(&mut self, events: usize) -> Result<&MemoryState, RecordingError> {
        let events = events.min(self.recording.event_count());
        let state = match self.state.take() {
            Some(mut state) if (self.events..=self.events.saturating_add(NEAR)).contains(&events) => {
                self.recording.advance(&mut state, self.events, events)?;
                state
            }
            _ => self.recording.state_at(events)?,
        };
        self.events = events;
        Ok(self.state.insert(state))
    }
}
