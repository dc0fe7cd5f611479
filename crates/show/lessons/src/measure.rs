//! A quantity at a moment, as a lesson file writes it, and its value in a run.

use std::collections::BTreeSet;

use blockyard_record::{BlockState, Bytes, Event, MemoryState, Recording, StepOutcome, grouped};
use blockyard_workload::{Request, Workload};

use crate::condition::split_unquoted;
use crate::error::{KnownNames, MeasureError};
use crate::measured::MeasuredSize;
use crate::quantity::{Quantity, QuantityKind};

/// A quantity at a moment, as a lesson file writes it: `reserved`, `peak_reserved before`, `block a`,
/// `cached at "Label"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) quantity: Quantity,
    /// The tensor of [`Quantity::BlockSize`] and [`Quantity::RequestedSize`], the name of
    /// [`Quantity::Measured`].
    name: Option<String>,
    /// The sentence of [`Quantity::Message`], counted from 1; 0 for all.
    sentence: usize,
    moment: Moment,
    form: Form,
    /// The measure that is added to this one: `reserved + measured context`.
    plus: Option<Box<Self>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Moment {
    /// The end of the card, or of the run.
    Here,
    /// The beginning of the card.
    Before,
    /// The end of the steps with this label.
    Label(String),
    /// After the last request that allocates this tensor.
    Tensor(String),
    /// The end of the card with this title, in its own run.
    Card(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// For people: `382 MiB`.
    Short,
    /// To the byte: `400,556,032 bytes`.
    Exact,
    /// The difference to the value at the beginning of the card.
    Change,
}

/// The value of a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuantityValue {
    Bytes(Bytes),
    Count(u64),
    Text(String),
}

impl QuantityValue {
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.get()),
            Self::Count(count) => Some(*count),
            Self::Text(_) => None,
        }
    }

    /// Bytes become a text to the byte; other values stay.
    fn exact(self) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Text(format!("{} bytes", grouped(bytes.get()))),
            other => other,
        }
    }

    /// The number in the unit of `kind`, for people.
    pub(crate) fn of(kind: QuantityKind, number: u64) -> Self {
        match kind {
            QuantityKind::Bytes => Self::Bytes(Bytes::new(number)),
            QuantityKind::Count | QuantityKind::Text => Self::Count(number),
        }
    }
}

impl std::fmt::Display for QuantityValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Count(count) => f.write_str(&grouped(*count)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A run, and the stretch of the run that is asked about: the numbers of complete steps at the two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunStretch<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) recording: &'a Recording,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// All cards of the lesson, to be asked about; none in an exercise.
    pub(crate) cards: &'a [CardEnd<'a>],
    /// The measurements of the lesson; none when an exercise is graded.
    pub(crate) measured: &'a [MeasuredSize],
    /// The non-PyTorch memory of the process.
    pub(crate) non_pytorch: Bytes,
}

impl<'a> RunStretch<'a> {
    /// A stretch of no length at the beginning of a run, without cards and measurements.
    pub(crate) fn of(workload: &'a Workload, recording: &'a Recording) -> Self {
        Self { workload, recording, from: 0, to: 0, cards: &[], measured: &[], non_pytorch: Bytes::ZERO }
    }
}

/// The end of a card: its run and its moment.
#[derive(Clone, Debug)]
pub(crate) struct CardEnd<'a> {
    pub(crate) title: String,
    pub(crate) workload: &'a Workload,
    pub(crate) recording: &'a Recording,
    pub(crate) step: usize,
}

impl Measure {
    /// Reads `[exact | change of] quantity [name] [moment] [+ another]`.
    pub(crate) fn parse(text: &str) -> Result<Self, MeasureError> {
        let text = text.trim();
        if let [first, rest @ ..] = split_unquoted(text, " + ").as_slice()
            && !rest.is_empty()
        {
            let plus = Some(Box::new(Self::parse(&rest.join(" + "))?));
            return Ok(Self { plus, ..Self::parse(first)? });
        }
        let (form, text) = match (text.strip_prefix("exact "), text.strip_prefix("change of ")) {
            (Some(rest), _) => (Form::Exact, rest.trim_start()),
            (_, Some(rest)) => (Form::Change, rest.trim_start()),
            _ => (Form::Short, text),
        };
        let (text, moment) = split_moment(text)?;
        let unknown = || MeasureError::UnknownQuantity {
            found: text.to_owned(),
            known: KnownNames::of(text, Quantity::names()),
        };
        if let Some(quantity) = Quantity::named(text) {
            if quantity.is_of_name() {
                return Err(MeasureError::NeedsTensor { quantity: text.to_owned() });
            }
            return Ok(Self { quantity, name: None, sentence: 0, moment, form, plus: None });
        }
        let (name, rest) = text.split_once(' ').ok_or_else(unknown)?;
        let quantity = Quantity::named(name).ok_or_else(unknown)?;
        let rest = rest.trim();
        if quantity.is_of_name() && !rest.contains(' ') {
            return Ok(Self { quantity, name: Some(rest.to_owned()), sentence: 0, moment, form, plus: None });
        }
        match (quantity, rest.parse()) {
            (Quantity::Message, Ok(sentence)) => {
                Ok(Self { quantity, name: None, sentence, moment, form, plus: None })
            }
            _ => Err(unknown()),
        }
    }

    /// The bytes of each part of a sum, with the name of the measurement.
    pub(crate) fn parts(&self, stretch: &RunStretch<'_>) -> Vec<(String, Bytes)> {
        let mut parts = Vec::new();
        let mut next = Some(self);
        while let Some(measure) = next {
            let alone = Self { plus: None, ..measure.clone() };
            if let Ok(QuantityValue::Bytes(bytes)) = alone.answer(stretch) {
                let name = alone.name.clone().unwrap_or_else(|| alone.quantity.to_string());
                parts.push((name, bytes));
            }
            next = measure.plus.as_deref();
        }
        parts
    }

    /// Whether the measure names a tensor, a label or a card.
    pub(crate) fn is_of_workload(&self) -> bool {
        self.name.is_some()
            || !matches!(self.moment, Moment::Here | Moment::Before)
            || self.plus.as_ref().is_some_and(|plus| plus.is_of_workload())
    }

    /// The value at the measure's moment, which lies in the stretch.
    pub(crate) fn answer(&self, stretch: &RunStretch<'_>) -> Result<QuantityValue, MeasureError> {
        if let Some(plus) = &self.plus {
            let first = Self { plus: None, form: Form::Short, ..self.clone() };
            let (one, other) = (first.answer(stretch)?, plus.answer(stretch)?);
            let sum = match (one.number(), other.number()) {
                (Some(one), Some(other)) => {
                    QuantityValue::of(self.quantity.kind(), one.saturating_add(other))
                }
                _ => return Err(MeasureError::NotComparable { quantity: self.quantity.to_string() }),
            };
            return Ok(if self.form == Form::Exact { sum.exact() } else { sum });
        }
        if let Moment::Card(title) = &self.moment {
            let card = stretch.cards.iter().find(|card| card.title == *title);
            let titles = || stretch.cards.iter().map(|card| card.title.clone());
            let card = card.ok_or_else(|| MeasureError::NoCard {
                title: title.clone(),
                known: KnownNames::of(title, titles()),
            })?;
            let &CardEnd { workload, recording, step, .. } = card;
            let measured = stretch.measured;
            let there = RunStretch { from: step, to: step, measured, ..RunStretch::of(workload, recording) };
            return Self { moment: Moment::Here, ..self.clone() }.answer(&there);
        }
        let step = self.step(stretch)?;
        let now = self.at(stretch, step)?;
        match self.form {
            Form::Short => Ok(now),
            Form::Exact => Ok(now.exact()),
            Form::Change => {
                let before = self.at(stretch, stretch.from)?;
                match (now.number(), before.number()) {
                    (Some(now), Some(before)) => {
                        Ok(QuantityValue::of(self.quantity.kind(), now.abs_diff(before)))
                    }
                    _ => Err(MeasureError::NotComparable { quantity: self.quantity.to_string() }),
                }
            }
        }
    }

    /// The value of a constant, which needs no run.
    pub(crate) fn constant(&self) -> Option<QuantityValue> {
        self.quantity.constant().map(QuantityValue::Bytes)
    }

    /// The runs that the value is from, each with the number of complete steps there. Empty for values that
    /// no run decides: constants, measurements, and the size of a tensor that is not made yet.
    pub(crate) fn origins<'a>(&self, stretch: &RunStretch<'a>) -> Vec<(&'a Recording, usize)> {
        let mut origins = self.plus.as_ref().map_or_else(Vec::new, |plus| plus.origins(stretch));
        origins.extend(self.origin(stretch));
        origins
    }

    fn origin<'a>(&self, stretch: &RunStretch<'a>) -> Option<(&'a Recording, usize)> {
        if self.constant().is_some() || matches!(self.quantity, Quantity::Measured | Quantity::Capacity) {
            return None;
        }
        let (workload, recording, step) = match &self.moment {
            Moment::Card(title) => {
                let card = stretch.cards.iter().find(|card| card.title == *title)?;
                (card.workload, card.recording, card.step)
            }
            _ => (stretch.workload, stretch.recording, self.step(stretch).ok()?),
        };
        match (self.quantity, &self.name) {
            (Quantity::RequestedSize, Some(name)) => {
                last_request(workload, name, step).map(|request| (recording, request + 1))
            }
            _ => Some((recording, step)),
        }
    }

    /// The value at the beginning of the stretch.
    pub(crate) fn answer_before(&self, stretch: &RunStretch<'_>) -> Result<QuantityValue, MeasureError> {
        self.at(stretch, stretch.from)
    }

    /// How many steps are complete at the measure's moment.
    fn step(&self, stretch: &RunStretch<'_>) -> Result<usize, MeasureError> {
        match &self.moment {
            Moment::Here | Moment::Card(_) => Ok(stretch.to),
            Moment::Before => Ok(stretch.from),
            Moment::Label(label) => {
                let labels = stretch.workload.labels();
                let place = labels.iter().position(|(_, text)| text == label);
                let place = place.ok_or_else(|| MeasureError::NoLabel {
                    label: label.clone(),
                    known: KnownNames::of(label, labels.iter().map(|(_, text)| text.clone())),
                })?;
                let next = labels.get(place + 1).map(|(request, _)| *request as usize);
                Ok(next.unwrap_or(stretch.recording.step_count()))
            }
            Moment::Tensor(name) => {
                let end = stretch.recording.step_count();
                let request = last_request(stretch.workload, name, end);
                request.map(|request| request + 1).ok_or_else(|| no_tensor(stretch.workload, name, end))
            }
        }
    }

    fn at(&self, stretch: &RunStretch<'_>, step: usize) -> Result<QuantityValue, MeasureError> {
        match (self.quantity, &self.name) {
            (Quantity::Message, _) => self.message(stretch, step),
            (Quantity::Measured, name) => {
                let name = name.as_deref().unwrap_or_default();
                let found = stretch.measured.iter().find(|measured| measured.name == name);
                let names = || stretch.measured.iter().map(|measured| measured.name.clone());
                let found = found.ok_or_else(|| MeasureError::NoMeasurement {
                    name: name.to_owned(),
                    known: KnownNames::of(name, names()),
                })?;
                Ok(QuantityValue::Bytes(found.size))
            }
            (quantity, Some(name)) => tensor_value(quantity, name, stretch, step),
            (Quantity::Free, None) => match state_value(Quantity::Free, stretch.recording, step)? {
                QuantityValue::Bytes(free) => {
                    Ok(QuantityValue::Bytes(free.saturating_sub(stretch.non_pytorch)))
                }
                other => Ok(other),
            },
            (quantity, None) => state_value(quantity, stretch.recording, step),
        }
    }

    fn message(&self, stretch: &RunStretch<'_>, step: usize) -> Result<QuantityValue, MeasureError> {
        let message = (0..step.min(stretch.recording.step_count())).rev().find_map(|step| {
            match stretch.recording.outcome(step) {
                StepOutcome::OutOfMemory(text) => Some(text),
                _ => None,
            }
        });
        let message = message.ok_or(MeasureError::NoMessage)?;
        let Some(index) = self.sentence.checked_sub(1) else {
            return Ok(QuantityValue::Text(message.clone()));
        };
        let sentences: Vec<&str> = message.split_inclusive(". ").map(str::trim).collect();
        let sentence = sentences.get(index).ok_or(MeasureError::NoSentence { count: sentences.len() })?;
        Ok(QuantityValue::Text((*sentence).to_owned()))
    }
}

/// Cuts the moment off the end of the words.
fn split_moment(text: &str) -> Result<(&str, Moment), MeasureError> {
    let text = text.trim();
    if let Some(words) = text.strip_suffix(" before") {
        return Ok((words.trim_end(), Moment::Before));
    }
    for (word, moment) in [("at", Moment::Label as fn(String) -> Moment), ("on", Moment::Card)] {
        if let Some((words, title)) = text.split_once(&format!(" {word} ")) {
            let title = title.trim();
            let unknown = || MeasureError::UnknownMoment { found: format!("{word} {title}") };
            let quoted =
                title.strip_prefix('"').and_then(|title| title.strip_suffix('"')).ok_or_else(unknown)?;
            return Ok((words.trim_end(), moment(quoted.to_owned())));
        }
    }
    if let Some((words, name)) = text.split_once(" after ") {
        return Ok((words.trim_end(), Moment::Tensor(name.trim().to_owned())));
    }
    Ok((text, Moment::Here))
}

/// The last request before `end` that allocates a tensor of this name.
pub(crate) fn last_request(workload: &Workload, name: &str, end: usize) -> Option<usize> {
    (0..end.min(workload.requests().len())).rev().find(|index| allocates(workload, *index, name))
}

/// The error of a name that no request before `end` allocates.
pub(crate) fn no_tensor(workload: &Workload, name: &str, end: usize) -> MeasureError {
    let names = workload.requests().iter().take(end).filter_map(|request| match request {
        Request::Allocate { tensor, .. } => workload.tensor_name(*tensor),
        _ => None,
    });
    let names: BTreeSet<String> = names.map(|name| name.to_string()).collect();
    MeasureError::NoTensor { name: name.to_owned(), known: KnownNames::of(name, names) }
}

/// The first request from `start` on that allocates a tensor of this name.
fn first_request(workload: &Workload, name: &str, start: usize) -> Option<usize> {
    (start..workload.requests().len()).find(|index| allocates(workload, *index, name))
}

fn allocates(workload: &Workload, request: usize, name: &str) -> bool {
    match workload.requests().get(request) {
        Some(Request::Allocate { tensor, .. }) => workload.tensor_name(*tensor).as_deref() == Some(name),
        _ => false,
    }
}

fn tensor_value(
    quantity: Quantity,
    name: &str,
    stretch: &RunStretch<'_>,
    step: usize,
) -> Result<QuantityValue, MeasureError> {
    // A request has its size before it is made, so a question can name it.
    let later = || {
        let is_size = quantity == Quantity::RequestedSize;
        first_request(stretch.workload, name, step).filter(|_| is_size)
    };
    let request = last_request(stretch.workload, name, step)
        .or_else(later)
        .ok_or_else(|| no_tensor(stretch.workload, name, step))?;
    if let (Quantity::RequestedSize, Some(Request::Allocate { size, .. })) =
        (quantity, stretch.workload.requests().get(request))
    {
        return Ok(QuantityValue::Bytes(*size));
    }
    let no_block = || MeasureError::NoBlock { name: name.to_owned() };
    let events = stretch.recording.step(request).ok_or_else(no_block)?;
    let block = stretch
        .recording
        .events_from(events.start)
        .take(events.end - events.start)
        .find_map(|event| match event {
            Event::Allocated { block, .. } => Some(block),
            _ => None,
        })
        .ok_or_else(no_block)?;
    let state = stretch.recording.state_at(events.end).map_err(|_| MeasureError::Damaged)?;
    state.block(block).map(|block| QuantityValue::Bytes(block.size)).ok_or_else(no_block)
}

fn state_value(
    quantity: Quantity,
    recording: &Recording,
    step: usize,
) -> Result<QuantityValue, MeasureError> {
    let step = step.min(recording.step_count());
    let events = step.checked_sub(1).and_then(|last| recording.step(last)).map_or(0, |step| step.end);
    let state = recording.state_at(events).map_err(|_| MeasureError::Damaged)?;
    let breakdown = state.breakdown();
    let bytes = match quantity {
        Quantity::Requested => breakdown.requested,
        Quantity::Rounding => breakdown.rounding,
        Quantity::Allocated => breakdown.allocated(),
        Quantity::Pending => breakdown.pending,
        Quantity::Active => breakdown.active(),
        Quantity::Cached => breakdown.cached,
        Quantity::Reserved => breakdown.reserved(),
        Quantity::Free => breakdown.free,
        Quantity::Capacity => breakdown.capacity(),
        Quantity::PeakAllocated => unsigned(state.stats().allocated_bytes.all.peak),
        Quantity::PeakReserved => unsigned(state.stats().reserved_bytes.all.peak),
        Quantity::MostAllocated => recording
            .breakdowns_from(0)
            .take(step)
            .map(|breakdown| breakdown.allocated())
            .max()
            .unwrap_or_default(),
        Quantity::MostReserved => recording
            .breakdowns_from(0)
            .take(step)
            .map(|breakdown| breakdown.reserved())
            .max()
            .unwrap_or_default(),
        Quantity::LargestCached => cached_blocks(&state).max().unwrap_or_default(),
        _ if quantity.constant().is_some() => quantity.constant().unwrap_or_default(),
        _ => return Ok(QuantityValue::Count(count(quantity, &state, recording, step, events))),
    };
    Ok(QuantityValue::Bytes(bytes))
}

fn unsigned(count: i64) -> Bytes {
    Bytes::new(u64::try_from(count).unwrap_or(0))
}

fn cached_blocks(state: &MemoryState) -> impl Iterator<Item = Bytes> {
    let blocks = state.snapshot().segments.into_iter().flat_map(|segment| segment.blocks);
    blocks.filter(|block| block.state == BlockState::Inactive).map(|block| block.size)
}

fn count(quantity: Quantity, state: &MemoryState, recording: &Recording, step: usize, events: usize) -> u64 {
    let events = || recording.events_from(0).take(events);
    // Statistics can be reset; a lesson counts the whole run.
    let taken =
        || events().filter(|event| matches!(event, Event::SegmentAllocated { .. } | Event::Mapped { .. }));
    let given =
        || events().filter(|event| matches!(event, Event::SegmentReleased { .. } | Event::Unmapped { .. }));
    let number = match quantity {
        Quantity::Segments => state.segments().count(),
        Quantity::CachedBlocks => cached_blocks(state).count(),
        Quantity::Tensors => usize::try_from(state.stats().allocation.all.current).unwrap_or(0),
        Quantity::Allocations => events().filter(|event| matches!(event, Event::Allocated { .. })).count(),
        Quantity::DeviceAllocs => taken().count(),
        Quantity::DeviceFrees => given().count(),
        Quantity::DeviceCalls => taken().count() + given().count(),
        Quantity::Retries => events().filter(|event| matches!(event, Event::RetryStarted)).count(),
        Quantity::OutOfMemory => {
            let failed = |step: &usize| matches!(recording.outcome(*step), StepOutcome::OutOfMemory(_));
            (0..step).filter(failed).count()
        }
        _ => 0,
    };
    number as u64
}

/// The measure as sentences call it: `peak reserved`, `the size of the block of a`,
/// `reserved at the end of "Label"`.
impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.quantity)?;
        if let Some(name) = &self.name {
            write!(f, " of {name}")?;
        }
        match &self.moment {
            Moment::Here => Ok(()),
            Moment::Before => f.write_str(" before"),
            Moment::Label(label) | Moment::Card(label) => write!(f, " at the end of \"{label}\""),
            Moment::Tensor(name) => write!(f, " after the request for {name}"),
        }?;
        self.plus.as_ref().map_or(Ok(()), |plus| write!(f, " + {plus}"))
    }
}
