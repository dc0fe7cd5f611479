//! The memory at a moment that moves.

use std::sync::Arc;

use blockyard_record::{MemoryState, Recording, RecordingError};

/// Up to this many events forward are applied to the current state; beyond that a saved state is decoded.
const NEAR: usize = 1024;

/// The state at a moving moment. Short moves forward, as in playback, are cheap.
#[derive(Clone, Debug)]
pub struct StateCursor {
    recording: Arc<Recording>,
    /// The state after `events` events; `None` after an error, because the state may be changed in part.
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

    /// The recording whose moments the cursor visits.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// The state after `events` events, or after all events if there are fewer.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] when the recording is damaged. Other moments may still work.
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
