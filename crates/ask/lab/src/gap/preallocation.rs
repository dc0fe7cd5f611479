//! One block that is allocated and freed before all others.

use blockyard_record::{BlockState, Bytes, OnDone, PoolId, PoolKind, StreamId};
use blockyard_rules::size::{self, DEFAULT_LARGE_SEGMENT_SIZE};
use blockyard_workload::{Request, TensorId};

use super::snapshot_after;
use super::trial::{Trial, empty};
use crate::{Conditions, GapAtMoment, GapOutcome, GapRemedy, GapRemedyKind, LabError, Run};

/// How many sizes are replayed at most.
const MAX_REPLAYS: u32 = 20;

/// How many sizes are replayed where the largest one does not fit.
const SAMPLES: u64 = 8;

/// The preallocation that reserves least; of equal ones the smallest. `None` if no size helps.
///
/// The block is for the stream of the moment and the default pool. With expandable segments there is one large
/// segment already. Where the recording begins late, the start of the program is not in it.
pub(super) fn remedy(
    trial: &Trial<'_>,
    conditions: &Conditions,
    moment: &GapAtMoment,
    on_done: OnDone,
) -> Result<Option<GapRemedy>, LabError> {
    let config = conditions.config(trial.run)?;
    let is_possible = moment.pool_id == PoolId::DEFAULT
        && trial.run.requests_from_before() == 0
        && !config.expandable_segments();
    let Some(start) = start(trial.run).filter(|_| is_possible) else { return Ok(None) };
    let Some((live, most)) = bounds(trial, moment, on_done)? else { return Ok(None) };
    let segment = |bytes: Bytes| size::segment_size(size::rounded(bytes, &config), &config);
    let unit = config.large_segment_rounding().get();
    let of_units = |units: u64| Bytes::new(units.saturating_mul(unit));
    let in_units = |bytes: Bytes| bytes.get().checked_div(unit).unwrap_or_default();
    let mut search = Search { trial, start, stream: moment.stream, best: None, replays: 0 };
    let (least, high) = (in_units(DEFAULT_LARGE_SEGMENT_SIZE), in_units(most));
    if high < least {
        return Ok(None);
    }
    if let Some(reserved) = search.reserved(of_units(high), on_done)? {
        // The smallest block beside which no more is reserved than beside the largest one.
        let beside = reserved.saturating_sub(segment(of_units(high)));
        let (mut low, mut high) = (in_units(live).max(least).saturating_sub(1), high);
        while high.saturating_sub(low) > 1 && search.replays < MAX_REPLAYS {
            let middle = low.midpoint(high);
            let reserved = search.reserved(of_units(middle), on_done)?;
            let other = reserved.map(|reserved| reserved.saturating_sub(segment(of_units(middle))));
            if other.is_some_and(|other| other <= beside) {
                high = middle;
            } else {
                low = middle;
            }
        }
    } else {
        for part in 1..SAMPLES {
            let units = high.saturating_mul(part) / SAMPLES;
            if units >= least {
                search.reserved(of_units(units), on_done)?;
            }
        }
    }
    let Some((_, size, outcome)) = search.best else { return Ok(None) };
    let stream = if moment.stream == StreamId::DEFAULT { "" } else { " on the stream of the peak" };
    let name = format!(
        "`torch.empty({}, dtype=torch.uint8, device=\"cuda\")`{stream} as the first tensor, freed at once ({size}),",
        size.get()
    );
    let (changed, end) = with_preallocation(trial, start, size, moment.stream);
    let remedy = GapRemedy { size: Some(size), ..empty(GapRemedyKind::Preallocation) };
    trial.proved(remedy, &name, outcome, (&changed, trial.bounds, end), on_done)
}

/// A search for the size of a preallocation.
struct Search<'a> {
    trial: &'a Trial<'a>,
    start: usize,
    stream: StreamId,
    /// The fewest reserved bytes, the size for them, and the numbers of the replay.
    best: Option<(Bytes, Bytes, GapOutcome)>,
    replays: u32,
}

impl Search<'_> {
    /// The peak of reserved bytes with a preallocation of this size; `None` if a request fails.
    fn reserved(&mut self, size: Bytes, on_done: OnDone) -> Result<Option<Bytes>, LabError> {
        self.replays = self.replays.saturating_add(1);
        let (changed, end) = with_preallocation(self.trial, self.start, size, self.stream);
        let outcome = self.trial.outcome(&changed, self.trial.bounds, end, on_done)?;
        let Some(outcome) = outcome else { return Ok(None) };
        let reserved = outcome.peak_reserved;
        if self.best.is_none_or(|(least, of, _)| (reserved, size) < (least, of)) {
            self.best = Some((reserved, size, outcome));
        }
        Ok(Some(reserved))
    }
}

/// The bytes between which the size is looked for. A block smaller than the live bytes of large segments
/// cannot hold them. With a block larger than all large segments, the run reserves more than before.
fn bounds(
    trial: &Trial<'_>,
    moment: &GapAtMoment,
    on_done: OnDone,
) -> Result<Option<(Bytes, Bytes)>, LabError> {
    let Some(fixed) = trial.bounds.get(trial.place) else { return Ok(None) };
    let end = trial.run.request_index(moment.request).map_or(usize::MAX, |index| index.saturating_add(1));
    let snapshot = snapshot_after(trial.run, fixed, end, on_done)?;
    let (mut live, mut large) = (Bytes::ZERO, Bytes::ZERO);
    for segment in &snapshot.segments {
        if (segment.stream, segment.pool_id, segment.pool)
            == (moment.stream, PoolId::DEFAULT, PoolKind::Large)
        {
            let blocks = segment.blocks.iter().filter(|block| block.state == BlockState::Allocated);
            live = live.saturating_add(blocks.map(|block| block.size).sum());
            large = large.saturating_add(segment.mapped());
        }
    }
    if trial.fails {
        // All that the others leave.
        large = fixed.most().saturating_sub(moment.reserved.saturating_sub(large));
    }
    Ok(Some((live, large)))
}

/// The index of the first request for memory, before which a program can preallocate.
fn start(run: &Run) -> Option<usize> {
    run.requests().iter().position(|request| {
        matches!(request, Request::Allocate { .. } | Request::CreatePool { .. } | Request::EnterPool { .. })
    })
}

/// The run with a block that is allocated and freed before the request with the index `start`, and how many
/// of its requests are replayed.
fn with_preallocation(trial: &Trial<'_>, start: usize, size: Bytes, stream: StreamId) -> (Run, usize) {
    let requests = trial.run.requests();
    let tensors = requests.iter().filter_map(|request| match request {
        Request::Allocate { tensor, .. } => Some(tensor.get().saturating_add(1)),
        _ => None,
    });
    let tensor = TensorId::new(tensors.max().unwrap_or_default());
    let mut changed = Vec::with_capacity(requests.len().saturating_add(2));
    changed.extend_from_slice(requests.get(..start).unwrap_or_default());
    changed.push(Request::Allocate { tensor, size, stream });
    changed.push(Request::Free { tensor });
    changed.extend_from_slice(requests.get(start..).unwrap_or_default());
    (trial.run.with_requests(changed), trial.end.saturating_add(2))
}
