//! What changed from one run to another.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use blockyard_record::{AllocationId, BlockState, Bytes, Event, EventSink};
use blockyard_replay::{AllocatorConfig, OnProgress, Progress};
use blockyard_workload::Request;
use serde::{Deserialize, Serialize};

use crate::sites::Sites;
use crate::{LabError, Run};

mod align;

pub use align::Alignment;

/// Two runs, and why one needs more memory at its peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// How the allocations of the two runs correspond.
    pub alignment: Alignment,
    /// The change of the most bytes that were in the program's hands.
    pub allocated: PeakDiff,
    /// The change of the most bytes that were reserved.
    pub reserved: PeakDiff,
    /// What is not known about the runs, in sentences.
    pub notes: Vec<String>,
}

/// The change of a peak as a sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakDiff {
    /// The peak of the first run.
    pub before: Bytes,
    /// The peak of the second run.
    pub after: Bytes,
    /// The request at which the first run has its peak, counted from 1.
    pub request_before: u64,
    /// The request at which the second run has its peak, counted from 1.
    pub request_after: u64,
    /// What the change consists of, the largest first; they add up to `after` - `before`, to the byte.
    pub terms: Vec<PeakChange>,
}

/// A part of the change of a peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakChange {
    /// The call site, innermost frame first; or one of `cached` and `pending`, for bytes in nobody's hands.
    pub site: Vec<String>,
    /// More bytes (or less) at the peak of the second run.
    pub change: i64,
    /// Live allocations of the site at the peak of the first run.
    pub count_before: u64,
    /// Live allocations of the site at the peak of the second run.
    pub count_after: u64,
}

/// Says what changed from one run to another, each under its own settings.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] when a run cannot be replayed.
pub fn diff(before: &Run, after: &Run, on_progress: OnProgress) -> Result<Diff, LabError> {
    let total = before.requests().len() + after.requests().len();
    let mut tell = |done: usize| {
        on_progress(Progress { phase: "comparing runs".to_owned(), done: done as u64, total: total as u64 })
    };
    let (old, new) = (Sites::of(before), Sites::of(after));
    let first = Peaks::of(before, &old, &mut tell)?;
    let second = Peaks::of(after, &new, &mut |done| tell(before.requests().len() + done))?;
    let mut notes = before.notes().to_vec();
    notes.extend(after.notes().iter().filter(|note| !before.notes().contains(note)).cloned());
    Ok(Diff {
        alignment: align::aligned(before, &old, after, &new),
        allocated: first.allocated.change_to(&second.allocated),
        reserved: first.reserved.change_to(&second.reserved),
        notes,
    })
}

/// The moments of both peaks of a run.
struct Peaks {
    allocated: Moment,
    reserved: Moment,
}

/// What memory was used for at a moment.
#[derive(Default)]
struct Moment {
    bytes: Bytes,
    request: usize,
    /// Bytes and number of blocks of each site.
    sites: BTreeMap<Vec<String>, (Bytes, u64)>,
}

const INTERVAL: usize = 8192;

/// Which request every allocation came from.
#[derive(Default)]
struct Served {
    request: usize,
    of: Vec<(AllocationId, usize)>,
}

impl EventSink for Served {
    fn record(&mut self, event: Event) {
        if let Event::Allocated { allocation, .. } = event {
            self.of.push((allocation, self.request));
        }
    }
}

impl Peaks {
    fn of(
        run: &Run,
        sites: &Sites,
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let (allocated, reserved) = peak_requests(run, tell)?;
        let config: AllocatorConfig = run.config.parse()?;
        let mut replayer = run.conditions().replayer(run, &config, Served::default())?;
        let mut found = Self { allocated: Moment::default(), reserved: Moment::default() };
        for request in 0..=allocated.max(reserved) {
            if request.is_multiple_of(INTERVAL) && tell(request).is_break() {
                return Err(LabError::Cancelled);
            }
            replayer.sink_mut().request = request;
            replayer.run_to(request + 1)?;
            if request == allocated || request == reserved {
                let snapshot = replayer.snapshot();
                let served = &replayer.sink_mut().of;
                if request == allocated {
                    found.allocated = moment(request, &snapshot, served, sites, false);
                }
                if request == reserved {
                    found.reserved = moment(request, &snapshot, served, sites, true);
                }
            }
        }
        Ok(found)
    }
}

/// The requests behind which most is allocated, and most reserved.
fn peak_requests(
    run: &Run,
    tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<(usize, usize), LabError> {
    let config: AllocatorConfig = run.config.parse()?;
    let mut replayer = run.conditions().replayer(run, &config, blockyard_record::NullSink)?;
    let (mut allocated, mut reserved) = ((0, 0), (0, 0));
    for (request, kind) in run.requests().iter().enumerate() {
        if request.is_multiple_of(INTERVAL) && tell(request).is_break() {
            return Err(LabError::Cancelled);
        }
        let failed = replayer.run_to(request + 1)?;
        if failed.is_some() && !run.goes_on_after_oom() {
            break;
        }
        if matches!(kind, Request::Allocate { .. }) {
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
    request: usize,
    snapshot: &blockyard_record::Snapshot,
    served: &[(AllocationId, usize)],
    sites: &Sites,
    with_cache: bool,
) -> Moment {
    let mut moment = Moment { request, ..Moment::default() };
    let mut add = |site: Vec<String>, size: Bytes| {
        let entry = moment.sites.entry(site).or_default();
        *entry = (entry.0.saturating_add(size), entry.1 + 1);
        moment.bytes = moment.bytes.saturating_add(size);
    };
    for block in snapshot.segments.iter().flat_map(|segment| &segment.blocks) {
        match block.state {
            BlockState::Allocated => {
                let place = block.allocation.map(|id| served.partition_point(|(other, _)| *other < id));
                let request = place.and_then(|place| served.get(place)).map(|(_, request)| *request);
                add(request.map_or_else(Vec::new, |request| sites.name(sites.at(request))), block.size);
            }
            BlockState::Inactive if with_cache => add(vec!["cached".to_owned()], block.size),
            BlockState::PendingFree if with_cache => add(vec!["pending".to_owned()], block.size),
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
        let terms = all.into_iter().map(|(site, [before, after])| PeakChange {
            site: site.clone(),
            change: after.0.signed() - before.0.signed(),
            count_before: before.1,
            count_after: after.1,
        });
        let mut terms: Vec<PeakChange> = terms.filter(|term| term.change != 0).collect();
        terms.sort_by(|one, other| {
            other.change.abs().cmp(&one.change.abs()).then_with(|| one.site.cmp(&other.site))
        });
        PeakDiff {
            before: self.bytes,
            after: after.bytes,
            request_before: self.request as u64 + 1,
            request_after: after.request as u64 + 1,
            terms,
        }
    }
}
