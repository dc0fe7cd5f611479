//! Runs the workload: a short workload at once, a long workload or a run on the GPU in the worker.

use blockyard_figure::PlayerAction;
use blockyard_replay::job::JobError;
use leptos::prelude::*;

use super::WorkloadSignals;
use crate::gpu::{self, GpuState};
use crate::jobs::{self, JobFailure, JobReport};
use crate::messages::sentence;
use crate::ptr_eq::PtrEq;
use crate::run::{self, Attempt, Input, Run};
use crate::session::Feature;
use crate::workers;

/// A run that the worker made of an input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LongRun {
    pub(super) input: Input,
    pub(super) attempt: Attempt,
}

/// Where the cursor goes when a changed workload has run.
#[derive(Clone, Copy, Debug)]
pub(super) enum CursorTarget {
    /// The cursor goes to the end if it was at the end before; otherwise it stays where it is.
    Stay { was_at_end: bool },
    /// The cursor goes to the moment after this many steps.
    Seek(usize),
}

impl Feature<WorkloadSignals> {
    /// Follows a change of sizes: the cursor stays at its step.
    pub(crate) fn follow_sizes(self, was_at_end: bool) {
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Moves the cursor after a change of the workload: now, or when the worker has run a long workload.
    pub(super) fn follow_change(self, then: CursorTarget) {
        match self.attempt.get_untracked() {
            Attempt::Ran(_) => {
                jobs::stop();
                self.session.messages().work.set(None);
                self.move_cursor(then);
            }
            Attempt::Failed(_) => {
                jobs::stop();
                self.session.messages().work.set(None);
            }
            Attempt::Long => self.run_long(then),
        }
    }

    fn move_cursor(self, then: CursorTarget) {
        match then {
            CursorTarget::Stay { was_at_end } => {
                self.session.dispatch(PlayerAction::Loaded { is_at_end: was_at_end });
            }
            CursorTarget::Seek(step) => {
                self.session.dispatch(PlayerAction::Loaded { is_at_end: false });
                self.session.dispatch(PlayerAction::SeekStep(step));
            }
        }
    }

    fn run_long(self, then: CursorTarget) {
        let input = self.input.get_untracked();
        let Ok(job) = run::job(&input) else { return };
        let on_gpu = input.is_on_gpu;
        let on_report = move |report| match report {
            JobReport::Adapter(adapter) => self.gpu.set(GpuState::Open(adapter)),
            report => self.session.messages().show_report(report),
        };
        let on_done = move |result| {
            self.session.messages().work.set(None);
            let attempt = match result {
                Ok(product) => Attempt::Ran(PtrEq::new(Run::new(product))),
                Err(JobFailure::Job(JobError::Device(why))) => return self.lose_gpu(&why, then),
                Err(JobFailure::Worker(why)) if on_gpu => return self.lose_gpu(&why, then),
                Err(failure) => Attempt::Failed(failure.into()),
            };
            self.long_run.set(Some(LongRun { input, attempt }));
            self.move_cursor(then);
        };
        let title = if on_gpu { "Running the workload on the GPU" } else { "Running the workload" };
        self.session.messages().show_work(title);
        jobs::start(job, on_gpu, on_report, on_done);
    }

    /// Runs a workload that was just loaded. The cursor goes to the end of the first step, so that the
    /// figures show some memory.
    pub(crate) fn run_first(self) {
        self.follow_change(CursorTarget::Seek(1));
    }

    /// Cancels the running job. The open file or workload stays open.
    pub(crate) fn cancel_work(self) {
        jobs::stop();
        self.session.messages().work.set(None);
        let input = self.input.get_untracked();
        if self.attempt.get_untracked() == Attempt::Long {
            let attempt = Attempt::Failed(run::InputError::Other(
                "Cancelled. Change the text to run it again.".to_owned(),
            ));
            self.long_run.set(Some(LongRun { input, attempt }));
        }
    }

    /// Decides whether workloads run on the reader's GPU or on the virtual device, and runs the present one.
    pub(crate) fn run_on_gpu(self, on_gpu: bool) {
        if self.is_on_gpu.get_untracked() == on_gpu {
            return;
        }
        let was_at_end = self.session.is_at_end();
        self.session.messages().clear();
        self.is_on_gpu.set(on_gpu);
        self.follow_change(CursorTarget::Stay { was_at_end });
    }

    /// Runs workloads on the virtual device from now on, and shows why the GPU failed.
    fn lose_gpu(self, why: &str, then: CursorTarget) {
        self.is_on_gpu.set(false);
        self.follow_change(then);
        self.session.show_error(format!("The GPU failed: {} The virtual device took over.", sentence(why)));
    }

    /// Finds out whether the browser has a GPU for the page, and if so fetches the module for it.
    pub(crate) async fn ask_for_gpu(self) {
        let presence = gpu::ask().await;
        let is_there = presence == GpuState::Present;
        self.gpu.set(presence);
        if is_there {
            workers::fetch(&workers::GPU).await;
        }
    }
}
