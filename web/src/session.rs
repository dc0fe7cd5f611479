//! All that the page remembers. Few signals are written; the rest is computed from them.

mod figures;
mod lesson;
mod panels;
mod place;
mod program;
mod source;

pub(crate) use figures::{Columns, Figures, Wanted};
pub(crate) use lesson::{LessonState, Mark, OpenLesson, region};
pub(crate) use panels::{PanelLayout, WorkbenchPanel};
pub(crate) use place::{Embed, Place};
pub(crate) use program::{
    AliveBytes, CATEGORIES, ProgramInput, ProgramResult, ProgramSignals, ProgramStatus,
};
pub(crate) use source::Source;

use std::cell::RefCell;
use std::ops::Deref;

use blockyard_figure::{
    Changes, Clock, MapView, Player, PlayerAction, Role, Scene, StateCursor, TargetId, Term, TimelineView,
    reduce,
};
use blockyard_record::{BlockId, Bytes, MemoryState};
use blockyard_replay::Comparison;
use blockyard_worker::ReadPart;
use blockyard_workload::presets::{Preset, presets};
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::canvas::Paints;
use crate::draft;
use crate::files::SAMPLES;
use crate::gpu::GpuState;
use crate::history::History;
use crate::lab::Lab;
use crate::program::FIRST_PROGRAM;
use crate::ptr_eq::PtrEq;
use crate::run::{Attempt, Input, Run};
use crate::theme::ThemeChoice;
use crate::view::Tab;

/// A recording that was opened from a file.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) name: String,
    pub(crate) run: PtrEq<Run>,
    /// What the comparison with our allocator says, which comes after the figures.
    pub(crate) comparison: ArcRwSignal<ComparisonState>,
}

/// One of several recordings that were opened together.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) opened: PtrEq<OpenedFile>,
    pub(crate) file: web_sys::File,
}

/// Whether our allocator decides as PyTorch did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ComparisonState {
    /// The comparison runs: what it does, and how much of it is done in percent.
    Running(String, u64),
    Done(Comparison),
    /// Why there is none.
    Missing(String),
}

impl OpenedFile {
    /// What the page calls it: a sample by its own title.
    pub(crate) fn title(&self) -> String {
        let sample = SAMPLES.iter().find(|sample| sample.file_name() == self.name);
        sample.map_or_else(|| self.name.clone(), |sample| format!("{} training", sample.title))
    }

    pub(crate) fn is_sample(&self) -> bool {
        SAMPLES.iter().any(|sample| sample.file_name() == self.name)
    }
}

/// The fields beside the workload's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingsTexts {
    pub(crate) title: String,
    pub(crate) config: String,
    pub(crate) capacity: String,
}

/// A message for the reader, until it is dismissed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// A job in the worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunningJob {
    pub(crate) title: String,
    pub(crate) phase: String,
    pub(crate) done: u64,
    pub(crate) total: u64,
    /// Short jobs end before their progress is worth showing.
    pub(crate) is_shown: bool,
    /// What has been read of the trace of a file.
    pub(crate) read: Option<ReadPart>,
}

/// What the worker said of an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkerAnswer {
    pub(crate) input: Input,
    pub(crate) attempt: Attempt,
}

#[derive(Default)]
struct Tools {
    state: Option<StateCursor>,
    paints: Option<(u32, Paints)>,
}

/// The page's state; a handle that is copied freely, since the state lives as long as the page.
#[derive(Clone, Copy)]
pub(crate) struct Session(&'static Signals);

impl Deref for Session {
    type Target = Signals;

    fn deref(&self) -> &Signals {
        self.0
    }
}

/// All signals.
pub(crate) struct Signals {
    /// The workload's texts.
    pub(crate) history: RwSignal<History>,
    pub(crate) settings: RwSignal<SettingsTexts>,
    /// What the figures show.
    pub(crate) source: RwSignal<Source>,
    /// The recording that was opened last, which stays at hand.
    pub(crate) opened: RwSignal<Option<PtrEq<OpenedFile>>>,
    /// The files that were opened together, one for each rank; empty where one was opened.
    pub(crate) ranks: RwSignal<Vec<Rank>, LocalStorage>,
    /// Whether the browser keeps a copy of the reader's file, so that a reload opens it again.
    pub(crate) has_kept_file: RwSignal<bool>,
    /// The reader's own lesson that was opened last, which stays at hand.
    pub(crate) own_lesson: RwSignal<Option<PtrEq<OpenLesson>>>,
    /// The name of the file beside the page that was asked for, which a link may name.
    pub(crate) beside: RwSignal<Option<String>>,
    /// Which part of the page is shown.
    pub(crate) place: RwSignal<Place>,
    /// Where the reader is in the lesson that is open.
    pub(crate) lesson: RwSignal<LessonState>,
    /// What the reader has done in lessons, on this visit and on earlier ones.
    pub(crate) progress: RwSignal<lesson::Progress>,
    /// The Python program.
    pub(crate) program: ProgramSignals,
    /// Where the reader stopped in the lessons.
    last_card: RwSignal<Option<(String, usize)>>,
    /// The term that is lit up wherever it is.
    pub(crate) lit: RwSignal<Option<Term>>,
    /// Playing stops behind this many steps.
    pub(crate) stop_at: RwSignal<Option<usize>>,
    /// How the page stands in another page, if it does.
    pub(crate) embed: Option<Embed>,
    /// Whether the page is being printed.
    pub(crate) is_on_paper: RwSignal<bool>,
    pub(crate) answer: RwSignal<Option<WorkerAnswer>>,
    pub(crate) player: RwSignal<Player>,
    /// The stretch shown, or `None` for all of it.
    pub(crate) timeline_view: RwSignal<Option<TimelineView>>,
    pub(crate) map_view: RwSignal<MapView>,
    /// Which panels of the workbench are shown.
    pub(crate) panels: RwSignal<PanelLayout>,
    /// Whether the map scrolls to what a step changed.
    pub(crate) follows: RwSignal<bool>,
    /// The figures of allocations, and who holds them.
    pub(crate) figures: Figures,
    /// What a screen reader announces, beside the step.
    pub(crate) spoken: RwSignal<String>,
    pub(crate) message: RwSignal<Option<Message>>,
    pub(crate) work: RwSignal<Option<RunningJob>>,
    pub(crate) theme: RwSignal<ThemeChoice>,
    /// Whether workloads run on the reader's GPU, and not on the virtual device.
    pub(crate) on_gpu: RwSignal<bool>,
    pub(crate) gpu: RwSignal<GpuState>,
    /// Which panel of the side is shown.
    pub(crate) tab: RwSignal<Tab>,
    pub(crate) lab: Lab,
    /// Counts changes of colors or of the pixel ratio.
    pub(crate) appearance: RwSignal<u32>,
    pub(crate) input: Memo<Input>,
    pub(crate) attempt: Memo<Attempt>,
    /// What is drawn: the run of the source; of a workload, its last good one.
    pub(crate) run: Memo<PtrEq<Run>>,
    /// What the running step changed.
    pub(crate) changes: Memo<Changes>,
    /// The wall clock of memory over time, where the reader wants it for the axis.
    pub(crate) clock: Memo<Option<PtrEq<Clock>>>,
    /// Where the reader was in the sources that are not shown now.
    other_players: StoredValue<[Player; Source::KINDS]>,
    /// The file that was opened last, for its other devices.
    pub(crate) file: StoredValue<Option<web_sys::File>, LocalStorage>,
    tools: StoredValue<RefCell<Tools>, LocalStorage>,
}

pub(crate) const NOTHING: Preset =
    Preset { id: "", title: "Own workload", summary: "", text: "", config: "", capacity: Bytes::gib(1) };

/// What the page starts with.
fn first_preset() -> Preset {
    presets().first().copied().unwrap_or(NOTHING)
}

impl SettingsTexts {
    pub(crate) fn of(preset: &Preset) -> Self {
        Self {
            title: preset.title.to_owned(),
            config: preset.config.to_owned(),
            capacity: preset.capacity.to_string(),
        }
    }
}

impl Session {
    pub(crate) fn new() -> Self {
        let (text, settings) = draft::recall().unwrap_or_else(|| {
            let preset = first_preset();
            (preset.text.to_owned(), SettingsTexts::of(&preset))
        });
        let history = RwSignal::new(History::new(text));
        let settings = RwSignal::new(settings);
        let source = RwSignal::new(Source::Text);
        let answer = RwSignal::new(None::<WorkerAnswer>);
        let on_gpu = RwSignal::new(false);
        let player = RwSignal::new(Player::default());

        let input = Memo::new(move |_| {
            let SettingsTexts { title, config, capacity } = settings.get();
            let text = history.with(|history| history.text().to_owned());
            Input { title, text, config, capacity, on_gpu: on_gpu.get() }
        });
        let attempt = Memo::new(move |_| {
            input.with(|input| match answer.get() {
                Some(answer) if answer.input == *input => answer.attempt,
                _ => crate::run::attempt(input),
            })
        });
        let of_hand = Memo::new(move |before: Option<&PtrEq<Run>>| match (attempt.get(), before) {
            (Attempt::Ran(run), _) => run,
            (_, Some(run)) => run.clone(),
            (_, None) => PtrEq::new(Run::empty()),
        });
        let lesson = RwSignal::new(LessonState::default());
        let run = Memo::new(move |_| match source.get() {
            Source::Text => of_hand.get(),
            Source::Recording(opened) => opened.run.clone(),
            Source::Tour(run) => run,
            Source::Program(result) => result.run.clone(),
            Source::Lesson(open) => {
                let (card, own) = lesson
                    .with(|state| (state.card, state.graded.as_ref().and_then(|graded| graded.run.clone())));
                own.or_else(|| open.run(card)).unwrap_or_else(|| PtrEq::new(Run::empty()))
            }
        });
        let changes = Memo::new(move |_| {
            let run = run.get();
            let (from, to) = player.with(|player| player.changed_events(&run.recording));
            Changes::of(&run.recording, from, to)
        });
        let figures = Figures::new();
        let clock = Memo::new(move |_| {
            let run = figures.is_by_clock.get().then(|| run.get())?;
            Clock::new(&run.recording).map(PtrEq::new)
        });
        let signals = Signals {
            clock,
            history,
            settings,
            source,
            opened: RwSignal::new(None),
            ranks: RwSignal::new_local(Vec::new()),
            has_kept_file: RwSignal::new(false),
            own_lesson: RwSignal::new(None),
            beside: RwSignal::new(None),
            place: RwSignal::new(Place::Home),
            lesson,
            progress: RwSignal::new(lesson::recall()),
            program: ProgramSignals::new(FIRST_PROGRAM),
            last_card: RwSignal::new(lesson::recall_last()),
            lit: RwSignal::new(None),
            stop_at: RwSignal::new(None),
            embed: Embed::of_address(),
            is_on_paper: RwSignal::new(false),
            answer,
            player,
            timeline_view: RwSignal::new(None),
            map_view: RwSignal::new(MapView::default()),
            panels: RwSignal::new(PanelLayout::recall()),
            follows: RwSignal::new(false),
            figures,
            spoken: RwSignal::new(String::new()),
            message: RwSignal::new(None),
            work: RwSignal::new(None),
            theme: RwSignal::new(ThemeChoice::recall()),
            on_gpu,
            gpu: RwSignal::new(GpuState::default()),
            tab: RwSignal::new(Tab::Source),
            lab: Lab::new(),
            appearance: RwSignal::new(0),
            input,
            attempt,
            run,
            changes,
            other_players: StoredValue::new(Default::default()),
            file: StoredValue::new_local(None),
            tools: StoredValue::new_local(RefCell::default()),
        };
        Self(Box::leak(Box::new(signals)))
    }

    /// Moves the player.
    pub(crate) fn dispatch(self, action: PlayerAction) {
        let run = self.run.get_untracked();
        let before = self.player.get_untracked();
        let after = reduce(&before, action, &run.recording);
        if after != before {
            // The cursor stays in sight of the timeline.
            if let Some(view) = self.timeline_view.get_untracked()
                && after.steps != before.steps
            {
                self.timeline_view.set(Some(view.reveal(after.steps, run.recording.step_count())));
            }
            self.player.set(after);
        }
    }

    /// Looks at the memory under the cursor; nothing where the recording is damaged.
    ///
    /// Follows the cursor when it moves.
    pub(crate) fn with_state<T>(self, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        let run = self.run.get();
        let cursor = self.player.with(|player| player.cursor);
        self.look(&run, cursor, look)
    }

    /// [`Session::with_state`] once, without following.
    pub(crate) fn with_state_now<T>(self, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        let run = self.run.get_untracked();
        let cursor = self.player.with_untracked(|player| player.cursor);
        self.look(&run, cursor, look)
    }

    fn look<T>(self, run: &Run, cursor: usize, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        self.tools.with_value(|tools| {
            let mut tools = tools.borrow_mut();
            if !tools
                .state
                .as_ref()
                .is_some_and(|state| std::sync::Arc::ptr_eq(state.recording(), &run.recording))
            {
                tools.state = Some(StateCursor::new(run.recording.clone()));
            }
            let state = tools.state.as_mut()?.at(cursor).ok()?;
            Some(look(run, state))
        })
    }

    /// Draws the scene in the page's colors of now, and follows their changes.
    pub(crate) fn draw(self, canvas: &HtmlCanvasElement, scene: &Scene) {
        let appearance = self.appearance.get();
        self.tools.with_value(|tools| {
            let mut tools = tools.borrow_mut();
            if tools.paints.as_ref().is_none_or(|(version, _)| *version != appearance) {
                tools.paints = Some((appearance, Paints::read()));
            }
            if let Some((_, paints)) = &mut tools.paints {
                paints.draw(canvas, scene);
            }
        });
    }

    /// The page's colors of now as red, green and blue, following their changes.
    pub(crate) fn rgb(self, roles: &[Role]) -> Vec<[u8; 3]> {
        let appearance = self.appearance.get();
        self.tools.with_value(|tools| {
            let mut tools = tools.borrow_mut();
            if tools.paints.as_ref().is_none_or(|(version, _)| *version != appearance) {
                tools.paints = Some((appearance, Paints::read()));
            }
            let paints = tools.paints.as_ref().map(|(_, paints)| paints);
            roles.iter().map(|role| paints.map_or([128; 3], |paints| paints.rgb(*role))).collect()
        })
    }

    /// The chosen block.
    pub(crate) fn selected(self) -> Option<BlockId> {
        self.map_view.with(|view| view.selected)
    }

    /// [`Session::selected`] once, without following.
    pub(crate) fn selected_now(self) -> Option<BlockId> {
        self.map_view.with_untracked(|view| view.selected)
    }

    /// The block that a key is meant for: the one that the keyboard or the pointer is on, else the chosen one.
    pub(crate) fn block_in_hand(self) -> Option<BlockId> {
        self.map_view.with_untracked(|view| match view.hovered {
            Some(TargetId::Block(block)) => Some(block),
            _ => view.selected,
        })
    }

    pub(crate) fn say(self, text: String) {
        self.spoken.set(text);
    }

    pub(crate) fn select(self, block: Option<BlockId>) {
        if self.map_view.with_untracked(|view| view.selected != block) {
            self.map_view.update(|view| view.selected = block);
        }
    }

    pub(crate) fn show_note(self, text: impl Into<String>) {
        self.message.set(Some(Message { text: text.into(), is_error: false }));
    }

    pub(crate) fn show_error(self, text: impl Into<String>) {
        self.message.set(Some(Message { text: text.into(), is_error: true }));
    }
}
