mod annotations;
mod beginning;
mod recorder;

use serde::{Deserialize, Serialize};

use crate::packed_events::PackedEvents;
use crate::packed_steps::PackedSteps;
use crate::{AllocationId, Backend, Breakdown, Bytes, Event, MemoryState, StateError, StreamId, TraceEntry};

use self::annotations::Annotations;

pub use self::annotations::{Marker, OpenSize};
pub use self::recorder::Recorder;

/// One whole run of an allocator, as plain data.
///
/// Step `i` is request `i` of the workload; it covers a range of events. A moment in the run is a number of applied
/// events, from 0 to [`Recording::event_count`]. Events and steps are stored as what changed since the one before (about
/// five bytes each), with a saved state every so many events, so that any moment is rebuilt within a frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    info: RunInfo,
    events: PackedEvents,
    steps: PackedSteps,
    labels: Vec<Label>,
    // Steps that did not simply work, ascending.
    outcomes: Vec<(u32, Outcome)>,
    // Steps whose events do not tell what was asked, ascending.
    notes: Vec<Note>,
    // For each allocation, the step that made it.
    allocation_steps: Vec<u32>,
    // The allocations that have names, ascending, and their names as indices into `names`.
    allocation_names: Vec<(u32, u32)>,
    names: Vec<String>,
    streams: Vec<(StreamId, String)>,
    checkpoints: Vec<Checkpoint>,
    // The memory before the first event, where it is not empty.
    start: Option<Box<MemoryState>>,
    annotations: Annotations,
}

// The step of allocations from before the first one.
const NO_STEP: u32 = u32::MAX;

/// What a run was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// What to call the run: a preset's title, a file's name.
    pub title: String,
    /// The allocator's settings, as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub config: String,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// The value of the `max_split_size` statistic, in bytes; -1 for unlimited.
    pub max_split_size: i64,
    /// Which allocator of PyTorch's it is.
    pub backend: Backend,
}

/// A name for the stretch of steps from `step` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The first step of the stretch; may equal the number of steps for a label at the end.
    pub step: u32,
    /// The name.
    pub text: String,
}

/// What a step was, where its events do not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The step.
    pub step: u32,
    /// The request, as a workload writes it: `enter p`.
    pub title: String,
    /// What it does, as a clause without a subject; empty where the events tell that.
    pub sentence: String,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It failed for want of memory; the text is PyTorch's message.
    OutOfMemory(String),
    /// It was refused without touching the allocator, for the reason given.
    Refused(String),
    /// It could not be done because an earlier step had failed, as the text says.
    Skipped(String),
}

/// One request and what it caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of events before it.
    pub start: usize,
    /// The number of events after it.
    pub end: usize,
}

/// A recording that cannot be read or does not add up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// An event does not fit the ones before it.
    #[error("event {event} of the recording does not fit")]
    Damaged {
        /// The event's index.
        event: usize,
        /// In what way.
        #[source]
        source: StateError,
    },
    /// The memory that it should begin with does not add up.
    #[error("the memory that the recording begins with does not add up")]
    Start(#[source] StateError),
    /// What it begins with came after its first event.
    #[error("the recording has begun already")]
    Begun,
    /// The bytes are not an encoded recording.
    #[error("not an encoded recording: {0}")]
    Encoding(String),
    /// More events or steps than an index of 32 bits can count.
    #[error("the run is too long: more than 2^32 events")]
    TooLong,
}

/// Bytes of memory that a recording takes, by what they are for; texts of labels, names and outcomes are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingSize {
    /// The events.
    pub events: usize,
    /// Where each step ends.
    pub steps: usize,
    /// Where every byte is after each step.
    pub breakdowns: usize,
    /// When each allocation was made, and which have names.
    pub allocations: usize,
    /// The saved states.
    pub saved_states: usize,
    /// Times, markers, and which stack belongs to which allocation; not the stacks, which recordings share.
    pub annotations: usize,
}

impl RecordingSize {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.events + self.steps + self.breakdowns + self.allocations + self.saved_states + self.annotations
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Checkpoint {
    events: u32,
    // An encoded `MemoryState`: compact, and decoded only when the moment is visited.
    state: Vec<u8>,
}

impl Recording {
    /// What the run was made with.
    #[must_use]
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// All bytes of the device.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.info.capacity
    }

    /// How many events there are.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// How many steps there are.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// The event with this index.
    #[must_use]
    pub fn event(&self, index: usize) -> Option<Event> {
        self.events.get(index)
    }

    /// The events from this index on, in order: quicker than one by one. Ends early where the recording is damaged.
    pub fn events_from(&self, index: usize) -> impl Iterator<Item = Event> + '_ {
        self.events.from(index).into_iter().flatten()
    }

    /// The step with this index.
    #[must_use]
    pub fn step(&self, index: usize) -> Option<Step> {
        let (start, end) = self.steps.span(index)?;
        Some(Step { start, end })
    }

    /// How many steps are complete once `events` events are applied.
    #[must_use]
    pub fn steps_done(&self, events: usize) -> usize {
        self.steps.done(events)
    }

    /// The index of the step that the event with this index belongs to.
    #[must_use]
    pub fn step_of_event(&self, event: usize) -> Option<usize> {
        let step = self.steps.done(event);
        (step < self.step_count()).then_some(step)
    }

    /// How the step ended.
    #[must_use]
    pub fn outcome(&self, step: usize) -> &Outcome {
        let found = u32::try_from(step).ok().and_then(|step| {
            self.outcomes
                .binary_search_by_key(&step, |(step, _)| *step)
                .ok()
                .map(|index| &self.outcomes[index].1)
        });
        found.unwrap_or(&Outcome::Done)
    }

    /// The steps that did not simply work, ascending.
    #[must_use]
    pub fn failed_steps(&self) -> &[(u32, Outcome)] {
        &self.outcomes
    }

    /// What the step was, if its events do not tell.
    #[must_use]
    pub fn note(&self, step: usize) -> Option<&Note> {
        let step = u32::try_from(step).ok()?;
        let found = self.notes.binary_search_by_key(&step, |note| note.step).ok()?;
        self.notes.get(found)
    }

    /// Where every byte was after the step.
    #[must_use]
    pub fn breakdown_after(&self, step: usize) -> Option<Breakdown> {
        self.steps.breakdown(step, self.info.capacity)
    }

    /// The same for all steps from `step` on, in order: quicker than one by one.
    pub fn breakdowns_from(&self, step: usize) -> impl Iterator<Item = Breakdown> + '_ {
        self.steps.breakdowns(step, self.info.capacity)
    }

    /// The names of stretches of steps, by ascending step.
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// What the program calls the allocation, if it has a name.
    #[must_use]
    pub fn name(&self, allocation: AllocationId) -> Option<&str> {
        let named = &self.allocation_names;
        let place = named.binary_search_by_key(&allocation.get(), |(allocation, _)| *allocation).ok()?;
        let (_, name) = named.get(place)?;
        self.names.get(*name as usize).map(String::as_str)
    }

    /// The step that made the allocation; `None` where it was there before the first one.
    #[must_use]
    pub fn allocated_at(&self, allocation: AllocationId) -> Option<usize> {
        let step = *self.allocation_steps.get(allocation.get() as usize)?;
        (step != NO_STEP).then_some(step as usize)
    }

    /// The streams that have names, in the order of naming.
    #[must_use]
    pub fn streams(&self) -> &[(StreamId, String)] {
        &self.streams
    }

    /// What the program calls the stream: its name, else `default` or the handle.
    #[must_use]
    pub fn stream_name(&self, stream: StreamId) -> String {
        let named = self.streams.iter().find(|(id, _)| *id == stream).map(|(_, name)| name.clone());
        named.unwrap_or_else(|| {
            if stream == StreamId::DEFAULT { "default".to_owned() } else { format!("stream {stream}") }
        })
    }

    /// The memory after the first `events` events (all of them, where there are fewer).
    ///
    /// # Errors
    ///
    /// [`RecordingError::Damaged`] or [`RecordingError::Encoding`] when the recording does not add up.
    pub fn state_at(&self, events: usize) -> Result<MemoryState, RecordingError> {
        let events = events.min(self.event_count());
        let after = self.checkpoints.partition_point(|checkpoint| checkpoint.events as usize <= events);
        let (mut state, start) = match after.checked_sub(1).and_then(|index| self.checkpoints.get(index)) {
            Some(checkpoint) => {
                let state = postcard::from_bytes(&checkpoint.state)
                    .map_err(|error| RecordingError::Encoding(error.to_string()))?;
                (state, checkpoint.events as usize)
            }
            None => (self.initial_state(), 0),
        };
        self.advance(&mut state, start, events)?;
        Ok(state)
    }

    /// The moments, as numbers of events, whose state is saved; ascending. Any other moment is rebuilt from the one before it.
    pub fn saved_moments(&self) -> impl Iterator<Item = usize> + '_ {
        self.checkpoints.iter().map(|checkpoint| checkpoint.events as usize)
    }

    /// Takes `state`, the memory after `from` events, on to the memory after `to` events.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Damaged`] when an event does not fit.
    pub fn advance(&self, state: &mut MemoryState, from: usize, to: usize) -> Result<(), RecordingError> {
        for (index, event) in self.read(from, to) {
            state.apply(&event?).map_err(|source| RecordingError::Damaged { event: index, source })?;
        }
        Ok(())
    }

    /// The memory before the first event.
    #[must_use]
    pub fn initial_state(&self) -> MemoryState {
        self.start.as_deref().cloned().unwrap_or_else(|| initial_state(&self.info))
    }

    /// The run in PyTorch's trace vocabulary, in order.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Damaged`] when an event does not fit.
    pub fn trace(&self) -> Result<Vec<TraceEntry>, RecordingError> {
        let mut state = self.initial_state();
        let mut entries = Vec::new();
        for (index, event) in self.read(0, self.event_count()) {
            let event = event?;
            entries.extend(state.trace_entry(&event));
            state.apply(&event).map_err(|source| RecordingError::Damaged { event: index, source })?;
        }
        Ok(entries)
    }

    /// The events from `from` up to `to`, with their indices.
    fn read(
        &self,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = (usize, Result<Event, RecordingError>)> + '_ {
        let mut events = self.events.from(from);
        (from..to.min(self.event_count())).map(move |index| {
            let event = events.as_mut().and_then(Iterator::next);
            (index, event.ok_or_else(|| RecordingError::Encoding(format!("event {index} cannot be read"))))
        })
    }

    /// How much memory the recording takes.
    #[must_use]
    pub fn size(&self) -> RecordingSize {
        let (steps, breakdowns) = self.steps.sizes();
        let saved = self.checkpoints.iter().map(|checkpoint| checkpoint.state.capacity());
        RecordingSize {
            events: self.events.size(),
            steps,
            breakdowns,
            allocations: self.allocation_steps.capacity() * size_of::<u32>()
                + self.allocation_names.capacity() * size_of::<(u32, u32)>(),
            saved_states: saved.sum::<usize>() + self.checkpoints.capacity() * size_of::<Checkpoint>(),
            annotations: self.annotations.size(),
        }
    }

    /// The recording as bytes, to be passed between threads of a page.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Encoding`] when it does not fit in memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RecordingError> {
        postcard::to_allocvec(self).map_err(|error| RecordingError::Encoding(error.to_string()))
    }

    /// The recording that [`Recording::to_bytes`] encoded.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Encoding`] when the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordingError> {
        postcard::from_bytes(bytes).map_err(|error| RecordingError::Encoding(error.to_string()))
    }
}

fn initial_state(info: &RunInfo) -> MemoryState {
    let mut state = MemoryState::new(info.capacity);
    state.set_initial_max_split_size(info.max_split_size);
    state.set_backend(info.backend);
    state
}
