//! A batch of calls on both sides.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use super::calls::{CYCLES, Call, program};
use super::ours::OurSide;
use super::pytorch::{PyTorch, Values};
use super::run::{CallComparison, CallRun, compare};

/// How often a call is run again on both sides until PyTorch repeats itself.
const MAX_REPEATS: usize = 4;

/// The two sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// PyTorch's own code.
    pub pytorch: &'a PyTorch,
    /// Our operators.
    pub ours: &'a OurSide,
}

/// How long each side took, of all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The time of our operators.
    pub ours: Duration,
    /// The time of PyTorch, with the start of its processes.
    pub pytorch: Duration,
}

impl AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        self.ours += other.ours;
        self.pytorch += other.pytorch;
    }
}

/// The result of a call's comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOutcome {
    /// The two sides were compared.
    Compared(CallComparison),
    /// PyTorch's own events depend on a value that is not known, or on a size that is assumed.
    Assumed,
    /// PyTorch's own events changed when the call ran again, and then the two sides were equal.
    Unsteady,
}

/// A call that ran on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedCall {
    /// Our side of the call.
    pub ours: CallRun,
    /// PyTorch's side of the call.
    pub theirs: CallRun,
    /// How the two compare.
    pub outcome: CallOutcome,
    /// Whether PyTorch gave the same events when the call ran again.
    pub is_repeated: bool,
}

/// Runs a batch of calls on both sides and compares them, in the order of the calls.
///
/// The batch runs without values of the device at first, since few calls read any. A call that read one runs
/// again with the values followed. So does a call that differs, until PyTorch repeats its own events: the
/// thread of the backward pass may free a gradient only after the call has ended.
pub fn compare_calls(sides: Sides<'_>, name: &str, calls: &[Call], times: &mut Times) -> Vec<ComparedCall> {
    let first = both_sides(sides, name, calls, Values::Unknown, times);
    let mut all: Vec<ComparedCall> = first.into_iter().map(compare_pair).collect();
    for round in 0..=MAX_REPEATS {
        let open: Vec<usize> = (0..all.len()).filter(|index| is_open(all.get(*index), round)).collect();
        if open.is_empty() {
            break;
        }
        let again: Vec<Call> = open.iter().filter_map(|index| calls.get(*index).cloned()).collect();
        let name = format!("{name}again{round}");
        let runs = both_sides(sides, &name, &again, Values::Followed, times);
        for (index, runs) in open.into_iter().zip(runs) {
            if let Some(before) = all.get_mut(index) {
                *before = merge_repeat(before, compare_pair(runs));
            }
        }
    }
    all
}

/// Whether a call has to run again, after it was repeated this many times.
fn is_open(call: Option<&ComparedCall>, repeats: usize) -> bool {
    let is_different = |call: &ComparedCall| call.outcome == CallOutcome::Compared(CallComparison::Different);
    call.is_some_and(|call| {
        (is_different(call) && !call.is_repeated) || (call.outcome == CallOutcome::Assumed && repeats == 0)
    })
}

fn compare_pair((ours, theirs): (CallRun, CallRun)) -> ComparedCall {
    let outcome =
        if theirs.is_unsure { CallOutcome::Assumed } else { CallOutcome::Compared(compare(&ours, &theirs)) };
    ComparedCall { ours, theirs, outcome, is_repeated: false }
}

/// The comparison of a call after it ran once more: `before` is the comparison before, `now` that of the last
/// run.
fn merge_repeat(before: &ComparedCall, mut now: ComparedCall) -> ComparedCall {
    if before.outcome != CallOutcome::Compared(CallComparison::Different) {
        return now;
    }
    match now.outcome {
        CallOutcome::Compared(CallComparison::Different) => {
            now.is_repeated = now.theirs.events == before.theirs.events;
        }
        CallOutcome::Compared(CallComparison::Equal) => now.outcome = CallOutcome::Unsteady,
        CallOutcome::Compared(_) | CallOutcome::Assumed | CallOutcome::Unsteady => {}
    }
    now
}

/// The run of each call on our side and in PyTorch. Where a side does not reach the end of a batch, the two
/// halves of the batch run separately; a single call that ends the process has an error.
fn both_sides(
    sides: Sides<'_>,
    name: &str,
    calls: &[Call],
    values: Values,
    times: &mut Times,
) -> Vec<(CallRun, CallRun)> {
    let source = program(calls);
    let begun = Instant::now();
    let theirs = sides.pytorch.run(name, &source, values);
    times.pytorch += begun.elapsed();
    let begun = Instant::now();
    let ours = sides.ours.run(name, &source);
    times.ours += begun.elapsed();
    let cut = |run: &anyhow::Result<super::run::ProgramRun>| match run {
        Ok(run) => (run.calls(), run.error.clone()),
        Err(error) => (BTreeMap::new(), Some(error.to_string())),
    };
    let ((mut here, here_ended), (mut there, there_ended)) = (cut(&ours), cut(&theirs));
    let reached = |runs: &BTreeMap<usize, CallRun>| (0..calls.len()).all(|number| runs.contains_key(&number));
    if calls.len() > 1 && !(reached(&here) && reached(&there)) {
        let (first, second) = calls.split_at(calls.len() / 2);
        let mut all = both_sides(sides, &format!("{name}a"), first, values, times);
        all.extend(both_sides(sides, &format!("{name}b"), second, values, times));
        return all;
    }
    let ended = |error: &Option<String>| CallRun {
        error: Some(format!("the program ended: {}", error.as_deref().unwrap_or("no reason is known"))),
        ..CallRun::default()
    };
    let numbers = 0..calls.len();
    let runs = numbers.zip(calls).map(|(number, call)| {
        let here = here.remove(&number).unwrap_or_else(|| ended(&here_ended));
        let mut there = there.remove(&number).unwrap_or_else(|| ended(&there_ended));
        // A value of the device decides nothing in these programs.
        there.is_unsure &= !call.family.starts_with(CYCLES);
        (here, there)
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn different(events: Vec<i64>) -> ComparedCall {
        let theirs = CallRun { events, ..CallRun::default() };
        compare_pair((CallRun { events: vec![1024, -1024], ..CallRun::default() }, theirs))
    }

    #[test]
    fn a_difference_counts_once_pytorch_repeats_it() {
        let first = different(vec![512, -512]);
        assert_eq!(first.outcome, CallOutcome::Compared(CallComparison::Different));
        assert!(is_open(Some(&first), 0));
        let other = merge_repeat(&first, different(vec![512]));
        assert!(is_open(Some(&other), 1));
        let same = merge_repeat(&first, different(vec![512, -512]));
        assert!(!is_open(Some(&same), 1));
        assert_eq!(same.outcome, CallOutcome::Compared(CallComparison::Different));
    }

    #[test]
    fn a_call_that_pytorch_does_not_repeat_is_unsteady() {
        let first = different(vec![512, -512]);
        let equal = merge_repeat(&first, different(vec![1024, -1024]));
        assert_eq!(equal.outcome, CallOutcome::Unsteady);
        assert!(!is_open(Some(&equal), 1));
    }

    #[test]
    fn a_call_that_reads_a_value_runs_again_once() {
        let mut call = different(vec![512, -512]);
        call.theirs.is_unsure = true;
        let call = compare_pair((call.ours, call.theirs));
        assert_eq!(call.outcome, CallOutcome::Assumed);
        assert!(is_open(Some(&call), 0));
        assert!(!is_open(Some(&call), 1));
        assert_eq!(
            merge_repeat(&call, different(vec![1024, -1024])).outcome,
            CallOutcome::Compared(CallComparison::Equal)
        );
    }
}
