//! The holders of the bytes of a moment: groups of allocations, by stack, by size and by other known
//! properties.

mod flame;
mod query;

pub use self::flame::{FlameGraph, FlameNode, flame_scene};
pub use self::query::AllocationQuery;

use std::collections::BTreeMap;

use blockyard_record::{
    AllocationId, Bytes, Frame, FrameId, PoolId, PoolKind, Recording, StackCategory, StackHolder, StackId,
    Stacks, StreamId, function_name, shortened_path,
};

use crate::allocations::{Allocations, NEVER};
use crate::conversions::step_u32;

/// A choice of allocations by moments, which count complete steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationFilter {
    /// Allocations that exist at the moment and whose free is not requested by then.
    At(usize),
    /// Allocations that exist at both moments and whose free is not requested up to the later one.
    Throughout(usize, usize),
    /// Allocations that were made after the first moment, exist at the second, and whose free is not
    /// requested by then.
    NewBetween(usize, usize),
    /// Allocations that were made after the first moment and up to the second, whether they exist then or
    /// not.
    MadeBetween(usize, usize),
}

/// What happened in a range of moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSums {
    /// How many allocations were made, and their bytes.
    pub made: (usize, Bytes),
    /// How many allocations were freed, and their bytes; also of those that were made before.
    pub freed: (usize, Bytes),
    /// The allocations that were made in the range and not freed in it.
    pub kept: (usize, Bytes),
    /// The most active bytes, and the first moment that has them.
    pub peak: (Bytes, usize),
}

/// The sums of what happened after the moment `first` and up to the moment `last`.
pub fn range_sums(allocations: &Allocations, first: usize, last: usize) -> RangeSums {
    let is_within = |moment: u32| moment != NEVER && (moment as usize) > first && (moment as usize) <= last;
    let mut sums = RangeSums::default();
    let add = |sum: &mut (usize, Bytes), size: u64| {
        *sum = (sum.0 + 1, sum.1.saturating_add(Bytes::new(size)));
    };
    for ((size, start), freed) in
        allocations.sizes().iter().zip(allocations.starts()).zip(allocations.frees())
    {
        let (is_made, is_freed) = (is_within(*start), is_within(*freed));
        if is_made {
            add(&mut sums.made, *size);
        }
        if is_freed {
            add(&mut sums.freed, *size);
        }
        if is_made && !is_freed {
            add(&mut sums.kept, *size);
        }
    }
    let moments = (first..=last).rev().map(|moment| (allocations.active_bytes(moment), moment));
    sums.peak = moments.max_by_key(|(bytes, _)| *bytes).unwrap_or_default();
    sums
}

/// The property by which allocations are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// The whole stack.
    Stack,
    /// The innermost line of the program's own code.
    Line,
    /// The module whose `forward` was running, if the stack shows it.
    Module,
    /// The kind of data, if the stack shows it.
    Category,
    /// The size of the block.
    Size,
    /// The stream that the block belongs to.
    Stream,
    /// The memory pool and the block pool of the block.
    Pool,
}

impl GroupBy {
    /// All properties, those that need stacks first.
    pub const ALL: [Self; 7] =
        [Self::Stack, Self::Line, Self::Module, Self::Category, Self::Size, Self::Stream, Self::Pool];

    /// Whether the groups follow from stacks, so that a recording without stacks says nothing about them.
    pub fn needs_stacks(self) -> bool {
        matches!(self, Self::Stack | Self::Line | Self::Module | Self::Category)
    }

    /// Whether all allocations of a stack are in one group; the category of an allocation without a stack may
    /// follow from more than the stack.
    pub(crate) fn is_of_stack(self, stack: StackId) -> bool {
        self.needs_stacks() && (self != Self::Category || stack != StackId::EMPTY)
    }

    /// The name in a list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Line => "line",
            Self::Module => "module",
            Self::Category => "category",
            Self::Size => "size",
            Self::Stream => "stream",
            Self::Pool => "pool",
        }
    }
}

/// The property that the allocations of one group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// The allocations with this stack.
    Stack(StackId),
    /// The frame of the program's own code; `None` without a stack.
    Line(Option<FrameId>),
    /// Stacks without a line of the program: those in which a library keeps what it works in, and all others.
    Library {
        /// Whether a library keeps the memory to work in.
        is_workspace: bool,
    },
    /// The frame of the module's `forward`; `None` outside of any module.
    Module(Option<FrameId>),
    /// The kind of data.
    Category(StackCategory),
    /// The allocations of this many bytes.
    Size(Bytes),
    /// The allocations on this stream.
    Stream(StreamId),
    /// The allocations in this memory pool and block pool.
    Pool(PoolId, PoolKind),
}

/// The allocations of one group, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The property that the allocations share.
    pub key: GroupKey,
    /// The sizes of their blocks, added up.
    pub bytes: Bytes,
    /// The requested bytes, added up.
    pub requested: Bytes,
    /// How many allocations the group has.
    pub count: usize,
    /// The first moment of the oldest allocation.
    pub oldest: usize,
    /// The first allocation that the program gave a name.
    pub named: Option<AllocationId>,
    /// How many allocations have a name.
    pub named_count: usize,
    /// The row of the first of the allocations.
    pub row: usize,
}

/// The rows of the allocations that pass the filter, ascending. With [`AllocationFilter::At`] their sizes add
/// up to the allocated bytes of the moment.
pub fn rows_in(allocations: &Allocations, scope: AllocationFilter) -> Vec<usize> {
    let freed_after = |row: &usize, moment: usize| {
        allocations.frees().get(*row).is_some_and(|freed| *freed == NEVER || *freed > step_u32(moment))
    };
    let started = |row: &usize| allocations.starts().get(*row).map_or(0, |start| *start as usize);
    match scope {
        AllocationFilter::At(moment) => allocations.allocated_at(moment),
        AllocationFilter::Throughout(one, other) => {
            let (first, last) = (one.min(other), one.max(other));
            let mut rows = allocations.allocated_at(first);
            rows.retain(|row| freed_after(row, last));
            rows
        }
        AllocationFilter::NewBetween(one, other) => {
            let (first, last) = (one.min(other), one.max(other));
            let mut rows = allocations.allocated_at(last);
            rows.retain(|row| started(row) > first);
            rows
        }
        AllocationFilter::MadeBetween(one, other) => {
            let (first, last) = (one.min(other), one.max(other));
            (0..allocations.len()).filter(|row| started(row) > first && started(row) <= last).collect()
        }
    }
}

/// The key of the group that the allocation of a row belongs to; `None` for a row that does not exist.
pub fn group_key(
    allocations: &Allocations,
    recording: &Recording,
    row: usize,
    by: GroupBy,
) -> Option<GroupKey> {
    let stack = allocations.id(row).map_or(StackId::EMPTY, |id| recording.allocation_stack(id));
    let stacks = recording.stacks();
    Some(match by {
        GroupBy::Stack => GroupKey::Stack(stack),
        GroupBy::Line => match StackHolder::of(stacks.frames(stack).map(|frame| stacks.frame(frame))) {
            _ if stack == StackId::EMPTY => GroupKey::Line(None),
            StackHolder::Program => GroupKey::Line(stacks.own_frame(stack)),
            holder => GroupKey::Library { is_workspace: holder == StackHolder::Workspace },
        },
        GroupBy::Module => GroupKey::Module(module(stacks, stack)),
        GroupBy::Category if allocations.is_gradient_without_stack(row) => {
            GroupKey::Category(StackCategory::Gradients)
        }
        GroupBy::Category => GroupKey::Category(StackCategory::of(stacks, stack)),
        GroupBy::Size => GroupKey::Size(allocations.get(row)?.size),
        GroupBy::Stream => GroupKey::Stream(allocations.get(row)?.stream),
        GroupBy::Pool => {
            let allocation = allocations.get(row)?;
            GroupKey::Pool(allocation.pool_id, allocation.pool)
        }
    })
}

/// The groups of the rows, the group that holds most first; groups of equal bytes in the order of their keys.
pub fn holders(allocations: &Allocations, recording: &Recording, rows: &[usize], by: GroupBy) -> Vec<Holder> {
    let mut groups: BTreeMap<GroupKey, Holder> = BTreeMap::new();
    // The key of a stack is computed once for each stack, not for each allocation.
    let mut of_stacks: BTreeMap<StackId, Option<GroupKey>> = BTreeMap::new();
    for row in rows {
        let Some(allocation) = allocations.get(*row) else { continue };
        let stack = recording.allocation_stack(allocation.id);
        let key = if by.is_of_stack(stack) {
            *of_stacks.entry(stack).or_insert_with(|| group_key(allocations, recording, *row, by))
        } else {
            group_key(allocations, recording, *row, by)
        };
        let Some(key) = key else { continue };
        let group = groups.entry(key).or_insert(Holder {
            key,
            bytes: Bytes::ZERO,
            requested: Bytes::ZERO,
            count: 0,
            oldest: allocation.start,
            named: None,
            named_count: 0,
            row: *row,
        });
        group.bytes = group.bytes.saturating_add(allocation.size);
        group.requested = group.requested.saturating_add(allocation.requested);
        group.count += 1;
        group.oldest = group.oldest.min(allocation.start);
        if recording.name(allocation.id).is_some() {
            group.named = group.named.or(Some(allocation.id));
            group.named_count += 1;
        }
    }
    let mut holders: Vec<Holder> = groups.into_values().collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    holders
}

/// The sum of the sizes of the rows.
pub fn bytes_of(allocations: &Allocations, rows: &[usize]) -> Bytes {
    let sizes = rows.iter().filter_map(|row| allocations.sizes().get(*row));
    Bytes::new(sizes.fold(0, |sum: u64, size| sum.saturating_add(*size)))
}

/// The group in words.
pub fn group_text(recording: &Recording, key: GroupKey) -> String {
    let stacks = recording.stacks();
    let of_frame = |frame: Option<FrameId>, none: &str| {
        frame.map_or_else(|| none.to_owned(), |frame| frame_text(stacks.frame(frame)))
    };
    match key {
        GroupKey::Stack(stack) => stacks.own_frame(stack).map_or_else(
            || "no stack was recorded".to_owned(),
            |line| {
                let own = frame_text(stacks.frame(line));
                let called = stacks.called_frame(stack).map(|frame| function_name(stacks.frame(frame).name));
                called.map_or_else(|| own.clone(), |called| format!("{own} › {called}"))
            },
        ),
        GroupKey::Line(frame) => of_frame(frame, "no stack was recorded"),
        GroupKey::Library { is_workspace: true } => "workspaces of libraries".to_owned(),
        GroupKey::Library { is_workspace: false } => "PyTorch's own code".to_owned(),
        GroupKey::Module(frame) => frame.map_or_else(
            || "outside of any module's forward".to_owned(),
            |frame| module_name(stacks.frame(frame)),
        ),
        GroupKey::Category(category) => category.name().to_owned(),
        GroupKey::Size(size) => size.to_string(),
        GroupKey::Stream(stream) => recording.stream_name(stream),
        GroupKey::Pool(id, kind) if id == PoolId::DEFAULT => format!("{kind} pool"),
        GroupKey::Pool(id, kind) => format!("private pool {id}, {kind}"),
    }
}

/// The group in words, with the name that the program gave to an allocation of a stack.
pub fn holder_text(recording: &Recording, holder: &Holder) -> String {
    let text = group_text(recording, holder.key);
    let has_stack = matches!(holder.key, GroupKey::Stack(_) | GroupKey::Line(_));
    match holder.named.filter(|_| has_stack).and_then(|id| recording.name(id)) {
        None => text,
        Some(name) if holder.named_count > 1 => {
            format!("{text} ({name} and {} more)", holder.named_count - 1)
        }
        Some(name) => format!("{text} ({name})"),
    }
}

/// The groups in words, as [`holder_text`]. Of stacks that would have the same words each has also the
/// innermost frame in which they differ: `linear model.py:12, from forward head.py:40`.
pub fn holder_texts(recording: &Recording, holders: &[Holder]) -> Vec<String> {
    let mut texts: Vec<String> = holders.iter().map(|holder| holder_text(recording, holder)).collect();
    let mut indices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, text) in texts.iter().enumerate() {
        indices.entry(text.clone()).or_default().push(index);
    }
    let stacks = recording.stacks();
    for alike in indices.into_values().filter(|indices| indices.len() > 1) {
        let frames: Vec<Vec<FrameId>> = alike
            .iter()
            .map(|index| match holders.get(*index).map(|holder| holder.key) {
                Some(GroupKey::Stack(stack)) => stacks.frames(stack).collect(),
                _ => Vec::new(),
            })
            .collect();
        for (own, index) in frames.iter().zip(&alike) {
            // A frame that no other stack has at this depth, or else the first in which some differ.
            let differs = |at: usize| {
                let frame = own.get(at);
                let same = frames.iter().filter(|other| other.get(at) == frame).count();
                frame.filter(|_| same < frames.len()).map(|frame| (same, frame))
            };
            let found = || (0..own.len()).filter_map(&differs);
            let frame = found().find(|(same, _)| *same == 1).or_else(|| found().next());
            if let (Some((_, frame)), Some(text)) = (frame, texts.get_mut(*index)) {
                *text = format!("{text}, from {}", frame_text(stacks.frame(*frame)));
            }
        }
    }
    texts
}

/// All frames of a stack, innermost first, a line each.
pub fn stack_lines(stacks: &Stacks, stack: StackId) -> Vec<String> {
    stacks.frames(stack).map(|frame| frame_text(stacks.frame(frame))).collect()
}

/// `forward model.py:12`: the function if it is known, the end of the file's path and the line.
pub fn frame_text(frame: Frame<'_>) -> String {
    let file = shortened_path(frame.filename);
    if frame.name.is_empty() && frame.line > 0 {
        return format!("{file}:{}", frame.line);
    }
    match frame.line {
        // A frame of C++ has no file, or a file that nobody has.
        0 if file.is_empty() || file.starts_with("??") => function_name(frame.name).to_owned(),
        0 => format!("{} {file}", frame.name),
        line => format!("{} {file}:{line}", frame.name),
    }
}

/// The innermost frame that is the `forward` of a module.
fn module(stacks: &Stacks, stack: StackId) -> Option<FrameId> {
    stacks.frames(stack).find(|frame| stacks.frame(*frame).name == "forward")
}

/// The file of a module and the line of its `forward` that runs.
fn module_name(frame: Frame<'_>) -> String {
    let file = shortened_path(frame.filename);
    let file = file.strip_prefix("torch/nn/modules/").unwrap_or(file);
    format!("{}:{}", file.strip_suffix(".py").unwrap_or(file), frame.line)
}
