//! `--stop-before-failure`: one signal, some steps before the step that the forecast says fails.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use blockyard_record::grouped;
use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};

use super::text::Say;

/// What a program may take as the order to save a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StopSignal {
    /// What PyTorch Lightning and submitit take from Slurm.
    Usr1,
    Usr2,
    /// What `transformers` takes.
    Term,
}

impl StopSignal {
    fn signal(self) -> (Signal, &'static str) {
        match self {
            Self::Usr1 => (Signal::USR1, "SIGUSR1"),
            Self::Usr2 => (Signal::USR2, "SIGUSR2"),
            Self::Term => (Signal::TERM, "SIGTERM"),
        }
    }
}

/// The processes of a program, and how near each is to its failure.
#[derive(Debug)]
pub(super) struct Stop {
    steps: u64,
    signal: StopSignal,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    processes: BTreeMap<u32, Process>,
    is_done: bool,
}

#[derive(Debug, Default)]
struct Process {
    /// The number of the last step that ended.
    step: u64,
    /// The step that fails, by the last forecast.
    fails: Option<u64>,
}

impl Stop {
    /// Sends the signal so many steps before the failure.
    pub(super) fn new(steps: u64, signal: StopSignal) -> Self {
        Self { steps, signal, state: Mutex::default() }
    }

    /// The process ended this step; 0 at its beginning.
    pub(super) fn note_step(&self, pid: u32, step: u64, say: &Say) {
        self.note(pid, say, |process| process.step = step);
    }

    /// The process fails in this step, or in none that is known.
    pub(super) fn note_forecast(&self, pid: u32, fails: Option<u64>, say: &Say) {
        self.note(pid, say, |process| process.fails = fails);
    }

    /// The process has ended.
    pub(super) fn remove(&self, pid: u32) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).processes.remove(&pid);
    }

    fn note(&self, pid: u32, say: &Say, change: impl FnOnce(&mut Process)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let process = state.processes.entry(pid).or_default();
        change(process);
        let Some(fails) = process.fails.filter(|fails| process.step.saturating_add(self.steps) >= *fails)
        else {
            return;
        };
        if !std::mem::replace(&mut state.is_done, true) {
            say.line(&self.send(state.processes.keys().copied(), fails));
        }
    }

    /// Sends the signal to each process that handles it: checkpoints of several ranks need all of them. A process
    /// without a handler would end and save nothing.
    fn send(&self, processes: impl Iterator<Item = u32>, fails: u64) -> String {
        let (signal, name) = self.signal.signal();
        let has_got = |pid: &u32| {
            handles(*pid, signal.as_raw())
                && i32::try_from(*pid)
                    .ok()
                    .and_then(Pid::from_raw)
                    .is_some_and(|pid| kill_process(pid, signal).is_ok())
        };
        let fails = grouped(fails);
        match processes.filter(has_got).count() {
            0 => format!("step {fails} fails, and the program has no handler of {name}: nothing was sent"),
            1 => format!("step {fails} fails: {name} was sent, so that a checkpoint is saved"),
            count => format!(
                "step {fails} fails: {name} was sent to {count} processes, so that a checkpoint is saved"
            ),
        }
    }
}

/// Whether a process has a handler of a signal.
fn handles(pid: u32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let bits = caught.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    let place = u32::try_from(signal - 1).unwrap_or(u32::MAX);
    bits.checked_shr(place).is_some_and(|bits| bits & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_due_once_and_nobody_without_a_handler_gets_it() {
        let stop = Stop::new(3, StopSignal::Usr1);
        let (own, say) = (std::process::id(), Say::default());
        let is_done = || stop.state.lock().unwrap().is_done;
        stop.note_step(own, 6, &say);
        stop.note_forecast(own, Some(10), &say);
        assert!(!is_done());
        stop.note_forecast(own, None, &say);
        stop.note_step(own, 7, &say);
        assert!(!is_done());
        // This process has no handler, and would end by the signal.
        stop.note_forecast(own, Some(10), &say);
        assert!(is_done());
        let said = stop.send([own].into_iter(), 1_000);
        assert_eq!(said, "step 1,000 fails, and the program has no handler of SIGUSR1: nothing was sent");
    }
}
