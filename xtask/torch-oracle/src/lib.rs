//! Random operator calls and programs: PyTorch's own code beside our operators, event by event.
//!
//! The same program text runs on both sides: by `crates/python` on our operators, and by `crates/dry-run` on PyTorch's own build, without a GPU.
//! An event is an allocation or a free, with its bytes. Addresses are not compared.
//!
//! # Reading order
//!
//! `template` (the table of calls, `calls.txt`), `calls` (programs of many calls), `networks` (whole random programs), `ours` and `pytorch` (the two sides), `run` (a run
//! cut into calls), `report`.

mod calls;
mod networks;
mod ours;
mod pytorch;
mod random;
mod report;
mod run;
mod template;

pub use calls::{Call, Calls, PRELUDE, program};
pub use networks::network;
pub use ours::run_ours;
pub use pytorch::{PyTorch, PyTorchRun};
pub use random::Random;
pub use report::{Counts, Finding, OracleReport, read_findings};
pub use run::{CallRun, Line, Run, Verdict, compare};

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// How long each side took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Our operators.
    pub ours: Duration,
    /// PyTorch, with the start of its process.
    pub pytorch: Duration,
}

/// Runs a batch of calls on both sides and adds the comparison to a report; gives the verdict and PyTorch's events of each call.
///
/// # Errors
///
/// When one of the sides did not run.
pub fn compare_calls(
    pytorch: &PyTorch,
    name: &str,
    calls: &[Call],
    report: &mut OracleReport,
    times: &mut Times,
) -> Result<Vec<(Verdict, Vec<i64>)>> {
    let source = program(calls);
    let begun = Instant::now();
    let theirs = pytorch.run(name, &source)?;
    times.pytorch += begun.elapsed();
    let begun = Instant::now();
    let ours = run_ours(&source)?;
    times.ours += begun.elapsed();
    let assumed = assumed_calls(&source, &theirs.assumed);
    let (here, there) = (ours.calls(), theirs.run.calls());
    let mut outcomes = Vec::with_capacity(calls.len());
    let mut different = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let there = there
            .get(&number)
            .with_context(|| format!("PyTorch did not reach call {number}: {:?}", theirs.run.error))?;
        let here =
            here.get(&number).with_context(|| format!("call {number} was not reached: {:?}", ours.error))?;
        let verdict = compare(here, there);
        outcomes.push((verdict, there.events.clone()));
        if assumed.contains(&number) {
            report.add_assumed(&call.family);
        } else if verdict == Verdict::Different {
            different.push((call.clone(), here.clone(), there.clone()));
        } else {
            report.add(call, here.clone(), there.clone(), verdict);
        }
    }
    compare_again(pytorch, &format!("{name}again"), different, report)?;
    Ok(outcomes)
}

/// Runs calls that differ a second time. The thread of PyTorch's backward pass may let go of a gradient only after the call has ended: a call
/// that PyTorch itself does not repeat, and that is equal in the second run, is counted apart.
fn compare_again(
    pytorch: &PyTorch,
    name: &str,
    different: Vec<(Call, CallRun, CallRun)>,
    report: &mut OracleReport,
) -> Result<()> {
    if different.is_empty() {
        return Ok(());
    }
    let source = program(different.iter().map(|(call, ..)| call));
    let again = pytorch.run(name, &source)?.run.calls();
    for (number, (call, here, there)) in different.into_iter().enumerate() {
        match again.get(&number) {
            Some(again) if compare(&here, again) == Verdict::Equal => report.add_unsteady(&call.family),
            _ => report.add(&call, here, there, Verdict::Different),
        }
    }
    Ok(())
}

/// Runs a whole random program on both sides and adds the comparison of each step to a report.
///
/// # Errors
///
/// When one of the sides did not run.
pub fn compare_program(
    pytorch: &PyTorch,
    name: &str,
    source: &str,
    report: &mut OracleReport,
    times: &mut Times,
) -> Result<()> {
    let begun = Instant::now();
    let theirs = pytorch.run(name, source)?;
    times.pytorch += begun.elapsed();
    let begun = Instant::now();
    let ours = run_ours(source)?;
    times.ours += begun.elapsed();
    let call = Call { family: "programs".to_owned(), operator: name.to_owned(), body: source.to_owned() };
    if !theirs.assumed.is_empty() {
        report.add_assumed(&call.family);
        return Ok(());
    }
    let (here, there) = (ours.whole(), theirs.run.whole());
    let verdict = compare(&here, &there);
    if verdict == Verdict::Different {
        let again = pytorch.run(&format!("{name}again"), source)?.run.whole();
        if compare(&here, &again) == Verdict::Equal {
            report.add_unsteady(&call.family);
            return Ok(());
        }
    }
    report.add(&call, here, there, verdict);
    Ok(())
}

/// The numbers of the calls in which these lines stand.
fn assumed_calls(source: &str, assumed: &[(u32, String)]) -> Vec<usize> {
    let mut found = Vec::new();
    for (line, _) in assumed {
        let after = source.lines().skip((*line as usize).saturating_sub(1));
        let ends = after.filter_map(|text| text.strip_prefix("run(")?.strip_suffix(", f)"));
        found.extend(ends.into_iter().next().and_then(|number| number.parse::<usize>().ok()));
    }
    found
}
