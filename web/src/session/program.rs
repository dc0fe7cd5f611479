//! The Python program in the editor, and its last run.

use std::collections::{BTreeMap, HashMap};

use blockyard_program::{AllocationOrigin, Holders, PrintedText, ProgramRun};
use blockyard_record::{AllocationId, BlockState, Bytes, MemoryState};
use blockyard_rules::Release;
use blockyard_workload::Workload;
use leptos::prelude::*;

use crate::browser;
use crate::program::DEFAULT_GPU;
use crate::ptr_eq::PtrEq;
use crate::run::Run;

/// The state of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum ProgramStatus {
    /// Nothing runs.
    #[default]
    Idle,
    /// The interpreter is being fetched; this many bytes have arrived.
    Loading(f64),
    /// The interpreter is still being built by `cargo xtask play`.
    Building,
    /// The program runs.
    Running,
    /// The last run has no result, for this reason.
    Failed(String),
}

/// A program with its GPU and its settings, as the reader typed them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramInput {
    pub(crate) text: String,
    /// The id of the GPU.
    pub(crate) gpu: String,
    /// The release of PyTorch that runs the program.
    pub(crate) release: Release,
    /// The memory of the GPU; empty for all memory that this GPU has.
    pub(crate) capacity: String,
    pub(crate) config: String,
    /// What follows the program's name, as in a shell.
    pub(crate) arguments: String,
}

impl Default for ProgramInput {
    fn default() -> Self {
        Self {
            text: String::new(),
            gpu: DEFAULT_GPU.to_owned(),
            release: Release::OF_RECORDED_OPERATORS,
            capacity: String::new(),
            config: String::new(),
            arguments: String::new(),
        }
    }
}

/// The signals of the program.
#[derive(Clone, Copy)]
pub(crate) struct ProgramSignals {
    pub(crate) input: RwSignal<ProgramInput>,
    pub(crate) status: RwSignal<ProgramStatus>,
    /// For how many seconds the program has been running.
    pub(crate) seconds: RwSignal<u32>,
    /// The output of the running program, or of the last one.
    pub(crate) printed: RwSignal<Vec<PrintedText>>,
    /// The last finished run.
    pub(crate) result: RwSignal<Option<PtrEq<ProgramResult>>>,
    /// The id of the example in the editor, if its text is unchanged.
    pub(crate) example: RwSignal<Option<String>>,
    /// Why memory is alive, at the step that was asked for last.
    pub(crate) holders: RwSignal<HoldersAnswer>,
    /// The result before the last one, where it is of the same text on another device or with other settings.
    pub(crate) before: RwSignal<Option<PtrEq<ProgramResult>>>,
    /// The output of PyTorch on an H200 for the example in the editor.
    pub(crate) recorded_text: RwSignal<Option<String>>,
}

/// What is known of why memory is alive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum HoldersAnswer {
    /// Nobody asked.
    #[default]
    Unknown,
    /// The program runs again up to this step.
    Asked(usize),
    Known(PtrEq<Holders>),
    /// The program came to no such step again.
    Missing(usize),
}

impl HoldersAnswer {
    /// The step that it is about.
    pub(crate) fn step(&self) -> Option<usize> {
        match self {
            Self::Unknown => None,
            Self::Asked(step) | Self::Missing(step) => Some(*step),
            Self::Known(holders) => Some(holders.step),
        }
    }
}

/// A finished run, ready to be drawn.
#[derive(Debug)]
pub(crate) struct ProgramResult {
    /// The program that was run.
    pub(crate) input: ProgramInput,
    pub(crate) run: PtrEq<Run>,
    /// The result without its recording, which is in `run`.
    pub(crate) details: ProgramRun,
    /// The index of each allocation in the origins of `details`.
    by_allocation: HashMap<AllocationId, usize>,
    /// The index in the origins of `details` of the allocation that a step made.
    by_step: HashMap<usize, usize>,
}

const KEY: &str = "blockyard.program";

/// The categories of memory, in the order in which they are shown.
pub(crate) const CATEGORIES: [&str; 7] =
    ["parameter", "gradient", "optimizer state", "activation", "input", "workspace", "temporary"];

impl ProgramSignals {
    pub(crate) fn new(first: &str) -> Self {
        let text = browser::recall(KEY).unwrap_or_else(|| first.to_owned());
        let input = ProgramInput { text, ..ProgramInput::default() };
        Self {
            input: RwSignal::new(input),
            status: RwSignal::new(ProgramStatus::Idle),
            seconds: RwSignal::new(0),
            printed: RwSignal::new(Vec::new()),
            result: RwSignal::new(None),
            example: RwSignal::new(None),
            holders: RwSignal::new(HoldersAnswer::Unknown),
            before: RwSignal::new(None),
            recorded_text: RwSignal::new(None),
        }
    }

    /// Remembers the text for the next visit.
    pub(crate) fn remember(self) {
        self.input.with_untracked(|input| browser::remember(KEY, &input.text));
    }
}

impl ProgramResult {
    /// The result of a run. A program that used no GPU has an empty run.
    pub(crate) fn new(input: ProgramInput, mut details: ProgramRun) -> Self {
        let run = match details.recording.take() {
            Some(recording) => Run::of(Workload::default(), recording),
            None => Run::empty(),
        };
        let origins = details.origins.iter().enumerate();
        let by_allocation = origins.filter_map(|(index, origin)| Some((origin.allocation?, index))).collect();
        let steps = details.origins.iter().enumerate();
        let made_at = |(index, origin): (usize, &AllocationOrigin)| {
            Some((run.recording.allocated_at(origin.allocation?)?, index))
        };
        let by_step = steps.filter_map(made_at).collect();
        Self { input, run: PtrEq::new(run), details, by_allocation, by_step }
    }

    /// Where an allocation came from.
    pub(crate) fn origin(&self, allocation: AllocationId) -> Option<&AllocationOrigin> {
        self.details.origins.get(*self.by_allocation.get(&allocation)?)
    }

    /// Where the allocation that a step made came from.
    pub(crate) fn made_at(&self, step: usize) -> Option<&AllocationOrigin> {
        self.details.origins.get(*self.by_step.get(&step)?)
    }

    /// The index of an allocation's category in [`CATEGORIES`].
    pub(crate) fn category(&self, allocation: AllocationId) -> Option<usize> {
        let origin = self.origin(allocation)?;
        CATEGORIES.iter().position(|category| *category == origin.category)
    }

    /// The line of the program at a step, counted from 1.
    pub(crate) fn line(&self, step: usize) -> Option<u32> {
        self.details.step_lines.get(step).copied().filter(|line| *line > 0)
    }

    /// The steps of a line.
    pub(crate) fn steps_of(&self, line: u32) -> impl Iterator<Item = usize> + '_ {
        let steps = self.details.step_lines.iter().enumerate();
        steps.filter(move |(_, of)| **of == line).map(|(step, _)| step)
    }

    /// The next step of the line at or after the step `after`, or else the line's first step.
    pub(crate) fn next_step_of(&self, line: u32, after: usize) -> Option<usize> {
        let steps = || self.details.step_lines.iter().enumerate();
        let of_line = |(step, of): (usize, &u32)| (*of == line).then_some(step);
        steps().skip(after).find_map(of_line).or_else(|| steps().find_map(of_line))
    }
}

/// The bytes of allocated blocks at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AliveBytes {
    /// Bytes of blocks, by line of the program.
    pub(crate) lines: BTreeMap<u32, Bytes>,
    /// Requested bytes, by line of the program.
    pub(crate) requested: BTreeMap<u32, Bytes>,
    /// Bytes of blocks by category, in the order of [`CATEGORIES`].
    pub(crate) categories: [Bytes; CATEGORIES.len()],
}

impl AliveBytes {
    pub(crate) fn of(result: &ProgramResult, state: &MemoryState) -> Self {
        let mut alive = Self::default();
        let snapshot = state.snapshot();
        let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        for block in blocks.filter(|block| block.state == BlockState::Allocated) {
            let Some(origin) = block.allocation.and_then(|allocation| result.origin(allocation)) else {
                continue;
            };
            // Blocks do not overlap: their sizes add up to less than 2^64.
            let of_line = alive.lines.entry(origin.line).or_default();
            *of_line = of_line.saturating_add(block.size);
            let of_line = alive.requested.entry(origin.line).or_default();
            *of_line = of_line.saturating_add(block.requested);
            let category = block.allocation.and_then(|allocation| result.category(allocation));
            if let Some(sum) = category.and_then(|category| alive.categories.get_mut(category)) {
                *sum = sum.saturating_add(block.size);
            }
        }
        alive
    }
}
