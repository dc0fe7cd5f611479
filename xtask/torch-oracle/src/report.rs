//! The report of a comparison: counts by family, and the smallest call of each operator and cause that
//! differs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::both::{CallOutcome, ComparedCall};
use crate::calls::Call;
use crate::run::{CallComparison, CallRun};

/// The number of calls by the result of their comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that both sides ran, or that PyTorch ran and that were refused or raised here.
    pub compared: usize,
    /// Calls that are equal in every event.
    pub equal: usize,
    /// Calls that differ and are marked as estimates.
    pub estimated: usize,
    /// Calls that differ without a mark.
    pub different: usize,
    /// Calls that our side refuses.
    pub refused: usize,
    /// Calls that raise another exception on our side alone.
    pub raises: usize,
    /// Calls that our side runs and that raise an exception in PyTorch; not among `compared`.
    pub accepts: usize,
    /// Calls that raise an exception on both sides; not among `compared`.
    pub invalid: usize,
    /// Calls whose events in PyTorch depend on an assumption; not among `compared`.
    pub assumed: usize,
    /// Calls whose events in PyTorch changed in a second run, and were equal to ours then; not among
    /// `compared`.
    pub unsteady: usize,
}

impl Counts {
    fn add(&mut self, outcome: CallOutcome) {
        let count = match outcome {
            CallOutcome::Compared(CallComparison::Equal) => &mut self.equal,
            CallOutcome::Compared(CallComparison::Estimated) => &mut self.estimated,
            CallOutcome::Compared(CallComparison::Different) => &mut self.different,
            CallOutcome::Compared(CallComparison::Refused) => &mut self.refused,
            CallOutcome::Compared(CallComparison::Raises) => &mut self.raises,
            CallOutcome::Compared(CallComparison::Accepts) => &mut self.accepts,
            CallOutcome::Compared(CallComparison::Invalid) => &mut self.invalid,
            CallOutcome::Assumed => &mut self.assumed,
            CallOutcome::Unsteady => &mut self.unsteady,
        };
        *count += 1;
        self.compared = self.equal + self.estimated + self.different + self.refused + self.raises;
    }

    fn row(&self) -> [usize; 10] {
        [
            self.compared,
            self.equal,
            self.estimated,
            self.different,
            self.refused,
            self.raises,
            self.accepts,
            self.invalid,
            self.assumed,
            self.unsteady,
        ]
    }
}

/// A call with PyTorch's events: a line of a file of findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The group of operators that the call belongs to.
    pub family: String,
    /// The operator and the circumstance of the call.
    pub operator: String,
    /// The body of the call.
    pub body: String,
    /// PyTorch's events: bytes of each allocation, and of each free with a minus.
    pub events: Vec<i64>,
}

impl RecordedCall {
    /// The call, without PyTorch's events.
    #[must_use]
    pub fn call(&self) -> Call {
        Call { family: self.family.clone(), operator: self.operator.clone(), body: self.body.clone() }
    }
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
    families: BTreeMap<String, Counts>,
    all: Counts,
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
        let family = self.families.entry(call.family.clone()).or_default();
        for counts in [family, &mut self.all] {
            counts.add(compared.outcome);
        }
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

    /// The counts over all families.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.all
    }

    /// The differences without a mark, and the exceptions that only our side raises.
    #[must_use]
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
    #[must_use]
    pub fn findings(&self) -> Vec<RecordedCall> {
        let is_reported = |comparison: &CallComparison| {
            matches!(comparison, CallComparison::Different | CallComparison::Refused | CallComparison::Raises)
        };
        let found = self.smallest.iter().filter(|((comparison, ..), _)| is_reported(comparison));
        found
            .map(|(_, smallest)| RecordedCall {
                family: smallest.call.family.clone(),
                operator: smallest.call.operator.clone(),
                body: smallest.call.body.clone(),
                events: smallest.theirs.events.clone(),
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
        writeln!(
            f,
            "| family | compared | equal | marked | different | refused | raises | runs only here | raises on both sides | assumed | unsteady |"
        )?;
        writeln!(f, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
        let all = ("all".to_owned(), self.all);
        for (family, counts) in self.families.iter().chain([(&all.0, &all.1)]) {
            let row: Vec<String> = counts.row().iter().map(ToString::to_string).collect();
            writeln!(f, "| {family} | {} |", row.join(" | "))?;
        }
        Ok(())
    }
}
