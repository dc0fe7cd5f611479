//! The limit that a recording implies: requests that the allocator served lie below the limit, refused ones
//! above it.

use blockyard_pytorch::RecordedRun;
use blockyard_pytorch::trace::InferredRun;
use blockyard_record::{Bytes, OnDone, SegmentSnapshot, StreamId, TraceAction};
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::{AllocatorConfig, size};
use blockyard_workload::Request;
use std::borrow::Cow;

use crate::limited_run::FixedConditions;
use crate::outcome::outcome;
use crate::request_numbers::request_text;
use crate::{Conditions, LabError, Limit, LimitKind, LimitSource, Outcome, Run};

/// A stream on which nothing ever runs.
const NOBODYS_STREAM: StreamId = StreamId::new(u64::MAX);

/// The limit that kept the first failed request of a recording from new memory, as the trace shows it.
pub(crate) fn recorded_limit(
    run: &RecordedRun,
    inferred: &InferredRun,
    config: &AllocatorConfig,
) -> Option<Limit> {
    let trace = run.trace.as_deref().filter(|_| run.operations.is_empty())?;
    let mut held: Bytes = inferred.start.segments.iter().map(SegmentSnapshot::mapped).sum();
    let mut most = held;
    for entry in trace {
        match entry.action {
            TraceAction::SegmentAlloc | TraceAction::SegmentMap => held = held.saturating_add(entry.size),
            TraceAction::SegmentFree | TraceAction::SegmentUnmap => held = held.saturating_sub(entry.size),
            TraceAction::OutOfMemory => {
                let wanted = size::segment_size(entry.size, config);
                let device_free = Bytes::new(entry.addr);
                if device_free < wanted {
                    let high = held.saturating_add(device_free);
                    let others = run.meta.total_memory.saturating_sub(high);
                    let limit = Limit::exactly(high, LimitSource::Inferred, LimitKind::Device);
                    return Some(Limit { others, ..limit });
                }
                let high = Bytes::new(held.saturating_add(wanted).get().saturating_sub(1)).max(most);
                let limit = Limit::exactly(high, LimitSource::Inferred, LimitKind::MemoryFraction);
                return Some(Limit { low: most, ..limit });
            }
            _ => {}
        }
        most = most.max(held);
    }
    None
}

/// The implied limit: that of the failure, or else the memory fraction by which garbage was collected.
pub(crate) fn implied_limit(recorded: Option<Limit>, fraction: Option<Bytes>) -> Option<Limit> {
    let is_possible =
        |fraction: &Bytes| recorded.is_none_or(|bounds| bounds.low <= *fraction && *fraction <= bounds.high);
    let by_collection = fraction.filter(is_possible);
    let implied = |limit| Limit::exactly(limit, LimitSource::Inferred, LimitKind::MemoryFraction);
    by_collection.map(implied).or(recorded)
}

impl Run {
    /// Adjusts the implied limit so that the run, under its own settings, fails at the recorded request, as
    /// far as a limit can do that, and says so in a note.
    pub(crate) fn adjust_implied_limit(&mut self, on_progress: OnProgress) -> Result<(), LabError> {
        let (Some(mut limit), Some(request)) = (self.implied_limit(), self.recorded_oom()) else {
            return Ok(());
        };
        let total = self.requests().len();
        let mut on_done = |done: usize| on_progress(Progress::new("looking for the limit", done, total));
        self.treat_releases_as_forced(&mut on_done)?;
        let own = self.conditions();
        let mut failed = Vec::with_capacity(2);
        for fixed in self.fixed_conditions(&own) {
            failed.push(outcome(self, &fixed, 0, &mut on_done)?.failed);
        }
        if let [low, high] = failed[..] {
            // Best fit breaks ties by address, so that a replay at other addresses may need a little more or
            // less than the recorded run.
            if low.is_some_and(|found| found < request) {
                limit.low = limit.high;
                failed.remove(0);
            } else if high.is_none() && low == Some(request) {
                limit.high = limit.low;
            }
        }
        self.set_implied_limit(limit);
        let kind = match limit.by {
            LimitKind::Device => "because the device had no more",
            LimitKind::MemoryFraction => "under a memory fraction that the file does not name",
        };
        self.add_note(format!(
            "the run went out of memory {kind}; the requests that were served and refused show the limit, {}: every \
             answer is for this limit, unless another limit is given",
            limit.range_text()
        ));
        match failed.first() {
            Some(Some(found)) if *found == request => {}
            Some(Some(found)) => self.add_note(format!(
                "a replay goes out of memory at {}, the recorded run did so at {}: addresses decide some ties",
                request_text(self.request_number(*found)),
                request_text(self.request_number(request))
            )),
            _ => self.add_note(
                "a replay does not go out of memory where the recorded run did: addresses decide some ties".to_owned(),
            ),
        }
        Ok(())
    }

    /// Treats releases of the whole cache as forced by the implied limit, if the limit explains them at both
    /// bounds.
    fn treat_releases_as_forced(&mut self, on_done: OnDone) -> Result<(), LabError> {
        let (Some(forced), Some(limit)) = (self.with_forced_releases(), self.implied_limit()) else {
            return Ok(());
        };
        for fixed in self.fixed_conditions(&self.conditions()) {
            if !self.is_same_when_forced(&forced, &fixed, on_done)? {
                return Ok(());
            }
        }
        let note = forced.note(&limit.range_text());
        *self = forced.run;
        self.add_note(note);
        Ok(())
    }

    /// The run in which releases of the whole cache are treated as forced by a given limit, if the limit
    /// explains them.
    ///
    /// A trace shows a call of `empty_cache` and an allocation that finds no memory, releases the cache and
    /// tries again as the same releases. Under a known limit that forces these releases anyway, the calls are
    /// left out, and the requests keep their numbers.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`], and [`LabError::Config`] for wrong settings.
    pub fn under_limit(&self, conditions: &Conditions, on_done: OnDone) -> Result<Cow<'_, Self>, LabError> {
        let (Some(limit), Some(_)) = (conditions.limit, self.recorded_oom()) else {
            return Ok(Cow::Borrowed(self));
        };
        let Some(forced) = self.with_forced_releases() else { return Ok(Cow::Borrowed(self)) };
        for fixed in self.fixed_conditions(&self.conditions().and_limit(limit)) {
            if !self.is_same_when_forced(&forced, &fixed, on_done)? {
                return Ok(Cow::Borrowed(self));
            }
        }
        let note = forced.note(&limit.to_string());
        let mut run = forced.run;
        run.add_note(note);
        Ok(Cow::Owned(run))
    }

    /// The run without the calls of `empty_cache` that may have been releases inside of an allocation; `None`
    /// if it has none.
    fn with_forced_releases(&self) -> Option<ForcedReleases> {
        let is_before_allocation = |index: &usize| {
            matches!(self.requests().get(*index), Some(Request::EmptyCache))
                && matches!(self.requests().get(index + 1), Some(Request::Allocate { .. }))
        };
        let places: Vec<usize> = (0..self.requests().len()).filter(is_before_allocation).collect();
        if places.is_empty() {
            return None;
        }
        let mut requests = self.requests().to_vec();
        for place in &places {
            if let Some(request) = requests.get_mut(*place) {
                *request = Request::Advance { stream: Some(NOBODYS_STREAM) };
            }
        }
        Some(ForcedReleases { run: self.replaced(requests), count: places.len() })
    }

    /// Whether the run does the same under its own settings when its releases are treated as forced.
    fn is_same_when_forced(
        &self,
        forced: &ForcedReleases,
        fixed: &FixedConditions,
        on_done: OnDone,
    ) -> Result<bool, LabError> {
        let called = outcome(self, fixed, 0, on_done)?;
        let refused = outcome(&forced.run, fixed, 0, on_done)?;
        let calls = |outcome: &Outcome| {
            (outcome.device_allocs, outcome.device_frees, outcome.peak_reserved, outcome.requests)
        };
        let retries = called.alloc_retries.saturating_add(forced.count as u64);
        Ok(calls(&called) == calls(&refused) && refused.alloc_retries == retries)
    }
}

/// A run whose releases of the cache are treated as forced by the limit, and the number of these releases.
struct ForcedReleases {
    run: Run,
    count: usize,
}

impl ForcedReleases {
    fn note(&self, limit: &str) -> String {
        let (release, is) = if self.count == 1 { ("release", "is") } else { ("releases", "are") };
        format!(
            "under the limit of {limit} {} {release} of the cache {is} forced by the limit, and not read as a call of empty_cache",
            self.count
        )
    }
}
