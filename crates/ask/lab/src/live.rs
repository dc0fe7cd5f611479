//! The memory after one request of a replay: the segments, and which request every live block serves.

use std::collections::{BTreeMap, HashMap, HashSet};

use blockyard_record::{
    AllocationId, BlockState, Bytes, Event, EventSink, OnDone, Snapshot, StackHolder, frame_text, own_line,
};
use blockyard_replay::Progress;
use blockyard_rules::AllocatorConfig;
use blockyard_workload::Request;

use crate::limited_run::FixedConditions;
use crate::outcome::outcome_before;
use crate::sites::caller;
use crate::{HoldingLine, LabError, Run};

/// The memory after a request.
#[derive(Clone, Debug)]
pub(crate) struct LiveMemory {
    pub(crate) snapshot: Snapshot,
    /// The index of the request that each live allocation served.
    served: HashMap<AllocationId, usize>,
}

/// The request that each allocation served.
#[derive(Default)]
struct AllocationRequests {
    request: usize,
    of: HashMap<AllocationId, usize>,
}

impl EventSink for AllocationRequests {
    fn record(&mut self, event: Event) {
        if let Event::Allocated { allocation, .. } = event {
            self.of.insert(allocation, self.request);
        }
    }
}

impl LiveMemory {
    /// Replays the first `end` requests of a run.
    pub(crate) fn after(
        run: &Run,
        fixed: &FixedConditions,
        config: &AllocatorConfig,
        end: usize,
        on_done: OnDone,
    ) -> Result<Self, LabError> {
        let mut replayer = fixed.replayer(run, config, AllocationRequests::default())?;
        for request in 0..end {
            if Progress::is_due(request) && on_done(request).is_break() {
                return Err(LabError::Cancelled);
            }
            replayer.sink_mut().request = request;
            replayer.run_to(request.saturating_add(1))?;
        }
        let snapshot = replayer.snapshot();
        let mut served = std::mem::take(&mut replayer.sink_mut().of);
        let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        let live: HashSet<AllocationId> = blocks.filter_map(|block| block.allocation).collect();
        served.retain(|allocation, _| live.contains(allocation));
        Ok(Self { snapshot, served })
    }

    /// The index of the request that an allocation served.
    pub(crate) fn served(&self, allocation: Option<AllocationId>) -> Option<usize> {
        self.served.get(&allocation?).copied()
    }

    /// The lines of the program that hold live blocks, by descending bytes, which add up to the allocated
    /// bytes.
    pub(crate) fn holders(&self, run: &Run) -> Vec<HoldingLine> {
        let has_stacks = run.has_stacks();
        let mut lines: BTreeMap<String, HoldingLine> = BTreeMap::new();
        // The bytes of each caller of a line.
        let mut callers: BTreeMap<String, BTreeMap<String, Bytes>> = BTreeMap::new();
        let blocks = self.snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        for block in blocks.filter(|block| block.state == BlockState::Allocated) {
            let request = self.served(block.allocation);
            let line = request.map_or_else(
                || "an earlier run".to_owned(),
                |request| line_of(run, request, block.size, has_stacks),
            );
            let stack = request.map(|request| run.stack(request)).filter(|stack| is_held_by_program(stack));
            if let Some(caller) = stack.and_then(|stack| caller(&stack)) {
                let bytes = callers.entry(line.clone()).or_default().entry(caller).or_default();
                *bytes = bytes.saturating_add(block.size);
            }
            let held = lines.entry(line).or_insert_with_key(|line| HoldingLine::new(line.clone()));
            held.bytes = held.bytes.saturating_add(block.size);
            held.blocks = held.blocks.saturating_add(1);
            let number = request.map(|request| run.request_number(request));
            if let Some(number) = number.filter(|number| *number > 0) {
                held.last_request = held.last_request.max(number);
                held.first_request =
                    if held.first_request == 0 { number } else { held.first_request.min(number) };
            }
        }
        for (line, callers) in callers {
            let mut callers: Vec<(String, Bytes)> = callers.into_iter().collect();
            callers.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
            if let Some(held) = lines.get_mut(&line) {
                held.callers = callers.into_iter().map(|(caller, _)| caller).collect();
            }
        }
        let mut held: Vec<HoldingLine> = lines.into_values().collect();
        held.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.line.cmp(&other.line)));
        held
    }
}

/// The row of all blocks that no line of the program allocated, in a run whose other blocks have lines. Rows
/// by size or by functions of C++ would be many, and would not help a reader.
pub const WITHOUT_PROGRAM_LINE: &str =
    "PyTorch's own code, with no line of the program in the stack: mostly gradients";

/// The row of all blocks from before the recording, in a run whose other blocks have lines.
pub const BEFORE_RECORDING: &str = "allocated before the recording began, so without a stack";

/// The row of all blocks that a library keeps to work in, whichever line called the library first.
pub const WORKSPACES: &str =
    "workspaces of libraries such as cuBLAS, which PyTorch keeps: no line of the program frees them";

/// The line of the program that holds an allocation with this stack, or the row for allocations that no line
/// holds; `None` for an empty stack.
pub fn holding_line(stack: &[String]) -> Option<String> {
    match StackHolder::from_texts(stack) {
        StackHolder::Program => own_line(stack).map(frame_text),
        StackHolder::Workspace => Some(WORKSPACES.to_owned()),
        StackHolder::PyTorch => (!stack.is_empty()).then(|| WITHOUT_PROGRAM_LINE.to_owned()),
    }
}

/// Whether a line of the program holds an allocation with this stack.
fn is_held_by_program(stack: &[String]) -> bool {
    StackHolder::from_texts(stack) == StackHolder::Program
}

/// The line of the program that made a request.
fn line_of(run: &Run, request: usize, size: Bytes, has_stacks: bool) -> String {
    if let Some(line) = holding_line(&run.stack(request)) {
        return line;
    }
    let name = match run.requests().get(request) {
        Some(Request::Allocate { tensor, .. }) => run.workload().tensor_name(*tensor),
        _ => None,
    };
    match name {
        Some(name) => format!("tensor {name}"),
        None if has_stacks && request < run.requests_from_before() => BEFORE_RECORDING.to_owned(),
        None if has_stacks => WITHOUT_PROGRAM_LINE.to_owned(),
        None => format!("blocks of {size}, without a stack"),
    }
}

/// The number of requests after which a run first has its most allocated bytes.
pub(crate) fn peak(
    run: &Run,
    fixed: &FixedConditions,
    peak: Bytes,
    on_done: OnDone,
) -> Result<usize, LabError> {
    let (mut low, mut high) = (0, run.requests().len());
    while low < high {
        let middle = low.midpoint(high);
        if outcome_before(run, fixed, 0, middle, on_done)?.peak_allocated >= peak {
            high = middle;
        } else {
            low = middle.saturating_add(1);
        }
    }
    Ok(low)
}
