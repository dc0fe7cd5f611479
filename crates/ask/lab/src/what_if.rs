//! What if: the run under other conditions, beside the run under its own.

use std::ops::ControlFlow;

use blockyard_replay::{OnProgress, Progress};
use serde::{Deserialize, Serialize};

use crate::difference::first_difference;
use crate::{Conditions, FirstDifference, LabError, Limit, LimitedRun, Row, Run};

/// A run under other conditions, beside the run under its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIf {
    /// The run under the settings that it was recorded with and the limit that its file implies, replayed by
    /// the same rule of addresses.
    pub baseline: Row,
    /// The run under each of the other conditions, in the order in which they were asked for.
    pub rows: Vec<Row>,
    /// For each row, the first request that leads to other events than in the baseline.
    pub differences: Vec<Option<FirstDifference>>,
    /// Sentences about facts that are not known about the run.
    pub notes: Vec<String>,
}

/// Replays a run under its own conditions and under each of the others.
///
/// `samples` is about how many parts each timeline has, 0 for none. The limit and the capacity of the
/// baseline are the run's own: a run that went out of memory is replayed under the limit that its file
/// implies, in the baseline and in every row whose conditions name no other limit.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Run`] if the first difference cannot be replayed. A wrong setting is a row with
/// its error.
pub fn what_if(
    run: &Run,
    conditions: &[Conditions],
    samples: usize,
    on_progress: OnProgress,
) -> Result<WhatIf, LabError> {
    let requests = run.requests().len();
    let mut tell =
        ReplayProgress { requests, total: requests * (2 * conditions.len() + 1), before: 0, on_progress };
    let own = run.conditions();
    let baseline =
        LimitedRun::of(run, &own, &mut |done| tell.at(done))?
            .row(&own.conf, samples, &mut |done| tell.at(done))?;
    let mut rows = Vec::with_capacity(conditions.len());
    let mut differences = Vec::with_capacity(conditions.len());
    for other in conditions {
        tell.next();
        let limited = LimitedRun::of(run, other, &mut |done| tell.at(done))?;
        let mut row = limited.row(&other.conf, samples, &mut |done| tell.at(done))?;
        if let Ok(outcome) = &mut row.outcome {
            outcome.warnings.extend(limit_left_out(run, other));
        }
        tell.next();
        differences.push(match (&baseline.outcome, &row.outcome) {
            (Ok(_), Ok(_)) => first_difference(limited.run(), &own, other, &mut |done| tell.at(done))?,
            _ => None,
        });
        rows.push(row);
    }
    Ok(WhatIf { baseline, rows, differences, notes: run.notes() })
}

/// A note that a given device replaces the limit that a memory fraction set on the run's own device; `None`
/// if it does not.
fn limit_left_out(run: &Run, conditions: &Conditions) -> Option<String> {
    let limit = run.implied_limit().filter(Limit::is_fraction)?;
    (conditions.capacity.is_some() && conditions.limit.is_none()).then(|| {
        let bounds = limit.bound_values().iter().map(ToString::to_string).collect::<Vec<_>>().join(" to ");
        format!(
            "The run had a limit of the process ({bounds}), which is left out here. A program that sets a memory fraction gets that \
             share of this device: give the limit, too."
        )
    })
}

/// Progress of several replays, one after the other.
struct ReplayProgress<'a> {
    requests: usize,
    total: usize,
    before: usize,
    on_progress: OnProgress<'a>,
}

impl ReplayProgress<'_> {
    fn at(&mut self, done: usize) -> ControlFlow<()> {
        (self.on_progress)(Progress::new("replaying", self.before + done, self.total))
    }

    fn next(&mut self) {
        self.before += self.requests;
    }
}
