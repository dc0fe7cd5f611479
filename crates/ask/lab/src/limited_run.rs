//! A run under the limit that counts for it, from which every answer is computed.

use blockyard_device::RecordedDevice;
use blockyard_record::{Bytes, EventSink, OnDone};
use blockyard_replay::Replayer;
use blockyard_rules::{AllocatorConfig, ConfigError, Release};
use std::borrow::Cow;

use crate::outcome::{outcome, outcome_before};
use crate::{Conditions, LabError, Limit, LimitKind, LimitSource, Outcome, Row, RowError, Run};

/// A run, and the limit under which it is replayed: the given limit, or else the limit that the file implies.
///
/// Every question makes a `LimitedRun`, so that two answers about a file cannot contradict each other. If
/// only bounds of the limit are known, every setting is replayed at both bounds.
#[derive(Clone, Debug)]
pub struct LimitedRun<'a> {
    run: Cow<'a, Run>,
    conditions: Conditions,
    limit: Option<Limit>,
}

impl<'a> LimitedRun<'a> {
    /// A run under the device and the limit of `conditions`, or under its own if `conditions` name none.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`]. Errors of the run or its settings are in the rows.
    pub fn of(run: &'a Run, conditions: &Conditions, on_done: OnDone) -> Result<Self, LabError> {
        run.require_requests()?;
        let read = match run.under_limit(conditions, on_done) {
            Err(LabError::Cancelled) => return Err(LabError::Cancelled),
            read => read.unwrap_or(Cow::Borrowed(run)),
        };
        let limit = read.limit_under(conditions);
        Ok(Self { run: read, conditions: conditions.clone(), limit })
    }

    /// The run, with releases of the cache treated as the limit explains them ([`Run::under_limit`]).
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The limit; `None` if only the run's own device limits the run.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// The conditions of the replays with a setting: at the lower bound of the limit and, if the bounds
    /// differ, at the upper bound.
    pub(crate) fn conditions_at_bounds(&self, conf: &str) -> Vec<FixedConditions> {
        self.run.fixed_conditions(&self.conditions.and_conf(conf))
    }

    /// The run under a setting, at both bounds of the limit; a wrong setting is a row with its error.
    ///
    /// `samples` is about how many parts each timeline has, 0 for none. `on_done` gets how many requests are
    /// done.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub fn row(&self, conf: &str, samples: usize, on_done: OnDone) -> Result<Row, LabError> {
        row(&self.run, &self.conditions.and_conf(conf), samples, on_done)
    }
}

/// A run under conditions, at both bounds of the limit.
pub(crate) fn row(
    run: &Run,
    conditions: &Conditions,
    samples: usize,
    on_done: OnDone,
) -> Result<Row, LabError> {
    let mut at_ends = Vec::with_capacity(2);
    for fixed in run.fixed_conditions(conditions) {
        at_ends.push(match outcome(run, &fixed, samples, on_done) {
            Ok(outcome) => Ok(outcome),
            Err(LabError::Cancelled) => return Err(LabError::Cancelled),
            Err(LabError::Config(error)) => Err(RowError::Config(error.to_string())),
            Err(error) => Err(RowError::Replay(error.to_string())),
        });
    }
    let mut at_ends = at_ends.into_iter();
    // Fixed conditions have a first element always: those at the lower bound of the limit.
    let outcome = at_ends.next().unwrap_or_else(|| Err(RowError::Replay("nothing was replayed".to_owned())));
    let at_high = at_ends.next().and_then(Result::ok);
    Ok(Row {
        conditions: conditions.clone(),
        limit: run.limit_under(conditions),
        outcome,
        at_high,
        ends_at_failure: run.ends_at_failure(),
    })
}

/// The conditions of one replay, each with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FixedConditions {
    pub(crate) conf: String,
    /// The release of PyTorch whose rules hold.
    pub(crate) release: Release,
    /// All bytes of the device.
    pub(crate) capacity: Bytes,
    /// The most that may be reserved; `None` without a memory fraction.
    pub(crate) limit: Option<Bytes>,
}

impl FixedConditions {
    /// The most that may be reserved.
    pub(crate) fn most(&self) -> Bytes {
        self.limit.map_or(self.capacity, |limit| limit.min(self.capacity))
    }

    /// The settings as the release reads them.
    pub(crate) fn config(&self) -> Result<AllocatorConfig, ConfigError> {
        AllocatorConfig::parse(&self.conf, self.release)
    }

    /// The outcome of the first `end` requests of a run if each of them is served; `None` if one fails, and if the
    /// release refuses the settings.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`], and [`LabError::Run`] if the requests cannot be replayed.
    pub(crate) fn served(&self, run: &Run, end: usize, on_done: OnDone) -> Result<Option<Outcome>, LabError> {
        match outcome_before(run, self, 0, end, on_done) {
            Err(LabError::Config(_)) => Ok(None),
            found => Ok(Some(found?).filter(|outcome| outcome.ooms == 0)),
        }
    }

    /// A replayer of a run before its first request.
    pub(crate) fn replayer<'a, S: EventSink>(
        &self,
        run: &'a Run,
        config: &AllocatorConfig,
        sink: S,
    ) -> Result<Replayer<'a, RecordedDevice, S>, LabError> {
        let mut replayer = Replayer::new(run.plan(), config, run.device(self.capacity), sink)?;
        if let Some(limit) = self.limit {
            replayer.set_memory_fraction(share(limit, self.capacity))?;
        }
        Ok(replayer)
    }
}

/// The share of `capacity` that limits the reserved bytes to `limit`, to the byte.
#[expect(clippy::cast_precision_loss, reason = "the allocator multiplies doubles")]
fn share(limit: Bytes, capacity: Bytes) -> f64 {
    // A quarter of a byte is added, so that the product is the limit again, whether it is cut off or rounded.
    ((limit.get() as f64 + 0.25) / capacity.get().max(1) as f64).min(1.0)
}

impl Run {
    /// The limit of the run under conditions: the limit that they give, or else the limit that the file
    /// implies. `None` if only the run's own device limits the run.
    pub fn limit_under(&self, conditions: &Conditions) -> Option<Limit> {
        let capacity = conditions.capacity_of(self);
        if let Some(limit) = conditions.limit {
            return Some(Limit::exactly(limit.min(capacity), LimitSource::Given, LimitKind::MemoryFraction));
        }
        match conditions.capacity {
            Some(capacity) => Some(Limit::exactly(capacity, LimitSource::Given, LimitKind::Device)),
            None => self.implied_limit(),
        }
    }

    /// The conditions of the replays: at the lower bound of the limit and, if the bounds differ, at the upper
    /// bound.
    pub(crate) fn fixed_conditions(&self, conditions: &Conditions) -> Vec<FixedConditions> {
        let capacity = conditions.capacity_of(self);
        let release = conditions.release_of(self);
        let fixed =
            |capacity, limit| FixedConditions { conf: conditions.conf.clone(), release, capacity, limit };
        match self.limit_under(conditions) {
            None => vec![fixed(capacity, None)],
            Some(limit) if limit.is_capacity() => vec![fixed(capacity, None)],
            // A full device is replayed as a smaller device, because a memory fraction would switch garbage
            // collection on.
            Some(limit) if limit.by == LimitKind::Device => {
                limit.bound_values().into_iter().map(|end| fixed(end, None)).collect()
            }
            Some(limit) => limit.bound_values().into_iter().map(|end| fixed(capacity, Some(end))).collect(),
        }
    }
}
