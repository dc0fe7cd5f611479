//! Many batches of calls, several at the same time.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::both::{Sides, Times, compare_calls};
use super::calls::Call;
use super::report::OracleReport;

/// How many batches run at the same time, and for how long new ones begin.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// How many batches run at the same time.
    pub jobs: usize,
    /// How many calls a process of PyTorch makes.
    pub batch: usize,
    /// The time after which no further batch begins; `None` for all calls.
    pub until: Option<Instant>,
}

/// The comparisons so far.
#[derive(Clone, Debug, Default)]
pub struct JobsOutcome {
    /// The findings.
    pub report: OracleReport,
    /// How many calls were made.
    pub calls: usize,
    /// How long each side took.
    pub times: Times,
    /// How many processes of our side ended early so far; their calls were compared again, in parts.
    pub died: usize,
}

/// The time between two reports of what is compared so far.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

impl Jobs {
    /// Compares all calls, or as many as the time allows. The order of the calls does not depend on the jobs.
    /// `tell` gets the comparisons so far, every ten seconds and at the end.
    ///
    /// # Errors
    ///
    /// The first error of `tell`.
    pub fn run(
        &self,
        sides: Sides<'_>,
        name: &str,
        calls: impl Iterator<Item = Call> + Send,
        tell: impl Fn(&JobsOutcome) -> Result<()> + Sync,
    ) -> Result<JobsOutcome> {
        let calls = Mutex::new((calls, 0_usize));
        let all = Mutex::new((JobsOutcome::default(), Instant::now()));
        let work = || -> Result<()> {
            while self.until.is_none_or(|until| Instant::now() < until) {
                let (batch, number) = {
                    let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
                    calls.1 += 1;
                    (calls.0.by_ref().take(self.batch).collect::<Vec<_>>(), calls.1)
                };
                if batch.is_empty() {
                    break;
                }
                let mut times = Times::default();
                let found = compare_calls(sides, &format!("{name}{number}"), &batch, &mut times);
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                let (finished, last_report) = &mut *all;
                finished.calls += batch.len();
                finished.times += times;
                finished.died = sides.ours.died_count();
                for (call, compared) in batch.iter().zip(found) {
                    finished.report.add(call, compared);
                }
                if last_report.elapsed() > REPORT_INTERVAL {
                    *last_report = Instant::now();
                    tell(finished)?;
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                thread.join().ok().context("a thread of the comparison failed")??;
            }
            anyhow::Ok(())
        })?;
        let finished = all.into_inner().unwrap_or_else(PoisonError::into_inner).0;
        tell(&finished)?;
        Ok(finished)
    }
}
