//! The outcome of a replay under some conditions: peaks, failures, counts, a timeline.

use blockyard_device::RecordedDevice;
use blockyard_record::{Bytes, NullSink, OnDone, Stats, StepOutcome, grouped};
use blockyard_replay::{Progress, Replayer};
use blockyard_rules::has_setting;
use blockyard_workload::Request;
use serde::{Deserialize, Serialize};

use crate::limited_run::FixedConditions;
use crate::{Conditions, FirstOom, GapOutcome, LabError, Limit, LimitedRun, Run};

/// The result of a replay under some conditions.
///
/// Peaks are those of the whole run, even if the program reset its statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The most bytes of allocated blocks.
    pub peak_allocated: Bytes,
    /// The most bytes of segments.
    pub peak_reserved: Bytes,
    /// Segments taken from the device, and ranges mapped.
    pub device_allocs: u64,
    /// Segments given back to the device, and ranges unmapped.
    pub device_frees: u64,
    /// Second attempts at a segment, after the cache was released.
    pub alloc_retries: u64,
    /// Requests that ran out of memory; at most one, unless the program continues after a failure.
    pub ooms: u64,
    /// The first request that ran out of memory.
    pub first_oom: Option<FirstOom>,
    /// The index of the first request that ran out of memory.
    pub failed: Option<usize>,
    /// The number of the last request that was replayed; not the last of all if the run ends at a failure.
    pub requests: u64,
    /// Memory over time; empty unless it was asked for.
    pub timeline: Vec<Sample>,
    /// PyTorch's warnings about these settings, and one about two that do not belong together.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Calls of the device: allocations and frees.
    pub fn device_calls(&self) -> u64 {
        self.device_allocs.saturating_add(self.device_frees)
    }
}

/// The most allocated and the most reserved bytes after any request of a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The number of the last request of this part.
    pub until: u64,
    /// Bytes of allocated blocks.
    pub allocated: Bytes,
    /// Bytes of segments.
    pub reserved: Bytes,
}

/// A row of an answer: conditions, and the result under them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The conditions of the replay.
    pub conditions: Conditions,
    /// The limit of the replay, as given or as the file implies; `None` if only the run's own device limits
    /// the run.
    pub limit: Option<Limit>,
    /// The outcome of the replay at the lower bound of the limit, or why there is none.
    pub outcome: Result<Outcome, RowError>,
    /// The outcome at the upper bound, where only bounds of the limit are known.
    pub at_high: Option<Outcome>,
    /// Whether the recording ends at a failed request: [`Run::ends_at_failure`].
    pub ends_at_failure: bool,
}

/// Why a row has no outcome. The errors are texts, so that a row can be sent to another thread or process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The settings are wrong, in PyTorch's words.
    #[error("PYTORCH_CUDA_ALLOC_CONF: {0}")]
    Config(String),
    /// The requests cannot be replayed.
    #[error("{0}")]
    Replay(String),
}

impl Row {
    /// The outcome of the replay at the lower bound of the limit, if there was one.
    pub fn outcome_at_lowest(&self) -> Option<&Outcome> {
        self.outcome.as_ref().ok()
    }

    /// The outcome at the upper bound of the limit; equal to [`Self::outcome_at_lowest`] if the limit is known
    /// exactly.
    pub fn outcome_at_highest(&self) -> Option<&Outcome> {
        self.at_high.as_ref().or(self.outcome_at_lowest())
    }

    /// Whether the capacity of the replay is known and not assumed, or it has a limit other than the capacity.
    pub(crate) fn is_device_known(&self, run: &Run) -> bool {
        !run.is_assumed(self.conditions.capacity_of(run))
            || self.limit.is_some_and(|limit| !limit.is_capacity())
    }

    /// Whether the whole run fits at both bounds of the limit.
    pub fn fits(&self) -> bool {
        let fits = |outcome: Option<&Outcome>| outcome.is_some_and(|outcome| outcome.ooms == 0);
        fits(self.outcome_at_lowest()) && fits(self.outcome_at_highest())
    }

    /// The meaning of a row in which every request passes, in a sentence without a full stop. `grows` is the
    /// line of the program that keeps more with each iteration; `again` names the option with which to run
    /// the program again, if the program is available.
    ///
    /// A recording that ends at a failure does not show which requests would have come next.
    pub fn passes_sentence(&self, grows: Option<&str>, again: Option<&str>) -> String {
        if !self.ends_at_failure {
            return "now the whole run fits".to_owned();
        }
        let unknown = match again {
            Some(again) => format!(
                "this request passes; the program stopped here, and what it would have asked for afterwards is not known: run the program again with {again}"
            ),
            None => {
                "this request passes; what the run would have asked for afterwards is not in the recording"
                    .to_owned()
            }
        };
        match grows {
            Some(line) => {
                format!("{unknown}, and what `{line}` keeps from iteration to iteration fills that too")
            }
            None => unknown,
        }
    }

    /// Whether the run goes out of memory at one bound of the limit and not at the other.
    pub fn depends_on_limit(&self) -> bool {
        match (self.outcome_at_lowest(), &self.at_high) {
            (Some(low), Some(high)) => (low.ooms == 0) != (high.ooms == 0),
            _ => false,
        }
    }

    /// `depends on the limit: between 594 MiB and 614 MiB`; `None` if the bounds of the limit give the same
    /// answer.
    pub fn dependence(&self) -> Option<String> {
        let limit = self.limit.filter(|_| self.depends_on_limit())?;
        Some(format!("depends on the limit: {}", limit.range_text()))
    }
}

/// Replays a run under conditions; a wrong setting is a row with its error. For several settings, a caller
/// makes a [`LimitedRun`] once and asks it.
///
/// `samples` is about how many parts the timeline has, 0 for none. `on_done` gets how many requests are done.
///
/// # Errors
///
/// [`LabError::Cancelled`].
pub fn replay_under(
    run: &Run,
    conditions: &Conditions,
    samples: usize,
    on_done: OnDone,
) -> Result<Row, LabError> {
    LimitedRun::of(run, conditions, on_done)?.row(&conditions.conf, samples, on_done)
}

/// `12 cudaMalloc and cudaFree calls in place of 11 and 1 retry in place of 0`, of one replay or of several
/// under these settings, of which the least and the most are named; retries only where there are any.
/// Expandable segments are mapped and unmapped, and those calls are counted with the others.
pub(crate) fn calls_text(confs: &[&str], replays: &[GapOutcome], own: &GapOutcome) -> String {
    let range = |count: fn(&GapOutcome) -> u64| {
        let counts = replays.iter().map(count);
        (counts.clone().min().unwrap_or_default(), counts.max().unwrap_or_default())
    };
    let text = |(least, most): (u64, u64)| {
        if least == most { grouped(most) } else { format!("{} to {}", grouped(least), grouped(most)) }
    };
    let calls = range(|outcome| outcome.device_calls);
    let expands = confs.iter().any(|conf| has_setting(conf, "expandable_segments", "True"));
    let noun = match (expands, calls.1) {
        (true, _) => "cudaMalloc, cudaFree and cuMemMap calls",
        (false, 1) => "cudaMalloc or cudaFree call",
        (false, _) => "cudaMalloc and cudaFree calls",
    };
    let calls = format!("{} {noun} in place of {}", text(calls), grouped(own.device_calls));
    match (range(|outcome| outcome.alloc_retries), own.alloc_retries) {
        ((_, 0), 0) => calls,
        (retries, own) => {
            let noun = if retries.1 == 1 { "retry" } else { "retries" };
            format!("{calls} and {} {noun} in place of {}", text(retries), grouped(own))
        }
    }
}

pub(crate) fn outcome(
    run: &Run,
    fixed: &FixedConditions,
    samples: usize,
    on_done: OnDone,
) -> Result<Outcome, LabError> {
    outcome_before(run, fixed, samples, run.requests().len(), on_done)
}

/// The outcome of the requests before index `end`.
pub(crate) fn outcome_before(
    run: &Run,
    fixed: &FixedConditions,
    samples: usize,
    end: usize,
    on_done: OnDone,
) -> Result<Outcome, LabError> {
    let config = fixed.config()?;
    let mut warnings = config.warnings().to_vec();
    warnings.extend(config.warning_about_pair().map(str::to_owned));
    let mut replay = Replay {
        run,
        fixed,
        replayer: fixed.replayer(run, &config, NullSink)?,
        outcome: Outcome { warnings, ..Outcome::default() },
        has_ended: false,
    };
    let total = run.requests().len().min(end);
    let part = total.div_ceil(samples.max(1)).max(1);
    let mut resets = run.resets().iter().copied().peekable();
    let mut next_report = 0;
    let mut done = 0;
    while done < total && !replay.has_ended {
        if done >= next_report {
            if on_done(done).is_break() {
                return Err(LabError::Cancelled);
            }
            next_report = done + Progress::INTERVAL;
        }
        let end = total.min(if samples > 0 { (done / part + 1) * part } else { done + Progress::INTERVAL });
        // A reset belongs to the part that it begins, so that the part before it is complete.
        let reset = resets.next_if(|reset| *reset < end);
        let end = reset.unwrap_or(end);
        replay.run_to(end, samples > 0)?;
        if reset.is_some() {
            replay.run_to(end + 1, samples > 0)?;
        }
        done = replay.replayer.next_request();
    }
    replay.outcome.requests = run.number_of_last(replay.replayer.next_request());
    Ok(replay.outcome)
}

struct Replay<'a> {
    run: &'a Run,
    fixed: &'a FixedConditions,
    replayer: Replayer<'a, RecordedDevice, NullSink>,
    outcome: Outcome,
    has_ended: bool,
}

impl Replay<'_> {
    /// Replays the requests before index `end` as one part of the timeline.
    fn run_to(&mut self, end: usize, has_timeline: bool) -> Result<(), LabError> {
        if !has_timeline {
            return self.add(end).map(|_| ());
        }
        // The memory before the first request belongs to the part before.
        let first = self.replayer.next_request().saturating_add(1);
        if first <= end {
            self.add(first)?;
            self.replayer.reset_peaks();
        }
        let sample = self.add(end)?;
        self.outcome.timeline.push(sample);
        self.replayer.reset_peaks();
        Ok(())
    }

    /// Replays the requests before index `end`, and adds their results.
    fn add(&mut self, end: usize) -> Result<Sample, LabError> {
        let before = Counts::of(&self.replayer.stats());
        while !self.has_ended {
            let Some(failed) = self.replayer.run_to(end)? else { break };
            if let StepOutcome::OutOfMemory(message) = failed.result {
                self.fail(failed.request, message);
            }
        }
        let stats = self.replayer.stats();
        let sample = Sample {
            until: self.run.number_of_last(self.replayer.next_request()),
            allocated: stats.allocated_bytes.all.peak_bytes(),
            reserved: stats.reserved_bytes.all.peak_bytes(),
        };
        let outcome = &mut self.outcome;
        outcome.peak_allocated = outcome.peak_allocated.max(sample.allocated);
        outcome.peak_reserved = outcome.peak_reserved.max(sample.reserved);
        let counts = Counts::of(&stats);
        let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
        add(&mut outcome.device_allocs, counts.device_allocs.saturating_sub(before.device_allocs));
        add(&mut outcome.device_frees, counts.device_frees.saturating_sub(before.device_frees));
        add(&mut outcome.alloc_retries, counts.alloc_retries.saturating_sub(before.alloc_retries));
        Ok(sample)
    }

    fn fail(&mut self, request: usize, message: String) {
        self.outcome.ooms = self.outcome.ooms.saturating_add(1);
        self.has_ended = !self.run.continues_after_oom();
        if self.outcome.first_oom.is_none() {
            let requests = self.run.requests();
            let size = match requests.get(request) {
                Some(Request::Allocate { size, .. }) => *size,
                _ => Bytes::ZERO,
            };
            let message =
                if self.run.is_assumed(self.fixed.capacity) { self.failure_text(size) } else { message };
            let before = requests.iter().take(request);
            let allocations = before.filter(|request| matches!(request, Request::Allocate { .. })).count();
            self.outcome.failed = Some(request);
            self.outcome.first_oom = Some(FirstOom {
                request: self.run.request_number(request),
                allocations_before: allocations as u64,
                size,
                message,
            });
        }
    }

    /// The text of a failure on an assumed device. PyTorch's message would have the numbers of that device.
    fn failure_text(&self, size: Bytes) -> String {
        let stats = self.replayer.stats();
        format!(
            "out of memory in a replay where at most {} may be reserved: {size} were asked for, {} were reserved, {} of them allocated",
            self.fixed.most(),
            stats.reserved_bytes.all.current_bytes(),
            stats.allocated_bytes.all.current_bytes()
        )
    }
}

/// Counts that only grow, unless the program resets them.
struct Counts {
    device_allocs: u64,
    device_frees: u64,
    alloc_retries: u64,
}

impl Counts {
    fn of(stats: &Stats) -> Self {
        Self {
            device_allocs: count(stats.num_device_alloc),
            device_frees: count(stats.num_device_free),
            alloc_retries: count(stats.num_alloc_retries),
        }
    }
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::calls_text;
    use crate::GapOutcome;

    #[test]
    fn calls_and_retries_stand_beside_the_runs_own() {
        let of =
            |device_calls, alloc_retries| GapOutcome { device_calls, alloc_retries, ..GapOutcome::default() };
        let own = of(1_100, 0);
        let name = &["max_split_size_mb:32"];
        assert_eq!(calls_text(name, &[of(1, 0)], &own), "1 cudaMalloc or cudaFree call in place of 1,100");
        assert_eq!(
            calls_text(name, &[of(14, 1), of(9, 0), of(12, 3)], &own),
            "9 to 14 cudaMalloc and cudaFree calls in place of 1,100 and 0 to 3 retries in place of 0"
        );
        assert_eq!(
            calls_text(&["expandable_segments:True"], &[of(2, 1)], &of(2, 4)),
            "2 cudaMalloc, cudaFree and cuMemMap calls in place of 2 and 1 retry in place of 4"
        );
    }
}
