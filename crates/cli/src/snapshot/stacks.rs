//! The bytes of a moment, by the stack that allocated them.

use std::collections::HashMap;

use blockyard_record::{MemoryState, Recording, StackId, Stacks};
use serde_json::{Value, json};

/// A stack and the bytes that it allocated.
pub(crate) struct Holder {
    pub(crate) stack: StackId,
    pub(crate) bytes: u64,
    pub(crate) blocks: usize,
}

/// The stacks that hold most, those that hold equally much in the order of their numbers.
pub(crate) fn holders(recording: &Recording, state: &MemoryState, top: usize) -> Vec<Holder> {
    let mut held: HashMap<StackId, (u64, usize)> = HashMap::new();
    for segment in state.snapshot().segments {
        for block in segment.blocks.iter().filter(|block| block.state.is_active()) {
            let stack = block.allocation.map(|id| recording.allocation_stack(id)).unwrap_or_default();
            let (bytes, blocks) = held.entry(stack).or_default();
            *bytes = bytes.saturating_add(block.size.get());
            *blocks += 1;
        }
    }
    let mut holders: Vec<Holder> =
        held.into_iter().map(|(stack, (bytes, blocks))| Holder { stack, bytes, blocks }).collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.stack));
    holders.truncate(top);
    holders
}

impl Holder {
    pub(crate) fn json(&self, stacks: &Stacks) -> Value {
        json!({"bytes": self.bytes, "blocks": self.blocks, "frames": frames_json(stacks, self.stack)})
    }
}

/// The frames of a stack, innermost first, as PyTorch writes them.
pub(crate) fn frames_json(stacks: &Stacks, stack: StackId) -> Value {
    let frames = stacks.frames(stack).map(|frame| stacks.frame(frame));
    let frames =
        frames.map(|frame| json!({"name": frame.name, "filename": frame.filename, "line": frame.line}));
    Value::Array(frames.collect())
}

/// The innermost frames in a line: `buf train.py:12 < main train.py:90`.
pub(crate) fn line(stacks: &Stacks, stack: StackId) -> String {
    const SHOWN: usize = 4;
    let frames = stacks.frames(stack);
    let hidden = frames.len().saturating_sub(SHOWN);
    let shown: Vec<String> = frames
        .take(SHOWN)
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
