//! The report of a comparison: counts by family, and the smallest call of each operator and cause that
//! differs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::both::{CallOutcome, ComparedCall};
use super::calls::Call;
use super::run::{CallComparison, CallRun};
use crate::tally::Tally;

/// The results of calls that count as compared: both sides ran the call, or PyTorch ran it and it was refused
/// or raised here.
const COMPARED: [CallOutcome; 5] = [
    CallOutcome::Compared(CallComparison::Equal),
    CallOutcome::Compared(CallComparison::Estimated),
    CallOutcome::Compared(CallComparison::Different),
    CallOutcome::Compared(CallComparison::Refused),
    CallOutcome::Compared(CallComparison::Raises),
];

/// The columns of the table after the family.
const COLUMNS: [(&str, &[CallOutcome]); 10] = [
    ("compared", &COMPARED),
    ("equal", &[CallOutcome::Compared(CallComparison::Equal)]),
    ("marked", &[CallOutcome::Compared(CallComparison::Estimated)]),
    ("different", &[CallOutcome::Compared(CallComparison::Different)]),
    ("refused", &[CallOutcome::Compared(CallComparison::Refused)]),
    ("raises", &[CallOutcome::Compared(CallComparison::Raises)]),
    ("runs only here", &[CallOutcome::Compared(CallComparison::Accepts)]),
    ("raises on both sides", &[CallOutcome::Compared(CallComparison::Invalid)]),
    ("assumed", &[CallOutcome::Assumed]),
    ("unsteady", &[CallOutcome::Unsteady]),
];

/// A call with PyTorch's events: a line of a file of findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The call.
    #[serde(flatten)]
    pub call: Call,
    /// PyTorch's events: bytes of each allocation, and of each free with a minus.
    pub events: Vec<i64>,
}

/// The findings of a file of lines of JSON.
///
/// # Errors
///
/// A line that is not a finding.
pub fn read_findings(text: &str) -> anyhow::Result<Vec<RecordedCall>> {
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// How often calls of an operator differed without a mark, by how they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorDifference {
    /// The operator and the circumstance of the calls.
    pub operator: String,
    /// How the calls differ.
    pub cause: String,
    /// How many calls differed.
    pub calls: usize,
}

/// The smallest call of an operator with this comparison and cause.
#[derive(Clone, Debug)]
struct SmallestCall {
    call: Call,
    ours: CallRun,
    theirs: CallRun,
    count: usize,
}

/// The findings of a comparison, added up call by call.
#[derive(Clone, Debug, Default)]
pub struct OracleReport {
    families: Tally<CallOutcome>,
    smallest: BTreeMap<(CallComparison, String, String), SmallestCall>,
}

/// How large a call is for a reader: its lines, events and bytes.
fn size_of(call: &Call, theirs: &CallRun) -> (usize, usize, i64) {
    let bytes = theirs.events.iter().map(|bytes| bytes.abs()).fold(0, i64::saturating_add);
    (call.body.lines().count(), theirs.events.len(), bytes)
}

/// The first words of an exception, without its numbers.
fn words(error: &str) -> String {
    error.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect()
}

/// How a call differs, in words from its events: calls of one operator with the same words mostly have one
/// cause.
fn cause(ours: &CallRun, theirs: &CallRun) -> String {
    if let Some(error) = ours.error.as_ref().or(theirs.error.as_ref()) {
        return words(error);
    }
    let allocations = |run: &CallRun| {
        let mut sizes: Vec<i64> = run.events.iter().copied().filter(|bytes| *bytes > 0).collect();
        sizes.sort_unstable();
        sizes
    };
    let (here, there) = (allocations(ours), allocations(theirs));
    let cause = match here.len().cmp(&there.len()) {
        _ if here == there => "another order",
        Ordering::Less => "fewer allocations here",
        Ordering::Greater => "more allocations here",
        Ordering::Equal => "other sizes",
    };
    cause.to_owned()
}

impl OracleReport {
    /// Counts a call, and keeps it if it is the smallest with its cause.
    pub fn add(&mut self, call: &Call, compared: ComparedCall) {
        self.families.add(&call.family, compared.outcome);
        let ComparedCall { ours, theirs, outcome: CallOutcome::Compared(comparison), .. } = compared else {
            return;
        };
        if matches!(comparison, CallComparison::Equal | CallComparison::Invalid) {
            return;
        }
        let key = (comparison, call.operator.clone(), cause(&ours, &theirs));
        let size = size_of(call, &theirs);
        match self.smallest.get_mut(&key) {
            Some(before) => {
                before.count += 1;
                if size < size_of(&before.call, &before.theirs) {
                    *before = SmallestCall { call: call.clone(), ours, theirs, count: before.count };
                }
            }
            None => {
                self.smallest.insert(key, SmallestCall { call: call.clone(), ours, theirs, count: 1 });
            }
        }
    }

    /// How many calls were compared.
    pub fn compared(&self) -> usize {
        self.families.count(&COMPARED)
    }

    /// How many compared calls had this result.
    pub fn count(&self, comparison: CallComparison) -> usize {
        self.families.count(&[CallOutcome::Compared(comparison)])
    }

    /// The differences without a mark, and the exceptions that only our side raises.
    pub fn differences(&self) -> Vec<OperatorDifference> {
        let is_wrong = |comparison: &CallComparison| {
            matches!(comparison, CallComparison::Different | CallComparison::Raises)
        };
        let found = self.smallest.iter().filter(|((comparison, ..), _)| is_wrong(comparison));
        found
            .map(|((_, operator, cause), smallest)| OperatorDifference {
                operator: operator.clone(),
                cause: cause.clone(),
                calls: smallest.count,
            })
            .collect()
    }

    /// The smallest call of each operator and cause that differs without a mark, is refused or raises here.
    pub fn findings(&self) -> Vec<RecordedCall> {
        let is_reported = |comparison: &CallComparison| {
            matches!(comparison, CallComparison::Different | CallComparison::Refused | CallComparison::Raises)
        };
        let found = self.smallest.iter().filter(|((comparison, ..), _)| is_reported(comparison));
        found
            .map(|(_, SmallestCall { call, theirs, .. })| RecordedCall {
                call: call.clone(),
                events: theirs.events.clone(),
            })
            .collect()
    }
}

/// Shows the first printed line that is not the same on both sides.
fn write_first_line_that_differs(
    f: &mut fmt::Formatter<'_>,
    here: &[String],
    there: &[String],
) -> fmt::Result {
    let equal = here.iter().zip(there).take_while(|(here, there)| here == there).count();
    if equal < here.len().max(there.len()) {
        let line = |lines: &[String]| lines.get(equal).map_or("nothing", String::as_str).to_owned();
        writeln!(f, "  line {}: here {}; PyTorch {}", equal + 1, line(here), line(there))?;
    }
    Ok(())
}

impl fmt::Display for OracleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut found: Vec<_> = self.smallest.iter().collect();
        found.sort_by_key(|((comparison, ..), smallest)| (*comparison, std::cmp::Reverse(smallest.count)));
        for ((comparison, operator, cause), smallest) in found {
            writeln!(f, "{comparison:?} {operator} ({cause}): {} calls, the smallest:", smallest.count)?;
            for line in smallest.call.body.lines() {
                writeln!(f, "    {line}")?;
            }
            if let Some(error) = &smallest.ours.error {
                writeln!(f, "  here:    {error}")?;
            }
            if let Some(error) = &smallest.theirs.error {
                writeln!(f, "  PyTorch: {error}")?;
            }
            if matches!(comparison, CallComparison::Different | CallComparison::Estimated) {
                writeln!(f, "  here:    {:?}", smallest.ours.events)?;
                writeln!(f, "  PyTorch: {:?}", smallest.theirs.events)?;
                write_first_line_that_differs(f, &smallest.ours.printed, &smallest.theirs.printed)?;
            }
        }
        let headings = COLUMNS.map(|(heading, _)| heading).join(" | ");
        writeln!(f, "| family | {headings} |\n| ---{} |", " | ---:".repeat(COLUMNS.len()))?;
        for (family, counts) in self.families.rows(&COLUMNS.map(|(_, outcomes)| outcomes)) {
            let row: Vec<String> = counts.iter().map(ToString::to_string).collect();
            writeln!(f, "| {family} | {} |", row.join(" | "))?;
        }
        Ok(())
    }
}
