//! The moment that a report is about.

use blockyard_figure::Series;
use blockyard_record::{MemoryState, Recording, RecordingError, StepOutcome};

/// A moment of a recording, with the memory then.
pub(crate) struct Moment {
    pub(crate) kind: MomentKind,
    /// How many steps are complete.
    pub(crate) steps: usize,
    pub(crate) state: MemoryState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MomentKind {
    /// The first request that ran out of memory.
    OutOfMemory,
    /// When most bytes were allocated.
    Peak,
    /// The only moment that the file has, since the file has no trace.
    Only,
}

impl Moment {
    /// The first failure; else the peak.
    pub(crate) fn of(recording: &Recording, series: &Series) -> Result<Self, RecordingError> {
        let is_oom = |outcome: &StepOutcome| matches!(outcome, StepOutcome::OutOfMemory(_));
        let failed = recording.failed_steps().iter().find(|(_, outcome)| is_oom(outcome));
        let (kind, steps) = match failed {
            Some((step, _)) => (MomentKind::OutOfMemory, (*step as usize).saturating_add(1)),
            None if recording.step_count() == 0 => (MomentKind::Only, 0),
            None => (MomentKind::Peak, series.peak_steps(recording).0),
        };
        let last = steps.checked_sub(1).and_then(|step| recording.step(step));
        let state = recording.state_at(last.map_or(0, |step| step.end))?;
        Ok(Self { kind, steps, state })
    }

    /// `at the failure`.
    pub(crate) fn when(&self) -> &'static str {
        match self.kind {
            MomentKind::OutOfMemory => "at the failure",
            MomentKind::Peak => "at the peak",
            MomentKind::Only => "when the snapshot was taken",
        }
    }
}
