//! Sizes that only a replay can decide: best fit skips a free block that is too small, and statistics count
//! bytes.

use std::ops::ControlFlow;

use blockyard_device::AnyDevice;
use blockyard_pytorch::trace::{RewoundMemory, SizeRange, requests_after};
use blockyard_pytorch::{RecordedRun, StatChange, stat_index};
use blockyard_record::{BlockState, Bytes, Snapshot, TraceAction, TraceEntry};
use blockyard_rules::size;

use crate::{OnProgress, Progress, RunError, RunSettings, Runner, device_of};

/// Each attempt decides at least one size. More attempts would take too long.
const MAX_ATTEMPTS: usize = 256;

/// Replays the trace and changes open sizes until the replay agrees with the trace, as far as possible.
pub(crate) fn decide(
    run: &RecordedRun,
    settings: &RunSettings,
    mut rewound: RewoundMemory,
    on_progress: OnProgress,
) -> Result<RewoundMemory, RunError> {
    for _ in 0..MAX_ATTEMPTS {
        if rewound.open.iter().all(|open| open.is_decided) {
            break;
        }
        let Some(change) = attempt(run, settings, &mut rewound, on_progress)? else { break };
        let Change { open, by, decides, is_guess } = change;
        if !rewound.enlarge(open, by) {
            break;
        }
        rewound.open[open].is_decided |= decides;
        rewound.open[open].is_guess |= is_guess;
    }
    rewound.sizes.by_consequence = rewound.open.iter().filter(|open| open.is_decided).count();
    rewound.sizes.open = rewound.open.len() - rewound.sizes.by_consequence;
    Ok(rewound)
}

/// A block that must be larger than assumed.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// The index of the block in [`RewoundMemory::open`].
    open: usize,
    /// How much larger the block is.
    by: Bytes,
    /// Whether the size of the block is known then.
    decides: bool,
    /// Whether another block may be the larger one instead.
    is_guess: bool,
}

/// One replay, up to the first difference that a size explains; `None` if no such difference exists.
fn attempt(
    run: &RecordedRun,
    settings: &RunSettings,
    rewound: &mut RewoundMemory,
    on_progress: OnProgress,
) -> Result<Option<Change>, RunError> {
    let expected = run.trace.as_deref().unwrap_or_default();
    let inferred = requests_after(run, rewound.start.clone())?;
    let device = AnyDevice::new(device_of(run, &inferred));
    let mut runner =
        Runner::beginning_with(device, settings, &inferred.workload, &inferred.start)?.with_trace();
    let until = rewound.open.iter().map(|open| open.freed).max().unwrap_or(0);
    let mut sums = CheckpointSums::new(run);
    if let Some(change) = sums.check(0, &runner.stats(), rewound) {
        return Ok(Some(change));
    }
    let (mut compared, mut index, total) = (0, 0, inferred.workload.requests().len());
    while runner.step()?.is_some() {
        if Progress::is_due(index)
            && on_progress(Progress::new("inferring", index, total)) == ControlFlow::Break(())
        {
            return Err(RunError::Cancelled);
        }
        index += 1;
        let found = runner.trace();
        let differing = (compared..found.len()).find(|place| expected.get(*place) != found.get(*place));
        if let Some(change) = check_snapshots(rewound, expected, found, compared) {
            return Ok(Some(change));
        }
        // Frees that complete in another order are not a difference.
        if let Some(place) = differing.filter(|place| found[*place].action != TraceAction::FreeCompleted) {
            let snapshot = runner.snapshot();
            return Ok(passed_by(rewound, &found[place], place, &snapshot, settings));
        }
        compared = found.len();
        if let Some(change) = sums.check(compared, &runner.stats(), rewound) {
            return Ok(Some(change));
        }
        if compared > until && sums.is_done(until) {
            break;
        }
    }
    Ok(None)
}

/// Compares the active bytes of snapshots, which their trace entries contain.
fn check_snapshots(
    rewound: &mut RewoundMemory,
    expected: &[TraceEntry],
    found: &[TraceEntry],
    from: usize,
) -> Option<Change> {
    let pairs = expected.iter().zip(found).enumerate().skip(from);
    let mut snapshots = pairs.filter(|(_, (expected, found))| {
        expected.action == TraceAction::Snapshot && found.action == TraceAction::Snapshot
    });
    snapshots.find_map(|(place, (expected, found))| {
        let in_use: Vec<usize> =
            (0..rewound.open.len()).filter(|index| rewound.open[*index].gone >= place).collect();
        explain_missing(rewound, &in_use, expected.size.signed().wrapping_sub(found.size.signed()))
    })
}

/// The block whose free neighbor was chosen by our best fit and not by PyTorch's. The neighbor was too small
/// in PyTorch, so the block is larger than assumed.
fn passed_by(
    rewound: &RewoundMemory,
    found: &TraceEntry,
    place: usize,
    after: &Snapshot,
    settings: &RunSettings,
) -> Option<Change> {
    if found.action != TraceAction::Alloc {
        return None;
    }
    let ends_there =
        |open: &SizeRange| open.freed >= place && open.addr.saturating_add(open.size.get()) == found.addr;
    let open = rewound.open.iter().position(ends_there)?;
    let blocks = after.segments.iter().map(|segment| &segment.blocks);
    let (blocks, index) = blocks.into_iter().find_map(|blocks| {
        let index = blocks.binary_search_by_key(&found.addr, |block| block.addr.get()).ok()?;
        Some((blocks, index))
    })?;
    let remainder = blocks.get(index + 1).filter(|next| next.state == BlockState::Inactive);
    let free = remainder.map_or(Bytes::ZERO, |remainder| remainder.size).saturating_add(blocks[index].size);
    let too_much = free.saturating_sub(size::rounded(found.size, &settings.config));
    Some(Change { open, by: too_much.saturating_add(size::MIN_BLOCK_SIZE), decides: false, is_guess: false })
}

/// Compares sums of bytes at checkpoints: the allocated bytes, and the bytes freed between two checkpoints.
struct CheckpointSums<'a> {
    run: &'a RecordedRun,
    /// The index of the next checkpoint.
    next: usize,
    /// For the checkpoint before: its number of trace entries, and the freed bytes in the recording and in
    /// the replay.
    before: Option<(usize, i64, i64)>,
    /// The keys of the allocated and of the freed bytes.
    keys: Option<[usize; 2]>,
}

impl<'a> CheckpointSums<'a> {
    fn new(run: &'a RecordedRun) -> Self {
        let current = stat_index("allocated_bytes.large_pool.current");
        let freed = stat_index("allocated_bytes.large_pool.freed");
        Self { run, next: 0, before: None, keys: current.zip(freed).map(|(current, freed)| [current, freed]) }
    }

    /// Whether no further checkpoint depends on blocks that are freed within this number of entries.
    fn is_done(&self, until: usize) -> bool {
        self.before.is_some_and(|(at, ..)| at > until) || self.next >= self.run.checkpoints.len()
    }

    fn check(
        &mut self,
        entries: usize,
        stats: &blockyard_record::Stats,
        rewound: &mut RewoundMemory,
    ) -> Option<Change> {
        let (_, at, values) = self.run.checkpoints.get(self.next).filter(|(_, at, _)| *at == entries)?;
        self.next += 1;
        let [current, freed] = self.keys?.map(|key| value(values, key));
        let (current, freed) = (current?, freed?);
        let ours = &stats.allocated_bytes.large_pool;
        let live: Vec<usize> = rewound.open_at(*at).collect();
        let change = explain_missing(rewound, &live, current.saturating_sub(ours.current));
        if change.is_some() {
            return change;
        }
        if let Some((from, theirs_before, ours_before)) = self.before {
            let gone: Vec<usize> =
                rewound.open_at(from).filter(|open| rewound.open[*open].freed < *at).collect();
            let missing =
                freed.saturating_sub(theirs_before).saturating_sub(ours.freed.saturating_sub(ours_before));
            let change = explain_missing(rewound, &gone, missing);
            if change.is_some() {
                return change;
            }
        }
        self.before = Some((*at, freed, ours.freed));
        None
    }
}

fn value(values: &[StatChange], key: usize) -> Option<i64> {
    values.iter().find(|change| change.key == key).map(|change| change.value)
}

/// Explains why the replay has `missing` bytes less than the recording, as a sum over the blocks `among`.
/// Each block has its smallest possible size at first. If no bytes are missing, all these sizes are right.
/// Otherwise the first block that can be larger gets the missing bytes.
fn explain_missing(rewound: &mut RewoundMemory, among: &[usize], missing: i64) -> Option<Change> {
    let missing = Bytes::new(u64::try_from(missing).ok()?);
    if missing.is_zero() {
        if among.iter().any(|open| rewound.open[*open].is_guess) {
            return None;
        }
        for open in among {
            rewound.open[*open].is_decided = true;
        }
        return None;
    }
    let can_grow = |open: &&usize| {
        let open = &rewound.open[**open];
        !open.is_decided && open.size.saturating_add(missing) <= open.most
    };
    let able: Vec<usize> = among.iter().filter(can_grow).copied().collect();
    let undecided = among.iter().filter(|open| !rewound.open[**open].is_decided).count();
    let open = *able.first()?;
    Some(Change { open, by: missing, decides: undecided == 1, is_guess: undecided > 1 })
}
