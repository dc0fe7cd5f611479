//! Recorded operator calls, run through the crate `torch` and compared request by request.
//!
//! A line of a file of operator calls names an operator and its arguments and lists what PyTorch allocated and freed on an
//! H200, forward and backward. [`run_line`] makes the same call and says whether the requests are equal.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "sizes of recorded shapes are small"
)]
#![allow(
    clippy::many_single_char_names,
    clippy::similar_names,
    clippy::too_many_lines,
    reason = "the recording program's names, and one line for each of its cases"
)]

mod calls;
mod learn;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::rc::Rc;

use anyhow::{Context, Result};
use blockyard_torch::memory::LogEntry;
use blockyard_torch::{Session, SessionSettings, Tensor, Value, autograd, call, install, session};
use serde::Deserialize;

pub use learn::{LearnedSizes, learn};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// All requests are equal to the recorded ones.
    Identical,
    /// The call left a mark: its result is an unverified estimate. The requests may be equal or not.
    Estimated {
        /// Whether the requests are equal to the recorded ones.
        is_equal: bool,
    },
    /// Requests differ, and the operator is not an estimate.
    Wrong {
        /// Our requests, forward and backward.
        ours: (Vec<i64>, Vec<i64>),
    },
    /// The crate refuses the call.
    Refused(String),
}

/// The number of lines by the result of their comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that are equal to the recording.
    pub identical: usize,
    /// Lines that are marked as estimates and equal to the recording.
    pub estimated_equal: usize,
    /// Lines that are marked as estimates and differ from the recording.
    pub estimated_other: usize,
    /// Lines that differ from the recording without a mark.
    pub wrong: usize,
    /// Lines whose call the crate refuses.
    pub refused: usize,
}

impl Counts {
    /// How many lines were counted.
    #[must_use]
    pub fn total(&self) -> usize {
        self.identical + self.estimated_equal + self.estimated_other + self.wrong + self.refused
    }

    fn add(&mut self, result: &CallResult) {
        let count = match result {
            CallResult::Identical => &mut self.identical,
            CallResult::Estimated { is_equal: true } => &mut self.estimated_equal,
            CallResult::Estimated { is_equal: false } => &mut self.estimated_other,
            CallResult::Wrong { .. } => &mut self.wrong,
            CallResult::Refused(_) => &mut self.refused,
        };
        *count += 1;
    }
}

/// All lines of a file of operator calls, by operator.
#[derive(Clone, Debug, Default)]
pub struct CallsReport {
    /// The counts of each operator, by the operator's name.
    pub by_operator: BTreeMap<String, Counts>,
}

impl CallsReport {
    /// The sum over all operators.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.by_operator.values().fold(Counts::default(), |sum, counts| Counts {
            identical: sum.identical + counts.identical,
            estimated_equal: sum.estimated_equal + counts.estimated_equal,
            estimated_other: sum.estimated_other + counts.estimated_other,
            wrong: sum.wrong + counts.wrong,
            refused: sum.refused + counts.refused,
        })
    }

    /// Counts the result of one line.
    pub fn add(&mut self, op: &str, result: &CallResult) {
        self.by_operator.entry(op.to_owned()).or_default().add(result);
    }
}

impl fmt::Display for CallsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<32} {:>7} {:>10} {:>13} {:>14} {:>7} {:>8}",
            "operator", "lines", "identical", "marked, equal", "marked, other", "wrong", "refused"
        )?;
        let rows = self.by_operator.iter().map(|(name, counts)| (name.as_str(), counts.clone()));
        for (name, counts) in rows.chain(std::iter::once(("all", self.total()))) {
            writeln!(
                f,
                "{name:<32} {:>7} {:>10} {:>13} {:>14} {:>7} {:>8}",
                counts.total(),
                counts.identical,
                counts.estimated_equal,
                counts.estimated_other,
                counts.wrong,
                counts.refused
            )?;
        }
        Ok(())
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
    let Some(forward) = &line.forward else { return Ok(CallResult::Identical) };
    let session = session();
    let device = session.device(0)?;
    let case = match calls::case(line) {
        Ok(case) => case,
        Err(error) => return Ok(CallResult::Refused(error.to_string())),
    };
    // Each recording process took cuDNN's state for dropout once, within a line.
    if forward.contains(&DROPOUT_STATE) {
        session.release_dropout_states();
    } else {
        session.allocate_dropout_state(0)?;
    }
    device.take_log();
    session.take_estimates();
    let mut numbering = Numbering { first: device.origin_count() };
    let ours = attempt(&case, &mut numbering, line.backward.is_some(), &|| ());
    drop(case);
    device.take_log();
    Ok(match ours {
        Err(error) => CallResult::Refused(error.to_string()),
        Ok(ours) => {
            let none = Vec::new();
            let is_equal = ours.0 == *forward && ours.1 == *line.backward.as_ref().unwrap_or(&none);
            let is_estimated = !session.take_estimates().is_empty();
            match (is_estimated, is_equal) {
                (true, is_equal) => CallResult::Estimated { is_equal },
                (false, true) => CallResult::Identical,
                (false, false) => CallResult::Wrong { ours },
            }
        }
    })
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

/// Numbers allocations as the recorder of operator calls does: from 1 within a line; earlier allocations have no number.
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
