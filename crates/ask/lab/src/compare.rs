//! The requests of a run through other allocators, compared with PyTorch's.

use blockyard_record::{Bytes, Event, EventSink, NullSink, OnDone, StepOutcome};
use blockyard_replay::rivals::{Arena, Bfc, Buddy, NoCache, RivalAllocator, Stitching, Tlsf, Usage};
use blockyard_replay::{OnProgress, Progress, replay_rival};
use blockyard_rules::has_setting;

use crate::limited_run::FixedConditions;
use crate::{AllocatorRow, Conditions, LabError, LimitedRun, Run, is_drivers_pool};

/// Makes an allocator over a device of this many bytes.
type Make = fn(Bytes) -> Box<dyn RivalAllocator>;

/// Runs the requests through PyTorch's allocator under the run's own and a few other settings, and through
/// other allocators.
///
/// `now` is a clock in nanoseconds; host times are those of the models here, on this machine.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings.
pub fn compare_allocators(
    run: &Run,
    conditions: &Conditions,
    now: &mut dyn FnMut() -> u64,
    on_progress: OnProgress,
) -> Result<Vec<AllocatorRow>, LabError> {
    let limited = LimitedRun::of(run, conditions, &mut |_| on_progress(Progress::new("comparing", 0, 0)))?;
    let run = limited.run();
    let rivals: [(&str, Make); 6] = [
        ("TensorFlow's BFC", |capacity| Box::new(Bfc::new(capacity))),
        ("TLSF", |capacity| Box::new(Tlsf::new(capacity))),
        ("buddy", |capacity| Box::new(Buddy::new(capacity))),
        ("RMM's arena", |capacity| Box::new(Arena::new(capacity))),
        ("stitching, GMLake's idea", |capacity| Box::new(Stitching::new(capacity))),
        ("no caching", |capacity| Box::new(NoCache::new(capacity))),
    ];
    let own = if conditions.conf.is_empty() {
        "PyTorch".to_owned()
    } else {
        format!("PyTorch, {}", conditions.conf)
    };
    let mut settings = vec![(own, conditions.conf.clone())];
    if !has_setting(&conditions.conf, "expandable_segments", "True") {
        settings
            .push(("PyTorch, expandable_segments:True".to_owned(), "expandable_segments:True".to_owned()));
    }
    settings.push(("cudaMallocAsync, a model".to_owned(), "backend:cudaMallocAsync".to_owned()));
    let total = (settings.len() + rivals.len()) as u64;
    let mut rows = Vec::new();
    let mut compared =
        |done: usize| on_progress(Progress { phase: "comparing".to_owned(), done: done as u64, total });
    for (name, conf) in settings {
        let done = rows.len();
        let mut on_done = |_: usize| compared(done);
        rows.push(row_at_bounds(&limited.conditions_at_bounds(&conf), |fixed| {
            pytorch(run, fixed, &name, now, &mut on_done)
        })?);
    }
    for (name, make) in rivals {
        let done = rows.len();
        let mut on_done = |_: usize| compared(done);
        rows.push(row_at_bounds(&limited.conditions_at_bounds(&conditions.conf), |fixed| {
            rival(run, name, || make(fixed.most()), now, &mut on_done)
        })?);
    }
    Ok(rows)
}

/// The row at the lower bound of the limit, with what failed at the upper one.
fn row_at_bounds(
    ends: &[FixedConditions],
    mut row: impl FnMut(&FixedConditions) -> Result<AllocatorRow, LabError>,
) -> Result<AllocatorRow, LabError> {
    let low = row(ends.first().ok_or(LabError::NoTrace)?)?;
    let failed_at_high = match ends.get(1) {
        Some(high) => row(high)?.failed,
        None => low.failed,
    };
    Ok(AllocatorRow { failed_at_high, ..low })
}

/// The reserved, allocated and requested bytes at the peak of reserved bytes.
#[derive(Default)]
struct Peak {
    reserved: Bytes,
    allocated: Bytes,
    requested: Bytes,
}

impl Peak {
    fn saw(&mut self, reserved: Bytes, allocated: Bytes, requested: Bytes) {
        if reserved > self.reserved {
            *self = Self { reserved, allocated, requested };
        }
    }

    fn row(
        self,
        name: &str,
        peak: Bytes,
        calls: Option<u64>,
        failed: Option<u64>,
        nanos: Option<f64>,
    ) -> AllocatorRow {
        AllocatorRow {
            name: name.to_owned(),
            peak_reserved: peak,
            external_fragmentation: self.reserved.saturating_sub(self.allocated),
            internal_fragmentation: self.allocated.saturating_sub(self.requested),
            device_calls: calls,
            failed,
            failed_at_high: failed,
            nanos_per_request: nanos,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds and requests of one run")]
fn per_request(nanos: u64, requests: usize) -> Option<f64> {
    /// The fewest requests that are timed: a browser's clock has a resolution of 100 microseconds.
    const MIN_REQUESTS: usize = 1000;
    (requests >= MIN_REQUESTS).then(|| nanos as f64 / requests as f64)
}

fn rival(
    run: &Run,
    name: &str,
    make: impl Fn() -> Box<dyn RivalAllocator>,
    now: &mut dyn FnMut() -> u64,
    on_done: OnDone,
) -> Result<AllocatorRow, LabError> {
    let mut timed = make();
    let begin = now();
    let outcome = replay_rival(run.plan(), &mut *timed, None, on_done)?;
    let nanos = now().saturating_sub(begin);
    let mut sampled = make();
    let mut peak = Peak::default();
    let mut saw = |usage: Usage| peak.saw(usage.reserved, usage.allocated, usage.requested);
    replay_rival(run.plan(), &mut *sampled, Some(&mut saw), on_done)?;
    let usage = sampled.usage();
    let calls = usage.device_allocs.saturating_add(usage.device_frees);
    let failed = outcome.failed.map(|failed| run.request_number(failed));
    Ok(peak.row(name, usage.peak_reserved, Some(calls), failed, per_request(nanos, outcome.requests)))
}

/// Notes whether the allocator took memory from the device.
#[derive(Default)]
struct GrowthSink(bool);

impl EventSink for GrowthSink {
    fn record(&mut self, event: Event) {
        self.0 |= matches!(event, Event::SegmentAllocated { .. } | Event::Mapped { .. });
    }
}

fn pytorch(
    run: &Run,
    fixed: &FixedConditions,
    name: &str,
    now: &mut dyn FnMut() -> u64,
    on_done: OnDone,
) -> Result<AllocatorRow, LabError> {
    let config = fixed.config()?;
    let total = run.requests().len();
    let mut timed = fixed.replayer(run, &config, NullSink)?;
    let begin = now();
    let mut failed = None;
    while failed.is_none() {
        if on_done(timed.next_request()).is_break() {
            return Err(LabError::Cancelled);
        }
        match timed.run_to(total)? {
            Some(request) if matches!(request.result, StepOutcome::OutOfMemory(_)) => {
                failed = Some(run.request_number(request.request));
            }
            Some(_) => {}
            None => break,
        }
    }
    let nanos = now().saturating_sub(begin);
    let done = timed.next_request();
    let mut peak = Peak::default();
    let mut sampled = fixed.replayer(run, &config, GrowthSink::default())?;
    for request in 0..done {
        if Progress::is_due(request) && on_done(request).is_break() {
            return Err(LabError::Cancelled);
        }
        sampled.run_to(request + 1)?;
        if std::mem::take(&mut sampled.sink_mut().0) {
            let stats = sampled.stats();
            let allocated = stats.allocated_bytes.all.current_bytes();
            let requested = stats.requested_bytes.all.current_bytes();
            // PyTorch does not count what was requested of the driver's own pool, which rounds nothing up.
            let requested = if requested.is_zero() { allocated } else { requested };
            peak.saw(stats.reserved_bytes.all.current_bytes(), allocated, requested);
        }
    }
    let outcome = crate::outcome::outcome(run, fixed, 0, on_done)?;
    let calls = (!is_drivers_pool(&fixed.conf)).then(|| outcome.device_calls());
    Ok(peak.row(name, outcome.peak_reserved, calls, failed, per_request(nanos, done)))
}
