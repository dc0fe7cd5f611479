//! The steps of a recording at which memory was asked for.

use blockyard_record::{Event, Recording, StepOutcome};

/// How many steps of a recording are complete after one of its allocations: the last but `later`. A request
/// that ran out of memory counts as an allocation. `None` where there are fewer.
///
/// The requests of a replay have other numbers than the steps of the recorded run that they come from, but
/// both have the same allocations at their ends, also where the recording begins late. So allocations are
/// counted from the end.
pub fn steps_at_allocation(recording: &Recording, later: u64) -> Option<usize> {
    let is_oom = |step: usize| matches!(recording.outcome(step), StepOutcome::OutOfMemory(_));
    let mut events = recording.events_from(0);
    let mut asked = Vec::new();
    for step in 0..recording.step_count() {
        let bounds = recording.step(step)?;
        let of_step = events.by_ref().take(bounds.end.saturating_sub(bounds.start));
        // All events of the step are taken, also those after the allocation.
        let allocated = of_step.filter(|event| matches!(event, Event::Allocated { .. })).count();
        if allocated > 0 || is_oom(step) {
            asked.push(step);
        }
    }
    let place = asked.len().checked_sub(1)?.checked_sub(usize::try_from(later).ok()?)?;
    asked.get(place).map(|step| step.saturating_add(1))
}
