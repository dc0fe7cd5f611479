//! Why more is reserved than live tensors asked for, and what takes the difference away.

mod empty_cache;
mod parts;
mod preallocation;
mod trial;

use blockyard_record::{Bytes, NullSink, OnDone, PoolId, Snapshot, StreamId};
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::size;
use blockyard_workload::Request;

use crate::autopsy::{first_failure, open_pool};
use crate::limited_run::FixedConditions;
use crate::outcome::outcome_before;
use crate::setting_search::is_drivers_pool;
use crate::{
    Conditions, Finding, FindingTopic, Gap, GapAtMoment, GapOutcome, GapRemedy, GapRemedyKind, LabError,
    LimitedRun, Run, VerdictAnswer, VerdictKind,
};

use parts::most_reserving;
use trial::Trial;

pub(crate) use parts::of_device;

/// A gap below one in this many of the reserved bytes is usual: nothing is said about it, and nothing is
/// tried. Nor is anything said about a change that takes away less than one in this many bytes of the gap.
const MIN_SHARE: u64 = 20;

/// The gap between the reserved and the requested bytes of a run, at the peak and at a failure, and the
/// changes that lower the peak of reserved bytes. `None` if nothing is reserved.
///
/// `setting` is the recommended setting, if there is one. It is replayed beside the other changes.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] if the run cannot be
/// replayed.
pub fn gap(
    run: &Run,
    conditions: &Conditions,
    setting: Option<&str>,
    on_progress: OnProgress,
) -> Result<Option<Gap>, LabError> {
    let total = run.requests().len();
    let mut on_done =
        |done| on_progress(Progress::new("looking for the peak of reserved bytes", done, total));
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let run = limited.run();
    let bounds = limited.conditions_at_bounds(&conditions.conf);
    let failed = first_failure(&limited, conditions, &mut on_done)?;
    // A run that fits is replayed at the lower bound of the limit, as the verdict is.
    let place = failed.as_ref().map_or(0, |failed| failed.place);
    let Some(fixed) = bounds.get(place) else { return Ok(None) };
    let end = failed.as_ref().map_or(total, |failed| failed.request.saturating_add(1));
    let (at_peak, first) = at_peak(run, fixed, end, &mut on_done)?;
    if at_peak.reserved.is_zero() {
        return Ok(None);
    }
    let outcome = outcome_before(run, fixed, 0, end, &mut on_done)?;
    let mut own = GapOutcome::from(&outcome);
    let at_failure = match &failed {
        Some(failed) => {
            let found = after(run, fixed, end, &mut on_done)?;
            let wanted = found.reserved.saturating_add(wanted_segment(run, fixed, failed.request)?);
            own.peak_reserved = own.peak_reserved.max(wanted);
            Some(found)
        }
        None => None,
    };
    let mut gap = Gap { at_peak, at_failure, own: Some(own), remedies: Vec::new() };
    // The cost of calls inside of the driver's pool is not counted.
    if is_large(shown(&gap)) && !is_drivers_pool(&conditions.conf) {
        let trial =
            Trial { limited: &limited, run, bounds: &bounds, place, end, own, fails: failed.is_some() };
        gap.remedies.extend(setting.map(|conf| trial.setting(conf, &mut on_done)).transpose()?.flatten());
        gap.remedies.extend(preallocation::remedy(&trial, conditions, shown(&gap), &mut on_done)?);
        let done = if trial.fails { end } else { first };
        gap.remedies.extend(empty_cache::remedy(&trial, done, on_progress)?);
    }
    Ok(Some(gap))
}

/// Adds the gap to a verdict, with a sentence about it if it is large, and a sentence about each change that
/// helps.
pub(crate) fn add_gap(
    verdict: &mut VerdictAnswer,
    run: &Run,
    conditions: &Conditions,
    on_progress: OnProgress,
) -> Result<(), LabError> {
    if verdict.kind == VerdictKind::NotReplayed {
        return Ok(());
    }
    let Some(gap) = gap(run, conditions, verdict.setting.as_deref(), on_progress)? else { return Ok(()) };
    verdict.findings.extend(findings(&gap));
    verdict.findings.sort_by_key(|finding| finding.about);
    verdict.gap = Some(gap);
    Ok(())
}

/// The sentences about a gap; none if the gap is small.
pub(crate) fn findings(gap: &Gap) -> Vec<Finding> {
    let moment = shown(gap);
    if !is_large(moment) {
        return Vec::new();
    }
    let when = match (&gap.at_failure, &gap.own) {
        (Some(_), _) => "at the failure",
        // A snapshot without a trace has no replay.
        (None, None) => "in the snapshot",
        (None, Some(_)) => "at the peak of reserved memory",
    };
    let mut parts = moment.parts.named();
    parts.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let parts = parts.iter().filter(|(bytes, _)| !bytes.is_zero());
    let parts: Vec<String> = parts.map(|(bytes, name)| format!("{bytes} {name}")).collect();
    let text = format!(
        "{when} {} are reserved for {} requested: {}",
        moment.reserved,
        moment.requested,
        parts.join(", ")
    );
    let request = Some(moment.request).filter(|request| *request > 0);
    let mut findings = vec![Finding { request, ..Finding::new(FindingTopic::Gap, text) }];
    // The verdict has other sentences about settings. What saves little is in the table alone.
    let own = gap.own.unwrap_or_default().peak_reserved;
    let saved = |remedy: &GapRemedy| own.saturating_sub(remedy.outcome.peak_reserved).get();
    let others = gap.remedies.iter().filter(|remedy| {
        remedy.kind != GapRemedyKind::Setting
            && saved(remedy).saturating_mul(MIN_SHARE) >= moment.parts.sum().get()
    });
    findings.extend(others.map(|remedy| Finding::new(FindingTopic::Gap, &remedy.sentence)));
    findings
}

/// The moment of the gap that a reader asks about: the failure, if there is one.
fn shown(gap: &Gap) -> &GapAtMoment {
    gap.at_failure.as_ref().unwrap_or(&gap.at_peak)
}

fn is_large(moment: &GapAtMoment) -> bool {
    let gap = moment.parts.sum();
    !gap.is_zero() && gap.get().saturating_mul(MIN_SHARE) >= moment.reserved.get()
}

/// The segment that a failed request asked for.
fn wanted_segment(run: &Run, fixed: &FixedConditions, request: usize) -> Result<Bytes, LabError> {
    let config = fixed.config()?;
    Ok(match run.requests().get(request) {
        Some(Request::Allocate { size, .. }) => size::segment_size(size::rounded(*size, &config), &config),
        _ => Bytes::ZERO,
    })
}

/// The gap at the peak of the requests before `end`: after the one at which most bytes are reserved; of several
/// the one at which most are allocated, since nothing uses the bytes of its gap even then. With it comes how
/// many requests are done when most bytes are reserved first.
fn at_peak(
    run: &Run,
    fixed: &FixedConditions,
    end: usize,
    on_done: OnDone,
) -> Result<(GapAtMoment, usize), LabError> {
    let (mut first, mut peak, mut most) = (0, 0, Use::default());
    follow(run, fixed, end, on_done, &mut |done, now| {
        if now.reserved > most.reserved {
            first = done;
        }
        if (now.reserved, now.allocated) > (most.reserved, most.allocated) {
            (peak, most) = (done, now);
        }
    })?;
    Ok((after(run, fixed, peak, on_done)?, first))
}

/// The gap after the first `end` requests.
fn after(run: &Run, fixed: &FixedConditions, end: usize, on_done: OnDone) -> Result<GapAtMoment, LabError> {
    let snapshot = snapshot_after(run, fixed, end, on_done)?;
    let (stream, pool_id) = seen_from(run, end, &snapshot);
    let request = run.number_of_last(end);
    Ok(GapAtMoment { request, ..parts::of_replay(&snapshot, &fixed.config()?, stream, pool_id) })
}

/// The segments after the first `end` requests.
fn snapshot_after(
    run: &Run,
    fixed: &FixedConditions,
    end: usize,
    on_done: OnDone,
) -> Result<Snapshot, LabError> {
    let config = fixed.config()?;
    let end = end.min(run.requests().len());
    let mut replayer = fixed.replayer(run, &config, NullSink)?;
    while replayer.next_request() < end {
        let next = replayer.next_request();
        if on_done(next).is_break() {
            return Err(LabError::Cancelled);
        }
        replayer.run_to(end.min(next.saturating_add(Progress::INTERVAL)))?;
    }
    Ok(replayer.snapshot())
}

/// The stream and the memory pool of the last of the first `end` requests, if it asks for memory.
fn seen_from(run: &Run, end: usize, snapshot: &Snapshot) -> (StreamId, PoolId) {
    let before = run.requests().get(..end).unwrap_or_default();
    match before.split_last() {
        Some((Request::Allocate { stream, .. }, before)) => (*stream, open_pool(before)),
        _ => most_reserving(
            snapshot.segments.iter().map(|segment| (segment.stream, segment.pool_id, segment.mapped())),
        ),
    }
}

/// How much memory is in use after a request.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    reserved: Bytes,
    allocated: Bytes,
    cached: Bytes,
}

/// Replays the requests before `end`. After each, `each` gets how many are done, and the use of the memory.
fn follow(
    run: &Run,
    fixed: &FixedConditions,
    end: usize,
    on_done: OnDone,
    each: &mut dyn FnMut(usize, Use),
) -> Result<(), LabError> {
    let config = fixed.config()?;
    let mut replayer = fixed.replayer(run, &config, NullSink)?;
    for request in 0..end.min(run.requests().len()) {
        if Progress::is_due(request) && on_done(request).is_break() {
            return Err(LabError::Cancelled);
        }
        let done = request.saturating_add(1);
        replayer.run_to(done)?;
        let stats = replayer.stats();
        let [reserved, allocated, active] =
            [&stats.reserved_bytes, &stats.allocated_bytes, &stats.active_bytes]
                .map(|bytes_of| bytes_of.all.current_bytes());
        each(done, Use { reserved, allocated, cached: reserved.saturating_sub(active) });
    }
    Ok(())
}
