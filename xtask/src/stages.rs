//! A row of stages: each is announced, timed and remembered, and a failure does not hide the next one.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// What has run so far.
pub(crate) struct Stages {
    begun: Instant,
    done: Vec<Stage>,
}

struct Stage {
    name: &'static str,
    took: Duration,
    error: Option<anyhow::Error>,
}

impl Stages {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), done: Vec::new() }
    }

    /// Runs one stage; an error is told here and again at the end.
    pub(crate) fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result<()>) {
        println!("\n==> {name}");
        let begun = Instant::now();
        let error = stage().err();
        let took = begun.elapsed();
        match &error {
            None => println!("    {name}: ok, {}", seconds(took)),
            Some(error) => println!("    {name}: FAILED after {}: {error:#}", seconds(took)),
        }
        self.done.push(Stage { name, took, error });
    }

    /// Prints the table and fails if a stage did.
    pub(crate) fn finish(self) -> Result<()> {
        println!();
        for Stage { name, took, error } in &self.done {
            let verdict = if error.is_some() { "FAILED" } else { "ok" };
            println!("{name:<28} {verdict:<6} {:>8}", seconds(*took));
        }
        let failed: Vec<_> =
            self.done.iter().filter(|stage| stage.error.is_some()).map(|stage| stage.name).collect();
        let total = seconds(self.begun.elapsed());
        if !failed.is_empty() {
            bail!("{} of {} stages failed in {total}: {}", failed.len(), self.done.len(), failed.join(", "));
        }
        println!("all {} stages passed in {total}", self.done.len());
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
}
