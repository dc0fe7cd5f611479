//! Lessons whose cards run a Python program: the requests of its run are kept in the file.
//!
//! A card has its lines in a block `python run`, and the blocks of all cards are one program. An editor runs
//! it and adds a block `recorded` at the end of the file: the requests of each card, with a number that
//! belongs to this program. So a lesson plays without Python, and a program that was changed has no requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::{ControlFlow, Range};

use blockyard_record::{BlockId, Breakdown, Bytes, Event, PoolId, Recording, StepOutcome, StreamId};
use blockyard_replay::{RunSettings, run};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;
use thiserror::Error;

use crate::document::{Document, Fence, Item, Section};
use crate::error::Errors;
use crate::lesson::size;
use crate::program_end::{called_line, exception, failing_line};

/// The word of the block with the requests of the run.
pub(crate) const RECORDED: &str = "recorded";

/// The program that the cards of a lesson run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LessonProgram {
    /// The lines of all cards.
    pub source: String,
    /// The memory of the device.
    pub capacity: Bytes,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The id of the GPU, if the lesson names one.
    pub profile: Option<String>,
    cards: Vec<CardLines>,
}

/// The lines of a card in the program of its lesson.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CardLines {
    /// The lines, from 1; empty for a card that runs nothing.
    lines: Range<u32>,
    /// Whether they are to run out of memory.
    fails: bool,
}

/// Why the run of a program cannot be kept in a lesson.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// The program ends with an exception.
    #[error("{why}")]
    Failed {
        /// The line, from 1, where it is known.
        line: Option<u32>,
        /// The exception.
        why: String,
    },
    /// The program runs out of memory, and its card does not say that it should.
    #[error("{why}. If the card is to show this, its program begins with \"```python run fails\"")]
    OutOfMemory {
        /// The line, from 1, where it is known.
        line: Option<u32>,
        /// The exception.
        why: String,
    },
    /// The program of a card is to run out of memory, and does not.
    #[error(
        "the block \"python run fails\" does not run out of memory: raise its sizes, or leave out \"fails\""
    )]
    Passes {
        /// The first line of the card's program, from 1.
        line: u32,
    },
    /// The program has run out of memory before this card.
    #[error("this does not run: the program has run out of memory in an earlier card")]
    Unreached {
        /// The first line of the card's program, from 1.
        line: u32,
    },
    /// A line does what a card cannot play.
    #[error("line {line} of the program uses {what}, which cards of a program cannot play")]
    Unplayable {
        /// The line, from 1.
        line: u32,
        /// A stream, a memory pool, or a limit.
        what: &'static str,
    },
    /// The requests lead to other memory than the program.
    #[error("the requests of the program, played again, lead to other memory")]
    Differs,
    /// The settings are wrong.
    #[error("{0}")]
    Settings(String),
}

impl RecordedError {
    /// The line of the program, from 1, where it is known.
    pub const fn line(&self) -> Option<u32> {
        match self {
            Self::Failed { line, .. } | Self::OutOfMemory { line, .. } => *line,
            Self::Passes { line } | Self::Unreached { line } | Self::Unplayable { line, .. } => Some(*line),
            Self::Differs | Self::Settings(_) => None,
        }
    }
}

impl LessonProgram {
    /// The program of a lesson's text; `None` for a lesson without blocks `python run`.
    pub fn of(text: &str) -> Option<Self> {
        let mut errors = Errors::default();
        let document = Document::parse(text, &mut errors)?;
        let value = |key| document.front.get(key).map(|field| field.value.clone());
        let (mut source, mut line, mut cards) = (String::new(), 1, Vec::new());
        for section in &document.sections {
            let first = line;
            for text in section.program().map(|fence| &fence.lines).into_iter().flatten() {
                source.extend([text, "\n"]);
                line += 1;
            }
            let fails = section.program().is_some_and(Fence::fails);
            cards.push(CardLines { lines: first..line, fails });
        }
        let capacity = document.front.get("capacity").and_then(|field| size(field).ok())?;
        let (conf, profile) = (value("settings").unwrap_or_default(), value("profile"));
        (line > 1).then_some(Self { source, capacity, conf, profile, cards })
    }

    /// The line of a lesson's text that has this line of its program, both from 1.
    pub fn line_in(text: &str, line: u32) -> Option<u32> {
        let document = Document::parse(text, &mut Errors::default())?;
        let mut lines = document.sections.iter().filter_map(Section::program).flat_map(|fence| {
            let first = fence.at.line.saturating_add(1);
            (first..).take(fence.lines.len())
        });
        lines.nth(usize::try_from(line).ok()?.checked_sub(1)?)
    }

    /// The number that belongs to this program on its device.
    fn number(&self) -> String {
        let mut text = format!("{}\n{}\n{}", self.capacity.get(), self.conf, self.source);
        for card in self.cards.iter().filter(|card| card.fails) {
            let _ = write!(text, "\n{} fails", card.lines.start);
        }
        // FNV-1a: short, and the same on every machine.
        let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{sum:016x}")
    }

    /// Whether a block has the requests of this program.
    pub fn has_run(&self, block: &str) -> bool {
        block.starts_with(&format!("```{RECORDED} {}\n", self.number()))
    }

    /// The block with the requests of this program's run, for the end of the lesson's text. `lines` has the
    /// line of each step of the recording, and `traceback` the exception that ended the program, if any.
    ///
    /// # Errors
    ///
    /// [`RecordedError`] where the program ends in another way than its cards say, where the run has steps that
    /// a card cannot play, or where the requests, played again, do not lead to the same memory.
    pub fn record(
        &self,
        recording: &Recording,
        lines: &[u32],
        traceback: Option<&str>,
    ) -> Result<String, RecordedError> {
        self.check_end(traceback.unwrap_or_default())?;
        let mut requests = Requests::new(self, recording, lines);
        let mut block = format!("```{RECORDED} {}\n", self.number());
        let mut ends = Vec::new();
        let mut statements = Vec::new();
        for (card, of_card) in self.cards.iter().enumerate() {
            let _ = writeln!(block, "card {}", card + 1);
            while let Some(statement) = requests.next_before(of_card.lines.end)? {
                block.extend([&statement, "\n"]);
                statements.push(statement);
            }
            ends.push((statements.len(), requests.step));
        }
        self.compare(&statements.join("\n"), recording, &ends)?;
        block.push_str("```\n");
        Ok(block)
    }

    /// Checks that the program ends as its cards say: at its end, or out of memory.
    fn check_end(&self, traceback: &str) -> Result<(), RecordedError> {
        let Some(why) = exception(traceback) else {
            let failing = self.cards.iter().find(|card| card.fails);
            return failing.map_or(Ok(()), |card| Err(RecordedError::Passes { line: card.lines.start }));
        };
        let line = failing_line(traceback);
        if !why.contains("OutOfMemoryError") {
            return Err(RecordedError::Failed { line, why });
        }
        // The card of the call: the line that fails may be of a function that an earlier card has.
        let called = called_line(traceback).or(line).unwrap_or_default();
        let mut cards = self.cards.iter().skip_while(|card| !card.lines.contains(&called));
        if !cards.next().is_some_and(|card| card.fails) {
            return Err(RecordedError::OutOfMemory { line, why });
        }
        let unreached = cards.find(|card| !card.lines.is_empty());
        unreached.map_or(Ok(()), |card| Err(RecordedError::Unreached { line: card.lines.start }))
    }

    /// Plays the requests again. `ends` has, for each card, how many of them and how many steps of the
    /// recording are done at its end.
    fn compare(
        &self,
        text: &str,
        recording: &Recording,
        ends: &[(usize, usize)],
    ) -> Result<(), RecordedError> {
        let config = AllocatorConfig::parse(&self.conf, Release::LATEST)
            .map_err(|error| RecordedError::Settings(error.to_string()))?;
        let workload = Workload::parse(text).map_err(|_| RecordedError::Differs)?;
        let settings = RunSettings { title: String::new(), config, capacity: self.capacity };
        let again = run(&workload, &settings, &mut |_| ControlFlow::Continue(()));
        let again = again.map_err(|_| RecordedError::Differs)?;
        let after = |recording: &Recording, done: usize| -> Option<Breakdown> {
            done.checked_sub(1).and_then(|last| recording.breakdown_after(last))
        };
        let is_same = ends.iter().all(|(done, step)| after(&again, *done) == after(recording, *step));
        if is_same { Ok(()) } else { Err(RecordedError::Differs) }
    }
}

/// The steps of a program's run as statements of a workload.
struct Requests<'a> {
    recording: &'a Recording,
    lines: &'a [u32],
    /// The next step.
    step: usize,
    /// The names of allocations whose line says one and makes one allocation, or fails to.
    named: BTreeMap<u32, String>,
    live: BTreeMap<BlockId, String>,
    used: BTreeSet<String>,
    count: u32,
}

impl<'a> Requests<'a> {
    fn new(program: &LessonProgram, recording: &'a Recording, lines: &'a [u32]) -> Self {
        let mut allocations = BTreeMap::<u32, u32>::new();
        for (step, line) in (0..recording.step_count()).zip(lines) {
            let makes = events(recording, step)
                .any(|event| matches!(event, Event::Allocated { .. } | Event::OutOfMemory { .. }));
            *allocations.entry(*line).or_default() += u32::from(makes);
        }
        let name = |(line, text): (u32, &str)| {
            let (name, _) = text.split_once('=').filter(|(_, value)| !value.starts_with('='))?;
            let name = name.trim();
            let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let is_one = is_name && allocations.get(&line) == Some(&1);
            is_one.then(|| (line, name.to_owned()))
        };
        let named = (1..).zip(program.source.lines()).filter_map(name).collect();
        let (live, used) = (BTreeMap::new(), BTreeSet::new());
        Self { recording, lines, step: 0, named, live, used, count: 0 }
    }

    /// The next statement of a line before `end`; `None` where the next step belongs to a later line.
    fn next_before(&mut self, end: u32) -> Result<Option<String>, RecordedError> {
        while self.step < self.recording.step_count() {
            // What Python does at its end belongs to no line, and to no card.
            let line = self.lines.get(self.step).copied().unwrap_or(0);
            if line == 0 || line >= end {
                return Ok(None);
            }
            let found = self.statement(line)?;
            self.step += 1;
            if let Some(statement) = found {
                return Ok(Some(statement));
            }
        }
        Ok(None)
    }

    fn statement(&mut self, line: u32) -> Result<Option<String>, RecordedError> {
        let unplayable = |what| Err(RecordedError::Unplayable { line, what });
        let (mut made, mut has_released) = (None, false);
        for event in events(self.recording, self.step) {
            match event {
                Event::SegmentAllocated { stream, pool_id, .. }
                | Event::RangeReserved { stream, pool_id, .. } => {
                    if stream != StreamId::DEFAULT {
                        return unplayable("a stream");
                    }
                    if pool_id != PoolId::DEFAULT {
                        return unplayable("a memory pool");
                    }
                }
                Event::StreamRecorded { .. } => return unplayable("a stream"),
                Event::FractionSet { .. } => return unplayable("a limit"),
                Event::Allocated { block, requested, .. } => {
                    let name = self.named.get(&line).map_or("t", String::as_str).to_owned();
                    let name = self.unused(&name);
                    made = Some(format!("{name} = alloc {} B", requested.get()));
                    self.live.insert(block, name);
                }
                Event::FreeRequested { block, .. } => {
                    made = self.live.remove(&block).map(|name| format!("free {name}"));
                }
                Event::PeakReset => made = Some("reset_peak".to_owned()),
                Event::AccumulatedReset => made = Some("reset_accumulated".to_owned()),
                Event::OutOfMemory { requested, .. } => {
                    let name = self.named.get(&line).map_or("failed", String::as_str).to_owned();
                    let name = self.unused(&name);
                    made = Some(format!("{name} = alloc {} B", requested.get()));
                }
                Event::SegmentReleased { .. } | Event::RangeReleased { .. } | Event::Unmapped { .. } => {
                    has_released = true;
                }
                _ => {}
            }
        }
        let is_done = matches!(self.recording.outcome(self.step), StepOutcome::Done);
        Ok(made.or_else(|| (has_released && is_done).then(|| "empty_cache".to_owned())))
    }

    /// The name, or the name with a number, that no earlier allocation has.
    fn unused(&mut self, name: &str) -> String {
        let mut tried = name.to_owned();
        while !self.used.insert(tried.clone()) {
            self.count += 1;
            tried = format!("{name}_{}", self.count);
        }
        tried
    }
}

fn events(recording: &Recording, step: usize) -> impl Iterator<Item = Event> + '_ {
    let bounds = recording.step(step).map_or(0..0, |step| step.start..step.end);
    bounds.filter_map(|event| recording.event(event))
}

/// The text of a lesson as its author writes it, and the block with the requests of its program, which is
/// empty without one.
pub fn split_recorded(text: &str) -> (String, String) {
    let (mut own, mut block, mut is_recorded) = (String::new(), String::new(), false);
    for line in text.split_inclusive('\n') {
        is_recorded |= line.strip_prefix("```").is_some_and(|info| info.starts_with(RECORDED));
        let part = if is_recorded { &mut block } else { &mut own };
        part.push_str(line);
        is_recorded &= line.trim_end() != "```";
    }
    if !block.is_empty() {
        own.truncate(own.trim_end().len());
        own.push('\n');
    }
    (own, block)
}

/// The text of a lesson with the block of its requests at the end.
pub fn with_recorded(text: &str, block: &str) -> String {
    if block.is_empty() { text.to_owned() } else { format!("{}\n\n{block}", text.trim_end()) }
}

/// The requests of each card, from the file; `None` where the file has none for this program.
pub(crate) fn requests_by_card<'t>(
    program: &LessonProgram,
    sections: &[Section<'t>],
) -> Option<Vec<Vec<&'t str>>> {
    let mut fences = sections.iter().flat_map(|section| &section.items).filter_map(|item| match item {
        Item::Fence(fence) if fence.language == RECORDED => Some(fence),
        _ => None,
    });
    let fence: &Fence<'t> = fences.next_back().filter(|fence| fence.options == program.number())?;
    let mut cards: Vec<Vec<&'t str>> = Vec::new();
    for line in &fence.lines {
        if line.starts_with("card ") {
            cards.push(Vec::new());
        } else if let Some(card) = cards.last_mut() {
            card.push(line);
        }
    }
    Some(cards)
}
