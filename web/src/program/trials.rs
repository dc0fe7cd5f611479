//! Trials: the shown program runs again with a change, beside its own run, to find out whether it then runs
//! to its end.
//!
//! A replay says only whether the failed request passes; the requests that the program would make afterwards
//! are not in its recording.

use blockyard_record::Bytes;
use leptos::prelude::*;

use super::{ProgramEnd, ProgramInput, ProgramResult, ProgramSignals, job};
use crate::browser;
use crate::interpreter;
use crate::ptr_eq::PtrEq;
use crate::session::Feature;

/// The runs with a change of one run of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trials {
    /// The run that the trials change.
    of: Option<PtrEq<ProgramResult>>,
    /// The trials that ended, in the order of their ends.
    pub(crate) ended: Vec<ProgramTrial>,
    /// The trial that runs.
    pub(crate) running: Option<RunningTrial>,
}

/// A run with a change, which has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramTrial {
    /// The change in words: `expandable_segments:True`.
    pub(crate) change: String,
    /// The program with the change.
    pub(crate) input: ProgramInput,
    /// How the program ended, and the most bytes that were reserved; or why it did not run.
    pub(crate) end: Result<(ProgramEnd, Bytes), String>,
}

/// A run with a change that has not ended yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunningTrial {
    /// The change in words.
    pub(crate) change: String,
    /// The program with the change.
    pub(crate) input: ProgramInput,
    /// The seconds since the trial began.
    pub(crate) seconds: u32,
}

impl ProgramTrial {
    /// The result of the trial as a sentence without a full stop. `failed_at` is the line at which the
    /// program failed without the change.
    pub(crate) fn text(&self, failed_at: u32) -> String {
        let change = &self.change;
        match &self.end {
            Ok((ProgramEnd::Finished, reserved)) => {
                format!("with {change} the program runs to its end, and reserves at most {reserved}")
            }
            Ok((ProgramEnd::OutOfMemory(line), _)) if *line == failed_at => {
                format!("with {change} the program runs out of memory, too, at the same {}", line_text(*line))
            }
            Ok((ProgramEnd::OutOfMemory(line), _)) => {
                format!("with {change} the program runs out of memory, too, at {}", line_text(*line))
            }
            Ok((ProgramEnd::Exception(line), _)) => {
                format!("with {change} the program ends by another exception at {}", line_text(*line))
            }
            Ok((ProgramEnd::Status(status), _)) => {
                format!("with {change} the program ends itself with status {status}")
            }
            Err(why) => format!("with {change} it is not known: {why}"),
        }
    }

    /// The line at which the program failed.
    pub(crate) fn line(&self) -> Option<u32> {
        match self.end {
            Ok((ProgramEnd::OutOfMemory(line) | ProgramEnd::Exception(line), _)) => {
                Some(line).filter(|line| *line > 0)
            }
            _ => None,
        }
    }
}

fn line_text(line: u32) -> String {
    if line == 0 { "a line that is not known".to_owned() } else { format!("line {line}") }
}

impl Feature<ProgramSignals> {
    /// The trials of the run that is shown. Reads signals.
    pub(crate) fn trials_of_shown(self) -> Option<Trials> {
        let shown = self.session.shown_program()?;
        Some(self.trials.get()).filter(|trials| trials.of.as_ref() == Some(&shown))
    }

    /// Runs the shown program with a change, beside its own run. A trial that still runs is given up.
    pub(crate) fn try_program(self, change: String, input: ProgramInput) {
        let Some(shown) = untrack(|| self.session.shown_program()) else { return };
        let job = match job(&input) {
            Ok(job) => job,
            Err(error) => return self.session.show_error(error.to_string()),
        };
        self.trials.update(|trials| {
            if trials.of.as_ref() != Some(&shown) {
                *trials = Trials { of: Some(shown.clone()), ..Trials::default() };
            }
            trials.ended.retain(|ended| ended.change != change);
            trials.running = Some(RunningTrial { change, input: input.clone(), seconds: 0 });
        });
        self.give_up_fit();
        self.count_trial_seconds();
        interpreter::try_out(&job, move |end| {
            let end = end.map(|run| {
                let result = ProgramResult::new(input.clone(), run);
                (result.end(), result.run.series.peak_bytes(&result.run.recording).1)
            });
            self.trials.update(|trials| {
                // A trial of a run that is not shown any more is dropped.
                if trials.of.as_ref() == Some(&shown)
                    && let Some(RunningTrial { change, input, .. }) = trials.running.take()
                {
                    trials.ended.push(ProgramTrial { change, input, end });
                }
            });
        });
    }

    /// Ends the trial that runs.
    pub(crate) fn cancel_trial(self) {
        interpreter::cancel_trial();
        self.trials.update(|trials| trials.running = None);
    }

    /// Puts the program of a trial into the editor and runs it.
    pub(crate) fn show_trial(self, input: ProgramInput) {
        self.input.set(input);
        self.run();
    }

    fn count_trial_seconds(self) {
        browser::each_second(move |seconds| {
            let mut is_same = false;
            self.trials.maybe_update(|trials| {
                if let Some(running) = trials.running.as_mut().filter(|it| it.seconds + 1 == seconds) {
                    running.seconds = seconds;
                    is_same = true;
                }
                is_same
            });
            is_same
        });
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_trial_says_whether_the_program_ends_or_where_it_fails_next() {
        let trial = |end| {
            let change = "expandable_segments:True".to_owned();
            ProgramTrial { change, input: ProgramInput::default(), end }
        };
        let words = |end| trial(end).text(9);
        assert_eq!(
            words(Ok((ProgramEnd::Finished, Bytes::gib(2)))),
            "with expandable_segments:True the program runs to its end, and reserves at most 2 GiB"
        );
        let failed = |line| Ok((ProgramEnd::OutOfMemory(line), Bytes::gib(2)));
        assert_eq!(
            words(failed(12)),
            "with expandable_segments:True the program runs out of memory, too, at line 12"
        );
        assert!(words(failed(9)).ends_with("at the same line 9"));
        assert_eq!((trial(failed(12)).line(), trial(failed(0)).line()), (Some(12), None));
        assert!(words(Err("stopped".to_owned())).ends_with("it is not known: stopped"));
    }
}
