//! The sources of the run that the figures show, and the change from one source to another.

use blockyard_figure::{MapView, Player, PlayerAction, SPEEDS};
use blockyard_record::{Recording, StepOutcome};
use blockyard_workload::presets::Preset;
use leptos::prelude::*;

use super::{NOTHING, OpenLesson, OpenedFile, ProgramResult, Session, SettingsTexts};
use crate::browser;
use crate::frames;
use crate::ptr_eq::PtrEq;
use crate::view::Tab;

/// Where the memory that the figures show comes from.
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

/// How long a recording of any length plays.
const RECORDING_SECONDS: f64 = 20.0;

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
        self.forget_views();
        self.dispatch(PlayerAction::Loaded { keep_at_end: false });
    }

    /// Shows the recording that was opened last if `is_shown`, and the workload otherwise.
    pub(crate) fn show_opened(self, is_shown: bool) {
        match self.opened.get_untracked().filter(|_| is_shown) {
            Some(opened) => self.show(Source::Recording(opened)),
            None => self.show(Source::Text),
        }
    }

    /// Shows another recording, at its last out of memory, or else where most is allocated.
    pub(crate) fn open(self, opened: PtrEq<OpenedFile>) {
        let run = opened.run.clone();
        let is_unplaced = run.opened.as_ref().is_some_and(|file| file.unplaced.is_some());
        self.tab.set(if is_unplaced { Tab::Source } else { Tab::Holders });
        self.opened.set(Some(opened.clone()));
        self.show(Source::Recording(opened));
        self.player.set(Player { speed: speed_for(&run.recording), ..Player::default() });
        self.seek_opening_moment();
        self.forget_views();
        self.message.set(None);
        // The button that opened the file must lose the focus. Otherwise Space would press it again instead of playing.
        let _ = browser::after_millis(0, || browser::leave_button(".open-bar"));
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

    /// Loads a preset, with its settings and its capacity.
    pub(crate) fn load_preset(self, preset: &Preset) {
        self.load(preset.text.to_owned(), SettingsTexts::of(preset));
    }

    /// Loads the workload of a file, with the present settings and capacity unless the file has its own.
    pub(crate) fn load_text(self, title: String, text: String) {
        let settings = self.settings.get_untracked();
        self.load(text, SettingsTexts { title, ..settings });
    }

    /// Loads a workload with its settings. One undo restores the former workload.
    pub(crate) fn load(self, text: String, settings: SettingsTexts) {
        self.show_opened(false);
        let before = self.settings.get_untracked();
        self.history.update(|history| history.replace(text, &before));
        self.settings.set(settings);
        self.read_header();
        self.player.set(Player { speed: 1.0, ..Player::default() });
        self.forget_views();
        self.message.set(None);
        self.run_first();
    }

    /// Loads an empty workload.
    pub(crate) fn load_empty(self) {
        self.load_preset(&NOTHING);
    }

    /// Resets zoom, selection and marks, which belong to the former run.
    pub(crate) fn forget_views(self) {
        self.timeline_view.set(None);
        self.figures.forget();
        self.map_view
            .update(|view| *view = MapView { scale: view.scale, order: view.order, ..MapView::default() });
    }
}

/// The speed at which the whole recording plays in about [`RECORDING_SECONDS`].
fn speed_for(recording: &Recording) -> f32 {
    let wanted = frames::count(recording.step_count()) / RECORDING_SECONDS;
    let speed = SPEEDS.iter().copied().find(|speed| f64::from(*speed) >= wanted);
    speed.or(SPEEDS.last().copied()).unwrap_or(60.0)
}
