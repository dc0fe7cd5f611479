//! The sources of the run that the figures show, and the change from one source to another.

use blockyard_figure::{Player, PlayerAction};
use blockyard_record::StepOutcome;
use leptos::prelude::*;

use super::Session;
use crate::files::OpenedFile;
use crate::lessons::OpenLesson;
use crate::program::ProgramResult;
use crate::ptr_eq::PtrEq;

/// The source of the run that the figures show.
///
/// Every kind of file with a run in it becomes a [`Source::Recording`]; `files` does that.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// The workload, whose text is in the history.
    Text,
    /// A recording from a file or a sample.
    Recording(PtrEq<OpenedFile>),
    /// The lines that the reader has written on the first screen.
    Story,
    /// The last run of the Python program.
    Program(PtrEq<ProgramResult>),
    /// A lesson with its own runs.
    Lesson(PtrEq<OpenLesson>),
}

impl Source {
    pub(crate) const KINDS: usize = 5;

    fn kind(&self) -> usize {
        match self {
            Self::Text => 0,
            Self::Recording(_) => 1,
            Self::Story => 2,
            Self::Lesson(_) => 3,
            Self::Program(_) => 4,
        }
    }
}

impl Session {
    /// Whether the workload is shown. Only a workload can be changed by hand. Reads signals.
    pub(crate) fn shows_text(self) -> bool {
        self.source.with(|source| matches!(source, Source::Text))
    }

    /// Whether an opened recording is shown. Reads signals.
    pub(crate) fn shows_recording(self) -> bool {
        self.source.with(|source| matches!(source, Source::Recording(_)))
    }

    /// The recording that is shown, if one is. Reads signals.
    pub(crate) fn shown_recording(self) -> Option<PtrEq<OpenedFile>> {
        self.source.with(|source| match source {
            Source::Recording(opened) => Some(opened.clone()),
            _ => None,
        })
    }

    /// The result that the figures show, if they show a program. Reads signals.
    pub(crate) fn shown_program(self) -> Option<PtrEq<ProgramResult>> {
        self.source.with(|source| match source {
            Source::Program(result) => Some(result.clone()),
            _ => None,
        })
    }

    /// The lesson that is shown. Reads signals.
    pub(crate) fn open_lesson(self) -> Option<PtrEq<OpenLesson>> {
        self.source.with(|source| match source {
            Source::Lesson(lesson) => Some(lesson.clone()),
            _ => None,
        })
    }

    /// Whether the story of the first screen is shown. Reads signals.
    pub(crate) fn shows_story(self) -> bool {
        self.source.with(|source| matches!(source, Source::Story))
    }

    /// Shows another source. Each kind of source keeps its player, and so its cursor.
    pub(crate) fn show(self, source: Source) {
        let before = self.source.get_untracked();
        if before == source {
            return;
        }
        let (old, new) = (before.kind(), source.kind());
        let player = self.player.get_untracked();
        self.stop_at.set(None);
        let after = self.other_players.try_update_value(|players| {
            players[old] = Player { is_playing: false, ..player };
            players[new].clone()
        });
        self.source.set(source);
        self.player.set(after.unwrap_or_default());
        self.figures().forget();
        self.dispatch(PlayerAction::Loaded { is_at_end: false });
    }

    /// Goes to the last out of memory of the run that is shown, or else to where most is allocated.
    pub(crate) fn seek_opening_moment(self) {
        let run = self.run.get_untracked();
        let failures = run.recording.failed_steps().iter().rev();
        let mut ooms = failures.filter(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_)));
        let peak = || run.series.peak_steps(&run.recording).0;
        let step = ooms.next().map_or_else(peak, |(step, _)| *step as usize + 1);
        self.dispatch(PlayerAction::SeekStep(step));
    }

    /// Goes to the moment where most is reserved if `is_reserved`, and where most is allocated otherwise.
    pub(crate) fn seek_peak(self, is_reserved: bool) {
        if untrack(|| self.shows_story()) {
            return;
        }
        let run = self.run.get_untracked();
        let (allocated, reserved) = run.series.peak_steps(&run.recording);
        self.dispatch(PlayerAction::Pause);
        self.dispatch(PlayerAction::SeekStep(if is_reserved { reserved } else { allocated }));
    }
}
