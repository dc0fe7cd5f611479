//! A list of stages: each stage is announced and timed, and a failure does not stop the next stage.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The outcome of a stage that did not fail.
pub(crate) enum StageOutcome {
    Passed,
    /// The stage did not run; the text is the reason.
    Skipped(String),
}

/// The stages that have run so far.
pub(crate) struct Stages {
    begun: Instant,
    done: Vec<Stage>,
}

struct Stage {
    name: &'static str,
    took: Duration,
    outcome: Result<StageOutcome>,
}

impl Stage {
    fn outcome_word(&self) -> &'static str {
        match self.outcome {
            Ok(StageOutcome::Passed) => "ok",
            Ok(StageOutcome::Skipped(_)) => "skipped",
            Err(_) => "FAILED",
        }
    }
}

impl Stages {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), done: Vec::new() }
    }

    /// Runs one stage; an error is reported here and again at the end.
    pub(crate) fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result<()>) {
        self.run_or_skip(name, || stage().map(|()| StageOutcome::Passed));
    }

    /// Runs one stage, which reports itself if it cannot run.
    pub(crate) fn run_or_skip(&mut self, name: &'static str, stage: impl FnOnce() -> Result<StageOutcome>) {
        println!("\n==> {name}");
        let begun = Instant::now();
        let outcome = stage();
        let took = begun.elapsed();
        match &outcome {
            Ok(StageOutcome::Passed) => println!("    {name}: ok, {}", seconds(took)),
            Ok(StageOutcome::Skipped(why)) => println!("    {name}: skipped: {why}"),
            Err(error) => println!("    {name}: FAILED after {}: {error:#}", seconds(took)),
        }
        self.done.push(Stage { name, took, outcome });
    }

    /// Prints the table. Fails if a stage failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!();
        for stage in &self.done {
            println!("{:<28} {:<7} {:>8}", stage.name, stage.outcome_word(), seconds(stage.took));
        }
        let named = |word: &str| -> Vec<&str> {
            self.done.iter().filter(|stage| stage.outcome_word() == word).map(|stage| stage.name).collect()
        };
        let (total, all) = (seconds(self.begun.elapsed()), self.done.len());
        let (failed, skipped) = (named("FAILED"), named("skipped"));
        if !failed.is_empty() {
            bail!("{} of {all} stages failed in {total}: {}", failed.len(), failed.join(", "));
        }
        println!("{} of {all} stages passed in {total}", named("ok").len());
        if !skipped.is_empty() {
            println!("skipped: {}", skipped.join(", "));
        }
        Ok(())
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_the_whole_and_stops_nothing() {
        let mut stages = Stages::new();
        let mut ran = 0;
        stages.run("first", || bail!("broken"));
        stages.run("second", || {
            ran += 1;
            Ok(())
        });
        assert_eq!(ran, 1);
        let error = stages.finish().unwrap_err().to_string();
        assert!(error.starts_with("1 of 2 stages failed") && error.ends_with(": first"), "{error}");
    }

    #[test]
    fn a_stage_that_was_skipped_did_not_pass() {
        let mut stages = Stages::new();
        stages.run("first", || Ok(()));
        stages.run_or_skip("second", || Ok(StageOutcome::Skipped("there is no tool".to_owned())));
        let outcome_words: Vec<_> = stages.done.iter().map(Stage::outcome_word).collect();
        assert_eq!(outcome_words, ["ok", "skipped"]);
        assert!(stages.finish().is_ok());
    }
}
