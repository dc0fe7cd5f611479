//! The commands that change the workload or its settings, and the jobs that run a long workload.

use blockyard_figure::PlayerAction;
use blockyard_record::{BlockId, BlockState, StreamId};
use blockyard_replay::job::JobError;
use blockyard_workload::edit::{Edit, EditAction, EditError, insert, with_header};
use blockyard_workload::{Request, TensorId, Workload, parse_size};
use leptos::prelude::*;

use crate::browser;
use crate::gpu::{self, GpuState};
use crate::history::History;
use crate::jobs::{self, JobFailure, JobReport};
use crate::ptr_eq::PtrEq;
use crate::run::{self, Attempt, InputError, Run};
use crate::session::{RunningJob, Session, SettingsTexts, WorkerAnswer};

/// Where the cursor goes when a changed workload has run.
#[derive(Clone, Copy, Debug)]
enum CursorTarget {
    /// The cursor goes to the end if it was at the end before; otherwise it stays where it is.
    Stay { was_at_end: bool },
    /// The cursor goes to the moment after this many steps.
    Seek(usize),
}

impl Session {
    pub(crate) fn is_at_end(self) -> bool {
        let run = self.run.get_untracked();
        self.player.with_untracked(|player| player.is_at_end(&run.recording))
    }

    /// Makes a typed text the workload.
    pub(crate) fn type_text(self, text: String) {
        let was_at_end = self.is_at_end();
        let settings = self.settings.get_untracked();
        self.clear_message();
        self.history.update(|history| history.type_text(text, browser::now_millis(), &settings));
        if self.history.with_untracked(|history| may_have_header(history.text())) {
            self.read_header();
        }
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    pub(crate) fn undo(self) {
        if untrack(|| self.shows_story()) {
            return self.undo_in_story();
        }
        let was_at_end = self.is_at_end();
        self.restore(History::undo);
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    pub(crate) fn redo(self) {
        if untrack(|| self.shows_story()) {
            return self.redo_in_story();
        }
        let was_at_end = self.is_at_end();
        self.restore(History::redo);
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Goes to another text of the history, with the settings that belong to it.
    fn restore(self, to: impl FnOnce(&mut History, &SettingsTexts) -> Option<SettingsTexts>) {
        self.clear_message();
        let settings = self.settings.get_untracked();
        if let Some(Some(then)) = self.history.try_update(|history| to(history, &settings))
            && then != settings
        {
            self.settings.set(then);
        }
    }

    /// Removes the message, which was about the former text.
    fn clear_message(self) {
        if self.message.with_untracked(Option::is_some) {
            self.message.set(None);
        }
    }

    pub(crate) fn set_config(self, config: String) {
        self.change_settings(|settings| settings.config = config);
    }

    pub(crate) fn set_capacity(self, capacity: String) {
        self.change_settings(|settings| settings.capacity = capacity);
    }

    /// Changes the settings. Undo restores the former ones.
    fn change_settings(self, change: impl FnOnce(&mut SettingsTexts)) {
        let before = self.settings.get_untracked();
        let mut settings = before.clone();
        change(&mut settings);
        if settings == before {
            return;
        }
        let was_at_end = self.is_at_end();
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
        let SettingsTexts { title, config, capacity } = self.settings.get_untracked();
        let config = workload.config().map_or(config, str::to_owned);
        let capacity = match workload.capacity() {
            Some(in_text) if parse_size(&capacity) != Ok(in_text) => in_text.to_string(),
            _ => capacity,
        };
        let settings = SettingsTexts { title, config, capacity };
        if self.settings.with_untracked(|before| *before != settings) {
            self.settings.set(settings);
        }
    }

    /// Inserts an action made by hand into the workload, right after the step under the cursor.
    pub(crate) fn act(self, action: EditAction) {
        if !untrack(|| self.shows_text()) {
            return self
                .show_error("A recording cannot be changed. Go back to the workload to play by hand.");
        }
        let run = match self.attempt.get_untracked() {
            Attempt::Ran(run) => run,
            Attempt::Failed(InputError::Capacity(_) | InputError::Config(_)) => {
                return self.show_error(
                    "Mend the device's capacity or settings first: the figure shows older ones.",
                );
            }
            Attempt::Long => {
                return self.show_error("The workload is still running: the figure shows an older run.");
            }
            Attempt::Failed(_) => {
                return self.show_error("Mend the workload's text first: the figure shows an older text.");
            }
        };
        let done = self.player.with_untracked(|player| {
            player.current_step(&run.recording).map_or(0, |step| step + 1).min(run.workload.requests().len())
        });
        let text = self.history.with_untracked(|history| history.text().to_owned());
        match insert(&text, &run.workload, done, action) {
            Ok(edit) => self.take_edit(edit),
            Err(EditError::InsideLoop { resume }) => match insert(&text, &run.workload, resume, action) {
                Ok(edit) => {
                    self.take_edit(edit);
                    self.show_note(
                        "Nothing can be inserted inside a loop or a list, so it went behind it, and the cursor with it.",
                    );
                }
                Err(EditError::NotAllocated { .. }) => self.show_error(
                    "Nothing can be inserted inside a loop or a list, and behind it this block is free already.",
                ),
                Err(error) => self.show_error(sentence(&error.to_string())),
            },
            Err(error) => self.show_error(sentence(&error.to_string())),
        }
    }

    fn take_edit(self, edit: Edit) {
        self.message.set(None);
        let settings = self.settings.get_untracked();
        self.history.update(|history| history.replace(edit.text, &settings));
        self.follow_change(CursorTarget::Seek(edit.request + edit.added));
    }

    /// Frees the block, if it is allocated.
    pub(crate) fn free_block(self, block: BlockId) {
        match self.tensor_of(block) {
            Some(tensor) => self.act(EditAction::Free { tensor }),
            None => self.show_note("This block is not allocated: there is nothing to free."),
        }
    }

    pub(crate) fn record_stream(self, block: BlockId, stream: StreamId) {
        if let Some(tensor) = self.tensor_of(block) {
            self.act(EditAction::RecordStream { tensor, stream });
        }
    }

    /// The tensor in an allocated block at the moment under the cursor.
    pub(crate) fn tensor_of(self, block: BlockId) -> Option<TensorId> {
        self.with_state_now(|run, state| {
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

    /// Follows a change of sizes: the cursor stays at its step.
    pub(crate) fn follow_sizes(self, was_at_end: bool) {
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Moves the cursor after a change of the workload: now, or when the worker has run a long workload.
    fn follow_change(self, then: CursorTarget) {
        match self.attempt.get_untracked() {
            Attempt::Ran(_) => {
                jobs::stop();
                self.work.set(None);
                self.move_cursor(then);
            }
            Attempt::Failed(_) => {
                jobs::stop();
                self.work.set(None);
            }
            Attempt::Long => self.run_long(then),
        }
    }

    fn move_cursor(self, then: CursorTarget) {
        match then {
            CursorTarget::Stay { was_at_end } => {
                self.dispatch(PlayerAction::Loaded { keep_at_end: was_at_end });
            }
            CursorTarget::Seek(step) => {
                self.dispatch(PlayerAction::Loaded { keep_at_end: false });
                self.dispatch(PlayerAction::SeekStep(step));
            }
        }
    }

    fn run_long(self, then: CursorTarget) {
        let input = self.input.get_untracked();
        let Ok(job) = run::job(&input) else { return };
        let on_gpu = input.on_gpu;
        let on_progress = move |report: JobReport| self.show_report(report);
        let on_done = move |result| {
            self.work.set(None);
            let attempt = match result {
                Ok(product) => Attempt::Ran(PtrEq::new(Run::new(product))),
                Err(JobFailure::Job(JobError::Device(why))) => return self.lose_gpu(&why, then),
                Err(JobFailure::Worker(why)) if on_gpu => return self.lose_gpu(&why, then),
                Err(failure) => Attempt::Failed(failure.into()),
            };
            self.answer.set(Some(WorkerAnswer { input, attempt }));
            self.move_cursor(then);
        };
        if on_gpu {
            self.show_work("Running the workload on the GPU");
            let on_adapter = move |adapter| self.gpu.set(GpuState::Open(adapter));
            jobs::start_on_gpu(&job, on_adapter, on_progress, on_done);
        } else {
            self.show_work("Running the workload");
            jobs::start(&job, on_progress, on_done);
        }
    }

    /// Decides whether workloads run on the reader's GPU or on the virtual device, and runs the present one.
    pub(crate) fn run_on_gpu(self, on_gpu: bool) {
        if self.on_gpu.get_untracked() == on_gpu {
            return;
        }
        let was_at_end = self.is_at_end();
        self.clear_message();
        self.on_gpu.set(on_gpu);
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Runs workloads on the virtual device from now on, and shows why the GPU failed.
    fn lose_gpu(self, why: &str, then: CursorTarget) {
        self.on_gpu.set(false);
        self.follow_change(then);
        self.show_error(format!("The GPU failed: {} The virtual device took over.", sentence(why)));
    }

    /// Finds out whether the browser has a GPU for the page, and if so fetches the module for it.
    pub(crate) async fn ask_for_gpu(self) {
        let presence = gpu::ask().await;
        let is_there = presence == GpuState::Present;
        self.gpu.set(presence);
        if is_there {
            let _ = jobs::prepare_gpu().await;
        }
    }

    /// Begins to show a job. Its progress appears only if the job takes a while, so that short jobs do not flicker.
    pub(crate) fn show_work(self, title: &str) {
        let work = RunningJob {
            title: title.to_owned(),
            phase: String::new(),
            done: 0,
            total: 0,
            is_shown: false,
            read: None,
        };
        self.work.set(Some(work));
        let _ = browser::after_millis(300, move || {
            if self.work.with_untracked(Option::is_some) {
                self.work.update(|work| {
                    if let Some(work) = work {
                        work.is_shown = true;
                    }
                });
            }
        });
    }

    pub(crate) fn show_report(self, report: JobReport) {
        self.work.update(|work| {
            let Some(work) = work else { return };
            match report {
                JobReport::Progress(progress) => {
                    // The growing figure is about the phase in which the file is read, and goes when another phase begins.
                    work.read = work.read.take().filter(|_| progress.phase == work.phase);
                    (work.phase, work.done, work.total) = (progress.phase, progress.done, progress.total);
                }
                JobReport::Read(part) => work.read = Some(part),
            }
        });
    }

    /// Cancels the running job. The open file or workload stays open.
    pub(crate) fn cancel_work(self) {
        jobs::stop();
        self.work.set(None);
        let input = self.input.get_untracked();
        if self.attempt.get_untracked() == Attempt::Long {
            let attempt = Attempt::Failed(run::InputError::Other(
                "Cancelled. Change the text to run it again.".to_owned(),
            ));
            self.answer.set(Some(WorkerAnswer { input, attempt }));
        }
    }

    /// Runs a workload that was just loaded. The cursor goes after its first step, so that there is something to see.
    pub(crate) fn run_first(self) {
        self.follow_change(CursorTarget::Seek(1));
    }
}

/// The text with the new settings and capacity in its header, if the text has a header.
fn with_settings(settings: &SettingsTexts, text: String) -> String {
    let has_header = Workload::parse(&text)
        .is_ok_and(|workload| workload.capacity().is_some() || workload.config().is_some());
    if has_header && parse_size(&settings.capacity).is_ok() {
        with_header(&text, &settings.capacity, &settings.config)
    } else {
        text
    }
}

/// Whether a line of the text looks like a header line with the capacity or the settings. This is a quick test before parsing.
fn may_have_header(text: &str) -> bool {
    text.len() < 200_000
        && text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("capacity ") || line.starts_with("conf ")
        })
}

/// A message of a library as a sentence: with a capital letter and a full stop.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase().to_string()).unwrap_or_default();
    let stop = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
