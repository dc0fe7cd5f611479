mod beginning;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::columns::EventColumns;
use crate::{AllocationId, Bytes, Event, EventSink, Ledger, MemoryState, StateError, StreamId, TraceEntry};

/// One whole run of an allocator, as plain data.
///
/// Step `i` is request `i` of the workload; it covers a range of events. A moment in the run is a number of applied
/// events, from 0 to [`Recording::event_count`]. Events are stored in columns (17 bytes each), with a saved
/// state every so many events, so that any moment is rebuilt within a frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    info: RunInfo,
    events: EventColumns,
    // For each step, the number of events after it.
    step_ends: Vec<u32>,
    ledgers: LedgerColumns,
    labels: Vec<Label>,
    // Steps that did not simply work, ascending.
    outcomes: Vec<(u32, Outcome)>,
    // For each allocation: the step that made it, and its name as an index into `names` (`NO_NAME` for none).
    allocation_steps: Vec<u32>,
    allocation_names: Vec<u32>,
    names: Vec<String>,
    streams: Vec<(StreamId, String)>,
    checkpoints: Vec<Checkpoint>,
    // The memory before the first event, where it is not empty.
    start: Option<Box<MemoryState>>,
}

const NO_NAME: u32 = u32::MAX;
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
}

/// A name for the stretch of steps from `step` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The first step of the stretch; may equal the number of steps for a label at the end.
    pub step: u32,
    /// The name.
    pub text: String,
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
        self.step_ends.len()
    }

    /// The event with this index.
    #[must_use]
    pub fn event(&self, index: usize) -> Option<Event> {
        self.events.get(index)
    }

    /// The step with this index.
    #[must_use]
    pub fn step(&self, index: usize) -> Option<Step> {
        let end = *self.step_ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.step_ends[before] as usize);
        Some(Step { start, end })
    }

    /// How many steps are complete once `events` events are applied.
    #[must_use]
    pub fn steps_done(&self, events: usize) -> usize {
        self.step_ends.partition_point(|end| *end as usize <= events)
    }

    /// The index of the step that the event with this index belongs to.
    #[must_use]
    pub fn step_of_event(&self, event: usize) -> Option<usize> {
        let step = self.step_ends.partition_point(|end| *end as usize <= event);
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
    pub fn troubles(&self) -> &[(u32, Outcome)] {
        &self.outcomes
    }

    /// Where every byte was after the step.
    #[must_use]
    pub fn ledger_after(&self, step: usize) -> Option<Ledger> {
        self.ledgers.get(step, self.info.capacity)
    }

    /// The names of stretches of steps, by ascending step.
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// What the program calls the allocation, if it has a name.
    #[must_use]
    pub fn name(&self, allocation: AllocationId) -> Option<&str> {
        let index = *self.allocation_names.get(allocation.get() as usize)?;
        self.names.get(index as usize).map(String::as_str)
    }

    /// The step that made the allocation; `None` where it was there before the first one.
    #[must_use]
    pub fn born(&self, allocation: AllocationId) -> Option<usize> {
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
        for index in from..to.min(self.event_count()) {
            if let Some(event) = self.events.get(index) {
                state.apply(&event).map_err(|source| RecordingError::Damaged { event: index, source })?;
            }
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
        for index in 0..self.event_count() {
            if let Some(event) = self.events.get(index) {
                entries.extend(state.trace_entry(&event));
                state.apply(&event).map_err(|source| RecordingError::Damaged { event: index, source })?;
            }
        }
        Ok(entries)
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
    state
}

/// Builds a [`Recording`] from the events of a run.
#[derive(Debug)]
pub struct Recorder {
    recording: Recording,
    state: MemoryState,
    name_indices: FxHashMap<String, u32>,
    // Names of allocations that have not happened yet are none; this is the name for the next one.
    next_name: u32,
    checkpoint_interval: usize,
    error: Option<RecordingError>,
}

const FIRST_CHECKPOINT_INTERVAL: usize = 512;
const MOST_CHECKPOINTS: usize = 256;

impl Recorder {
    /// An empty recording.
    #[must_use]
    pub fn new(info: RunInfo) -> Self {
        let state = initial_state(&info);
        let recording = Recording {
            info,
            events: EventColumns::default(),
            step_ends: Vec::new(),
            ledgers: LedgerColumns::default(),
            labels: Vec::new(),
            outcomes: Vec::new(),
            allocation_steps: Vec::new(),
            allocation_names: Vec::new(),
            names: Vec::new(),
            streams: Vec::new(),
            checkpoints: Vec::new(),
            start: None,
        };
        Self {
            recording,
            state,
            name_indices: FxHashMap::default(),
            next_name: NO_NAME,
            checkpoint_interval: FIRST_CHECKPOINT_INTERVAL,
            error: None,
        }
    }

    /// Names the stream for people.
    pub fn name_stream(&mut self, stream: StreamId, name: &str) {
        self.recording.streams.push((stream, name.to_owned()));
    }

    /// Names the stretch of steps that begins with the next one.
    pub fn label(&mut self, text: &str) {
        let step = u32::try_from(self.recording.step_count()).unwrap_or(u32::MAX);
        self.recording.labels.push(Label { step, text: text.to_owned() });
    }

    /// Names the allocation that the running step is about to make.
    pub fn name_next_allocation(&mut self, name: Option<&str>) {
        let Some(name) = name else {
            self.next_name = NO_NAME;
            return;
        };
        self.next_name = if let Some(index) = self.name_indices.get(name) {
            *index
        } else {
            let index = u32::try_from(self.recording.names.len()).unwrap_or(NO_NAME);
            self.recording.names.push(name.to_owned());
            self.name_indices.insert(name.to_owned(), index);
            index
        };
    }

    /// Ends the running step: every event since the last call belongs to it.
    pub fn finish_step(&mut self, outcome: Outcome) {
        let step = u32::try_from(self.recording.step_count()).unwrap_or(u32::MAX);
        let events = self.recording.event_count();
        let Ok(end) = u32::try_from(events) else {
            self.error.get_or_insert(RecordingError::TooLong);
            return;
        };
        self.recording.step_ends.push(end);
        self.recording.ledgers.push(&self.state.ledger());
        if outcome != Outcome::Done {
            self.recording.outcomes.push((step, outcome));
        }
        self.next_name = NO_NAME;
        let last = self.recording.checkpoints.last().map_or(0, |checkpoint| checkpoint.events as usize);
        if events >= last + self.checkpoint_interval {
            self.save_checkpoint(end);
        }
    }

    /// The memory after the events so far.
    #[must_use]
    pub fn state(&self) -> &MemoryState {
        &self.state
    }

    /// The recording.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Damaged`] when an event did not fit, [`RecordingError::TooLong`] beyond 2^32 events.
    pub fn finish(self) -> Result<Recording, RecordingError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.recording),
        }
    }

    // Keeps at most `MOST_CHECKPOINTS`: when there are more, every second one goes and the interval doubles, so memory
    // stays bounded while any moment is at most one interval away from a saved one.
    fn save_checkpoint(&mut self, events: u32) {
        match postcard::to_allocvec(&self.state) {
            Ok(state) => self.recording.checkpoints.push(Checkpoint { events, state }),
            Err(error) => {
                self.error.get_or_insert(RecordingError::Encoding(error.to_string()));
            }
        }
        if self.recording.checkpoints.len() > MOST_CHECKPOINTS {
            let mut is_kept = false;
            self.recording.checkpoints.retain(|_| {
                is_kept = !is_kept;
                !is_kept
            });
            self.checkpoint_interval *= 2;
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
        if matches!(event, Event::Allocated { .. }) {
            let step = u32::try_from(self.recording.step_count()).unwrap_or(u32::MAX);
            self.recording.allocation_steps.push(step);
            self.recording.allocation_names.push(self.next_name);
        }
        self.recording.events.push(&event);
    }
}

/// Ledgers in columns of bytes; `free` follows from the capacity.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LedgerColumns {
    requested: Vec<Bytes>,
    rounding: Vec<Bytes>,
    pending: Vec<Bytes>,
    cached: Vec<Bytes>,
}

impl LedgerColumns {
    fn push(&mut self, ledger: &Ledger) {
        self.requested.push(ledger.requested);
        self.rounding.push(ledger.rounding);
        self.pending.push(ledger.pending);
        self.cached.push(ledger.cached);
    }

    fn get(&self, step: usize, capacity: Bytes) -> Option<Ledger> {
        let mut ledger = Ledger {
            requested: *self.requested.get(step)?,
            rounding: *self.rounding.get(step)?,
            pending: *self.pending.get(step)?,
            cached: *self.cached.get(step)?,
            free: Bytes::ZERO,
        };
        ledger.free = capacity.saturating_sub(ledger.reserved());
        Some(ledger)
    }
}
