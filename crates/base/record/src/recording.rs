//! Recordings: one whole run of an allocator, as plain data.

mod annotations;
mod beginning;
mod recorder;

use blockyard_rules::Release;
use serde::{Deserialize, Serialize};

use crate::packed_events::PackedEvents;
use crate::packed_steps::PackedSteps;
use crate::{AllocationId, Backend, Breakdown, Bytes, Event, MemoryState, StateError, StreamId, TraceEntry};

use self::annotations::Annotations;

pub use self::annotations::{Marker, OpenSize};
pub use self::recorder::Recorder;

/// One whole run of an allocator, as plain data.
///
/// Step `i` is request `i` of the workload; a step covers a range of events. A moment in the run is a number
/// of applied events, from 0 to [`Recording::event_count`]. Events and steps are stored as differences from
/// the one before, about five bytes each. States are saved at intervals, so that the state at any moment can
/// be rebuilt within the time of a frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    info: RunInfo,
    events: PackedEvents,
    steps: PackedSteps,
    labels: Vec<Label>,
    /// Steps whose outcome is not [`StepOutcome::Done`], ascending.
    outcomes: Vec<(u32, StepOutcome)>,
    /// Notes of steps whose events do not show what the request was, ascending.
    notes: Vec<Note>,
    /// The step that made each allocation.
    allocation_steps: Vec<u32>,
    /// The allocations that have a name, ascending, each with an index into `names`.
    allocation_names: Vec<(u32, u32)>,
    names: Vec<String>,
    streams: Vec<(StreamId, String)>,
    saved_states: Vec<SavedState>,
    /// The memory before the first event, if the device was not empty then.
    start: Option<Box<MemoryState>>,
    annotations: Annotations,
}

// The step of allocations that were made before the recording began.
const NO_STEP: u32 = u32::MAX;

/// The name, the settings and the device of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The name of the run: a preset's title or a file's name.
    pub title: String,
    /// The allocator's settings, as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// Whether the bytes of the device are not known, so that `capacity` is the least that explains the run.
    #[serde(default)]
    pub is_capacity_unknown: bool,
    /// The value of the `max_split_size` statistic, in bytes; -1 for unlimited.
    pub max_split_size: i64,
    /// Which of PyTorch's allocators was used.
    pub backend: Backend,
    /// The release of PyTorch whose rules held.
    #[serde(default)]
    pub release: Release,
}

/// A name for the steps from `step` on, up to the next label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The first step of the label. A label at the end of the run has the number of steps here.
    pub step: u32,
    /// The name.
    pub text: String,
}

/// What the request of a step was, if the events of the step do not show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The index of the step.
    pub step: u32,
    /// The request, as a workload writes it: `enter p`.
    pub title: String,
    /// What the request does, as a clause without a subject; empty if the events show that.
    pub sentence: String,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    /// The request did what was asked.
    Done,
    /// The request ran out of memory; the text is PyTorch's message.
    OutOfMemory(String),
    /// The request was refused for the reason given. Of several settings, those before the wrong one hold.
    Refused(String),
    /// The request was skipped because an earlier step had failed, as the text explains.
    Skipped(String),
}

/// One request, with the events that it caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of events before it.
    pub start: usize,
    /// The number of events after it.
    pub end: usize,
}

/// Why a recording cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// An event does not fit the ones before it.
    #[error(
        "event {event} of the recording does not fit the events before it: the recording is damaged, record the run again"
    )]
    Damaged {
        /// The event's index.
        event: usize,
        /// Why it does not fit.
        #[source]
        source: StateError,
    },
    /// The snapshot that the recording should begin with is not consistent.
    #[error("the memory that the recording begins with does not add up")]
    Start(#[source] StateError),
    /// The initial memory was set after the first event.
    #[error("the recording has begun already")]
    Begun,
    /// The bytes encode no recording.
    #[error("not an encoded recording: {0}")]
    Encoding(postcard::Error),
    /// The bytes of an event encode no event.
    #[error("event {event} of the recording cannot be read")]
    Event {
        /// The event's index.
        event: usize,
    },
    /// More events or steps than an index of 32 bits can count.
    #[error("the run is too long: more than 2^32 events or steps")]
    TooLong,
}

/// How much memory each part of a recording takes, in bytes. Texts of labels, names and outcomes are not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingSize {
    /// The bytes of the events.
    pub events: usize,
    /// The ends of steps.
    pub steps: usize,
    /// The breakdown after each step.
    pub breakdowns: usize,
    /// The step and the name of each allocation.
    pub allocations: usize,
    /// The bytes of the saved states.
    pub saved_states: usize,
    /// Times, markers, and the number of each allocation's stack. The stacks themselves are shared and not
    /// counted.
    pub annotations: usize,
}

impl RecordingSize {
    /// The sum of all parts.
    #[must_use]
    pub fn total(&self) -> usize {
        self.events + self.steps + self.breakdowns + self.allocations + self.saved_states + self.annotations
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedState {
    events: u32,
    /// An encoded `MemoryState`, which takes little memory and is decoded only when a state near it is asked
    /// for.
    #[serde(with = "serde_bytes")]
    state: Vec<u8>,
}

impl Recording {
    /// The name, settings and device of the run.
    #[must_use]
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// All bytes of the device. If [`Self::known_capacity`] is `None`, this is the least capacity that
    /// explains the run.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.info.capacity
    }

    /// All bytes of the device, or `None` if the source of the recording does not contain them.
    #[must_use]
    pub fn known_capacity(&self) -> Option<Bytes> {
        (!self.info.is_capacity_unknown).then_some(self.info.capacity)
    }

    /// The number of events.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// The number of steps.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// The event with this index.
    #[must_use]
    pub fn event(&self, index: usize) -> Option<Event> {
        self.events.get(index)
    }

    /// The events from this index on, in order. This is faster than [`Recording::event`] for each index. The
    /// iterator ends early if the recording is damaged.
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

    /// The outcome of the step.
    #[must_use]
    pub fn outcome(&self, step: usize) -> &StepOutcome {
        let found = u32::try_from(step).ok().and_then(|step| {
            self.outcomes
                .binary_search_by_key(&step, |(step, _)| *step)
                .ok()
                .map(|index| &self.outcomes[index].1)
        });
        found.unwrap_or(&StepOutcome::Done)
    }

    /// The steps whose outcome is not [`StepOutcome::Done`], with their outcomes, by ascending step.
    #[must_use]
    pub fn failed_steps(&self) -> &[(u32, StepOutcome)] {
        &self.outcomes
    }

    /// What the request of the step was, if the events of the step do not show it.
    #[must_use]
    pub fn note(&self, step: usize) -> Option<&Note> {
        let step = u32::try_from(step).ok()?;
        let found = self.notes.binary_search_by_key(&step, |note| note.step).ok()?;
        self.notes.get(found)
    }

    /// The breakdown after the step.
    #[must_use]
    pub fn breakdown_after(&self, step: usize) -> Option<Breakdown> {
        self.steps.breakdown(step, self.info.capacity)
    }

    /// The breakdowns after all steps from `step` on, in order. This is faster than
    /// [`Recording::breakdown_after`] for each step.
    pub fn breakdowns_from(&self, step: usize) -> impl Iterator<Item = Breakdown> + '_ {
        self.steps.breakdowns(step, self.info.capacity)
    }

    /// The labels, by ascending step.
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The index of the last label at or before the step; `None` if the first label comes later.
    #[must_use]
    pub fn label_index_at(&self, step: usize) -> Option<usize> {
        self.labels.partition_point(|label| label.step as usize <= step).checked_sub(1)
    }

    /// The program's name for the allocation; `None` if it has none.
    #[must_use]
    pub fn name(&self, allocation: AllocationId) -> Option<&str> {
        let named = &self.allocation_names;
        let place = named.binary_search_by_key(&allocation.get(), |(allocation, _)| *allocation).ok()?;
        let (_, name) = named.get(place)?;
        self.names.get(*name as usize).map(String::as_str)
    }

    /// The step that made the allocation; `None` if the allocation was made before the recording began.
    #[must_use]
    pub fn allocated_at(&self, allocation: AllocationId) -> Option<usize> {
        let step = *self.allocation_steps.get(allocation.get() as usize)?;
        (step != NO_STEP).then_some(step as usize)
    }

    /// The streams that have names, in the order in which they were named.
    #[must_use]
    pub fn streams(&self) -> &[(StreamId, String)] {
        &self.streams
    }

    /// The program's name for the stream, or else `default` or the handle.
    #[must_use]
    pub fn stream_name(&self, stream: StreamId) -> String {
        let named = self.streams.iter().find(|(id, _)| *id == stream).map(|(_, name)| name.clone());
        named.unwrap_or_else(|| {
            if stream == StreamId::DEFAULT { "default".to_owned() } else { format!("stream {stream}") }
        })
    }

    /// The memory after the first `events` events, or after all events if there are fewer.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Damaged`] or [`RecordingError::Encoding`] when the recording is damaged.
    pub fn state_at(&self, events: usize) -> Result<MemoryState, RecordingError> {
        let events = events.min(self.event_count());
        let after = self.saved_states.partition_point(|saved| saved.events as usize <= events);
        let (mut state, start) = match after.checked_sub(1).and_then(|index| self.saved_states.get(index)) {
            Some(saved) => {
                let state = postcard::from_bytes(&saved.state).map_err(RecordingError::Encoding)?;
                (state, saved.events as usize)
            }
            None => (self.initial_state(), 0),
        };
        self.advance(&mut state, start, events)?;
        Ok(state)
    }

    /// The moments, as numbers of events, whose states are saved; ascending. Other states are rebuilt from
    /// the saved state before.
    pub fn saved_event_counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.saved_states.iter().map(|saved| saved.events as usize)
    }

    /// Applies events to `state`, which is the memory after `from` events, until it is the memory after `to`
    /// events.
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

    /// The run as PyTorch's trace entries, in order.
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
            (index, event.ok_or(RecordingError::Event { event: index }))
        })
    }

    /// How much memory the recording takes.
    #[must_use]
    pub fn size(&self) -> RecordingSize {
        let (steps, breakdowns) = self.steps.sizes();
        let states = self.saved_states.iter().map(|saved| saved.state.capacity());
        RecordingSize {
            events: self.events.memory_size(),
            steps,
            breakdowns,
            allocations: self.allocation_steps.capacity() * size_of::<u32>()
                + self.allocation_names.capacity() * size_of::<(u32, u32)>(),
            saved_states: states.sum::<usize>() + self.saved_states.capacity() * size_of::<SavedState>(),
            annotations: self.annotations.size(),
        }
    }

    /// The recording as bytes, for passing it between a page and its workers.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Encoding`] when the bytes do not fit in memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RecordingError> {
        postcard::to_allocvec(self).map_err(RecordingError::Encoding)
    }

    /// The recording that [`Recording::to_bytes`] encoded.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Encoding`] when the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordingError> {
        postcard::from_bytes(bytes).map_err(RecordingError::Encoding)
    }
}

fn initial_state(info: &RunInfo) -> MemoryState {
    let mut state = MemoryState::new(info.capacity);
    state.set_initial_max_split_size(info.max_split_size);
    state.set_backend(info.backend);
    state
}
