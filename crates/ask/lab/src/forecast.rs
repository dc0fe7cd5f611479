//! What becomes of a run if its iterations go on: the last whole iterations replayed forward.

mod periodic;
mod running;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use blockyard_record::{
    BlockState, Bytes, NullSink, OnDone, PoolId, PoolKind, SegmentSnapshot, Snapshot, StepOutcome, StreamId,
    frame_text, grouped, own_line,
};
use blockyard_workload::Request;

pub use self::running::{forecast, forecast_settings};

use self::periodic::Periodic;
use crate::limited_run::FixedConditions;
use crate::{Conditions, Forecast, LabError, Leaks, Run};

/// Replays have at most about this many requests; a growth that takes longer is continued in a straight line.
const MAX_REQUESTS: usize = 1 << 19;

/// Replays of 8, 64, 512, ... groups of iterations.
const LENGTHS: u32 = 8;

/// For how many iterations the memory is compared with that of earlier ones.
const COMPARED: usize = 64;

/// The iterations of a run, ready to be replayed forward.
pub(crate) struct Forecaster<'a> {
    run: &'a Run,
    periodic: Periodic,
    /// The run with 8, 64, 512, ... more groups of iterations.
    longer: [OnceCell<Option<Run>>; LENGTHS as usize],
}

/// The end of a replay forward, at one bound of the limit.
enum End {
    Repeats,
    Fails {
        iteration: u64,
        request: usize,
    },
    /// No failure so far: the iterations, and the reserved bytes in the middle and at the end of the replay.
    Open {
        iterations: u64,
        middle: Bytes,
        last: Bytes,
    },
}

impl<'a> Forecaster<'a> {
    /// `None` if no iterations are known, or the last whole ones are not equal but for steps of their sizes.
    pub(crate) fn of(run: &'a Run, leaks: &Leaks) -> Option<Self> {
        if !leaks.has_known_iterations {
            return None;
        }
        Self::of_ends(run, &leaks.ends)
    }

    /// As [`Forecaster::of`], of a run whose iterations end here. The last one may be cut off.
    fn of_ends(run: &'a Run, ends: &[usize]) -> Option<Self> {
        let periodic = Periodic::of(run, ends)?;
        Some(Self { run, periodic, longer: Default::default() })
    }

    /// The iterations of a run that ends at a failure, if they lead to this failure when those before it are
    /// replayed forward.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn to_failure(
        cut: &'a Run,
        conditions: &Conditions,
        leaks: &Leaks,
        on_done: OnDone,
    ) -> Result<Option<Self>, LabError> {
        let Some(forecaster) = Self::of(cut, leaks) else { return Ok(None) };
        let failed = leaks.answer.boundaries.len() as u64;
        let agrees = match forecaster.forecast(conditions, on_done)? {
            Some(Forecast::Fails { iteration, at_upper_bound, is_estimate: false, .. }) => {
                iteration <= failed && at_upper_bound.is_none_or(|upper| failed <= upper)
            }
            _ => false,
        };
        Ok(Some(forecaster).filter(|_| agrees))
    }

    /// The line whose requests grow most from iteration to iteration, and by how many bytes together; `None` if
    /// none grow.
    pub(crate) fn growing_requests(&self) -> Option<(String, Bytes)> {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for (request, growth) in self.periodic.growing().filter(|(_, growth)| *growth > 0) {
            let stack = self.periodic.source(request).map(|source| self.run.stack(source));
            // Gradients, whose threads have no line of Python, grow with what they are the gradients of.
            let Some(line) = stack.as_deref().and_then(own_line).map(frame_text) else { continue };
            let sum = lines.entry(line).or_default();
            *sum = sum.saturating_add(growth);
        }
        // Each of the iterations of a group grows by the steps of all of them.
        let period = (self.periodic.period as u64).saturating_mul(self.periodic.period as u64);
        let (line, growth) = lines.into_iter().max_by_key(|(_, growth)| *growth)?;
        Some((line, Bytes::new(growth.checked_div(period)?)))
    }

    /// What happens under these conditions; `None` where the release refuses the settings, and where the iterations
    /// have too many requests.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`], [`LabError::Run`] if the requests cannot be replayed.
    pub(crate) fn forecast(
        &self,
        conditions: &Conditions,
        on_done: OnDone,
    ) -> Result<Option<Forecast>, LabError> {
        let mut ends = Vec::new();
        for fixed in self.run.fixed_conditions(conditions) {
            match self.end(&fixed, on_done) {
                Ok(Some(end)) => ends.push(self.forecast_of(&end, &fixed)),
                Ok(None) | Err(LabError::Config(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let mut ends = ends.into_iter();
        let Some(low) = ends.next() else { return Ok(None) };
        Ok(Some(match (low, ends.next()) {
            (Forecast::Fails { iteration, size, line, is_estimate, .. }, Some(high)) => {
                let at_upper_bound = match high {
                    Forecast::Fails { iteration, .. } => Some(iteration),
                    Forecast::Finishes | Forecast::Passes { .. } => None,
                };
                Forecast::Fails { iteration, at_upper_bound, size, line, is_estimate }
            }
            (low, _) => low,
        }))
    }

    fn forecast_of(&self, end: &End, fixed: &FixedConditions) -> Forecast {
        match *end {
            End::Repeats => Forecast::Finishes,
            End::Fails { iteration, request } => {
                let source = self.periodic.source(request);
                let line = source.and_then(|source| own_line(&self.run.stack(source)).map(frame_text));
                let size = self.size(request);
                Forecast::Fails { iteration, at_upper_bound: Some(iteration), size, line, is_estimate: false }
            }
            End::Open { iterations, middle, last } => {
                // Reserved bytes grow by whole segments; over half of the iterations the steps are even.
                let half = iterations / 2;
                let growth = last.saturating_sub(middle);
                let left = fixed.most().saturating_sub(last).get();
                let more = u128::from(left).saturating_mul(u128::from(half)).checked_div(growth.get().into());
                match more.and_then(|more| u64::try_from(more).ok()) {
                    Some(more) => {
                        let iteration =
                            self.periodic.iterations.saturating_add(iterations).saturating_add(more);
                        Forecast::Fails {
                            iteration,
                            at_upper_bound: Some(iteration),
                            size: None,
                            line: None,
                            is_estimate: true,
                        }
                    }
                    None => {
                        Forecast::Passes { iteration: self.periodic.iterations.saturating_add(iterations) }
                    }
                }
            }
        }
    }

    /// The bytes that a request of a longer run asks for.
    fn size(&self, request: usize) -> Option<Bytes> {
        match self.run.requests().get(self.periodic.source(request)?) {
            _ if request >= self.periodic.ends(0).next()? => self.periodic.size(request),
            Some(Request::Allocate { size, .. }) => Some(*size),
            _ => None,
        }
    }

    /// Whether more is reserved in later iterations than in the recorded ones, which a run can go on with for as
    /// long as its cache can be released.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn leaks(&self, conditions: &Conditions, on_done: OnDone) -> Result<bool, LabError> {
        const GROUPS: usize = 64;
        let groups = GROUPS.min((MAX_REQUESTS / self.periodic.group).max(4));
        let Some(run) = self.periodic.requests(groups).map(|requests| self.run.continued(requests)) else {
            return Ok(false);
        };
        for fixed in self.run.fixed_conditions(conditions) {
            let Ok(config) = fixed.config() else { return Ok(false) };
            let mut replayer = fixed.replayer(&run, &config, NullSink)?;
            let mut peaks = Vec::new();
            for end in self.periodic.ends(groups) {
                if on_done(0).is_break() {
                    return Err(LabError::Cancelled);
                }
                replayer.run_to(end)?;
                peaks.push(replayer.stats().reserved_bytes.all.peak);
            }
            if peaks.iter().max() > peaks.first() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn end(&self, fixed: &FixedConditions, on_done: OnDone) -> Result<Option<End>, LabError> {
        let mut open = None;
        for (exponent, longer) in (1..).zip(&self.longer) {
            let groups = 8_usize.saturating_pow(exponent);
            let has_room = self.periodic.group.saturating_mul(groups) <= MAX_REQUESTS;
            if !has_room && open.is_some() {
                break;
            }
            // Iterations with very many requests are replayed a few times at least.
            let groups = if has_room { groups } else { 4 };
            let run = longer.get_or_init(|| Some(self.run.continued(self.periodic.requests(groups)?)));
            let Some(run) = run else { return Ok(open) };
            match self.replayed(run, groups, fixed, on_done)? {
                end @ End::Open { .. } => open = Some(end),
                end => return Ok(Some(end)),
            }
        }
        Ok(open)
    }

    fn replayed(
        &self,
        run: &Run,
        groups: usize,
        fixed: &FixedConditions,
        on_done: OnDone,
    ) -> Result<End, LabError> {
        let config = fixed.config()?;
        let mut replayer = fixed.replayer(run, &config, NullSink)?;
        // Garbage collection remembers the ages of blocks, which a snapshot does not show.
        let can_repeat = config.garbage_collection_threshold() == 0.0;
        let mut memory: Vec<Vec<SegmentMemory>> = Vec::new();
        let mut middle = Bytes::ZERO;
        let total = self.periodic.ends(groups).count();
        for (count, end) in self.periodic.ends(groups).enumerate() {
            if on_done(0).is_break() {
                return Err(LabError::Cancelled);
            }
            if let Some(failed) = replayer.run_to(end)?
                && matches!(failed.result, StepOutcome::OutOfMemory(_))
            {
                let iteration = match count {
                    0 => self.periodic.whole_iteration(failed.request),
                    count => self.periodic.iterations.saturating_add(count as u64),
                };
                return Ok(End::Fails { iteration, request: failed.request });
            }
            if can_repeat && memory.len() < COMPARED {
                memory.push(memory_of(replayer.snapshot()));
                if self.periodic.has_equal_sizes && repeats(&memory, self.periodic.period) {
                    return Ok(End::Repeats);
                }
            }
            if count == total / 2 {
                middle = replayer.stats().reserved_bytes.all.current_bytes();
            }
        }
        let last = replayer.stats().reserved_bytes.all.current_bytes();
        Ok(End::Open { iterations: (total as u64).saturating_sub(1), middle, last })
    }
}

/// `iteration 88`, `iteration 88 to 91` between the bounds of a limit, `about iteration 4,000` in an estimate;
/// `None` if no iteration is known to fail.
pub(crate) fn failing_iteration(forecast: &Forecast) -> Option<String> {
    let Forecast::Fails { iteration, at_upper_bound, is_estimate, .. } = forecast else { return None };
    let about = if *is_estimate { "about " } else { "" };
    let to = at_upper_bound.filter(|upper| upper != iteration);
    let to = to.map_or_else(String::new, |upper| format!(" to {}", grouped(upper)));
    Some(format!("{about}iteration {}{to}", grouped(*iteration)))
}

/// What happens after a request that passes, as the end of a sentence; `None` if that is not known.
pub(crate) fn forecast_end(forecast: &Forecast) -> Option<String> {
    match forecast {
        Forecast::Finishes => Some("and no later iteration fails, since their memory repeats".to_owned()),
        Forecast::Fails { .. } => Some(format!("and {} runs out of memory", failing_iteration(forecast)?)),
        Forecast::Passes { iteration } => {
            Some(format!("and no iteration fails before iteration {}", grouped(iteration.saturating_add(1))))
        }
    }
}

/// What decides how an allocator goes on: the fields of a segment and of its blocks, by ascending address. The
/// addresses themselves do not count, since blocks of one size are taken in the order of their addresses.
#[derive(PartialEq, Eq)]
struct SegmentMemory {
    stream: StreamId,
    size: Bytes,
    pool: (PoolId, PoolKind),
    is_expandable: bool,
    blocks: Vec<(Bytes, BlockState, Vec<StreamId>)>,
}

/// Whether the last memory is that of one group before, or the last groups are those before them: some programs take
/// two blocks by turns.
fn repeats(memory: &[impl PartialEq], period: usize) -> bool {
    let is_before = |distance: usize, count: usize| {
        let mut pairs = memory.iter().rev().zip(memory.iter().rev().skip(distance)).take(count);
        memory.len() >= distance.saturating_add(count) && pairs.all(|(now, before)| now == before)
    };
    is_before(period, 1)
        || (period..=memory.len()).step_by(period.max(1)).any(|cycle| is_before(cycle, cycle))
}

fn memory_of(snapshot: Snapshot) -> Vec<SegmentMemory> {
    let of = |segment: SegmentSnapshot| SegmentMemory {
        stream: segment.stream,
        size: segment.size,
        pool: (segment.pool_id, segment.pool),
        is_expandable: segment.is_expandable,
        blocks: segment.blocks.into_iter().map(|block| (block.size, block.state, block.streams)).collect(),
    };
    snapshot.segments.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use blockyard_workload::{TensorId, Workload};

    use super::*;
    use crate::leaks;

    /// What an iteration keeps, or makes larger.
    #[derive(Clone, Copy, Debug)]
    enum Growth {
        /// Each iteration keeps a tensor of these bytes.
        Keeps(u64),
        /// Each iteration replaces a tensor by one that has so many bytes more.
        Replaces(u64),
        /// Each second iteration keeps a tensor.
        KeepsEachSecond(u64),
        /// Each iteration asks for so many bytes more, and frees them: only the cache grows.
        Asks(u64),
        Nothing,
    }

    /// A run of a training loop with so many iterations, each marked.
    fn training(growth: Growth, iterations: u64, capacity: Bytes) -> Run {
        let mut requests = Vec::new();
        let mut labels = Vec::new();
        let mut tensors = 0_u32..;
        let mut allocate = |requests: &mut Vec<Request>, size: u64| {
            let tensor = TensorId::new(tensors.next().unwrap());
            requests.push(Request::Allocate { tensor, size: Bytes::new(size), stream: StreamId::DEFAULT });
            tensor
        };
        let _parameters = allocate(&mut requests, 100 << 20);
        let mut cache = allocate(&mut requests, 4 << 20);
        for iteration in 0..iterations {
            labels.push((u32::try_from(requests.len()).unwrap(), format!("step {iteration}")));
            let activations = [allocate(&mut requests, 30 << 20), allocate(&mut requests, 3 << 20)];
            match growth {
                Growth::Keeps(size) => drop(allocate(&mut requests, size)),
                Growth::KeepsEachSecond(size) if iteration % 2 == 1 => drop(allocate(&mut requests, size)),
                Growth::Replaces(more) => {
                    let larger = allocate(&mut requests, (4 << 20) + (iteration + 1) * more);
                    requests.push(Request::Free { tensor: cache });
                    cache = larger;
                }
                Growth::Asks(more) => {
                    let tensor = allocate(&mut requests, (50 << 20) + iteration * more);
                    requests.push(Request::Free { tensor });
                }
                Growth::KeepsEachSecond(_) | Growth::Nothing => {}
            }
            requests.extend(activations.map(|tensor| Request::Free { tensor }));
        }
        let mut workload = Workload::from_requests(requests);
        workload.set_labels(labels);
        Run::from_workload("training", workload, "", capacity)
    }

    fn forecast(run: &Run, conf: &str) -> Option<Forecast> {
        let leaks = leaks(run, &mut |_| ControlFlow::Continue(())).unwrap();
        let forecaster = Forecaster::of(run, &leaks)?;
        forecaster.forecast(&Conditions::with_conf(conf), &mut |_| ControlFlow::Continue(())).unwrap()
    }

    /// The iteration in which a run fails, as `leaks` counts: the requests before the first marker are one.
    fn failed_in(run: &Run, conf: &str) -> u64 {
        let row =
            crate::replay_under(run, &Conditions::with_conf(conf), 0, &mut |_| ControlFlow::Continue(()));
        let failed = row.unwrap().outcome_at_lowest().unwrap().first_oom.clone().unwrap().request;
        let begun = run.workload().labels().iter().filter(|(at, _)| u64::from(*at) < failed);
        begun.count() as u64 + 1
    }

    #[test]
    fn the_iteration_that_will_fail_is_that_which_fails() {
        let growths = [
            Growth::Keeps(512),
            Growth::Keeps(700 << 10),
            Growth::Keeps(1 << 20),
            Growth::Keeps(5_000_000),
            Growth::Keeps(37 << 20),
            Growth::Replaces(1 << 20),
            Growth::Replaces(12_345_678),
            Growth::KeepsEachSecond(8 << 20),
            Growth::Asks(2 << 20),
            Growth::Asks(10 << 20),
        ];
        for growth in growths {
            for (conf, capacity) in [("", 1), ("", 2), ("expandable_segments:True", 1)] {
                let capacity = Bytes::gib(capacity);
                let Some(found) = forecast(&training(growth, 9, capacity), conf) else {
                    panic!("{growth:?} {conf}")
                };
                let Forecast::Fails { iteration, at_upper_bound, is_estimate, size, .. } = found else {
                    panic!("{growth:?} {conf} {found:?}")
                };
                if is_estimate {
                    // 512 bytes an iteration take two million iterations to fill a GiB.
                    assert!(matches!(growth, Growth::Keeps(512)), "{growth:?} {conf}");
                    assert!((1_000_000..9_000_000).contains(&iteration), "{iteration}");
                    continue;
                }
                let actual = failed_in(&training(growth, 2_000, capacity), conf);
                assert_eq!((iteration, at_upper_bound), (actual, Some(actual)), "{growth:?} {conf}");
                assert!(size.is_some(), "{growth:?}");
            }
        }
    }

    #[test]
    fn iterations_that_repeat_their_memory_never_fail() {
        let steady = training(Growth::Nothing, 9, Bytes::gib(1));
        assert_eq!(forecast(&steady, ""), Some(Forecast::Finishes));
        // Garbage collection depends on ages of blocks, which a snapshot does not show.
        let collected = forecast(&steady, "garbage_collection_threshold:0.8");
        assert!(
            matches!(collected, Some(Forecast::Passes { iteration }) if iteration > 1_000),
            "{collected:?}"
        );
    }

    #[test]
    fn iterations_that_differ_are_not_replayed_forward() {
        let text = "repeat 9 as i { step \"step {i}\"\n a = alloc 30 MiB\n kept[i] = alloc 1 MiB\n free a }\n\
            step \"step 9\"\n a = alloc 31 MiB\n free a\n step \"step 10\"\n a = alloc 3 MiB";
        let run = Run::from_workload("uneven", Workload::parse(text).unwrap(), "", Bytes::gib(1));
        assert_eq!(forecast(&run, ""), None);
    }

    #[test]
    fn a_running_program_fails_in_the_iteration_that_its_last_ones_lead_to() {
        for (growth, least) in [(Growth::Keeps(20 << 20), 3), (Growth::Replaces(12_345_678), 4)] {
            let actual = failed_in(&training(growth, 2_000, Bytes::gib(1)), "");
            for iterations in least..6 {
                let run = training(growth, iterations, Bytes::gib(1));
                let total = run.requests().len();
                let begins = run.workload().labels().iter().map(|(at, _)| total - *at as usize);
                let later: Vec<usize> = begins.chain([0]).collect();
                let ask = |later: &[usize]| {
                    let go_on = &mut |_| ControlFlow::Continue(());
                    super::forecast(&run, later, &run.conditions(), go_on).unwrap()
                };
                let found = ask(&later);
                let is_right =
                    matches!(found, Some(Forecast::Fails { iteration, .. }) if iteration == actual);
                assert!(is_right, "{growth:?} after {iterations}: {found:?}, {actual}");
                assert_eq!((ask(&later[later.len() - 2..]), ask(&[usize::MAX])), (None, None));
            }
        }
    }

    #[test]
    fn memory_repeats_after_one_group_or_by_turns() {
        assert!(repeats(&[7, 1, 1], 1));
        assert!(repeats(&[7, 1, 2, 1, 2], 1));
        assert!(!repeats(&[1, 2, 1], 1), "one return is no turn");
        assert!(!repeats(&[7, 1, 2, 3], 1));
        assert!(repeats(&[1, 9, 1], 2));
        assert!(!repeats(&[1], 1));
    }
}
