//! A finished run of a program: its recording, and where each of its allocations came from.

use std::collections::{BTreeMap, HashMap};

use blockyard_gpus::GpuProfile;
use blockyard_lab::Simulation;
use blockyard_lessons::failing_line;
use blockyard_program::{AllocationOrigin, ProgramRun};
use blockyard_record::{AllocationId, BlockState, Bytes, MemoryState, StepOutcome};
use blockyard_workload::Workload;

use super::ProgramInput;
use super::examples::{DEFAULT_GPU, DERIVED_NUMBERS};
use crate::ptr_eq::PtrEq;
use crate::run::Run;

/// The categories of memory, in the order in which they are shown, under the names that they have in a file
/// whose stacks show them.
pub(crate) const CATEGORIES: [&str; 7] =
    ["parameters", "gradients", "optimizer", "activations", "input", "workspaces", "temporaries"];

/// The category of memory that libraries keep to work in.
const WORKSPACES: &str = "workspaces";

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

    /// The line and the operator of an allocation; `None` for an allocation of another run.
    pub(crate) fn origin(&self, allocation: AllocationId) -> Option<&AllocationOrigin> {
        self.details.origins.get(*self.by_allocation.get(&allocation)?)
    }

    /// The line and the operator of the allocation that a step made; `None` for a step without one.
    pub(crate) fn made_at(&self, step: usize) -> Option<&AllocationOrigin> {
        self.details.origins.get(*self.by_step.get(&step)?)
    }

    /// The index of an allocation's category in [`CATEGORIES`].
    pub(crate) fn category(&self, allocation: AllocationId) -> Option<usize> {
        let origin = self.origin(allocation)?;
        CATEGORIES.iter().position(|category| *category == origin.category)
    }

    /// The bytes of blocks in which libraries work, of the bytes by category.
    pub(crate) fn workspaces(categories: &[Bytes]) -> Bytes {
        let place = CATEGORIES.iter().position(|category| *category == WORKSPACES);
        place.and_then(|place| categories.get(place)).copied().unwrap_or_default()
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

impl ProgramResult {
    /// The facts about the run beside its requests, for a report.
    pub(crate) fn simulation(&self) -> Simulation {
        let input = &self.input;
        let named =
            GpuProfile::ALL.iter().find(|gpu| gpu.id == input.gpu && input.capacity.trim().is_empty());
        let gpu = named.map_or("", |gpu| gpu.title);
        let capacity = self.run.recording.info().capacity;
        let at = |line: u32| if line == 0 { String::new() } else { format!("line {line}: ") };
        let derived = (input.gpu != DEFAULT_GPU).then(|| DERIVED_NUMBERS.to_owned());
        let notes = self.details.notes.iter().map(|note| format!("{}{}", at(note.line), note.text));
        let estimates = self.details.estimates.iter().map(|estimate| {
            format!("{}estimated, {}: {}", at(estimate.line), estimate.operator, estimate.reason)
        });
        Simulation {
            program: input.text.clone(),
            arguments: input.arguments.clone(),
            gpu: gpu.to_owned(),
            total: capacity.saturating_add(self.details.non_pytorch),
            capacity,
            release: input.release,
            caveats: derived.into_iter().chain(notes).chain(estimates).collect(),
            failed_lines: failed_lines(&self.run, &self.details).collect(),
            unfreeable: lasting(&self.details.origins),
        }
    }
}

/// The line of the program at each request that ran out of memory, in their order; 0 where none is known.
fn failed_lines<'a>(run: &'a Run, details: &'a ProgramRun) -> impl DoubleEndedIterator<Item = u32> + 'a {
    let failed = run.recording.failed_steps().iter();
    let failed = failed.filter(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_)));
    failed.map(|(step, _)| details.step_lines.get(*step as usize).copied().unwrap_or(0))
}

/// The numbers of the allocations, among those that did not fail, that are parameters or states of an
/// optimizer.
fn lasting(origins: &[AllocationOrigin]) -> Vec<u32> {
    let served = origins.iter().filter(|origin| origin.allocation.is_some()).zip(0..);
    let is_lasting =
        |origin: &AllocationOrigin| matches!(origin.category.as_str(), "parameters" | "optimizer");
    served.filter(|(origin, _)| is_lasting(origin)).map(|(_, number)| number).collect()
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProgramEnd {
    /// The program ran to its end.
    Finished,
    /// A request ran out of memory at this line, 0 where none is known, and the program did not catch the
    /// exception.
    OutOfMemory(u32),
    /// Another exception ended the program at this line, 0 where none is known.
    Exception(u32),
    /// The program ended itself with a status other than 0.
    Status(i32),
}

impl ProgramResult {
    /// How the program ended.
    pub(crate) fn end(&self) -> ProgramEnd {
        let details = &self.details;
        match &details.traceback {
            _ if details.status == 0 => ProgramEnd::Finished,
            Some(text) if is_out_of_memory(text) => {
                let failed = failed_lines(&self.run, details).next_back();
                ProgramEnd::OutOfMemory(failed.filter(|line| *line > 0).unwrap_or_else(|| last_line(text)))
            }
            Some(text) => ProgramEnd::Exception(last_line(text)),
            None => ProgramEnd::Status(details.status),
        }
    }
}

/// Whether the exception at the end of a traceback is PyTorch's out of memory.
fn is_out_of_memory(traceback: &str) -> bool {
    traceback.lines().any(|line| line.starts_with("torch.OutOfMemoryError"))
}

/// The innermost line of the program in a traceback; 0 for a traceback without one.
fn last_line(traceback: &str) -> u32 {
    failing_line(traceback).unwrap_or(0)
}

/// The bytes of allocated blocks at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AliveBytes {
    /// Bytes of blocks, by line of the program, without memory that libraries keep to work in, as in a
    /// report.
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
            if origin.category != WORKSPACES {
                let of_line = alive.lines.entry(origin.line).or_default();
                *of_line = of_line.saturating_add(block.size);
            }
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

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn the_last_line_of_the_program_in_a_traceback_is_where_it_ended() {
        let text = "Traceback (most recent call last):\n  File \"program.py\", line 12, in <module>\n    step()\n  File \"program.py\", line 7, in step\n\
                    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 MiB.";
        assert_eq!((last_line(text), is_out_of_memory(text)), (7, true));
        assert_eq!((last_line("ValueError: torch.OutOfMemoryError"), is_out_of_memory("x")), (0, false));
    }
}
