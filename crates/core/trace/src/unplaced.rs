//! The content of a trace whose memory cannot be drawn.

use blockyard_pytorch::snapshot::{DeviceSnapshot, SnapshotError, SnapshotFile};
use blockyard_record::{Bytes, StackId, TraceAction, counted, grouped};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// How many stacks are named.
const MAX_STACKS: usize = 10;

/// A trace without any memory to draw: the reason, and the counts that the trace still has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplacedTrace {
    /// Why there is nothing to draw, in a sentence.
    pub reason: String,
    /// PyTorch's name of each action that the trace has, and how many entries have it; the most frequent
    /// first.
    pub actions: Vec<(String, usize)>,
    /// The requested bytes of all allocations.
    pub requested: Bytes,
    /// How many different stacks the allocations have.
    pub stack_count: usize,
    /// The stacks with the most requested bytes, the largest first; at most ten.
    pub stacks: Vec<UnplacedStack>,
}

/// The allocations of one stack, with their requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplacedStack {
    /// The stack, one of the recording's.
    pub stack: StackId,
    /// How many allocations it made.
    pub allocations: usize,
    /// The requested bytes of these allocations.
    pub requested: Bytes,
}

/// Why nothing of the device, or of host memory, at `place` can be drawn; `None` if it had memory at any
/// moment.
///
/// # Errors
///
/// [`SnapshotError::Field`] if no such device exists.
pub fn unplaced(file: &SnapshotFile, place: usize) -> Result<Option<UnplacedTrace>, SnapshotError> {
    let device = file.memory(place)?;
    if has_memory(device) {
        return Ok(None);
    }
    let mut actions: Vec<(TraceAction, usize)> = TraceAction::all().map(|action| (action, 0)).collect();
    let mut of_stacks: FxHashMap<StackId, (usize, Bytes)> = FxHashMap::default();
    let mut requested = Bytes::default();
    for entry in device.trace.iter() {
        let action = entry.entry.action;
        if let Some((_, count)) = actions.iter_mut().find(|(of, _)| *of == action) {
            *count += 1;
        }
        if action == TraceAction::Alloc {
            requested = requested.saturating_add(entry.entry.size);
            let (count, bytes) = of_stacks.entry(entry.stack).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(entry.entry.size);
        }
    }
    let allocations = actions.iter().find(|(of, _)| *of == TraceAction::Alloc).map_or(0, |(_, count)| *count);
    let reason = reason(device, allocations, requested);
    actions.retain(|(_, count)| *count > 0);
    actions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(Some(UnplacedTrace {
        reason,
        actions: actions.into_iter().map(|(action, count)| (action.name().to_owned(), count)).collect(),
        requested,
        stack_count: of_stacks.len(),
        stacks: largest(of_stacks),
    }))
}

/// Whether the device has segments at the end, or its trace makes or releases one.
fn has_memory(device: &DeviceSnapshot) -> bool {
    let is_of_segment = |action: TraceAction| {
        matches!(
            action,
            TraceAction::SegmentAlloc
                | TraceAction::SegmentFree
                | TraceAction::SegmentMap
                | TraceAction::SegmentUnmap
        )
    };
    !device.segments.is_empty() || device.trace.iter().any(|entry| is_of_segment(entry.entry.action))
}

fn reason(device: &DeviceSnapshot, allocations: usize, requested: Bytes) -> String {
    let name = device.name();
    if device.trace.is_empty() {
        return format!("The file has neither a segment nor a trace of {name}.");
    }
    if allocations == 0 {
        return format!(
            "The trace of {name} has no allocation and no segment (entries: {}), and the list of segments \
             has none of this device.",
            grouped(device.trace.len()),
        );
    }
    format!(
        "The trace of {name} has {} of {requested} in all, in memory that no segment of the file has: the trace has no \
         segment_alloc and no segment_map entry, and the list of segments has none of this device. A figure needs the segments.",
        counted(allocations, "allocation"),
    )
}

fn largest(of_stacks: FxHashMap<StackId, (usize, Bytes)>) -> Vec<UnplacedStack> {
    let mut stacks: Vec<UnplacedStack> = of_stacks
        .into_iter()
        .map(|(stack, (allocations, requested))| UnplacedStack { stack, allocations, requested })
        .collect();
    let order = |row: &UnplacedStack| (std::cmp::Reverse(row.requested), row.stack.get());
    if stacks.len() > MAX_STACKS {
        stacks.select_nth_unstable_by_key(MAX_STACKS, order);
        stacks.truncate(MAX_STACKS);
    }
    stacks.sort_unstable_by_key(order);
    stacks
}
