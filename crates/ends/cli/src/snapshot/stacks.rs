//! The bytes of a moment, by the stack that allocated them.

use std::collections::HashMap;

use blockyard_answers::{HolderAnswer, StackFrame};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_record::{MemoryState, Recording, StackId, Stacks};

/// How many names of one holder are listed.
const MAX_NAMES: usize = 5;

/// The `top` stacks by descending bytes, and what they hold; stacks with equally many bytes in the order of
/// their numbers.
pub(crate) fn holders(
    file: &SnapshotFile,
    recording: &Recording,
    state: &MemoryState,
    top: usize,
) -> (Vec<StackId>, Vec<HolderAnswer>) {
    let mut held: HashMap<StackId, HolderAnswer> = HashMap::new();
    for segment in state.snapshot().segments {
        for block in segment.blocks.iter().filter(|block| block.state.is_active()) {
            let stack = block.allocation.map(|id| recording.allocation_stack(id)).unwrap_or_default();
            let holder = held.entry(stack).or_default();
            holder.bytes = holder.bytes.saturating_add(block.size);
            holder.blocks += 1;
            if let Some(name) = block.allocation.and_then(|id| recording.name(id))
                && holder.names.len() < MAX_NAMES
                && holder.names.iter().all(|known| known != name)
            {
                holder.names.push(name.to_owned());
            }
        }
    }
    let mut holders: Vec<(StackId, HolderAnswer)> = held.into_iter().collect();
    holders.sort_by_key(|(stack, holder)| (std::cmp::Reverse(holder.bytes), *stack));
    holders.truncate(top);
    for (stack, holder) in &mut holders {
        holder.frames = frames_json(&file.stacks, *stack);
    }
    holders.into_iter().unzip()
}

/// The frames of a stack, innermost first, as PyTorch writes them.
pub(crate) fn frames_json(stacks: &Stacks, stack: StackId) -> Vec<StackFrame> {
    let frames = stacks.frames(stack).map(|frame| stacks.frame(frame));
    let frames = frames.map(|frame| StackFrame {
        name: frame.name.to_owned(),
        filename: frame.filename.to_owned(),
        line: frame.line,
    });
    frames.collect()
}

/// The innermost frames in a line: `buf train.py:12 < main train.py:90`.
pub(crate) fn line(stacks: &Stacks, stack: StackId) -> String {
    const MAX_FRAMES: usize = 4;
    let frames = stacks.frames(stack);
    let hidden = frames.len().saturating_sub(MAX_FRAMES);
    let shown: Vec<String> = frames
        .take(MAX_FRAMES)
        .map(|frame| stacks.frame(frame))
        .map(|frame| match frame.line {
            0 => format!("{} {}", frame.name, frame.filename),
            line => format!("{} {}:{line}", frame.name, frame.filename),
        })
        .collect();
    match (shown.is_empty(), hidden) {
        (true, _) => "no stack was recorded".to_owned(),
        (false, 0) => shown.join(" < "),
        (false, hidden) => format!("{} < {hidden} more", shown.join(" < ")),
    }
}
