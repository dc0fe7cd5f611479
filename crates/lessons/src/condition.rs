use std::fmt;

use blockyard_record::StepOutcome;
use blockyard_workload::{Request, Workload, parse_size};

use crate::error::MeasureError;
use crate::measure::{Answer, Measure, Stretch, last_request};
use crate::quantity::QuantityKind;

/// A condition: the right choice of a question, the goal of an exercise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// A quantity against a number.
    Compare { measure: Measure, comparison: Comparison, number: u64 },
    /// A quantity against itself at the beginning.
    Course { measure: Measure, course: Course },
    /// The last request for a tensor is served, or is not.
    Passes { name: String, passes: bool },
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
pub(crate) enum Course {
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

const COURSES: [(&str, Course); 3] =
    [("rises", Course::Rises), ("falls", Course::Falls), ("stays", Course::Stays)];

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Self, MeasureError> {
        let text = text.trim();
        for (word, comparison) in COMPARISONS {
            if let Some((measure, number)) = text.split_once(&format!(" {word} ")) {
                let measure = Measure::parse(measure)?;
                let number = parse_number(measure.quantity.kind(), number)?;
                return Ok(Self::Compare { measure, comparison, number });
            }
        }
        let not_a_condition = || MeasureError::NotACondition { found: text.to_owned() };
        let (words, last) = text.rsplit_once(' ').ok_or_else(not_a_condition)?;
        if let Some((_, course)) = COURSES.iter().find(|(word, _)| *word == last) {
            return Ok(Self::Course { measure: Measure::parse(words)?, course: *course });
        }
        match last {
            "passes" | "fails" if !words.contains(' ') => {
                Ok(Self::Passes { name: words.to_owned(), passes: last == "passes" })
            }
            _ => Err(not_a_condition()),
        }
    }

    /// Whether the condition holds, and the values as a clause such as `peak reserved is 60 MiB`.
    pub(crate) fn holds(&self, stretch: &Stretch<'_>) -> Result<(bool, String), MeasureError> {
        match self {
            Self::Compare { measure, comparison, number } => {
                let answer = measure.answer(stretch)?;
                let found = answer.number().ok_or_else(|| not_comparable(measure))?;
                let holds = comparison.holds(found, *number);
                let mut clause = format!("{measure} is {answer}");
                if !holds && found != *number {
                    let difference = Answer::of(measure.quantity.kind(), found.abs_diff(*number));
                    let limit = Answer::of(measure.quantity.kind(), *number);
                    let word = if found > *number { "more" } else { "less" };
                    clause = format!("{clause}, {difference} {word} than {limit}");
                }
                Ok((holds, clause))
            }
            Self::Course { measure, course } => {
                let (now, before) = (measure.answer(stretch)?, measure.answer_before(stretch)?);
                let (Some(after), Some(start)) = (now.number(), before.number()) else {
                    return Err(not_comparable(measure));
                };
                let holds = match course {
                    Course::Rises => after > start,
                    Course::Falls => after < start,
                    Course::Stays => after == start,
                };
                let clause = if after == start {
                    format!("{measure} stays at {now}")
                } else {
                    let word = if after > start { "rises" } else { "falls" };
                    format!("{measure} {word} from {before} to {now}")
                };
                Ok((holds, clause))
            }
            Self::Passes { name, passes } => {
                let request = last_request(stretch.workload, name, stretch.to)
                    .ok_or_else(|| MeasureError::NoTensor { name: name.clone() })?;
                let outcome = stretch.recording.outcome(request);
                let clause = if outcome == &StepOutcome::Done {
                    format!("the request for {name} passes")
                } else {
                    let words = blockyard_figure::describe_step(stretch.recording, request).sentence;
                    // The attempts before the failure are in the figures; here the cause helps most.
                    let cause = words.find("out of memory").and_then(|from| words.get(from..));
                    format!("the request for {name} fails: {}", cause.unwrap_or(&words))
                };
                Ok(((*outcome == StepOutcome::Done) == *passes, clause))
            }
        }
    }
}

fn not_comparable(measure: &Measure) -> MeasureError {
    MeasureError::NotComparable { quantity: measure.quantity.to_string() }
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
            Self::Compare { measure, comparison, number } => {
                let word = COMPARISONS.iter().find(|row| row.1 == *comparison).map_or("", |row| row.0);
                write!(f, "{measure} is {word} {}", Answer::of(measure.quantity.kind(), *number))
            }
            Self::Course { measure, course } => {
                let word = COURSES.iter().find(|row| row.1 == *course).map_or("", |row| row.0);
                write!(f, "{measure} {word}")
            }
            Self::Passes { name, passes: true } => write!(f, "the request for {name} passes"),
            Self::Passes { name, passes: false } => write!(f, "the request for {name} fails"),
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
