//! The text of a target, for a tooltip or a screen reader.

use blockyard_record::{Breakdown, Bytes, MemoryState, Recording, SegmentId, StepOutcome, grouped};

use crate::conversions::percent;
use crate::role::BreakdownClass;
use crate::scene::TargetId;
use crate::timeline::duration;
use crate::words::facts::block_facts;
use crate::words::names::{block_name, counted, state_word, stream_phrase};

/// The text of a target, for a tooltip or a screen reader; [`block_facts`] has more about a block. `None` if
/// the target does not exist.
pub fn describe_target(target: TargetId, state: &MemoryState, recording: &Recording) -> Option<String> {
    let peak = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
    Some(match target {
        TargetId::Block(id) => {
            let block = state.block(id)?;
            let title =
                format!("{}, {}: {}", block_name(recording, &block), state_word(block.state), block.size);
            let facts = block_facts(recording, state, id)?;
            let facts = facts.iter().filter(|(label, _)| IN_SHORT.contains(label));
            let lines: Vec<_> = facts.map(|(label, value)| format!("{label}: {value}")).collect();
            [&[title], &lines[..]].concat().join("\n")
        }
        TargetId::SmallBlocks { count, bytes, .. } => {
            format!("{} blocks too narrow to draw one by one: {bytes} in all", grouped(count))
        }
        TargetId::Segment(id) => segment(id, state, recording)?,
        TargetId::Released(id) => format!("segment #{id} was released to the device by this request"),
        TargetId::Overview(id) => {
            format!("the whole of segment #{id}; the frame marks the part that the row shows")
        }
        TargetId::Term(term) => format!("{}: {}\ntorch.cuda: {}", term.name(), term.meaning(), term.api()),
        TargetId::Class(class) => {
            let breakdown = state.breakdown();
            let bytes = class.bytes(&breakdown);
            // How much is free on a device of unknown size is not known.
            if class == BreakdownClass::Free && recording.known_capacity().is_none() {
                format!("{}: at least {bytes}. {}", class.name(), class.meaning())
            } else {
                let share = class_share(class, &breakdown);
                format!("{}: {bytes}, {share}. {}", class.name(), class.meaning())
            }
        }
        TargetId::Label(step) => {
            let label = recording.labels().iter().rev().find(|label| label.step == step);
            let text =
                label.map_or_else(|| marker_text(recording, step), |label| Some(label.text.clone()))?;
            format!("{text}: from request {} on", grouped(step as usize + 1))
        }
        TargetId::Marker(index) => {
            let marker = recording.markers().get(usize::try_from(index).ok()?)?;
            let from = grouped(marker.start_step as usize + 1);
            match (marker.end_step, marker.end_us) {
                (Some(end), Some(end_us)) => format!(
                    "{}: requests {from} to {}, {}",
                    marker.text,
                    grouped(end as usize),
                    duration(end_us.saturating_sub(marker.start_us))
                ),
                _ => format!("{}: from request {from} on", marker.text),
            }
        }
        TargetId::FailedStep(step) => {
            let text = match recording.outcome(step as usize) {
                StepOutcome::OutOfMemory(text) | StepOutcome::Refused(text) | StepOutcome::Skipped(text) => {
                    text
                }
                StepOutcome::Done => return None,
            };
            format!("request {}: {text}", grouped(step as usize + 1))
        }
        TargetId::PeakAllocated => {
            let bytes = peak(state.stats().allocated_bytes.all.peak);
            format!("peak allocated: at most {bytes} were in use at once since the peaks were last reset")
        }
        TargetId::PeakReserved => {
            let bytes = peak(state.stats().reserved_bytes.all.peak);
            format!("peak reserved: at most {bytes} were held at once since the peaks were last reset")
        }
        // A node of a flame graph has no text here, since a flame graph does not belong to one state.
        TargetId::FlameNode(_) => return None,
        TargetId::Limit => match state.limit() {
            Some(limit) => format!("limit of the process: at most {limit} may be reserved"),
            // The figure names the bounds in bytes.
            None if crate::has_failures(recording) => {
                "limit of the process, as the first request that failed shows it".to_owned()
            }
            None => return None,
        },
    })
}

/// The facts of a block that a note beside the pointer has room for.
const IN_SHORT: [&str; 6] =
    ["requested", "memory pool", "stream", "waits for", "also used on", "allocated by request"];

/// The markers that begin at the step, joined.
fn marker_text(recording: &Recording, step: u32) -> Option<String> {
    const SHOWN_TEXTS: usize = 6;
    let markers = recording.markers();
    let from = markers.partition_point(|marker| marker.start_step < step);
    let begun = markers.get(from..)?.iter().take_while(|marker| marker.start_step == step);
    let texts: Vec<&str> = begun.map(|marker| marker.text.as_str()).collect();
    let more = texts.len().saturating_sub(SHOWN_TEXTS);
    let shown = texts.get(..texts.len().min(SHOWN_TEXTS))?.join(", ");
    (!texts.is_empty()).then(|| if more > 0 { format!("{shown} and {more} more") } else { shown })
}

fn segment(id: SegmentId, state: &MemoryState, recording: &Recording) -> Option<String> {
    let segment = state.segment(id)?;
    Some(format!(
        "segment of {} at {}, {} pool, {}: {} allocated in {}",
        segment.size,
        segment.addr,
        segment.pool,
        stream_phrase(recording, segment.stream),
        segment.allocated(),
        counted(segment.blocks.len(), "block")
    ))
}

/// The share of a class in the reserved bytes or, for free bytes, in the bytes of the device.
fn class_share(class: BreakdownClass, breakdown: &Breakdown) -> String {
    let bytes = class.bytes(breakdown);
    match class {
        BreakdownClass::Free => format!("{} of the device", percent(bytes, breakdown.capacity())),
        _ => format!("{} of reserved", percent(bytes, breakdown.reserved())),
    }
}
