//! Questions of lessons: the reader predicts, then the allocator's answer is shown.

use blockyard_record::Bytes;
use thiserror::Error;

use crate::asked::{EarlierQuestions, fill_alone};
use crate::condition::Condition;
use crate::document::{Fence, Field};
use crate::error::{Errors, LessonError, LessonErrorKind, Position};
use crate::lesson::{fields, size};
use crate::markdown::{Piece, fill};
use crate::measure::{Measure, QuantityValue, RunStretch};
use crate::proof::{UnprovedWord, disagreeing, unproved};
use crate::quantity::QuantityKind;
use crate::text::Inline;

/// Predict, then reveal: a question that the allocator has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LessonQuestion {
    /// The question.
    pub text: Vec<Inline>,
    /// The question for a sheet that has the questions of the lesson alone: a number that would answer an
    /// earlier question is left to the reader.
    pub text_alone: Vec<Inline>,
    /// The possible answers, and the right answer.
    pub answers: RightAnswers,
    /// Where a drawn answer's ruler ends, which begins at 0; `None` for an answer that is typed or chosen.
    pub ruler: Option<Bytes>,
    /// The right answer for people: `20 MiB`, or the words of the right choice.
    pub right: String,
    /// Why the right answer is right; may be empty.
    pub because: Vec<Inline>,
}

/// A ruler on which a reader draws an answer has at most so many steps.
const MAX_DRAWN_STEPS: u64 = 64;

/// How a question is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RightAnswers {
    /// By one of several choices, of which exactly one is right.
    Choices(Vec<Choice>),
    /// By a number of bytes that the reader types.
    Bytes(Bytes),
    /// By a number that the reader types.
    Count(u64),
}

/// One answer that a question offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The words of the choice.
    pub text: Vec<Inline>,
    /// Whether the allocator agrees.
    pub is_right: bool,
}

/// Why an answer cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The answer is not a size of memory.
    #[error("expected a size such as \"20 MiB\", found \"{found}\"")]
    InvalidSize {
        /// The answer as typed.
        found: String,
    },
    /// The unit of the answer is a power of 1000, where memory has units of 1024.
    #[error("a {unit} is {bytes} bytes; memory is counted in units of 1024: write \"{unit_meant}\"")]
    DecimalUnit {
        /// The unit that was typed.
        unit: &'static str,
        /// How many bytes the typed unit has.
        bytes: &'static str,
        /// The unit that was probably meant.
        unit_meant: &'static str,
    },
    /// The answer is not a number.
    #[error("expected a number, found \"{found}\"")]
    NotANumber {
        /// The answer as typed.
        found: String,
    },
    /// No choice has this number.
    #[error("expected a number from 1 to {count}, found \"{found}\"")]
    NotAChoice {
        /// The number of choices.
        count: usize,
        /// The answer as typed.
        found: String,
    },
}

const DECIMAL_UNITS: [(&str, &str, &str); 3] =
    [("KB", "1,000", "KiB"), ("MB", "1,000,000", "MiB"), ("GB", "1,000,000,000", "GiB")];

impl LessonQuestion {
    /// The letter of the right choice, from `a`, as choices have it on paper; `None` where a number is asked
    /// for.
    pub fn letter(&self) -> Option<char> {
        let RightAnswers::Choices(choices) = &self.answers else { return None };
        ('a'..='z').zip(choices).find(|(_, choice)| choice.is_right).map(|(letter, _)| letter)
    }

    /// Whether the run gives the question a value, so that the question has other numbers in another run.
    pub(crate) fn has_values(&self) -> bool {
        !matches!(self.answers, RightAnswers::Choices(_)) || has_value(&self.text)
    }

    /// How a size that the reader has drawn compares with the right size, in a sentence; `None` where no size
    /// is asked for.
    pub fn drawn_sentence(&self, drawn: Bytes) -> Option<String> {
        let RightAnswers::Bytes(right) = self.answers else { return None };
        if self.is_at(drawn, right) {
            return Some(format!("Right: {}.", self.right));
        }
        let difference = Bytes::new(right.get().abs_diff(drawn.get()));
        let side = if drawn > right { "high" } else { "low" };
        Some(format!("{difference} too {side}: you drew {drawn}, and the allocator says {}.", self.right))
    }

    /// The bytes between two steps of the ruler, a power of two.
    fn drawn_step(&self) -> u64 {
        self.ruler.unwrap_or_default().get().div_ceil(MAX_DRAWN_STEPS).next_power_of_two()
    }

    /// How many steps the ruler has.
    pub fn drawn_steps(&self) -> u64 {
        self.ruler.unwrap_or_default().get() / self.drawn_step()
    }

    /// The size at a step of the ruler on which the reader draws, from 0.
    pub fn drawn_at(&self, step: u32) -> Bytes {
        Bytes::new(self.drawn_step().saturating_mul(u64::from(step)))
    }

    /// The step at which the reader's mark begins: the middle of the ruler, or a third of it where the middle is
    /// the answer.
    pub fn first_step(&self) -> u32 {
        let steps = u32::try_from(self.drawn_steps()).unwrap_or(u32::MAX);
        let half = self.drawn_at(steps / 2);
        let is_answer = matches!(self.answers, RightAnswers::Bytes(right) if self.is_at(half, right));
        steps / if is_answer { 3 } else { 2 }
    }

    /// Whether no step of the ruler is nearer to the right size than the drawn size.
    fn is_at(&self, drawn: Bytes, right: Bytes) -> bool {
        drawn.get().abs_diff(right.get()) <= self.drawn_step() / 2
    }

    /// The place of a size on that ruler, in percent of its length.
    #[expect(clippy::cast_precision_loss, reason = "sizes of lessons are far below 2^53 bytes")]
    pub fn place_percent(&self, size: Bytes) -> f64 {
        let ruler = self.ruler.unwrap_or_default().get().max(1) as f64;
        (100.0 * size.get() as f64 / ruler).min(100.0)
    }

    /// Whether a typed answer is right: a size (in MiB without a unit), a number, or the number of a choice
    /// from 1.
    ///
    /// A size is right if it equals the right size in two decimals of its unit, so that a reader need not
    /// type all bytes. A drawn size is right if no step of the ruler is nearer to the right size.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] if the answer cannot be read as a size, a number or a choice.
    pub fn check(&self, answer: &str) -> Result<bool, AnswerError> {
        let answer = answer.trim();
        let found = || answer.to_owned();
        match &self.answers {
            RightAnswers::Choices(choices) => {
                let place = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let choice = place.and_then(|place| choices.get(place));
                let not_a_choice = || AnswerError::NotAChoice { count: choices.len(), found: found() };
                choice.map(|choice| choice.is_right).ok_or_else(not_a_choice)
            }
            RightAnswers::Bytes(right) => {
                let typed = SizeAnswer::parse(answer)?;
                if self.ruler.is_some() {
                    return Ok(self.is_at(typed.whole_bytes(), *right));
                }
                Ok(typed.is_near(*right, typed.unit / 100.0))
            }
            RightAnswers::Count(right) => {
                let number = answer.replace(',', "").parse::<u64>();
                number.map(|number| number == *right).map_err(|_| AnswerError::NotANumber { found: found() })
            }
        }
    }
}

fn has_value(text: &[Inline]) -> bool {
    text.iter().any(|inline| match inline {
        Inline::Value { .. } => true,
        Inline::Strong(text) | Inline::Emphasis(text) | Inline::Link { text, .. } => has_value(text),
        Inline::Text(_) | Inline::Code(_) => false,
    })
}

/// A size as a reader types it.
#[derive(Clone, Copy, Debug)]
struct SizeAnswer {
    bytes: f64,
    unit: f64,
}

impl SizeAnswer {
    fn parse(answer: &str) -> Result<Self, AnswerError> {
        let invalid_size = || AnswerError::InvalidSize { found: answer.to_owned() };
        let digits = answer.trim_end_matches(|character: char| !character.is_ascii_digit());
        let unit = answer.get(digits.len()..).unwrap_or_default().trim().to_ascii_uppercase();
        for (decimal, bytes, unit_meant) in DECIMAL_UNITS {
            if unit == decimal {
                return Err(AnswerError::DecimalUnit { unit: decimal, bytes, unit_meant });
            }
        }
        let unit = match unit.as_str() {
            "B" | "BYTES" => 1.0,
            "KIB" => 1024.0,
            "" | "MIB" => 1_048_576.0,
            "GIB" => 1_073_741_824.0,
            _ => return Err(invalid_size()),
        };
        let number: f64 = digits.replace(',', "").parse().map_err(|_| invalid_size())?;
        if number.is_finite() && number >= 0.0 {
            Ok(Self { bytes: number * unit, unit })
        } else {
            Err(invalid_size())
        }
    }

    fn whole_bytes(self) -> Bytes {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number is not negative, and the cast saturates"
        )]
        Bytes::new(self.bytes.round() as u64)
    }

    /// Whether the answer differs from the right size by less than `near` bytes.
    fn is_near(&self, right: Bytes, near: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "sizes of lessons are far below 2^53 bytes")]
        let right = right.get() as f64;
        (self.bytes - right).abs() < near
    }
}

/// A question that has not been asked yet.
#[derive(Clone, Debug)]
pub(crate) struct ParsedQuestion {
    at: Position,
    text: Vec<Piece>,
    because: Vec<Piece>,
    asked: Expectation,
    ruler: Option<Bytes>,
}

#[derive(Clone, Debug)]
enum Expectation {
    Measure(Measure, Position),
    /// The measure and the line of the choices, each with its place, and the choices as they are written and
    /// as numbers.
    Numbers((Measure, Position), Position, Vec<(String, Numeral)>),
    Conditions(Vec<(Condition, Vec<Piece>, Position)>),
}

impl ParsedQuestion {
    pub(crate) fn parse(fence: &Fence<'_>, errors: &mut Errors) -> Result<Self, LessonError> {
        let fields = fields(fence, "question, measure, choices, choice, draw, because", &["choice"], errors);
        let because = fields.get("because").map(|field| field.prose.parse(errors));
        let conditions =
            fields.all("choice").map(|field| condition(field, errors)).collect::<Result<Vec<_>, _>>()?;
        let asked = match (fields.get("measure"), fields.get("choices"), conditions.len()) {
            (None, None, 2..) => Expectation::Conditions(conditions),
            (Some(field), None, 0) => Expectation::Measure(measure(field)?, field.at),
            (Some(field), Some(choices), 0) => {
                let measure = measure(field)?;
                let numbers =
                    choices.value.split(',').map(|choice| numeral(choices, &measure, choice.trim()));
                let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
                Expectation::Numbers((measure, field.at), choices.at, numbers)
            }
            _ => return Err(fence.at.at(LessonErrorKind::Question)),
        };
        let draw = fields.get("draw");
        let ruler = draw.map(size).transpose()?.filter(|ruler| !ruler.is_zero());
        let is_drawable = matches!(&asked, Expectation::Measure(measure, _) if measure.quantity.kind() == QuantityKind::Bytes);
        if draw.is_some() && (ruler.is_none() || !is_drawable) {
            return Err(fence.at.at(LessonErrorKind::Question));
        }
        Ok(Self {
            at: fence.at,
            ruler,
            text: fields.require("a question", "question")?.prose.parse(errors),
            because: because.unwrap_or_default(),
            asked,
        })
    }

    /// Asks the allocator. The question is asked at the beginning of the stretch, and answered at its end.
    pub(crate) fn ask<'a>(
        &self,
        stretch: &RunStretch<'a>,
        earlier: &mut EarlierQuestions<'a>,
        errors: &mut Errors,
    ) -> Option<LessonQuestion> {
        let before = RunStretch { to: stretch.from, ..*stretch };
        let answers = self.asked.answers(self.at, stretch, errors);
        let answers = errors.keep(answers);
        let text = fill(&self.text, &before, errors);
        let text_alone = fill_alone(&self.text, &before, earlier);
        earlier.add(stretch.recording, stretch.from, &text_alone);
        let because = fill(&self.because, stretch, errors);
        let (answers, right) = answers?;
        earlier.add_answer(&right);
        Some(LessonQuestion { text, text_alone, answers, ruler: self.ruler, right, because })
    }
}

impl ParsedQuestion {
    /// Adds a note for each number and comparing word of the question's texts that is not proved.
    pub(crate) fn unproved(&self, stretch: &RunStretch<'_>, notes: &mut Vec<UnprovedWord>) {
        unproved(&self.text, &RunStretch { to: stretch.from, ..*stretch }, notes);
        unproved(&self.because, stretch, notes);
        if let Expectation::Conditions(conditions) = &self.asked {
            for (condition, words, at) in conditions {
                disagreeing(words, condition, *at, stretch, notes);
            }
        }
    }
}

impl Expectation {
    fn answers(
        &self,
        question: Position,
        stretch: &RunStretch<'_>,
        errors: &mut Errors,
    ) -> Result<(RightAnswers, String), LessonError> {
        let (choices, answer, place) = match self {
            Self::Measure(measure, at) => {
                let answer = ask(measure, *at, stretch)?;
                let answers = match &answer {
                    QuantityValue::Bytes(bytes) => RightAnswers::Bytes(*bytes),
                    QuantityValue::Count(count) => RightAnswers::Count(*count),
                    QuantityValue::Text(_) => return Err(question.at(LessonErrorKind::Question)),
                };
                return Ok((answers, answer.to_string()));
            }
            Self::Numbers((measure, at), line, numbers) => {
                let answer = ask(measure, *at, stretch)?;
                let choices = numbers.iter().map(|(text, number)| Choice {
                    text: vec![Inline::Text(text.clone())],
                    is_right: number.is(&answer),
                });
                (choices.collect::<Vec<_>>(), answer.to_string(), *line)
            }
            Self::Conditions(conditions) => {
                let mut choices = Vec::new();
                let mut found = Vec::new();
                for (condition, text, at) in conditions {
                    let holds = condition.holds(stretch);
                    let (is_right, clause) = holds.map_err(|error| at.at(LessonErrorKind::Measure(error)))?;
                    choices.push(Choice { text: fill(text, stretch, errors), is_right });
                    if !found.contains(&clause) {
                        found.push(clause);
                    }
                }
                let first = conditions.first().map_or(question, |(_, _, at)| *at);
                (choices, found.join("; "), first)
            }
        };
        let mut right = choices.iter().filter(|choice| choice.is_right);
        let words = right.next().map(|choice| crate::text::plain(&choice.text));
        let is_only = right.next().is_none();
        let Some(words) = words.filter(|_| is_only) else {
            let right = choices.iter().filter(|choice| choice.is_right).count();
            return Err(place.at(LessonErrorKind::Choices { right, answer }));
        };
        Ok((RightAnswers::Choices(choices), words))
    }
}

/// A number among the choices of a question.
#[derive(Clone, Debug)]
enum Numeral {
    Size(SizeAnswer),
    Count(u64),
}

impl Numeral {
    fn is(&self, answer: &QuantityValue) -> bool {
        match (self, answer) {
            (Self::Size(size), QuantityValue::Bytes(bytes)) => size.is_near(*bytes, size.unit / 100.0),
            (Self::Count(count), QuantityValue::Count(found)) => count == found,
            _ => false,
        }
    }
}

fn numeral(field: &Field, measure: &Measure, text: &str) -> Result<(String, Numeral), LessonError> {
    let expected = match measure.quantity.kind() {
        QuantityKind::Bytes => "a size such as \"3 MiB\"",
        QuantityKind::Count | QuantityKind::Text => "a number",
    };
    let unexpected = || LessonErrorKind::Unexpected { expected, found: text.to_owned() };
    let number = match measure.quantity.kind() {
        QuantityKind::Bytes => SizeAnswer::parse(text).ok().map(Numeral::Size),
        QuantityKind::Count | QuantityKind::Text => text.parse().ok().map(Numeral::Count),
    };
    Ok((text.to_owned(), number.ok_or_else(|| field.at.at(unexpected()))?))
}

fn ask(measure: &Measure, at: Position, stretch: &RunStretch<'_>) -> Result<QuantityValue, LessonError> {
    measure.answer(stretch).map_err(|error| at.at(LessonErrorKind::Measure(error)))
}

fn measure(field: &Field) -> Result<Measure, LessonError> {
    let measure =
        Measure::parse(&field.value).map_err(|error| field.at.at(LessonErrorKind::Measure(error)))?;
    if measure.quantity.kind() == QuantityKind::Text {
        return Err(field.at.at(LessonErrorKind::Question));
    }
    Ok(measure)
}

/// Reads `reserved falls => It goes back to the device`.
fn condition(field: &Field, errors: &mut Errors) -> Result<(Condition, Vec<Piece>, Position), LessonError> {
    let Some((condition, words)) = field.value.split_once("=>") else {
        let expected = "choice: reserved falls => It goes back to the device";
        return Err(field.at.at(LessonErrorKind::NotAKey { expected }));
    };
    let condition =
        Condition::parse(condition).map_err(|error| field.at.at(LessonErrorKind::Measure(error)))?;
    let words = crate::markdown::Prose::line(field.at, words.trim()).parse(errors);
    Ok((condition, words, field.at))
}
