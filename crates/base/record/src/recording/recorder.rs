//! Building a recording.

use rustc_hash::FxHashMap;

use super::annotations::Annotations;
use super::{
    Label, NO_STEP, Note, Recording, RecordingError, RunInfo, SavedState, StepOutcome, initial_state,
};
use crate::packed_events::PackedEvents;
use crate::packed_steps::PackedSteps;
use crate::{AllocationId, Event, EventSink, MemoryState, StackId, StreamId};

/// Builds a [`Recording`] from the events of a run.
#[derive(Debug)]
pub struct Recorder {
    pub(super) recording: Recording,
    pub(super) state: MemoryState,
    pub(super) name_indices: FxHashMap<String, u32>,
    /// The name of the next allocation, as an index into the names.
    pub(super) next_name: Option<u32>,
    /// The stack of allocations and segments from now on.
    pub(super) stack: StackId,
    /// The time of the current step.
    pub(super) time: Option<u64>,
    pub(super) save_interval: usize,
    /// The encoded bytes of the saved states.
    saved_bytes: usize,
    /// The streams of segments, in the order in which they appear.
    streams: Vec<StreamId>,
    pub(super) error: Option<RecordingError>,
}

/// How many events lie between two saved states at first.
const FIRST_SAVE_INTERVAL: usize = 512;
/// This many saved states are always kept, and more of them while all states together take less than a byte
/// for each event: in a run of millions of events with few blocks the states are small and lie close
/// together, so any moment is rebuilt in a part of a frame.
const MIN_SAVED_STATES: usize = 256;
// A large state is saved less often, at up to four times the interval: a saved state of 10,000 bytes is
// followed by at least 1,000 events. Applying one event takes about as long as decoding this number of bytes.
const BYTES_AN_EVENT: usize = 10;

impl Recorder {
    /// An empty recording.
    #[must_use]
    pub fn new(info: RunInfo) -> Self {
        let state = initial_state(&info);
        let recording = Recording {
            info,
            events: PackedEvents::default(),
            steps: PackedSteps::default(),
            labels: Vec::new(),
            outcomes: Vec::new(),
            notes: Vec::new(),
            allocation_steps: Vec::new(),
            allocation_names: Vec::new(),
            names: Vec::new(),
            streams: Vec::new(),
            saved_states: Vec::new(),
            start: None,
            annotations: Annotations::default(),
        };
        Self {
            recording,
            state,
            name_indices: FxHashMap::default(),
            next_name: None,
            stack: StackId::EMPTY,
            time: None,
            save_interval: FIRST_SAVE_INTERVAL,
            saved_bytes: 0,
            streams: Vec::new(),
            error: None,
        }
    }

    /// Sets the name that is shown for the stream.
    pub fn name_stream(&mut self, stream: StreamId, name: &str) {
        self.recording.streams.push((stream, name.to_owned()));
    }

    /// Labels the steps from the next one on.
    pub fn label(&mut self, text: &str) {
        let step = self.current_step();
        self.recording.labels.push(Label { step, text: text.to_owned() });
    }

    /// Sets the name of the allocation that the current step makes.
    pub fn name_next_allocation(&mut self, name: Option<&str>) {
        self.next_name = name.and_then(|name| self.name_index(name));
    }

    /// Names allocations that the recording has; a new name takes the place of an earlier one.
    pub fn name_allocations(&mut self, names: impl IntoIterator<Item = (AllocationId, String)>) {
        let mut added: Vec<(u32, u32)> = Vec::new();
        for (allocation, name) in names {
            let index = self.name_index(&name);
            added.extend(index.map(|index| (allocation.get(), index)));
        }
        if added.is_empty() {
            return;
        }
        // The newest name of an allocation comes first, and only this name stays.
        added.reverse();
        added.append(&mut self.recording.allocation_names);
        added.sort_by_key(|(allocation, _)| *allocation);
        added.dedup_by_key(|(allocation, _)| *allocation);
        self.recording.allocation_names = added;
    }

    /// The index of the name in the list of names; `None` after 2^32 of them.
    fn name_index(&mut self, name: &str) -> Option<u32> {
        if let Some(index) = self.name_indices.get(name) {
            return Some(*index);
        }
        let index = u32::try_from(self.recording.names.len()).ok()?;
        self.recording.names.push(name.to_owned());
        self.name_indices.insert(name.to_owned(), index);
        Some(index)
    }

    /// The number of the step that the next events belong to. A run with more steps than a number of 32 bits
    /// counts is an error.
    fn current_step(&mut self) -> u32 {
        match u32::try_from(self.recording.step_count()) {
            Ok(step) if step != NO_STEP => step,
            _ => {
                self.error.get_or_insert(RecordingError::TooLong);
                NO_STEP
            }
        }
    }

    /// Notes what the request of the current step is. Only the first note of a step is kept.
    pub fn note(&mut self, title: impl Into<String>, sentence: impl Into<String>) {
        let step = self.current_step();
        if self.recording.notes.last().is_none_or(|last| last.step < step) {
            self.recording.notes.push(Note { step, title: title.into(), sentence: sentence.into() });
        }
    }

    /// Ends the current step: every event since the last call belongs to the step.
    pub fn finish_step(&mut self, outcome: StepOutcome) {
        let step = self.current_step();
        let events = self.recording.event_count();
        let Ok(end) = u32::try_from(events) else {
            self.error.get_or_insert(RecordingError::TooLong);
            return;
        };
        self.recording.steps.push(end, &self.state.breakdown());
        if outcome != StepOutcome::Done {
            self.recording.outcomes.push((step, outcome));
        }
        self.next_name = None;
        self.recording.annotations.finish_step(step as usize + 1, self.time.take());
        let last = self.recording.saved_states.last();
        let (last, size) = last.map_or((0, 0), |last| (last.events as usize, last.state.len()));
        let interval = self.save_interval;
        if events >= last + (size / BYTES_AN_EVENT).clamp(interval, 4 * interval) {
            self.save_state(end);
        }
    }

    /// The memory after the events so far.
    #[must_use]
    pub fn state(&self) -> &MemoryState {
        &self.state
    }

    /// Ends the recording and returns it.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Damaged`] when an event did not fit, [`RecordingError::TooLong`] beyond 2^32 events
    /// or steps.
    pub fn finish(self) -> Result<Recording, RecordingError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut recording = self.recording;
        name_streams(&mut recording, &self.streams);
        recording.events.shrink();
        recording.steps.shrink();
        recording.allocation_steps.shrink_to_fit();
        recording.allocation_names.shrink_to_fit();
        recording.saved_states.shrink_to_fit();
        recording.annotations.shrink();
        Ok(recording)
    }

    // Where the states are many and take more than a byte an event, every second one is dropped and the
    // interval doubles, so that memory stays bounded and any moment is at most one interval after a saved
    // state.
    fn save_state(&mut self, events: u32) {
        match postcard::to_allocvec(&self.state) {
            Ok(mut state) => {
                state.shrink_to_fit();
                self.saved_bytes += state.len() + size_of::<SavedState>();
                self.recording.saved_states.push(SavedState { events, state });
            }
            Err(error) => {
                self.error.get_or_insert(RecordingError::Encoding(error));
            }
        }
        if self.recording.saved_states.len() > MIN_SAVED_STATES && self.saved_bytes > events as usize {
            let mut is_kept = false;
            self.recording.saved_states.retain(|_| {
                is_kept = !is_kept;
                !is_kept
            });
            let bytes = |saved: &SavedState| saved.state.len() + size_of::<SavedState>();
            self.saved_bytes = self.recording.saved_states.iter().map(bytes).sum();
            self.save_interval *= 2;
        }
    }
}

/// Streams without a name are numbered from 1 in the order in which they appear, as PyTorch's viewer does:
/// their handles are addresses, which nobody can tell apart.
fn name_streams(recording: &mut Recording, appeared: &[StreamId]) {
    let initial =
        recording.start.as_ref().map(|state| state.segments().map(|segment| segment.stream).collect());
    let initial: Vec<StreamId> = initial.unwrap_or_default();
    let mut others: Vec<StreamId> = Vec::new();
    for stream in initial.iter().chain(appeared) {
        if *stream != StreamId::DEFAULT && !others.contains(stream) {
            others.push(*stream);
        }
    }
    for (number, stream) in (1_u32..).zip(others) {
        if recording.streams.iter().all(|(named, _)| *named != stream) {
            recording.streams.push((stream, format!("stream {number}")));
        }
    }
}

impl EventSink for Recorder {
    fn record(&mut self, event: Event) {
        if self.error.is_some() {
            return;
        }
        if let Err(source) = self.state.apply(&event) {
            self.error = Some(RecordingError::Damaged { event: self.recording.event_count(), source });
            return;
        }
        if let Event::Allocated { allocation, .. } = event {
            let step = self.current_step();
            self.recording.allocation_steps.push(step);
            self.recording.allocation_names.extend(self.next_name.map(|name| (allocation.get(), name)));
            self.recording.annotations.add_allocation(allocation, self.stack);
        } else if let Event::SegmentAllocated { segment, .. } | Event::RangeReserved { segment, .. } = event {
            self.recording.annotations.add_segment(segment, self.stack);
        }
        if let Event::SegmentAllocated { stream, .. } | Event::RangeReserved { stream, .. } = event
            && !self.streams.contains(&stream)
        {
            self.streams.push(stream);
        }
        self.recording.events.push(&event);
    }
}
