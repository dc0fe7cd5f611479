//! The moments that an answer names: the cursor goes to the moment, and the blocks that the answer is about
//! are marked.

use std::collections::HashMap;

use blockyard_figure::{Allocations, PlayerAction, steps_at_allocation};
use blockyard_lab::{BEFORE_RECORDING, VerdictMoment, WITHOUT_PROGRAM_LINE, holding_line};
use blockyard_record::{AllocationId, Bytes, MemoryState, StackId};
use leptos::prelude::*;

use super::LabSignals;
use crate::figures::Pick;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Feature;

impl Feature<LabSignals> {
    /// Goes to a moment of a verdict, and marks the blocks of a line of the program that are allocated then.
    pub(crate) fn show_moment(self, moment: VerdictMoment, line: Option<&str>) {
        let run = self.session.run.get_untracked();
        // The snapshot of a program in the page has no requests without events, such as a reset of statistics.
        let steps = match untrack(|| self.session.shown_program()) {
            None => usize::try_from(moment.request).ok(),
            Some(_) => steps_at_allocation(&run.recording, moment.allocations_after),
        };
        let steps = steps.filter(|steps| *steps <= run.recording.step_count());
        let Some(steps) = steps else {
            return self.session.show_note("The run has no such moment: its replay goes on for longer.");
        };
        self.session.dispatch(PlayerAction::Pause);
        self.session.dispatch(PlayerAction::SeekStep(steps));
        if let Some(line) = line {
            self.mark_line(line);
        }
    }

    /// Marks the blocks that a line of the program has at the moment under the cursor, in the segment map and
    /// in the figure of allocations.
    fn mark_line(self, line: &str) {
        let ids =
            self.session.with_state_now(|run, state| allocations_of(run, state, line)).unwrap_or_default();
        if ids.is_empty() {
            self.session.figures().unpick();
            return;
        }
        let columns = untrack(|| self.session.figures().columns());
        let is_marked = |row: &usize| {
            columns
                .as_ref()
                .and_then(|columns| columns.allocations.id(*row))
                .is_some_and(|id| ids.binary_search(&id).is_ok())
        };
        let all = columns.as_ref().map_or(0, |columns| columns.allocations.len());
        let rows: Vec<usize> = (0..all).filter(is_marked).collect();
        self.session.figures().show_picked(Some(PtrEq::new(Pick { title: line.to_owned(), rows })), ids);
        self.session.figures().show_choice();
    }
}

/// The allocations of a line, as answers of the lab name lines, ascending.
fn allocations_of(run: &Run, state: &MemoryState, line: &str) -> Vec<AllocationId> {
    let mut known: HashMap<StackId, bool> = HashMap::new();
    let blocks =
        state.segments().filter_map(|info| state.segment(info.id)).flat_map(|segment| segment.blocks);
    let mut ids: Vec<AllocationId> = blocks
        .filter_map(|block| {
            let id = block.allocation?;
            is_of_line(run, &mut known, (id, block.size), line).then_some(id)
        })
        .collect();
    ids.sort_unstable();
    ids
}

/// The first allocation of a line, as answers of the lab name lines.
pub(crate) fn row_of_line(run: &Run, allocations: &Allocations, line: &str) -> Option<usize> {
    let mut known = HashMap::new();
    (0..allocations.len()).find(|row| {
        let found = allocations.get(*row);
        found.is_some_and(|found| is_of_line(run, &mut known, (found.id, found.size), line))
    })
}

fn is_of_line(
    run: &Run,
    known: &mut HashMap<StackId, bool>,
    (id, size): (AllocationId, Bytes),
    line: &str,
) -> bool {
    let stack = run.recording.allocation_stack(id);
    if stack == StackId::EMPTY {
        return line_without_stack(run, size, id) == line;
    }
    *known.entry(stack).or_insert_with(|| line_of_stack(run, stack).as_deref() == Some(line))
}

/// The line of the program that holds the allocations with this stack, or the name of the row for all
/// allocations that no line holds.
pub(crate) fn line_of_stack(run: &Run, stack: StackId) -> Option<String> {
    holding_line(&run.recording.stacks().frame_texts(stack))
}

fn line_without_stack(run: &Run, size: Bytes, id: AllocationId) -> String {
    let line = run.recording.allocated_at(id).and_then(|step| run.workload.line(step));
    if let Some(line) = line {
        return format!("line {line}");
    }
    match run.recording.name(id) {
        Some(name) => format!("tensor {name}"),
        None if !run.recording.stacks().is_empty() && run.recording.allocated_at(id).is_none() => {
            BEFORE_RECORDING.to_owned()
        }
        None if !run.recording.stacks().is_empty() => WITHOUT_PROGRAM_LINE.to_owned(),
        None => format!("blocks of {size}, without a stack"),
    }
}
