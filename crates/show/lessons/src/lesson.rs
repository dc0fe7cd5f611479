//! A lesson as its file has it, before its workloads have run.

mod cards;

use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::{Workload, parse_size};

use self::cards::Reader;
use crate::document::{Document, Fence, Field, Fields};
use crate::error::{Errors, LessonError, LessonErrorKind, Position};
use crate::exercise::Exercise;
use crate::markdown::{Part, Piece};
use crate::measure::Measure;
use crate::measured::MeasuredSize;
use crate::played::PlayedLesson;
use crate::proof::{UnprovedWord, unproved_field};
use crate::question::ParsedQuestion;
use crate::recorded::{LessonProgram, requests_by_card};
use crate::slider::{Slider, sliders, with_values};
use crate::text::Inline;

/// A lesson as its file has it: the workloads have not run yet, so values and answers are not known.
#[derive(Clone, Debug)]
pub struct Lesson {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) summary: String,
    /// The parts of the title and the summary without a condition: they are shown without a run.
    pub(crate) front_notes: Vec<UnprovedWord>,
    minutes: Option<u32>,
    profile: Option<String>,
    pub(crate) measured: Vec<MeasuredSize>,
    pub(crate) sliders: Vec<Slider>,
    pub(crate) runs: Vec<LessonRun>,
    pub(crate) cards: Vec<ParsedCard>,
}

/// One run of a lesson.
#[derive(Clone, Debug)]
pub(crate) struct LessonRun {
    pub(crate) text: String,
    pub(crate) conf: String,
    pub(crate) config: AllocatorConfig,
    pub(crate) capacity: Bytes,
    pub(crate) workload: Workload,
    /// For each block: its first line in `text`, and the line of the file before that line.
    blocks: Vec<(u32, u32)>,
    line_count: u32,
}

/// A card whose values are not known yet.
#[derive(Clone, Debug)]
pub(crate) struct ParsedCard {
    pub(crate) title: Vec<Inline>,
    pub(crate) title_pieces: Vec<Piece>,
    pub(crate) body: Vec<Part>,
    pub(crate) run: usize,
    /// The lines of the run that the card plays, from 1; the whole run for a run that is played again.
    lines: Lines,
    pub(crate) steps: std::ops::Range<usize>,
    /// Whether the figure shows the peak of the steps, and not their end.
    pub(crate) is_at_peak: bool,
    /// The non-PyTorch memory of the process from this card on, and where the file says so.
    pub(crate) non_pytorch: Option<(Measure, Position)>,
    /// The bars below the figure, and where the file has them: a name, and the title of the card whose moment
    /// the bar shows, or none for this card's.
    pub(crate) beside: Vec<(String, Option<String>, Position)>,
    pub(crate) question: Option<ParsedQuestion>,
    pub(crate) exercise: Option<Exercise>,
    /// What the speaker says; empty without notes.
    pub(crate) notes: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
enum Lines {
    /// From the first of these lines up to the second, which is not included.
    Range(u32, u32),
    All,
}

/// The most requests and labels that all runs of a lesson, or an exercise, may make: a page plays a lesson at
/// once.
pub(crate) const MAX_REQUESTS: u64 = 50_000;

const FRONT_KEYS: &str = "id, title, summary, capacity, settings, profile, minutes, measured";

impl Lesson {
    /// Reads a lesson; its workloads and conditions are checked, but nothing is run.
    ///
    /// # Errors
    ///
    /// The first thing in the text that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, LessonError> {
        Self::parse_at(text, &[])
    }

    /// Reads a lesson with its sliders at these positions, in the order of [`Lesson::sliders`]. A slider
    /// without a position is where the lesson opens.
    ///
    /// # Errors
    ///
    /// As [`Lesson::parse`].
    pub fn parse_at(text: &str, positions: &[usize]) -> Result<Self, LessonError> {
        let mut errors = Errors::default();
        let lesson = Self::read(text, positions, &mut errors);
        errors.first_or(lesson)
    }

    /// Reads a lesson and plays it, for its author.
    ///
    /// # Errors
    ///
    /// All errors of the text, in the order of the text. Where a workload cannot be read, nothing is run, so
    /// claims and answers are not checked.
    pub fn check(text: &str) -> Result<PlayedLesson, Vec<LessonError>> {
        let mut errors = Errors::default();
        let played = Self::read(text, &[], &mut errors).and_then(|lesson| lesson.play_all(&mut errors));
        errors.all_or(played)
    }

    /// Reads the text, and adds its errors to `errors`. `None` where the workloads could not be run.
    fn read(text: &str, positions: &[usize], errors: &mut Errors) -> Option<Self> {
        let sliders = sliders(text, errors);
        let text = with_values(text, &sliders, positions);
        let document = Document::parse(&text, errors)?;
        let front = &document.front;
        front.check(FRONT_KEYS, &["measured"], errors);
        let mut required = |key| errors.keep(front.require("the front matter", key)).cloned();
        let capacity = required("capacity");
        let capacity = capacity.and_then(|field| errors.keep(size(&field)));
        let mut required = |key| errors.keep(front.require("the front matter", key)).cloned();
        let id = required("id");
        if let Some(id) = &id {
            errors.keep(check_id(id));
        }
        let mut reader = Reader {
            settings: front.get("settings").cloned(),
            profile: front.get("profile").map(|field| field.value.clone()),
            capacity: capacity.unwrap_or_default(),
            runs: Vec::new(),
            cards: Vec::new(),
            is_playable: capacity.is_some(),
            is_chapter: !sliders.iter().all(Slider::is_drawn),
        };
        let program = LessonProgram::of(&text);
        let requests = program.as_ref().and_then(|program| requests_by_card(program, &document.sections));
        let mut requests = requests.unwrap_or_default().into_iter();
        for section in &document.sections {
            reader.add_card(section, requests.next(), errors);
        }
        if document.sections.is_empty() {
            errors.push(front.at.at(LessonErrorKind::BeforeFirstCard));
        }
        let mut required = |key| errors.keep(front.require("the front matter", key)).cloned();
        let (title, summary) = (required("title"), required("summary"));
        let minutes = front.get("minutes").and_then(|field| {
            let unexpected = || LessonErrorKind::Unexpected {
                expected: "a number of minutes",
                found: field.value.clone(),
            };
            errors.keep(field.value.parse().map_err(|_| field.at.at(unexpected())))
        });
        let measured: Vec<_> = front.all("measured").map(MeasuredSize::parse).collect();
        reader.is_playable &= measured.iter().all(Result::is_ok);
        let text_of =
            |field: &Option<Field>| field.as_ref().map(|field| field.value.clone()).unwrap_or_default();
        let mut lesson = Self {
            id: text_of(&id),
            title: text_of(&title),
            summary: text_of(&summary),
            front_notes: [&title, &summary].into_iter().flatten().flat_map(unproved_field).collect(),
            minutes,
            profile: reader.profile,
            measured: measured.into_iter().filter_map(|measured| errors.keep(measured)).collect(),
            sliders,
            runs: reader.runs,
            cards: reader.cards,
        };
        let placed = lesson.place_cards();
        errors.keep(placed)?;
        reader.is_playable.then_some(lesson)
    }

    /// The short name for addresses and commands: lowercase letters, digits and hyphens.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name that people see.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// One sentence about what the lesson teaches.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// How long the lesson takes to read, in minutes, if the file says so.
    pub fn minutes(&self) -> Option<u32> {
        self.minutes
    }

    /// The GPU that the lesson's programs run on, if the file says so; workloads do not depend on it.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// The values that the reader moves, in the order of the text, and the drawn values after them. A lesson
    /// with a value that the reader moves is a page that scrolls.
    pub fn sliders(&self) -> &[Slider] {
        &self.sliders
    }

    /// How many cards of the lesson ask a question.
    pub fn question_count(&self) -> usize {
        self.cards.iter().filter(|card| card.question.is_some()).count()
    }

    /// Whether a card has an exercise.
    pub fn has_exercise(&self) -> bool {
        self.cards.iter().any(|card| card.exercise.is_some())
    }

    /// How many minutes the lesson takes with a class, without its exercises: one for each card, and one more
    /// for each question.
    pub fn class_minutes(&self) -> u32 {
        let read = self.cards.iter().filter(|card| card.exercise.is_none()).count();
        u32::try_from(read + self.question_count()).unwrap_or(u32::MAX)
    }

    /// How many cards the lesson has.
    pub fn card_count(&self) -> usize {
        self.cards.len()
    }

    /// Finds the requests that each card's lines make.
    fn place_cards(&mut self) -> Result<(), LessonError> {
        let mut count = 0_u64;
        for run in &mut self.runs {
            // The parser below reports errors of the text.
            count = count.saturating_add(Workload::length(&run.text).unwrap_or(0));
            if count > MAX_REQUESTS {
                let at = Position { line: 1, column: 1 };
                return Err(at.at(LessonErrorKind::TooLong { most: MAX_REQUESTS }));
            }
            run.workload = Workload::parse(&run.text)
                .map_err(|error| run.error(error.position(), error.kind().clone()))?;
        }
        for card in &mut self.cards {
            let Some(run) = self.runs.get(card.run) else { continue };
            card.steps = match card.lines {
                Lines::All => 0..run.workload.requests().len(),
                Lines::Range(from, to) => run.requests_before(from)?..run.requests_before(to)?,
            };
        }
        Ok(())
    }
}

impl LessonRun {
    fn new(conf: &str, config: AllocatorConfig, capacity: Bytes) -> Self {
        Self {
            text: String::new(),
            conf: conf.to_owned(),
            config,
            capacity,
            workload: Workload::default(),
            blocks: Vec::new(),
            line_count: 0,
        }
    }

    /// Adds a card's block below a label; returns the first line of the block and the line after the last.
    fn push(&mut self, title: &str, fence: &Fence<'_>) -> (u32, u32) {
        if !self.text.is_empty() {
            self.text.push('\n');
            self.line_count += 1;
        }
        let first = self.line_count + 1;
        let mut label = String::new();
        for character in title.chars() {
            match character {
                '"' | '\\' => label.extend(['\\', character]),
                '{' => label.push_str("{{"),
                '}' => label.push_str("}}"),
                _ => label.push(character),
            }
        }
        self.text.push_str("step \"");
        self.text.push_str(&label);
        self.text.push_str("\"\n");
        self.blocks.push((first, fence.at.line.saturating_sub(1)));
        self.line_count += 1;
        for line in &fence.lines {
            self.text.push_str(line);
            self.text.push('\n');
            self.line_count += 1;
        }
        (first, self.line_count + 1)
    }

    /// An error of the workload, at its place in the file.
    fn error(&self, at: (u32, u32, u32), kind: blockyard_workload::ParseErrorKind) -> LessonError {
        let block = self.blocks.iter().rev().find(|(first, _)| *first <= at.0);
        let line = block.map_or(at.0, |(first, before)| before + 1 + (at.0 - first));
        Position { line, column: at.1 }.at(LessonErrorKind::Workload(kind))
    }

    /// How many requests the lines before this one make.
    fn requests_before(&self, line: u32) -> Result<usize, LessonError> {
        let count = self.workload.requests().len();
        let is_before = |request: &usize| self.workload.line(*request).is_some_and(|at| at < line);
        let first = (0..count).find(|request| !is_before(request)).unwrap_or(count);
        if (first..count).any(|request| is_before(&request)) {
            let block = self.blocks.iter().rev().find(|(first, _)| *first < line);
            let at = Position { line: block.map_or(1, |(_, before)| before + 1), column: 1 };
            return Err(at.at(LessonErrorKind::LoopOverCards));
        }
        Ok(first)
    }
}

pub(crate) fn config(at: Position, text: &str, release: Release) -> Result<AllocatorConfig, LessonError> {
    AllocatorConfig::parse(text, release).map_err(|error| at.at(LessonErrorKind::Settings(error)))
}

pub(crate) fn size(field: &Field) -> Result<Bytes, LessonError> {
    size_of(field.at, &field.value)
}

pub(crate) fn size_of(at: Position, text: &str) -> Result<Bytes, LessonError> {
    let unexpected =
        || LessonErrorKind::Unexpected { expected: "a size such as \"64 MiB\"", found: text.to_owned() };
    parse_size(text).map_err(|_| at.at(unexpected()))
}

fn check_id(field: &Field) -> Result<(), LessonError> {
    let id = &field.value;
    let is_sound = id.starts_with(|first: char| first.is_ascii_lowercase())
        && id.chars().all(|character| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
        });
    if is_sound { Ok(()) } else { Err(field.at.at(LessonErrorKind::NotAnId)) }
}

/// The keys of a fenced block.
pub(crate) fn fields(
    fence: &Fence<'_>,
    known: &'static str,
    repeated: &[&str],
    errors: &mut Errors,
) -> Fields {
    let fields = Fields::parse(fence.at, fence.at.line + 1, &fence.lines, errors);
    fields.check(known, repeated, errors);
    fields
}
