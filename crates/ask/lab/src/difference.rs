//! The first request at which two replays part.

use blockyard_record::{Event, OnDone, counted};
use blockyard_replay::Progress;
use std::fmt::Write as _;

use crate::limited_run::FixedConditions;
use crate::{Conditions, FirstDifference, LabError, Run};

/// Replays the run under both conditions side by side, up to the first request that leads to different
/// events; `None` if no such request exists. If only bounds of a limit are known, the lower bound counts.
///
/// # Errors
///
/// [`LabError::Cancelled`], and [`LabError::Config`] for wrong settings.
pub fn first_difference(
    run: &Run,
    baseline: &Conditions,
    other: &Conditions,
    on_done: OnDone,
) -> Result<Option<FirstDifference>, LabError> {
    let (baseline, other) = (run.fixed_conditions(baseline), run.fixed_conditions(other));
    match (baseline.first(), other.first()) {
        (Some(baseline), Some(other)) => first_difference_at(run, baseline, other, on_done),
        _ => Ok(None),
    }
}

fn first_difference_at(
    run: &Run,
    baseline: &FixedConditions,
    other: &FixedConditions,
    on_done: OnDone,
) -> Result<Option<FirstDifference>, LabError> {
    let (config, other_config) = (baseline.config()?, other.config()?);
    let mut left = baseline.replayer(run, &config, Vec::new())?;
    let mut right = other.replayer(run, &other_config, Vec::new())?;
    left.sink_mut().clear();
    right.sink_mut().clear();
    for request in 0..run.requests().len() {
        if Progress::is_due(request) && on_done(request).is_break() {
            return Err(LabError::Cancelled);
        }
        left.run_to(request + 1)?;
        right.run_to(request + 1)?;
        let (events, others) = (left.sink_mut(), right.sink_mut());
        if events != others {
            let pairs = events.iter().zip(others.iter());
            let same = pairs.take_while(|(event, other)| placed(event) == placed(other)).count();
            if same == events.len() && same == others.len() {
                events.clear();
                others.clear();
                continue;
            }
            let baseline = events_sentence(events.get(same..).unwrap_or_default());
            let mut other = events_sentence(others.get(same..).unwrap_or_default());
            if other == baseline {
                other.push_str(", at another address");
            }
            let request = run.request_number(request);
            return Ok(Some(FirstDifference { request, baseline, other }));
        }
        events.clear();
        others.clear();
    }
    Ok(None)
}

/// The event without the fields that only statistics use.
fn placed(event: &Event) -> Event {
    let mut event = *event;
    match &mut event {
        Event::SegmentAllocated { is_oversize, .. }
        | Event::SegmentReleased { is_oversize, .. }
        | Event::Allocated { is_oversize, .. }
        | Event::FreeRequested { is_oversize, .. } => *is_oversize = false,
        Event::RangeReserved { .. }
        | Event::RangeReleased { .. }
        | Event::Mapped { .. }
        | Event::Unmapped { .. }
        | Event::SegmentFailed { .. }
        | Event::Split { .. }
        | Event::StreamRecorded { .. }
        | Event::FreeCompleted { .. }
        | Event::Merged { .. }
        | Event::RetryStarted
        | Event::StreamsSynchronized
        | Event::OutOfMemory { .. }
        | Event::SnapshotTaken { .. }
        | Event::PeakReset
        | Event::AccumulatedReset
        | Event::FractionSet { .. } => {}
    }
    event
}

fn events_sentence(events: &[Event]) -> String {
    const MAX_EVENTS: usize = 4;
    if events.is_empty() {
        return "nothing more".to_owned();
    }
    let mut text = events.iter().take(MAX_EVENTS).map(event_text).collect::<Vec<_>>().join(", ");
    if events.len() > MAX_EVENTS {
        let _ = write!(text, ", and {}", counted(events.len() - MAX_EVENTS, "more event"));
    }
    text
}

fn event_text(event: &Event) -> String {
    match event {
        Event::SegmentAllocated { size, .. } => format!("the device gives a segment of {size}"),
        Event::SegmentReleased { .. } => "a cached segment is released".to_owned(),
        Event::RangeReserved { size, .. } => format!("{size} of addresses are reserved"),
        Event::RangeReleased { .. } => "a range of addresses is released".to_owned(),
        Event::Mapped { size, .. } => format!("{size} are mapped"),
        Event::Unmapped { .. } => "whole pages of a block are unmapped".to_owned(),
        Event::SegmentFailed { size, .. } => format!("a segment of {size} is refused"),
        Event::Split { size, .. } => format!("a block is split, {size} for the request"),
        Event::Allocated { requested, block, .. } => format!("block {block} serves {requested}"),
        Event::StreamRecorded { stream, .. } => format!("stream {stream} is recorded"),
        Event::FreeRequested { .. } => "a free is requested".to_owned(),
        Event::FreeCompleted { .. } => "a free is completed".to_owned(),
        Event::Merged { .. } => "two free blocks merge".to_owned(),
        Event::RetryStarted => "the cache was released and a second attempt begins".to_owned(),
        Event::StreamsSynchronized => "the allocator waits for all streams".to_owned(),
        Event::OutOfMemory { requested, .. } => format!("out of memory for {requested}"),
        Event::SnapshotTaken { .. } => "a snapshot is taken".to_owned(),
        Event::PeakReset => "peaks are reset".to_owned(),
        Event::AccumulatedReset => "accumulated counts are reset".to_owned(),
        Event::FractionSet { limit } => limit.map_or_else(
            || "the memory limit is lifted".to_owned(),
            |limit| format!("the memory limit is {limit}"),
        ),
    }
}
