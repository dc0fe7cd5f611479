//! Conditions: statements about a run in a lesson file, and whether they hold.

use std::fmt;

use blockyard_record::StepOutcome;
use blockyard_workload::{Request, Workload, parse_size};

use crate::error::MeasureError;
use crate::measure::{Measure, QuantityValue, RunStretch, last_request, no_tensor};
use crate::quantity::QuantityKind;

/// A condition: of the right choice of a question, of a goal of an exercise, or of a claim in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Two sums, such as a quantity and a number.
    Compare { left: Sum, comparison: Comparison, right: Sum },
    /// A quantity compared with its value at the beginning.
    Trend { measure: Measure, trend: Trend },
    /// The last request for a tensor is served, or is not.
    Served { name: String, is_served: bool },
    /// Every one of these holds.
    All(Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    AtMost,
    AtLeast,
    Exactly,
    LessThan,
    MoreThan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trend {
    Rises,
    Falls,
    Stays,
}

const COMPARISONS: [(&str, Comparison); 5] = [
    ("at most", Comparison::AtMost),
    ("at least", Comparison::AtLeast),
    ("exactly", Comparison::Exactly),
    ("less than", Comparison::LessThan),
    ("more than", Comparison::MoreThan),
];

const TRENDS: [(&str, Trend); 3] =
    [("rises", Trend::Rises), ("falls", Trend::Falls), ("stays", Trend::Stays)];

/// The statement of a condition about a moment, to be compared with words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    relations: Vec<Relation>,
    /// All numbers of both sides as texts: sizes as plain numbers of bytes, and counts.
    pub(crate) numbers: Vec<String>,
}

/// How the sides of a condition compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// One side is not below the other: at least, at most, exactly.
    NotBelow,
    /// One is above the other: more than, less than.
    Above,
    Equal,
    /// A quantity is the largest of several.
    Extreme,
    /// A side is a multiple.
    Multiple,
    Rises,
    Falls,
    Stays,
    Passes,
    Fails,
}

impl Facts {
    pub(crate) fn has(&self, relation: Relation) -> bool {
        self.relations.contains(&relation)
    }

    pub(crate) fn has_any(&self, relations: &[Relation]) -> bool {
        relations.iter().any(|relation| self.has(*relation))
    }

    fn add_side(&mut self, side: &Sum, stretch: &RunStretch<'_>) -> Result<(), MeasureError> {
        self.numbers.push(side.value(stretch)?.to_string());
        for part in &side.parts {
            self.numbers.extend([part.once(stretch)?.to_string(), part.times.to_string()]);
            if part.times > 1 {
                self.relations.push(Relation::Multiple);
            }
            self.add_quantity(part.measure());
        }
        Ok(())
    }

    fn add_quantity(&mut self, measure: Option<&Measure>) {
        if measure.is_some_and(|measure| measure.quantity.is_extreme()) {
            self.relations.push(Relation::Extreme);
        }
    }
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Self, MeasureError> {
        let text = text.trim();
        let parts = split_unquoted(text, " and ");
        if parts.len() > 1 {
            return Ok(Self::All(parts.into_iter().map(Self::parse).collect::<Result<_, _>>()?));
        }
        for (word, comparison) in COMPARISONS {
            if let [left, right] = split_unquoted(text, &format!(" {word} ")).as_slice() {
                let kind = Sum::kind_in(left).or_else(|| Sum::kind_in(right)).unwrap_or(QuantityKind::Bytes);
                let (left, right) = (Sum::parse(left, kind)?, Sum::parse(right, kind)?);
                return Ok(Self::Compare { left, comparison, right });
            }
        }
        let not_a_condition = || MeasureError::NotACondition { found: text.to_owned() };
        let (words, last) = text.rsplit_once(' ').ok_or_else(not_a_condition)?;
        if let Some((_, trend)) = TRENDS.iter().find(|(word, _)| *word == last) {
            return Ok(Self::Trend { measure: Measure::parse(words)?, trend: *trend });
        }
        match last {
            "passes" | "fails" if !words.contains(' ') => {
                Ok(Self::Served { name: words.to_owned(), is_served: last == "passes" })
            }
            _ => Err(not_a_condition()),
        }
    }

    /// What the condition states at this moment.
    pub(crate) fn facts(&self, stretch: &RunStretch<'_>) -> Result<Facts, MeasureError> {
        let mut facts = Facts::default();
        self.add_facts(stretch, &mut facts)?;
        Ok(facts)
    }

    fn add_facts(&self, stretch: &RunStretch<'_>, facts: &mut Facts) -> Result<(), MeasureError> {
        match self {
            Self::All(conditions) => {
                for condition in conditions {
                    condition.add_facts(stretch, facts)?;
                }
            }
            Self::Compare { left, comparison, right } => {
                match comparison {
                    Comparison::AtMost | Comparison::AtLeast => facts.relations.push(Relation::NotBelow),
                    Comparison::Exactly => facts.relations.extend([Relation::NotBelow, Relation::Equal]),
                    Comparison::LessThan | Comparison::MoreThan => facts.relations.push(Relation::Above),
                }
                facts.add_side(left, stretch)?;
                facts.add_side(right, stretch)?;
            }
            Self::Trend { measure, trend } => {
                facts.relations.push(match trend {
                    Trend::Rises => Relation::Rises,
                    Trend::Falls => Relation::Falls,
                    Trend::Stays => Relation::Stays,
                });
                facts.add_quantity(Some(measure));
                for answer in [measure.answer(stretch)?, measure.answer_before(stretch)?] {
                    facts.numbers.extend(answer.number().map(|number| number.to_string()));
                }
            }
            Self::Served { is_served: true, .. } => facts.relations.push(Relation::Passes),
            Self::Served { is_served: false, .. } => facts.relations.push(Relation::Fails),
        }
        Ok(())
    }

    /// Whether the condition names a tensor, a label or a card, which the recording of a program does not
    /// have.
    pub(crate) fn is_of_workload(&self) -> bool {
        let is_named = |sum: &Sum| sum.parts.iter().filter_map(SumPart::measure).any(Measure::is_of_workload);
        match self {
            Self::Compare { left, right, .. } => is_named(left) || is_named(right),
            Self::Trend { measure, .. } => measure.is_of_workload(),
            Self::Served { .. } => true,
            Self::All(conditions) => conditions.iter().any(Self::is_of_workload),
        }
    }

    /// The quantities that the condition compares.
    pub(crate) fn measures(&self) -> Vec<&Measure> {
        match self {
            Self::Compare { left, right, .. } => {
                left.parts.iter().chain(&right.parts).filter_map(SumPart::measure).collect()
            }
            Self::Trend { measure, .. } => vec![measure],
            Self::Served { .. } => Vec::new(),
            Self::All(conditions) => conditions.iter().flat_map(Self::measures).collect(),
        }
    }

    /// Whether the condition holds, and the values as a clause such as `peak reserved is 60 MiB`.
    pub(crate) fn holds(&self, stretch: &RunStretch<'_>) -> Result<(bool, String), MeasureError> {
        match self {
            Self::All(conditions) => {
                let mut clauses = Vec::new();
                let mut all = true;
                for condition in conditions {
                    let (holds, clause) = condition.holds(stretch)?;
                    all &= holds;
                    clauses.push(clause);
                }
                Ok((all, clauses.join("; ")))
            }
            Self::Compare { left, comparison, right } => {
                let (found, number) = (left.value(stretch)?, right.value(stretch)?);
                let holds = comparison.holds(found, number);
                let mut clause = format!("{left} is {}", QuantityValue::of(left.kind, found));
                if right.is_quantity() {
                    clause = format!("{clause}, {right} is {}", QuantityValue::of(right.kind, number));
                } else if !holds && found != number {
                    let difference = QuantityValue::of(left.kind, found.abs_diff(number));
                    let limit = QuantityValue::of(left.kind, number);
                    let by = match left.kind {
                        QuantityKind::Bytes if found > number && difference == limit => "twice".to_owned(),
                        _ if found > number => format!("{difference} more than"),
                        _ => format!("{difference} less than"),
                    };
                    clause = format!("{clause}, {by} {limit}");
                }
                Ok((holds, clause))
            }
            Self::Trend { measure, trend } => {
                let (now, before) = (measure.answer(stretch)?, measure.answer_before(stretch)?);
                let (Some(after), Some(start)) = (now.number(), before.number()) else {
                    return Err(not_comparable(measure));
                };
                let holds = match trend {
                    Trend::Rises => after > start,
                    Trend::Falls => after < start,
                    Trend::Stays => after == start,
                };
                let clause = if after == start {
                    format!("{measure} stays at {now}")
                } else {
                    let word = if after > start { "rises" } else { "falls" };
                    format!("{measure} {word} from {before} to {now}")
                };
                Ok((holds, clause))
            }
            Self::Served { name, is_served: passes } => {
                let request = last_request(stretch.workload, name, stretch.to)
                    .ok_or_else(|| no_tensor(stretch.workload, name, stretch.to))?;
                let outcome = stretch.recording.outcome(request);
                let clause = if outcome == &StepOutcome::Done {
                    format!("the request for {name} passes")
                } else {
                    let words = blockyard_figure::describe_step(stretch.recording, request);
                    // The attempts before the failure are in the figures; here the cause helps most.
                    let why = words.failure.map_or(words.sentence, |failure| failure.why);
                    format!("the request for {name} fails: {why}")
                };
                Ok(((*outcome == StepOutcome::Done) == *passes, clause))
            }
        }
    }
}

fn not_comparable(measure: &Measure) -> MeasureError {
    MeasureError::NotComparable { quantity: measure.quantity.to_string() }
}

/// One side of a comparison: quantities and numbers, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    kind: QuantityKind,
    parts: Vec<SumPart>,
}

/// A part of a sum: `2 times size y`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SumPart {
    times: u64,
    what: Operand,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    Measure(Measure),
    Number(u64),
}

impl Sum {
    /// The kind of the first quantity in the text.
    fn kind_in(text: &str) -> Option<QuantityKind> {
        let parts = split_unquoted(text, " + ");
        parts
            .iter()
            .find_map(|part| Measure::parse(times(part).1).ok().map(|measure| measure.quantity.kind()))
    }

    fn parse(text: &str, kind: QuantityKind) -> Result<Self, MeasureError> {
        let part = |text: &str| {
            let (times, text) = times(text);
            let what = if text.starts_with(|first: char| first.is_ascii_digit()) {
                Operand::Number(parse_number(kind, text)?)
            } else {
                match Measure::parse(text) {
                    Ok(measure) => Operand::Measure(measure),
                    // A word in the place of a number is more likely a wrong number.
                    Err(error) => parse_number(kind, text).map(Operand::Number).map_err(|_| error)?,
                }
            };
            Ok(SumPart { times, what })
        };
        let parts = split_unquoted(text, " + ").into_iter().map(part).collect::<Result<_, _>>()?;
        Ok(Self { kind, parts })
    }

    /// The value of the sum, in bytes or as a count.
    fn value(&self, stretch: &RunStretch<'_>) -> Result<u64, MeasureError> {
        self.parts.iter().try_fold(0_u64, |sum, part| {
            Ok(sum.saturating_add(part.once(stretch)?.saturating_mul(part.times)))
        })
    }

    fn is_quantity(&self) -> bool {
        self.parts.iter().any(|part| part.measure().is_some())
    }
}

impl SumPart {
    fn measure(&self) -> Option<&Measure> {
        match &self.what {
            Operand::Measure(measure) => Some(measure),
            Operand::Number(_) => None,
        }
    }

    fn once(&self, stretch: &RunStretch<'_>) -> Result<u64, MeasureError> {
        match &self.what {
            Operand::Measure(measure) => {
                measure.answer(stretch)?.number().ok_or_else(|| not_comparable(measure))
            }
            Operand::Number(number) => Ok(*number),
        }
    }
}

/// `reserved + free`, `2 times 3 MiB`.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(" + ")?;
            }
            if part.times != 1 {
                write!(f, "{} times ", part.times)?;
            }
            match &part.what {
                Operand::Measure(measure) => write!(f, "{measure}")?,
                Operand::Number(number) => write!(f, "{}", QuantityValue::of(self.kind, *number))?,
            }
        }
        Ok(())
    }
}

/// Cuts `2 times ` off.
fn times(text: &str) -> (u64, &str) {
    let text = text.trim();
    let cut = text.split_once(" times ").and_then(|(number, rest)| Some((number.parse().ok()?, rest.trim())));
    cut.unwrap_or((1, text))
}

/// The parts of a text between separators; titles in quotes stay whole.
pub(crate) fn split_unquoted<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(separator) {
        let is_quoted = text.get(..at).is_some_and(|before| before.matches('"').count() % 2 == 1);
        if at >= start && !is_quoted {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at.saturating_add(separator.len());
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// A size for bytes, a plain number for counts.
fn parse_number(kind: QuantityKind, text: &str) -> Result<u64, MeasureError> {
    let text = text.trim();
    let not_a_number = |expected| MeasureError::NotANumber { expected, found: text.to_owned() };
    match kind {
        QuantityKind::Bytes => parse_size(text)
            .map(blockyard_record::Bytes::get)
            .map_err(|_| not_a_number("a size such as \"3 MiB\"")),
        QuantityKind::Count => text.parse().map_err(|_| not_a_number("a number")),
        QuantityKind::Text => Err(not_a_number("a quantity that is a number")),
    }
}

impl Comparison {
    fn holds(self, found: u64, number: u64) -> bool {
        match self {
            Self::AtMost => found <= number,
            Self::AtLeast => found >= number,
            Self::Exactly => found == number,
            Self::LessThan => found < number,
            Self::MoreThan => found > number,
        }
    }
}

/// `peak reserved is at most 40 MiB`, `the request for x passes`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(conditions) => {
                for (index, condition) in conditions.iter().enumerate() {
                    write!(f, "{}{condition}", if index > 0 { ", and " } else { "" })?;
                }
                Ok(())
            }
            Self::Compare { left, comparison, right } => {
                let word = COMPARISONS.iter().find(|row| row.1 == *comparison).map_or("", |row| row.0);
                write!(f, "{left} is {word} {right}")
            }
            Self::Trend { measure, trend } => {
                let word = TRENDS.iter().find(|row| row.1 == *trend).map_or("", |row| row.0);
                write!(f, "{measure} {word}")
            }
            Self::Served { name, is_served: true } => write!(f, "the request for {name} passes"),
            Self::Served { name, is_served: false } => write!(f, "the request for {name} fails"),
        }
    }
}

/// The first tensor of `start` that `workload` does not ask for, as `name` with its size.
pub(crate) fn missing_request(start: &Workload, workload: &Workload) -> Option<String> {
    let allocations = |workload: &Workload| -> Vec<(String, u64, u64)> {
        let requests = workload.requests().iter().filter_map(|request| match request {
            Request::Allocate { tensor, size, stream } => {
                let name = workload.tensor_name(*tensor).unwrap_or_default().into_owned();
                Some((name, size.get(), stream.get()))
            }
            _ => None,
        });
        let mut requests: Vec<_> = requests.collect();
        requests.sort();
        requests
    };
    let mut there = allocations(workload);
    for wanted in allocations(start) {
        match there.binary_search(&wanted) {
            Ok(place) => {
                there.remove(place);
            }
            Err(_) => {
                return Some(format!("{} of {}", wanted.0, blockyard_record::Bytes::new(wanted.1)));
            }
        }
    }
    None
}
