//! The workload in the editor: its text with the former texts, its settings, and its run.

mod draft;
mod history;
mod resize;
mod run;

pub(crate) use draft::follow as follow_draft;
pub(crate) use history::History;
pub(crate) use resize::SizeDrag;

use blockyard_figure::Player;
use blockyard_record::{BlockId, BlockState, Bytes, StreamId};
use blockyard_workload::edit::{Edit, EditAction, EditError, insert, with_header};
use blockyard_workload::presets::{Preset, presets};
use blockyard_workload::{Request, TensorId, Workload, parse_size};
use leptos::prelude::*;

use self::run::{CursorTarget, LongRun};
use crate::browser;
use crate::gpu::GpuState;
use crate::messages::sentence;
use crate::navigation::Place;
use crate::run::{Attempt, Input, InputError};
use crate::session::{Feature, Source};

/// The title, the settings and the capacity of the workload, as texts of their fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingsTexts {
    pub(crate) title: String,
    pub(crate) conf: String,
    pub(crate) capacity: String,
}

impl SettingsTexts {
    pub(crate) fn of(preset: &Preset) -> Self {
        Self { title: preset.title.to_owned(), conf: String::new(), capacity: preset.capacity.to_string() }
    }
}

/// An empty workload.
const NOTHING: Preset =
    Preset { id: "", title: "Own workload", summary: "", text: "", capacity: Bytes::gib(1) };

/// The workload of the first visit.
fn first_preset() -> Preset {
    presets().first().copied().unwrap_or(NOTHING)
}

/// The ending of file names of workloads.
pub(crate) const FILE_ENDING: &str = ".workload";

/// The workload in the editor, and its run.
pub(crate) struct WorkloadSignals {
    /// The text, with its former texts.
    pub(crate) history: RwSignal<History>,
    pub(crate) settings: RwSignal<SettingsTexts>,
    /// Whether workloads run on the reader's GPU, and not on the virtual device.
    pub(crate) is_on_gpu: RwSignal<bool>,
    pub(crate) gpu: RwSignal<GpuState>,
    /// The last run that a worker made.
    long_run: RwSignal<Option<LongRun>>,
    /// The tensor whose size is being dragged.
    pub(crate) resizing: RwSignal<Option<SizeDrag>>,
    pub(crate) input: Memo<Input>,
    pub(crate) attempt: Memo<Attempt>,
}

impl WorkloadSignals {
    pub(crate) fn new() -> Self {
        let (text, settings) = draft::recall().unwrap_or_else(|| {
            let preset = first_preset();
            (preset.text.to_owned(), SettingsTexts::of(&preset))
        });
        let history = RwSignal::new(History::new(text));
        let settings = RwSignal::new(settings);
        let on_gpu = RwSignal::new(false);
        let long_run = RwSignal::new(None::<LongRun>);
        let input = Memo::new(move |_| {
            let SettingsTexts { title, conf, capacity } = settings.get();
            let text = history.with(|history| history.text().to_owned());
            Input { title, text, conf, capacity, is_on_gpu: on_gpu.get() }
        });
        let attempt = Memo::new(move |_| {
            input.with(|input| match long_run.get() {
                Some(run) if run.input == *input => run.attempt,
                _ => crate::run::attempt(input),
            })
        });
        Self {
            history,
            settings,
            is_on_gpu: on_gpu,
            gpu: RwSignal::new(GpuState::default()),
            long_run,
            resizing: RwSignal::new(None),
            input,
            attempt,
        }
    }
}

impl Feature<WorkloadSignals> {
    /// Makes a typed text the workload.
    pub(crate) fn type_text(self, text: String) {
        let was_at_end = self.session.is_at_end();
        let settings = self.settings.get_untracked();
        self.session.messages().clear();
        self.history.update(|history| history.type_text(text, browser::now_millis(), &settings));
        if self.history.with_untracked(|history| may_have_header(history.text())) {
            self.read_header();
        }
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    pub(crate) fn undo(self) {
        if untrack(|| self.session.shows_story()) {
            return self.session.story().undo();
        }
        let was_at_end = self.session.is_at_end();
        self.restore(History::undo);
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    pub(crate) fn redo(self) {
        if untrack(|| self.session.shows_story()) {
            return self.session.story().redo();
        }
        let was_at_end = self.session.is_at_end();
        self.restore(History::redo);
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Goes to another text of the history, with the settings that belong to it.
    fn restore(self, to: impl FnOnce(&mut History, &SettingsTexts) -> Option<SettingsTexts>) {
        self.session.messages().clear();
        let settings = self.settings.get_untracked();
        if let Some(Some(then)) = self.history.try_update(|history| to(history, &settings))
            && then != settings
        {
            self.settings.set(then);
        }
    }

    pub(crate) fn set_conf(self, conf: String) {
        self.change_settings(|settings| settings.conf = conf);
    }

    pub(crate) fn set_capacity(self, capacity: String) {
        self.change_settings(|settings| settings.capacity = capacity);
    }

    /// Changes the settings. Undo restores the former settings.
    fn change_settings(self, change: impl FnOnce(&mut SettingsTexts)) {
        let before = self.settings.get_untracked();
        let mut settings = before.clone();
        change(&mut settings);
        if settings == before {
            return;
        }
        let was_at_end = self.session.is_at_end();
        let text = self.history.with_untracked(|history| history.text().to_owned());
        let text = with_settings(&settings, text);
        self.settings.set(settings);
        self.history.update(|history| history.change_settings(text, browser::now_millis(), &before));
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Gives the fields of the settings the values that the text contains.
    pub(crate) fn read_header(self) {
        let workload = self.history.with_untracked(|history| Workload::parse(history.text()));
        let Ok(workload) = workload else { return };
        let SettingsTexts { title, conf, capacity } = self.settings.get_untracked();
        let conf = workload.conf().map_or(conf, str::to_owned);
        let capacity = match workload.capacity() {
            Some(in_text) if parse_size(&capacity) != Ok(in_text) => in_text.to_string(),
            _ => capacity,
        };
        let settings = SettingsTexts { title, conf, capacity };
        if self.settings.with_untracked(|before| *before != settings) {
            self.settings.set(settings);
        }
    }

    /// Inserts an action made by hand into the workload, right after the step under the cursor.
    pub(crate) fn act(self, action: EditAction) {
        if !untrack(|| self.session.shows_text()) {
            return self
                .session
                .show_error("A recording cannot be changed. Go back to the workload to play by hand.");
        }
        let run = match self.attempt.get_untracked() {
            Attempt::Ran(run) => run,
            Attempt::Failed(InputError::Capacity(_) | InputError::Config(_)) => {
                return self.session.show_error(
                    "Mend the device's capacity or settings first: the figure shows older ones.",
                );
            }
            Attempt::Long => {
                return self
                    .session
                    .show_error("The workload is still running: the figure shows an older run.");
            }
            Attempt::Failed(_) => {
                return self
                    .session
                    .show_error("Mend the workload's text first: the figure shows an older text.");
            }
        };
        let done = self.session.player.with_untracked(|player| {
            player.current_step(&run.recording).map_or(0, |step| step + 1).min(run.workload.requests().len())
        });
        let text = self.history.with_untracked(|history| history.text().to_owned());
        match insert(&text, &run.workload, done, action) {
            Ok(edit) => self.take_edit(edit),
            Err(EditError::InsideLoop { resume }) => match insert(&text, &run.workload, resume, action) {
                Ok(edit) => {
                    self.take_edit(edit);
                    self.session.show_note(
                        "Nothing can be inserted inside a loop or a list. The line was inserted after it, and the cursor moved there.",
                    );
                }
                Err(EditError::NotAllocated { .. }) => self.session.show_error(
                    "Nothing can be inserted inside a loop or a list. After it this block is free already.",
                ),
                Err(error) => self.session.show_error(sentence(&error.to_string())),
            },
            Err(error) => self.session.show_error(sentence(&error.to_string())),
        }
    }

    fn take_edit(self, edit: Edit) {
        self.session.messages().message.set(None);
        let settings = self.settings.get_untracked();
        self.history.update(|history| history.replace(edit.text, &settings));
        self.follow_change(CursorTarget::Seek(edit.request + edit.added));
    }

    /// Frees the block, if it is allocated.
    pub(crate) fn free_block(self, block: BlockId) {
        match self.tensor_of(block) {
            Some(tensor) => self.act(EditAction::Free { tensor }),
            None => {
                self.session.show_note("This block is not allocated: there is nothing to free.");
            }
        }
    }

    pub(crate) fn record_stream(self, block: BlockId, stream: StreamId) {
        if let Some(tensor) = self.tensor_of(block) {
            self.act(EditAction::RecordStream { tensor, stream });
        }
    }

    /// The tensor in an allocated block at the moment under the cursor.
    pub(crate) fn tensor_of(self, block: BlockId) -> Option<TensorId> {
        self.session
            .with_state_now(|run, state| {
                let block = state.block(block)?;
                if block.state != BlockState::Allocated {
                    return None;
                }
                let step = run.recording.allocated_at(block.allocation?)?;
                match run.request(step)? {
                    Request::Allocate { tensor, .. } => Some(*tensor),
                    _ => None,
                }
            })
            .flatten()
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
        self.session.files().show_opened(false);
        let before = self.settings.get_untracked();
        self.history.update(|history| history.replace(text, &before));
        self.settings.set(settings);
        self.read_header();
        self.session.player.set(Player { speed: 1.0, ..Player::default() });
        self.session.figures().forget();
        self.session.messages().message.set(None);
        self.run_first();
    }

    /// Loads an empty workload.
    pub(crate) fn load_empty(self) {
        self.load_preset(&NOTHING);
    }

    /// Shows a text in the workbench. Undo restores the former text.
    pub(crate) fn open_text(self, text: String, settings: SettingsTexts) {
        self.session.navigation().place.set(Place::Workbench);
        let is_same = self.history.with_untracked(|history| history.text() == text)
            && self.settings.with_untracked(|before| *before == settings);
        if is_same {
            self.session.show(Source::Text);
            self.run_first();
        } else {
            self.load(text, settings);
        }
    }

    /// Saves the text of the workload as a file, with its capacity and settings in the header.
    pub(crate) fn save(self) {
        let text = self.history.with_untracked(|history| history.text().to_owned());
        let SettingsTexts { title, conf, capacity } = self.settings.get_untracked();
        // With the header, the file gives the same numbers everywhere.
        let text = with_header(&text, &capacity, &conf);
        let stem: String = title
            .strip_suffix(FILE_ENDING)
            .unwrap_or(&title)
            .chars()
            .map(|letter| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
            .collect();
        browser::download(&format!("{stem}{FILE_ENDING}"), &text, "text/plain");
    }
}

/// The text with the new settings and capacity in its header, if the text has a header.
fn with_settings(settings: &SettingsTexts, text: String) -> String {
    let has_header = Workload::parse(&text)
        .is_ok_and(|workload| workload.capacity().is_some() || workload.conf().is_some());
    if has_header && parse_size(&settings.capacity).is_ok() {
        with_header(&text, &settings.capacity, &settings.conf)
    } else {
        text
    }
}

/// Whether a line of the text looks like a header line with the capacity or the settings. This is a quick
/// test before parsing.
fn may_have_header(text: &str) -> bool {
    text.len() < 200_000
        && text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("capacity ") || line.starts_with("conf ")
        })
}
