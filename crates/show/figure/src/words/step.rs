//! A step as a text: the request and its effect.

use blockyard_record::{Event, MemoryState, Recording, StepOutcome, StreamId};

use crate::words::event::describe_event;
use crate::words::names::{name_of, stream_phrase};
use crate::words::story::StepSentence;

/// The text of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepText {
    /// The request, as in a workload: `b = alloc 3 MiB on side`.
    pub title: String,
    /// The effect of the request:
    /// `takes a new 20 MiB segment from the device and splits 3 MiB off; 17 MiB stay cached`.
    pub sentence: String,
    /// The two parts of the sentence about a request that ran out of memory.
    pub failure: Option<FailureText>,
    /// A line for each event, in order.
    pub events: Vec<String>,
}

/// A request that ran out of memory, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureText {
    /// The attempts of the allocator before the request failed; empty if there were none.
    pub tried: String,
    /// Why the request failed: `out of memory: 40 MiB need a new segment, and the device has 24 MiB free`.
    pub why: String,
}

/// How many events have a line each. For a longer step, the number of the further events is given.
const MAX_EVENTS: usize = 200;

/// The text of the step with this index; empty if there is no such step.
pub fn describe_step(recording: &Recording, step: usize) -> StepText {
    let Some(range) = recording.step(step) else { return StepText::default() };
    let Ok(mut state) = recording.state_at(range.start) else {
        return StepText {
            title: format!("request {}", step + 1),
            sentence: damaged(),
            ..StepText::default()
        };
    };
    let mut story = StepSentence::new(&state);
    let mut words = StepText::default();
    for index in range.start..range.end {
        let Some(event) = recording.event(index) else { continue };
        if words.events.len() < MAX_EVENTS {
            words.events.push(describe_event(&event, &state, recording));
        }
        if words.title.is_empty() {
            words.title = title(&event, &state, recording).unwrap_or_default();
        }
        story.add(&event, &state, recording);
        if state.apply(&event).is_err() {
            words.sentence = damaged();
            return words;
        }
    }
    let count = range.end - range.start;
    if count > MAX_EVENTS {
        words.events.push(format!("and {} more events", blockyard_record::grouped(count - MAX_EVENTS)));
    }
    let note = recording.note(step);
    if words.title.is_empty() {
        let noted = note.map(|note| note.title.clone());
        words.title = noted.unwrap_or_else(|| default_title(&story, recording.outcome(step)));
    }
    // Events say more than a note, which is the same for every request of its kind.
    let is_quiet = range.start == range.end;
    let noted = note.map(|note| &note.sentence).filter(|sentence| is_quiet && !sentence.is_empty());
    (words.sentence, words.failure) = match recording.outcome(step) {
        StepOutcome::Done if noted.is_some() => (noted.cloned().unwrap_or_default(), None),
        StepOutcome::Refused(reason) => (format!("refused: {reason}"), None),
        StepOutcome::Skipped(reason) => (format!("skipped: {reason}"), None),
        StepOutcome::Done | StepOutcome::OutOfMemory(_) => story.sentence(&state, recording),
    };
    words
}

fn damaged() -> String {
    "the recording does not add up here".to_owned()
}

/// The request that must have caused the event, if the event shows it.
fn title(event: &Event, before: &MemoryState, recording: &Recording) -> Option<String> {
    let on = |stream: StreamId| {
        if stream == StreamId::DEFAULT {
            String::new()
        } else {
            format!(" on {}", recording.stream_name(stream))
        }
    };
    Some(match *event {
        Event::Allocated { block, allocation, requested, .. } => {
            let stream = before.segment_of(block).and_then(|id| before.segments().find(|info| info.id == id));
            let on = stream.map(|info| on(info.stream)).unwrap_or_default();
            match recording.name(allocation) {
                Some(name) => format!("{name} = alloc {requested}{on}"),
                None => format!("alloc {requested}{on}"),
            }
        }
        Event::OutOfMemory { requested, stream, .. } => format!("alloc {requested}{}", on(stream)),
        Event::FreeRequested { block, .. } => format!("free {}", name_of(recording, before, block)),
        Event::StreamRecorded { block, stream } => {
            format!("record_stream {} {}", name_of(recording, before, block), recording.stream_name(stream))
        }
        Event::FractionSet { limit: Some(limit) } => {
            let fraction = crate::conversions::share(limit, before.capacity());
            let text = format!("{fraction:.3}");
            format!("set_fraction {}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Event::FractionSet { limit: None } => "set_fraction 1".to_owned(),
        Event::SnapshotTaken { .. } => "snapshot".to_owned(),
        Event::PeakReset => "reset_peak".to_owned(),
        Event::AccumulatedReset => "reset_accumulated".to_owned(),
        Event::SegmentAllocated { .. }
        | Event::SegmentReleased { .. }
        | Event::RangeReserved { .. }
        | Event::RangeReleased { .. }
        | Event::Mapped { .. }
        | Event::Unmapped { .. }
        | Event::SegmentFailed { .. }
        | Event::Split { .. }
        | Event::FreeCompleted { .. }
        | Event::Merged { .. }
        | Event::RetryStarted
        | Event::StreamsSynchronized => return None,
    })
}

/// The request of a step whose events do not name it.
fn default_title(story: &StepSentence, outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Refused(_) => "refused request",
        StepOutcome::Skipped(_) => "skipped request",
        StepOutcome::Done | StepOutcome::OutOfMemory(_) if story.has_cleanup() => "empty_cache",
        StepOutcome::Done | StepOutcome::OutOfMemory(_) if story.has_completed() => "advance",
        StepOutcome::Done | StepOutcome::OutOfMemory(_) => "nothing to do",
    }
    .to_owned()
}

/// ` for stream side`; empty for the default stream.
pub(super) fn for_stream(recording: &Recording, stream: StreamId) -> String {
    if stream == StreamId::DEFAULT {
        String::new()
    } else {
        format!(" for {}", stream_phrase(recording, stream))
    }
}
