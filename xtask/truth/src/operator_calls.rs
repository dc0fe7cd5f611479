//! Recorded operator calls, run through the crate `torch` and compared request by request.
//!
//! A line of a file of operator calls names an operator and its arguments and lists what PyTorch allocated
//! and freed on an H200, forward and backward. [`run_line`] makes the same call and says whether the requests
//! are equal.

#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "sizes of recorded shapes are small"
)]
#![allow(clippy::many_single_char_names, clippy::similar_names, reason = "the recording program's names")]

mod calls;
mod command;
mod learn;

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::rc::Rc;

use anyhow::{Context, Result};
use blockyard_torch::memory::LogEntry;
use blockyard_torch::{
    Session, SessionSettings, Tensor, TorchError, Value, autograd, call, install, session,
};
use serde::Deserialize;

use crate::tally::Tally;

pub use command::{OperatorCallsOptions, run};

/// Bytes of cuDNN's state for dropout on an H200.
pub(crate) const DROPOUT_STATE: i64 = 6_488_064;

/// A line of a file of operator calls.
#[derive(Clone, Debug, Deserialize)]
pub struct OperatorCall {
    /// The operator, with the kind of its shapes: `softmax:2d`.
    pub op: String,
    /// The operator's arguments, by the names that the recording program gave them.
    pub args: serde_json::Value,
    /// Requests of the call: bytes of an allocation, or minus the number of the allocation that is freed,
    /// from 1.
    pub forward: Option<Vec<i64>>,
    /// Requests of the backward pass, with the numbers of allocations continued.
    pub backward: Option<Vec<i64>>,
    /// Why PyTorch refused the call.
    pub error: Option<String>,
}

/// The result of a line's comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOutcome {
    /// All requests are equal to the recorded ones.
    Identical,
    /// The call left a mark, since its result is an unverified estimate, and the requests are equal.
    MarkedEqual,
    /// The call left a mark, and requests differ.
    MarkedOther,
    /// Requests differ, and the operator is not an estimate.
    Wrong,
    /// The crate refuses the call.
    Refused,
}

/// The columns of the table after the number of lines: heading, width, what is counted.
const COLUMNS: [(&str, usize, CallOutcome); 5] = [
    ("identical", 10, CallOutcome::Identical),
    ("marked, equal", 13, CallOutcome::MarkedEqual),
    ("marked, other", 14, CallOutcome::MarkedOther),
    ("wrong", 7, CallOutcome::Wrong),
    ("refused", 8, CallOutcome::Refused),
];

/// A line's call on our operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// How the call compares with the recording.
    pub outcome: CallOutcome,
    /// Our requests, forward and backward, or why the crate refuses the call.
    pub ours: Result<(Vec<i64>, Vec<i64>), String>,
}

impl CallResult {
    fn refused(error: &TorchError) -> Self {
        Self { outcome: CallOutcome::Refused, ours: Err(error.to_string()) }
    }
}

/// All lines of a file of operator calls, by operator.
#[derive(Clone, Debug, Default)]
pub struct CallsReport(Tally<CallOutcome>);

impl CallsReport {
    /// Counts the result of one line.
    pub fn add(&mut self, op: &str, outcome: CallOutcome) {
        self.0.add(op, outcome);
    }

    /// How many lines have this result.
    pub fn count(&self, outcome: CallOutcome) -> usize {
        self.0.count(&[outcome])
    }

    /// How many lines were counted.
    pub fn total(&self) -> usize {
        self.0.count(&COLUMNS.map(|(.., outcome)| outcome))
    }
}

impl fmt::Display for CallsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = COLUMNS.map(|(.., outcome)| outcome);
        let columns: Vec<_> = std::iter::once(&all[..]).chain(all.iter().map(std::slice::from_ref)).collect();
        write!(f, "{:<32} {:>7}", "operator", "lines")?;
        for (heading, width, _) in COLUMNS {
            write!(f, " {heading:>width$}")?;
        }
        for (name, counts) in self.0.rows(&columns) {
            write!(f, "\n{name:<32}")?;
            for (width, count) in [7].into_iter().chain(COLUMNS.map(|(_, width, _)| width)).zip(counts) {
                write!(f, " {count:>width$}")?;
            }
        }
        writeln!(f)
    }
}

/// The lines of a file of operator calls, which may be gzip.
///
/// # Errors
///
/// When a line is not JSON of the right form.
pub fn read(bytes: &[u8]) -> Result<Vec<OperatorCall>> {
    let source: Box<dyn Read + '_> = if bytes.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::read::MultiGzDecoder::new(bytes))
    } else {
        Box::new(bytes)
    };
    let mut lines = Vec::new();
    for (index, line) in BufReader::new(source).lines().enumerate() {
        let line = line.context("reading the file of operator calls")?;
        lines.push(
            serde_json::from_str(&line)
                .with_context(|| format!("line {} of the file of operator calls", index + 1))?,
        );
    }
    Ok(lines)
}

/// A session that has taken cuBLAS's workspaces on both threads, as the recording program had.
///
/// # Errors
///
/// When the first products fail.
pub fn start() -> blockyard_torch::Result<()> {
    install(Rc::new(Session::new(SessionSettings::default())));
    for dtype in ["f32", "f16", "bf16"] {
        let a = calls::randn(&[512, 512], dtype, true)?;
        let bias = call("select", &[(&a).into(), 0.into(), 0.into()], &[])?;
        let product = call("linear", &[(&a).into(), (&a).into(), bias], &[])?;
        let total = call("sum", &[product], &[])?.tensor()?;
        autograd::backward(&[total], &[None], false, false, &[])?;
    }
    session().device(0)?.start_log();
    session().take_estimates();
    Ok(())
}

/// Makes the call of a line and compares its requests with the recorded ones.
///
/// # Errors
///
/// When there is no GPU in the session.
pub fn run_line(line: &OperatorCall) -> blockyard_torch::Result<CallResult> {
    let Some(forward) = &line.forward else {
        return Ok(CallResult { outcome: CallOutcome::Identical, ours: Ok((Vec::new(), Vec::new())) });
    };
    let session = session();
    let device = session.device(0)?;
    let case = match calls::case(line) {
        Ok(case) => case,
        Err(error) => return Ok(CallResult::refused(&error)),
    };
    prepare_dropout(forward)?;
    session.take_estimates();
    let mut numbering = Numbering { first: device.origin_count() };
    let ours = attempt(&case, &mut numbering, line.backward.is_some(), &|| ());
    drop(case);
    device.take_log();
    let ours = match ours {
        Ok(ours) => ours,
        Err(error) => return Ok(CallResult::refused(&error)),
    };
    let is_equal = ours.0 == *forward && ours.1 == *line.backward.as_deref().unwrap_or_default();
    let outcome = match (session.take_estimates().is_empty(), is_equal) {
        (true, true) => CallOutcome::Identical,
        (true, false) => CallOutcome::Wrong,
        (false, true) => CallOutcome::MarkedEqual,
        (false, false) => CallOutcome::MarkedOther,
    };
    Ok(CallResult { outcome, ours: Ok(ours) })
}

/// Gives cuDNN's state for dropout to the session unless the line took it: each recording process took it
/// once, within a line.
fn prepare_dropout(forward: &[i64]) -> blockyard_torch::Result<()> {
    let session = session();
    if forward.contains(&DROPOUT_STATE) {
        session.release_dropout_states();
    } else {
        session.allocate_dropout_state(0)?;
    }
    session.device(0)?.take_log();
    Ok(())
}

/// Called between the forward and the backward pass.
type Observer<'a> = dyn Fn() + 'a;

fn attempt(
    case: &calls::Case,
    numbering: &mut Numbering,
    goes_back: bool,
    between: &Observer<'_>,
) -> blockyard_torch::Result<(Vec<i64>, Vec<i64>)> {
    let session = session();
    let device = session.device(0)?;
    let result = (case.call)()?;
    let forward = numbering.sequence(&device.take_log());
    let output = first_tensor(&result)?;
    drop(result);
    let mut backward = Vec::new();
    if goes_back && output.requires_grad() {
        let grad = call("ones_like", &[(&output).into()], &[])?.tensor()?;
        numbering.sequence(&device.take_log());
        between();
        autograd::backward(std::slice::from_ref(&output), &[Some(grad.clone())], false, false, &[])?;
        backward = numbering.sequence(&device.take_log());
        drop(grad);
    }
    drop(output);
    for leaf in &case.leaves {
        leaf.set_grad(None);
    }
    Ok((forward, backward))
}

fn first_tensor(value: &Value) -> blockyard_torch::Result<Tensor> {
    match value {
        Value::List(items) => items.first().map_or_else(|| Value::None.tensor(), first_tensor),
        other => other.clone().tensor(),
    }
}

/// Numbers allocations as the recorder of operator calls does: from 1 within a line; earlier allocations have
/// no number.
#[derive(Debug, Default)]
struct Numbering {
    first: u32,
}

impl Numbering {
    fn sequence(&mut self, log: &[LogEntry]) -> Vec<i64> {
        log.iter()
            .filter_map(|entry| match *entry {
                LogEntry::Allocate(_, bytes) => i64::try_from(bytes).ok(),
                LogEntry::Free(number) => number.checked_sub(self.first).map(|index| -(i64::from(index) + 1)),
                LogEntry::Unordered(_) => None,
            })
            .collect()
    }
}
