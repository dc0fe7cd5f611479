//! What the figures show, and how one source takes the place of another.

use blockyard_figure::{MapView, Player, PlayerAction, SPEEDS};
use blockyard_record::{Recording, StepOutcome};
use blockyard_workload::presets::{Preset, presets};
use leptos::prelude::*;

use super::{NOTHING, OpenLesson, OpenedFile, ProgramResult, Session, SettingsTexts};
use crate::browser;
use crate::frames;
use crate::ptr_eq::PtrEq;
use crate::run::{Attempt, Input, Run};
use crate::view::Tab;

/// Where the memory that the figures show comes from.
///
/// A further kind of file becomes a [`Source::Recording`]: whatever its bytes are, `files` turns them into a recording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// The workload's text, as the history has it.
    Text,
    /// A recording from a file or a sample.
    Recording(PtrEq<OpenedFile>),
    /// The short run of the first page.
    Tour(PtrEq<Run>),
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
            Self::Tour(_) => 2,
            Self::Lesson(_) => 3,
            Self::Program(_) => 4,
        }
    }
}

/// How long playing a recording takes, whatever its length.
const RECORDING_SECONDS: f64 = 20.0;

impl Session {
    /// Whether the workload's text is what is shown, so that the hand may change it.
    pub(crate) fn shows_text(self) -> bool {
        self.source.with(|source| matches!(source, Source::Text))
    }

    /// Whether an opened recording is shown.
    pub(crate) fn shows_recording(self) -> bool {
        self.source.with(|source| matches!(source, Source::Recording(_)))
    }

    /// The recording that is shown.
    pub(crate) fn shown_recording(self) -> Option<PtrEq<OpenedFile>> {
        self.source.with(|source| match source {
            Source::Recording(opened) => Some(opened.clone()),
            _ => None,
        })
    }

    /// Shows another source; each kind keeps its place.
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

    /// Shows the recording that was opened last, or the workload.
    pub(crate) fn show_opened(self, is_shown: bool) {
        match self.opened.get_untracked().filter(|_| is_shown) {
            Some(opened) => self.show(Source::Recording(opened)),
            None => self.show(Source::Text),
        }
    }

    /// Takes in another recording: where it last ran out of memory, or else where most is allocated.
    pub(crate) fn open(self, opened: PtrEq<OpenedFile>) {
        let run = opened.run.clone();
        let failures = run.recording.failed_steps().iter().rev();
        let mut ooms = failures.filter(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_)));
        let peak = || run.series.peak_steps(&run.recording).0;
        let step = ooms.next().map_or_else(peak, |(step, _)| *step as usize + 1);
        self.tab.set(Tab::Holders);
        self.opened.set(Some(opened.clone()));
        self.show(Source::Recording(opened));
        self.player.set(Player { speed: speed_for(&run.recording), ..Player::default() });
        self.dispatch(PlayerAction::SeekStep(step));
        self.forget_views();
        self.message.set(None);
        // The button that opened the file would open it again at the next Space, which plays elsewhere.
        let _ = browser::after_millis(0, || browser::leave_button(".open-bar"));
    }

    /// Goes to the moment where most is allocated (`is_reserved` false) or reserved.
    pub(crate) fn seek_peak(self, is_reserved: bool) {
        let run = self.run.get_untracked();
        let (allocated, reserved) = run.series.peak_steps(&run.recording);
        self.dispatch(PlayerAction::Pause);
        self.dispatch(PlayerAction::SeekStep(if is_reserved { reserved } else { allocated }));
    }

    /// Starts another workload, from its start.
    pub(crate) fn load_preset(self, preset: &Preset) {
        self.load(preset.text.to_owned(), SettingsTexts::of(preset));
    }

    /// Starts the workload of a file, with the allocator's settings and on the device of the one before.
    pub(crate) fn load_text(self, title: String, text: String) {
        let settings = self.settings.get_untracked();
        self.load(text, SettingsTexts { title, ..settings });
    }

    /// Starts another workload with its settings; what was there before is one undo away.
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

    /// Starts a workload of nothing, on a device of some size.
    pub(crate) fn load_empty(self) {
        self.load_preset(&NOTHING);
    }

    /// Shows the short run of the first page, from its start, playing.
    pub(crate) fn show_tour(self, is_playing: bool) {
        let Some(run) = tour() else { return };
        self.show(Source::Tour(run));
        self.player.set(Player { speed: TOUR_SPEED, ..Player::default() });
        self.dispatch(if is_playing { PlayerAction::Play } else { PlayerAction::SeekStep(5) });
    }

    pub(crate) fn forget_views(self) {
        self.timeline_view.set(None);
        self.figures.forget();
        self.map_view
            .update(|view| *view = MapView { scale: view.scale, order: view.order, ..MapView::default() });
    }
}

/// Steps a second on the first page: time enough to see each.
const TOUR_SPEED: f32 = 0.55;

fn tour() -> Option<PtrEq<Run>> {
    let preset = presets().first()?;
    let settings = SettingsTexts::of(preset);
    let input = Input {
        title: settings.title,
        text: preset.text.to_owned(),
        config: settings.config,
        capacity: settings.capacity,
        on_gpu: false,
    };
    match crate::run::attempt(&input) {
        Attempt::Ran(run) => Some(run),
        _ => None,
    }
}

/// The speed at which the whole recording plays in about [`RECORDING_SECONDS`].
fn speed_for(recording: &Recording) -> f32 {
    let wanted = frames::count(recording.step_count()) / RECORDING_SECONDS;
    let speed = SPEEDS.iter().copied().find(|speed| f64::from(*speed) >= wanted);
    speed.or(SPEEDS.last().copied()).unwrap_or(60.0)
}
