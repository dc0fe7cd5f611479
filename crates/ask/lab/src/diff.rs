//! What changed from one run to another.

mod align;

use std::collections::BTreeMap;
use std::ops::Range;

use blockyard_record::{AllocationId, BlockState, Bytes, Event, EventSink, OnDone};
use blockyard_replay::{OnProgress, Progress};
use blockyard_workload::Request;

use crate::leaks::iteration_ends;
use crate::limited_run::FixedConditions;
use crate::outcome::outcome;
use crate::sites::Sites;
use crate::{Diff, LabError, Outcome, PeakChange, PeakDiff, Run};

/// Says what changed from one run to another. Each run is replayed under its own settings, at the lower bound
/// of the limit that its file implies; a note says where the upper bound gives other peaks.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] when a run cannot be
/// replayed.
pub fn diff(before: &Run, after: &Run, on_progress: OnProgress) -> Result<Diff, LabError> {
    let total = before.requests().len() + after.requests().len();
    let mut on_done = |done: usize| on_progress(Progress::new("comparing runs", done, total));
    let (old, new) = (Sites::of(before), Sites::of(after));
    let (left, right) = (Part::whole(before, &old), Part::whole(after, &new));
    let first = Peaks::of(&left, &mut on_done)?;
    let second = Peaks::of(&right, &mut |done| on_done(before.requests().len() + done))?;
    let mut notes = before.notes();
    let later: Vec<String> = after.notes().into_iter().filter(|note| !notes.contains(note)).collect();
    notes.extend(later);
    for run in [before, after] {
        notes.extend(dependence(run, &mut on_done)?);
    }
    Ok(Diff {
        alignment: align::aligned(&left, &right),
        allocated: first.allocated.change_to(&second.allocated),
        reserved: first.reserved.change_to(&second.reserved),
        notes,
    })
}

/// Says what changed from one iteration of a run to another. Iterations are counted from 1, and found as
/// [`leaks`](crate::leaks) finds them.
///
/// # Errors
///
/// [`LabError::NoIteration`] for an iteration that the run does not have, and the errors of [`diff`].
pub fn diff_iterations(
    run: &Run,
    first: usize,
    second: usize,
    on_progress: OnProgress,
) -> Result<Diff, LabError> {
    let total = 2 * run.requests().len();
    let mut on_done = |done: usize| on_progress(Progress::new("comparing iterations", done, total));
    let sites = Sites::of(run);
    let (_, ends) = iteration_ends(run, &sites);
    let part = |iteration: usize| {
        let end = iteration.checked_sub(1).and_then(|index| ends.get(index)).copied();
        let end = end.ok_or(LabError::NoIteration { iteration, iterations: ends.len() })?;
        let begin = iteration.checked_sub(2).and_then(|index| ends.get(index)).copied().unwrap_or(0);
        Ok::<_, LabError>(Part { run, sites: &sites, requests: begin..end })
    };
    let (left, right) = (part(first)?, part(second)?);
    let before = Peaks::of(&left, &mut on_done)?;
    let after = Peaks::of(&right, &mut |done| on_done(run.requests().len() + done))?;
    Ok(Diff {
        alignment: align::aligned(&left, &right),
        allocated: before.allocated.change_to(&after.allocated),
        reserved: before.reserved.change_to(&after.reserved),
        notes: run.notes().into_iter().chain(dependence(run, &mut on_done)?).collect(),
    })
}

/// A sentence that says that the peaks of a run depend on its limit; `None` if they do not.
fn dependence(run: &Run, on_done: OnDone) -> Result<Option<String>, LabError> {
    let [low, high] = &run.fixed_conditions(&run.conditions())[..] else { return Ok(None) };
    let (at_low, at_high) = (outcome(run, low, 0, on_done)?, outcome(run, high, 0, on_done)?);
    let peaks = |outcome: &Outcome| (outcome.peak_allocated, outcome.peak_reserved);
    let is_same = peaks(&at_low) == peaks(&at_high) && at_low.requests == at_high.requests;
    Ok((!is_same).then(|| {
        format!(
            "the peaks of {} depend on the limit: at {} they are {} allocated and {} reserved, as above, and at {} {} and {}",
            run.name,
            low.most(),
            at_low.peak_allocated,
            at_low.peak_reserved,
            high.most(),
            at_high.peak_allocated,
            at_high.peak_reserved
        )
    }))
}

/// The part of a run that is compared.
struct Part<'a> {
    run: &'a Run,
    sites: &'a Sites,
    /// The requests, as indices.
    requests: Range<usize>,
}

impl<'a> Part<'a> {
    fn whole(run: &'a Run, sites: &'a Sites) -> Self {
        Self { run, sites, requests: 0..run.requests().len() }
    }
}

/// The moments of both peaks of a run.
struct Peaks {
    allocated: Moment,
    reserved: Moment,
}

/// The use of the memory at a moment.
#[derive(Default)]
struct Moment {
    bytes: Bytes,
    /// The number of the request.
    request: u64,
    /// Bytes and number of blocks of each site.
    sites: BTreeMap<Vec<String>, (Bytes, u64)>,
}

/// The request that each allocation served.
#[derive(Default)]
struct AllocationRequests {
    request: usize,
    of: Vec<(AllocationId, usize)>,
}

impl EventSink for AllocationRequests {
    fn record(&mut self, event: Event) {
        if let Event::Allocated { allocation, .. } = event {
            self.of.push((allocation, self.request));
        }
    }
}

impl Peaks {
    fn of(part: &Part<'_>, on_done: OnDone) -> Result<Self, LabError> {
        let (run, sites) = (part.run, part.sites);
        let ends = run.fixed_conditions(&run.conditions());
        let fixed = ends.first().ok_or(LabError::NoTrace)?;
        let (allocated, reserved) = peak_requests(run, fixed, &part.requests, on_done)?;
        let config = fixed.config()?;
        let mut replayer = fixed.replayer(run, &config, AllocationRequests::default())?;
        let mut found = Self { allocated: Moment::default(), reserved: Moment::default() };
        for request in 0..=allocated.max(reserved) {
            if Progress::is_due(request) && on_done(request).is_break() {
                return Err(LabError::Cancelled);
            }
            replayer.sink_mut().request = request;
            replayer.run_to(request + 1)?;
            if request == allocated || request == reserved {
                let snapshot = replayer.snapshot();
                let served = &replayer.sink_mut().of;
                if request == allocated {
                    found.allocated = moment(run.request_number(request), &snapshot, served, sites, false);
                }
                if request == reserved {
                    found.reserved = moment(run.request_number(request), &snapshot, served, sites, true);
                }
            }
        }
        Ok(found)
    }
}

/// The request after which the most bytes are allocated, and the one after which the most are reserved.
fn peak_requests(
    run: &Run,
    fixed: &FixedConditions,
    part: &Range<usize>,
    on_done: OnDone,
) -> Result<(usize, usize), LabError> {
    let config = fixed.config()?;
    let mut replayer = fixed.replayer(run, &config, blockyard_record::NullSink)?;
    let (mut allocated, mut reserved) = ((0, part.start), (0, part.start));
    for (request, kind) in run.requests().iter().enumerate().take(part.end) {
        if Progress::is_due(request) && on_done(request).is_break() {
            return Err(LabError::Cancelled);
        }
        let failed = replayer.run_to(request + 1)?;
        if failed.is_some() && !run.continues_after_oom() {
            break;
        }
        if part.contains(&request) && matches!(kind, Request::Allocate { .. }) {
            let stats = replayer.stats();
            let now = (stats.allocated_bytes.all.current, stats.reserved_bytes.all.current);
            if now.0 > allocated.0 {
                allocated = (now.0, request);
            }
            if now.1 > reserved.0 {
                reserved = (now.1, request);
            }
        }
    }
    Ok((allocated.1, reserved.1))
}

fn moment(
    request: u64,
    snapshot: &blockyard_record::Snapshot,
    served: &[(AllocationId, usize)],
    sites: &Sites,
    has_cache: bool,
) -> Moment {
    let mut moment = Moment { request, ..Moment::default() };
    let mut add = |site: Vec<String>, size: Bytes| {
        let entry = moment.sites.entry(site).or_default();
        *entry = (entry.0.saturating_add(size), entry.1.saturating_add(1));
        moment.bytes = moment.bytes.saturating_add(size);
    };
    for block in snapshot.segments.iter().flat_map(|segment| &segment.blocks) {
        match block.state {
            BlockState::Allocated => {
                let index = block.allocation.map(|id| served.partition_point(|(other, _)| *other < id));
                let request = index.and_then(|index| served.get(index)).map(|(_, request)| *request);
                add(request.map_or_else(Vec::new, |request| sites.name(sites.at(request))), block.size);
            }
            BlockState::Inactive if has_cache => add(vec!["cached".to_owned()], block.size),
            BlockState::PendingFree if has_cache => add(vec!["pending".to_owned()], block.size),
            _ => {}
        }
    }
    moment
}

impl Moment {
    fn change_to(&self, after: &Self) -> PeakDiff {
        let none = (Bytes::ZERO, 0);
        let mut all: BTreeMap<&Vec<String>, [(Bytes, u64); 2]> = BTreeMap::new();
        for (site, bytes) in &self.sites {
            all.entry(site).or_insert([none, none])[0] = *bytes;
        }
        for (site, bytes) in &after.sites {
            all.entry(site).or_insert([none, none])[1] = *bytes;
        }
        let changes = all.into_iter().map(|(site, [before, after])| PeakChange {
            site: site.clone(),
            change: after.0.signed().saturating_sub(before.0.signed()),
            count_before: before.1,
            count_after: after.1,
        });
        let mut terms: Vec<PeakChange> = changes.filter(|part| part.change != 0).collect();
        terms.sort_by(|one, other| {
            other.change.abs().cmp(&one.change.abs()).then_with(|| one.site.cmp(&other.site))
        });
        PeakDiff {
            before: self.bytes,
            after: after.bytes,
            change: after.bytes.signed().saturating_sub(self.bytes.signed()),
            request_before: self.request,
            request_after: after.request,
            terms,
        }
    }
}
