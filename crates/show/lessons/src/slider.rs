//! Sliders: values of a lesson that the reader moves, and values that are drawn for the reader. The lesson runs
//! again with each value.

use std::borrow::Cow;
use std::str::FromStr;

use blockyard_record::index_u32;

use crate::document::{Field, Fields};
use crate::error::{Errors, LessonError, LessonErrorKind, Position};

/// A value of a lesson that the reader moves. In the lesson's file the value is `$name`. Without a label it is a
/// *drawn value*: the reader sees no slider, and a question that is asked again has another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slider {
    name: String,
    /// Empty for a drawn value.
    label: String,
    /// The cards that show the slider: at least one, or none for a drawn value.
    cards: Vec<usize>,
    stops: Stops,
    start: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stops {
    Numbers { from: u64, step: u64, count: usize },
    Words(Vec<String>),
}

/// The most values that a slider may have.
const MAX_STOPS: u64 = 20_000;

impl Slider {
    /// The name, as the lesson's file and links have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position of a value, from 0; `None` if the slider does not stop there.
    pub fn position(&self, value: &str) -> Option<usize> {
        (0..self.stop_count()).find(|position| self.value(*position) == value)
    }

    /// Whether the value is drawn, and no card shows a slider for it.
    pub fn is_drawn(&self) -> bool {
        self.cards.is_empty()
    }

    /// What the slider moves, for people; empty for a drawn value.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The cards that show the slider, from 0; none for a drawn value.
    pub fn cards(&self) -> &[usize] {
        &self.cards
    }

    /// How many values the slider has; at least two.
    pub const fn stop_count(&self) -> usize {
        match &self.stops {
            Stops::Numbers { count, .. } => *count,
            Stops::Words(words) => words.len(),
        }
    }

    /// The position of the value with which the lesson opens, from 0.
    pub const fn start(&self) -> usize {
        self.start
    }

    /// The value at a position, from 0; the last value for a position after it.
    pub fn value(&self, position: usize) -> String {
        match &self.stops {
            Stops::Numbers { .. } => self.number(position).unwrap_or_default().to_string(),
            Stops::Words(words) => words.get(position).or(words.last()).cloned().unwrap_or_default(),
        }
    }

    fn number(&self, position: usize) -> Option<u64> {
        let Stops::Numbers { from, step, count } = self.stops else { return None };
        let position = u64::try_from(position.min(count.saturating_sub(1))).ok()?;
        Some(from.saturating_add(step.saturating_mul(position)))
    }

    fn parse(fields: &Fields, card: usize) -> Result<Self, LessonError> {
        let place = "a slider";
        let name = fields.require(place, "name")?;
        let is_name = name.value.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
        if !is_name {
            let expected = "a name of lowercase letters, such as \"width\"";
            return Err(unexpected(name, expected));
        }
        let (stops, start) = match fields.get("stops") {
            Some(field) => {
                let words: Vec<String> = field.value.split(',').map(|word| word.trim().to_owned()).collect();
                let start = match fields.get("start") {
                    Some(start) => words
                        .iter()
                        .position(|word| *word == start.value)
                        .ok_or_else(|| unexpected(start, "one of the stops"))?,
                    None => 0,
                };
                if words.len() < 2 {
                    return Err(unexpected(field, "two stops or more, such as \"float32, bfloat16\""));
                }
                (Stops::Words(words), start)
            }
            None => numbers(fields)?,
        };
        let label = fields.get("label").map(|field| field.value.clone()).unwrap_or_default();
        let cards = if label.is_empty() { Vec::new() } else { vec![card] };
        Ok(Self { name: name.value.clone(), label, cards, stops, start })
    }
}

/// The stops of a slider of numbers, and the position of the first value.
fn numbers(fields: &Fields) -> Result<(Stops, usize), LessonError> {
    let field = |key| fields.require("a slider of numbers", key);
    let (from, to, start) = (field("from")?, field("to")?, field("start")?);
    let step = fields.get("step").map_or(Ok(1), number)?;
    let (first, last, chosen) = (number(from)?, number(to)?, number(start)?);
    let steps = last.checked_sub(first).filter(|_| step > 0).and_then(|range| range.checked_div(step));
    let steps = steps.filter(|steps| (1..MAX_STOPS).contains(steps));
    let steps = steps.ok_or_else(|| unexpected(to, "a number above \"from\", at most 19,999 steps away"))?;
    let position = chosen.checked_sub(first).and_then(|above| above.checked_div(step));
    let position = position.filter(|position| {
        *position <= steps && first.saturating_add(position.saturating_mul(step)) == chosen
    });
    let position = position.ok_or_else(|| unexpected(start, "a number that the slider stops at"))?;
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok((Stops::Numbers { from: first, step, count: index(steps.saturating_add(1)) }, index(position)))
}

fn number(field: &Field) -> Result<u64, LessonError> {
    u64::from_str(&field.value).map_err(|_| unexpected(field, "a whole number"))
}

fn unexpected(field: &Field, expected: &'static str) -> LessonError {
    field.at.at(LessonErrorKind::Unexpected { expected, found: field.value.clone() })
}

/// The first word of a fence that makes a slider.
pub(crate) const SLIDER: &str = "slider";

/// The sliders of a text, in its order, and the drawn values after them.
pub(crate) fn sliders(text: &str, errors: &mut Errors) -> Vec<Slider> {
    let mut found: Vec<Slider> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut cards = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        cards += usize::from(line.starts_with("## "));
        if line.strip_prefix("```").is_none_or(|word| word.trim() != SLIDER) {
            continue;
        }
        let after = lines.get(index + 1..).unwrap_or_default();
        let length = after.iter().position(|line| line.starts_with("```")).unwrap_or(after.len());
        let at = Position { line: index_u32(index + 1), column: 1 };
        let own = after.get(..length).unwrap_or_default();
        let fields = Fields::parse(at, at.line.saturating_add(1), own, errors);
        fields.check("name, label, from, to, step, start, stops", &[], errors);
        let card = cards.saturating_sub(1);
        // A name alone shows a slider of an earlier card again.
        let is_alone = ["label", "stops", "from"].iter().all(|key| fields.get(key).is_none());
        let earlier = fields.get("name").filter(|_| is_alone);
        if let Some(slider) = earlier.and_then(|name| found.iter_mut().find(|other| other.name == name.value))
        {
            slider.cards.push(card);
            continue;
        }
        if let Some(slider) = errors.keep(Slider::parse(&fields, card)) {
            if found.iter().any(|other| other.name == slider.name) {
                errors.push(at.at(LessonErrorKind::DuplicateKey { key: slider.name.clone() }));
            }
            found.push(slider);
        }
    }
    found.sort_by_key(Slider::is_drawn);
    found
}

/// The text with the values of its sliders: `$name` is the value, `$[8192*name]` a product, and `$[8192/name]`
/// a share, rounded up. Other words after a `$` stay as they are.
pub(crate) fn with_values<'t>(text: &'t str, sliders: &[Slider], positions: &[usize]) -> Cow<'t, str> {
    if sliders.is_empty() {
        return Cow::Borrowed(text);
    }
    let value = |name: &str| {
        let index = sliders.iter().position(|slider| slider.name == name)?;
        let slider = sliders.get(index)?;
        Some((slider, positions.get(index).copied().unwrap_or(slider.start)))
    };
    let factor = |word: &str| match word.trim().parse::<u64>() {
        Ok(number) => Some(number),
        Err(_) => value(word.trim()).and_then(|(slider, position)| slider.value(position).parse().ok()),
    };
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split('$');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let length = piece.find(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
        let (name, rest) = piece.split_at(length.unwrap_or(piece.len()));
        let product = piece.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let product = product.and_then(|(factors, rest)| {
            let (factors, divisor) =
                factors.split_once('/').map_or((factors, Some(1)), |(factors, word)| (factors, factor(word)));
            let product =
                factors.split('*').try_fold(1_u64, |product, word| product.checked_mul(factor(word)?));
            let divisor = divisor.filter(|divisor| *divisor > 0)?;
            Some((product?.div_ceil(divisor).to_string(), rest))
        });
        let known = product.or_else(|| value(name).map(|(slider, position)| (slider.value(position), rest)));
        match known {
            Some((words, rest)) => out.extend([words.as_str(), rest]),
            None => out.extend(["$", piece]),
        }
    }
    Cow::Owned(out)
}
