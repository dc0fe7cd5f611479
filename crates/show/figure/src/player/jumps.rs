//! Moves to the next or previous label, failure, device call or event of a block.

use blockyard_record::{BlockId, Event, Recording, StepOutcome};

use crate::player::{MoveUnit, Player, end_of, seek_event, seek_step};

pub(super) fn next_label(player: &Player, recording: &Recording) -> Player {
    let next = recording.labels().iter().map(|label| label.step as usize).find(|step| *step > player.steps);
    next.map_or_else(|| player.clone(), |step| seek_step(player, step, recording))
}

pub(super) fn previous_label(player: &Player, recording: &Recording) -> Player {
    let is_partial = player.cursor > end_of(recording, player.steps);
    let before = recording
        .labels()
        .iter()
        .rev()
        .map(|label| label.step as usize)
        .find(|step| *step < player.steps || (is_partial && *step == player.steps));
    seek_step(player, before.unwrap_or(0), recording)
}

pub(super) fn next_failed_step(player: &Player, recording: &Recording) -> Player {
    let failed_steps = recording.failed_steps();
    let index = failed_steps.partition_point(|(step, _)| (*step as usize) < player.steps);
    let found = failed_steps.get(index..).unwrap_or_default().iter().find(|(_, outcome)| is_failure(outcome));
    found.map_or_else(|| player.clone(), |(step, _)| seek_step(player, *step as usize + 1, recording))
}

pub(super) fn previous_failed_step(player: &Player, recording: &Recording) -> Player {
    let failed_steps = recording.failed_steps();
    let is_partial = player.cursor > end_of(recording, player.steps);
    let done = if is_partial { player.steps } else { player.steps.saturating_sub(1) };
    let index = failed_steps.partition_point(|(step, _)| (*step as usize) < done);
    let found =
        failed_steps.get(..index).unwrap_or_default().iter().rev().find(|(_, outcome)| is_failure(outcome));
    found.map_or_else(|| player.clone(), |(step, _)| seek_step(player, *step as usize + 1, recording))
}

/// Steps that were skipped only repeat an earlier failure.
fn is_failure(outcome: &StepOutcome) -> bool {
    matches!(outcome, StepOutcome::OutOfMemory(_) | StepOutcome::Refused(_))
}

/// How many events are read at a time when searching back.
const STRIDE: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchDirection {
    Forward,
    Back,
}

/// Moves to the moment after the nearest event that matches, or after the step of the event if the unit is a
/// step.
pub(super) fn search(
    player: &Player,
    recording: &Recording,
    direction: SearchDirection,
    is_wanted: impl Fn(&Event) -> bool,
) -> Player {
    let hits = |from: usize, to: usize| {
        let events = (from..to).zip(recording.events_from(from));
        events.filter(|(_, event)| is_wanted(event)).map(|(index, _)| index)
    };
    let found = match direction {
        SearchDirection::Forward => hits(player.cursor, recording.event_count()).next(),
        SearchDirection::Back => {
            // The events of the current step (or the current event) do not count as before this moment.
            let (from, _) = player.changed_events(recording);
            // Events can only be read forward, so a search back reads short ranges forward.
            (0..from).step_by(STRIDE).rev().find_map(|at| hits(at, from.min(at + STRIDE)).last())
        }
    };
    let Some(event) = found else { return player.clone() };
    match (player.unit, recording.step_of_event(event)) {
        (MoveUnit::Step, Some(step)) => seek_step(player, step + 1, recording),
        _ => seek_event(player, event + 1, recording),
    }
}

pub(super) fn is_device_call(event: &Event) -> bool {
    matches!(
        event,
        Event::SegmentAllocated { .. }
            | Event::SegmentReleased { .. }
            | Event::SegmentFailed { .. }
            | Event::Mapped { .. }
            | Event::Unmapped { .. }
    )
}

pub(super) fn names(event: &Event, id: BlockId) -> bool {
    match *event {
        Event::SegmentAllocated { block, .. }
        | Event::Allocated { block, .. }
        | Event::Mapped { block, .. }
        | Event::Unmapped { block, .. }
        | Event::StreamRecorded { block, .. }
        | Event::FreeRequested { block, .. }
        | Event::FreeCompleted { block } => block == id,
        Event::Split { block, front, .. } => block == id || front == id,
        Event::Merged { block, absorbed } => block == id || absorbed == id,
        Event::SegmentReleased { .. }
        | Event::RangeReserved { .. }
        | Event::RangeReleased { .. }
        | Event::SegmentFailed { .. }
        | Event::RetryStarted
        | Event::StreamsSynchronized
        | Event::OutOfMemory { .. }
        | Event::SnapshotTaken { .. }
        | Event::PeakReset
        | Event::AccumulatedReset
        | Event::FractionSet { .. } => false,
    }
}
