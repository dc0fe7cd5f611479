//! The state of the page. Few signals are written; the rest is computed from them.

mod answer;
mod categories;
mod figures;
mod lesson;
mod moments;
mod panels;
mod place;
mod program;
mod resize;
mod source;
mod story;

pub(crate) use answer::AnswerRun;
pub(crate) use figures::{Columns, Figures, Picked, Wanted};
pub(crate) use lesson::{CardDone, GivenAnswer, LessonState, OpenLesson, region};
pub(crate) use panels::{PanelLayout, WorkbenchPanel};
pub(crate) use place::{Embed, Place, Presenting};
pub(crate) use program::{
    AliveBytes, CATEGORIES, HoldersAnswer, ProgramInput, ProgramResult, ProgramSignals, ProgramStatus,
};
pub(crate) use resize::Resizing;
pub(crate) use source::Source;
pub(crate) use story::{CONTEXT, CONTEXT_AFTER_KERNEL, EXPANDABLE, NextStep, Story, StoryMoment, nvidia_smi};

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
    /// The comparison with our allocator, which ends after the figures are shown.
    pub(crate) comparison: ArcRwSignal<ComparisonState>,
}

/// One of several recordings that were opened together.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) opened: PtrEq<OpenedFile>,
    pub(crate) file: web_sys::File,
}

impl Rank {
    /// Whether it ran out of memory.
    pub(crate) fn has_failed(&self) -> bool {
        self.opened.run.has_failed()
    }
}

/// The state of the comparison of a recording with our allocator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ComparisonState {
    /// The comparison runs: its phase, and how much of the phase is done in percent.
    Running(String, u64),
    Done(Comparison),
    /// There is no comparison, for this reason.
    Missing(String),
}

impl OpenedFile {
    /// The title on the page: that of a sample, or the name of the file.
    pub(crate) fn title(&self) -> String {
        let sample = SAMPLES.iter().find(|sample| sample.file_name() == self.name);
        sample.map_or_else(|| self.name.clone(), |sample| format!("{} training", sample.title))
    }

    pub(crate) fn is_sample(&self) -> bool {
        SAMPLES.iter().any(|sample| sample.file_name() == self.name)
    }
}

/// The title, the settings and the capacity of the workload, as texts of their fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingsTexts {
    pub(crate) title: String,
    pub(crate) config: String,
    pub(crate) capacity: String,
}

/// A message for the reader. It stays until it is dismissed.
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
    /// Whether the progress is shown. The progress of short jobs is never shown.
    pub(crate) is_shown: bool,
    /// Memory over time as far as the trace of a file has been read.
    pub(crate) read: Option<ReadPart>,
}

/// The worker's result for an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkerAnswer {
    pub(crate) input: Input,
    pub(crate) attempt: Attempt,
}

/// Values that are expensive to make, and are kept from one use to the next.
#[derive(Default)]
struct Cache {
    /// The memory state of the shown recording, at the last cursor.
    state: Option<StateCursor>,
    /// The colors, with the version of [`Signals::appearance`] that they were read for.
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

/// All signals: first those that are written, then the memos that are computed from them.
pub(crate) struct Signals {
    /// The text of the workload, with its former texts.
    pub(crate) history: RwSignal<History>,
    pub(crate) settings: RwSignal<SettingsTexts>,
    /// The source of the run that the figures show.
    pub(crate) source: RwSignal<Source>,
    /// The recording that was opened last. It stays open while another source is shown.
    pub(crate) opened: RwSignal<Option<PtrEq<OpenedFile>>>,
    /// The files that were opened together, one for each rank; empty if a single file was opened.
    pub(crate) ranks: RwSignal<Vec<Rank>, LocalStorage>,
    /// Whether the browser keeps a copy of the reader's file, so that a reload opens it again.
    pub(crate) has_kept_file: RwSignal<bool>,
    /// The lesson of the reader's own that was opened last. It stays open while another source is shown.
    pub(crate) own_lesson: RwSignal<Option<PtrEq<OpenLesson>>>,
    /// The text of the lesson in the lesson editor, or of the lesson of a link. None for a lesson that was opened from a file.
    pub(crate) lesson_text: RwSignal<Option<String>>,
    /// Whether that text came in a link for a class, which does not edit it.
    pub(crate) is_for_class: RwSignal<bool>,
    /// The name of the opened file beside the page (see [`crate::browser::address_beside`]). Links to the file have this name.
    pub(crate) beside: RwSignal<Option<String>>,
    /// The part of the page that is shown.
    pub(crate) place: RwSignal<Place>,
    /// Whether the open lesson is presented to a class.
    pub(crate) presenting: RwSignal<Presenting>,
    /// The card of the open lesson, and the reader's answers.
    pub(crate) lesson: RwSignal<LessonState>,
    /// The cards that the reader has seen and the exercises that are passed, on this visit and earlier ones.
    pub(crate) progress: RwSignal<lesson::Progress>,
    /// The reader's answers to questions, on this visit and earlier ones.
    answers: RwSignal<lesson::GivenAnswers>,
    /// What the reader has done on the first screen.
    pub(crate) story: RwSignal<Story>,
    /// The moment after the last line of the story.
    pub(crate) story_moment: Memo<StoryMoment>,
    /// The Python program.
    pub(crate) program: ProgramSignals,
    /// The lesson and the card, from 0, that the reader saw last.
    last_card: RwSignal<Option<(String, usize)>>,
    /// The term that the pointer or the focus is on. All figures light it up.
    pub(crate) lit: RwSignal<Option<Term>>,
    /// Playing stops when this many steps are done.
    pub(crate) stop_at: RwSignal<Option<usize>>,
    /// What the page shows in a frame of another page; `None` if it is not embedded.
    pub(crate) embed: Option<Embed>,
    /// Whether the page is being printed.
    pub(crate) is_on_paper: RwSignal<bool>,
    /// The worker's last result for a long workload.
    pub(crate) answer: RwSignal<Option<WorkerAnswer>>,
    pub(crate) player: RwSignal<Player>,
    /// The steps that figures over time show, or `None` for all steps.
    pub(crate) timeline_view: RwSignal<Option<TimelineView>>,
    pub(crate) map_view: RwSignal<MapView>,
    /// Which panels of the workbench are shown.
    pub(crate) panels: RwSignal<PanelLayout>,
    /// Whether the map scrolls to what a step changed.
    pub(crate) follows: RwSignal<bool>,
    /// The options of the figures of allocations, and the chosen allocations.
    pub(crate) figures: Figures,
    /// A text that a screen reader announces. The step is announced without it.
    pub(crate) spoken: RwSignal<String>,
    pub(crate) message: RwSignal<Option<Message>>,
    pub(crate) work: RwSignal<Option<RunningJob>>,
    pub(crate) theme: RwSignal<ThemeChoice>,
    /// Whether workloads run on the reader's GPU, and not on the virtual device.
    pub(crate) on_gpu: RwSignal<bool>,
    pub(crate) gpu: RwSignal<GpuState>,
    /// The tab that is shown beside the figures.
    pub(crate) tab: RwSignal<Tab>,
    pub(crate) lab: Lab,
    /// The tensor whose size is being dragged.
    pub(crate) resizing: RwSignal<Option<Resizing>>,
    /// Whether the window is narrow, so that the page has one column.
    pub(crate) is_narrow: RwSignal<bool>,
    /// Counts the changes of colors and of the pixel ratio.
    pub(crate) appearance: RwSignal<u32>,
    pub(crate) input: Memo<Input>,
    pub(crate) attempt: Memo<Attempt>,
    /// The run that the figures show. For a workload with an error, this is the last good run.
    pub(crate) run: Memo<PtrEq<Run>>,
    /// What the step under the cursor changed.
    pub(crate) changes: Memo<Changes>,
    /// The wall clock for the axis of memory over time; `None` if the axis counts steps.
    pub(crate) clock: Memo<Option<PtrEq<Clock>>>,
    /// The players of the sources that are not shown now, by kind of source.
    other_players: StoredValue<[Player; Source::KINDS]>,
    /// The file that was opened last. It is opened again to show another of its devices.
    pub(crate) file: StoredValue<Option<web_sys::File>, LocalStorage>,
    cache: StoredValue<RefCell<Cache>, LocalStorage>,
}

/// An empty workload.
pub(crate) const NOTHING: Preset =
    Preset { id: "", title: "Own workload", summary: "", text: "", config: "", capacity: Bytes::gib(1) };

/// The workload of the first visit.
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

/// The run that the figures show. While the text has an error, this is the last run without one.
fn shown_run(
    source: RwSignal<Source>,
    attempt: Memo<Attempt>,
    lesson: RwSignal<LessonState>,
    story_run: Memo<PtrEq<Run>>,
) -> Memo<PtrEq<Run>> {
    let workload_run = Memo::new(move |before: Option<&PtrEq<Run>>| match (attempt.get(), before) {
        (Attempt::Ran(run), _) => run,
        (_, Some(run)) => run.clone(),
        (_, None) => PtrEq::new(Run::empty()),
    });
    Memo::new(move |_| match source.get() {
        Source::Text => workload_run.get(),
        Source::Recording(opened) => opened.run.clone(),
        Source::Story => story_run.get(),
        Source::Program(result) => result.run.clone(),
        Source::Lesson(open) => {
            let (card, own) = lesson
                .with(|state| (state.card, state.graded.as_ref().and_then(|graded| graded.run.clone())));
            own.or_else(|| open.run(card)).unwrap_or_else(|| PtrEq::new(Run::empty()))
        }
    })
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
        let lesson = RwSignal::new(LessonState::default());
        let story = RwSignal::new(Story::new());
        let story_run = Memo::new(move |_| story.with(Story::run));
        let run = shown_run(source, attempt, lesson, story_run);
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
            lesson_text: RwSignal::new(None),
            is_for_class: RwSignal::new(false),
            beside: RwSignal::new(None),
            place: RwSignal::new(Place::Home),
            presenting: RwSignal::new(Presenting::No),
            lesson,
            story,
            story_moment: Memo::new(move |_| story.with(|story| StoryMoment::of(story, &story_run.get()))),
            progress: RwSignal::new(lesson::recall()),
            answers: RwSignal::new(lesson::recall_answers()),
            program: ProgramSignals::new(FIRST_PROGRAM),
            last_card: RwSignal::new(lesson::recall_last()),
            lit: RwSignal::new(None),
            resizing: RwSignal::new(None),
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
            is_narrow: RwSignal::new(false),
            appearance: RwSignal::new(0),
            input,
            attempt,
            run,
            changes,
            other_players: StoredValue::new(Default::default()),
            file: StoredValue::new_local(None),
            cache: StoredValue::new_local(RefCell::default()),
        };
        Self(Box::leak(Box::new(signals)))
    }

    /// Moves the player.
    pub(crate) fn dispatch(self, action: PlayerAction) {
        let run = self.run.get_untracked();
        let before = self.player.get_untracked();
        let mut after = reduce(&before, action, &run.recording);
        // The rest of the run would answer a question of the lesson.
        if let Some(last) = untrack(|| self.hidden_after()).filter(|last| after.steps > *last) {
            after = reduce(&before, PlayerAction::SeekStep(last), &run.recording);
            after.is_playing = false;
        }
        if after != before {
            // A zoomed timeline moves so that the cursor stays in sight.
            if let Some(view) = self.timeline_view.get_untracked()
                && after.steps != before.steps
            {
                self.timeline_view.set(Some(view.reveal(after.steps, run.recording.step_count())));
            }
            self.player.set(after);
        }
    }

    /// Calls `look` with the memory state under the cursor; `None` if the recording is damaged. Reads signals.
    pub(crate) fn with_state<T>(self, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        let run = self.run.get();
        let cursor = self.player.with(|player| player.cursor);
        self.look(&run, cursor, look)
    }

    /// As [`Session::with_state`], but without tracking the signals.
    pub(crate) fn with_state_now<T>(self, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        let run = self.run.get_untracked();
        let cursor = self.player.with_untracked(|player| player.cursor);
        self.look(&run, cursor, look)
    }

    fn look<T>(self, run: &Run, cursor: usize, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        self.cache.with_value(|cache| {
            let mut cache = cache.borrow_mut();
            if !cache
                .state
                .as_ref()
                .is_some_and(|state| std::sync::Arc::ptr_eq(state.recording(), &run.recording))
            {
                cache.state = Some(StateCursor::new(run.recording.clone()));
            }
            let state = cache.state.as_mut()?.at(cursor).ok()?;
            Some(look(run, state))
        })
    }

    /// Calls `paint` with the page's present colors. Reads signals.
    fn with_paints<T>(self, paint: impl FnOnce(&mut Paints) -> T) -> T {
        let appearance = self.appearance.get();
        self.cache.with_value(|cache| {
            let mut cache = cache.borrow_mut();
            let kept = cache.paints.take().filter(|(version, _)| *version == appearance);
            let (_, paints) = cache.paints.insert(kept.unwrap_or_else(|| (appearance, Paints::read())));
            paint(paints)
        })
    }

    /// Draws the scene in the page's present colors. Reads signals.
    pub(crate) fn draw(self, canvas: &HtmlCanvasElement, scene: &Scene) {
        self.with_paints(|paints| paints.draw(canvas, scene));
    }

    /// The page's present colors of these roles as red, green and blue. Reads signals.
    pub(crate) fn rgb(self, roles: &[Role]) -> Vec<[u8; 3]> {
        self.with_paints(|paints| roles.iter().map(|role| paints.rgb(*role)).collect())
    }

    /// The chosen block. Reads signals.
    pub(crate) fn selected(self) -> Option<BlockId> {
        self.map_view.with(|view| view.selected)
    }

    /// As [`Session::selected`], but without tracking the signals.
    pub(crate) fn selected_now(self) -> Option<BlockId> {
        self.map_view.with_untracked(|view| view.selected)
    }

    /// The block that a key acts on: the one that the arrow keys or the pointer are on, or else the chosen block.
    pub(crate) fn block_in_hand(self) -> Option<BlockId> {
        self.map_view.with_untracked(|view| match view.hovered {
            Some(TargetId::Block(block)) => Some(block),
            _ => view.selected,
        })
    }

    /// Lets screen readers announce a text.
    pub(crate) fn announce(self, text: String) {
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
