//! One device of a watched program: what it does within a step.

use std::collections::{BTreeMap, VecDeque};

use blockyard_pytorch::snapshot::{FollowedDevice, SnapshotEntry};
use blockyard_record::{BlockState, Bytes, PoolId, StackId, TraceAction, TraceEntry};

use crate::frames::DeviceMemory;

/// The most entries of a device that are kept; earlier steps go first.
const MAX_ENTRIES: usize = 1 << 18;

/// One device at the end of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStep {
    /// The index of the device.
    pub device: usize,
    /// The most bytes that were allocated at once within the step.
    pub peak_allocated: Bytes,
    /// The most bytes that were reserved within the step.
    pub peak_reserved: Bytes,
    /// The allocated bytes at the end of the step.
    pub allocated: Bytes,
    /// The reserved bytes at the end of the step.
    pub reserved: Bytes,
    /// By how many bytes more is allocated than at the end of the step before; `None` where that is not known.
    pub growth: Option<i64>,
    /// The line whose live bytes became more by the most, and by how many.
    pub growing_line: Option<(String, u64)>,
    /// Whether the step's requests come from the same lines in the same order as those of the step before.
    pub is_like_before: bool,
    /// What the driver reported.
    pub memory: DeviceMemory,
    /// Whether events were lost, so that the numbers of this step are not known.
    pub has_gap: bool,
}

#[derive(Debug, Default)]
pub(super) struct WatchedDevice {
    /// `None` before the first snapshot and after a gap.
    pub(super) followed: Option<FollowedDevice>,
    /// The stacks by their numbers on the device, counted from 1.
    pub(super) stacks: Vec<StackId>,
    /// The time of the last entry: later entries and marks are not earlier.
    clock: u64,
    pub(super) kept: VecDeque<StepEntries>,
    kept_entries: usize,
    pub(super) current: StepEntries,
    peaks: [Bytes; 2],
    allocated_before: Option<Bytes>,
    /// The live bytes of each line now, and at the end of the step before.
    live: Vec<u64>,
    live_before: Vec<u64>,
    has_gap: bool,
    pub(super) memory: DeviceMemory,
}

/// The entries of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct StepEntries {
    pub(super) number: u64,
    pub(super) begins_us: u64,
    pub(super) entries: Vec<SnapshotEntry>,
    /// What decides whether steps are alike.
    hash: u64,
}

/// Whether an entry is a request of the program: an allocation that was served, or a free.
pub(super) fn is_request(action: TraceAction) -> bool {
    matches!(action, TraceAction::Alloc | TraceAction::FreeRequested)
}

impl WatchedDevice {
    /// Nothing of before counts any more.
    pub(super) fn restart(&mut self) {
        let memory = self.followed.as_ref().map(FollowedDevice::memory).unwrap_or_default();
        self.peaks = [memory.allocated, memory.reserved];
        self.kept.clear();
        self.kept_entries = 0;
        self.current.entries.clear();
        self.current.begins_us = self.clock;
        self.allocated_before = None;
        self.live.clear();
        self.live_before.clear();
    }

    pub(super) fn lose(&mut self) {
        self.followed = None;
        self.has_gap = true;
        self.restart();
    }

    pub(super) fn add(
        &mut self,
        entry: &TraceEntry,
        pool_id: PoolId,
        stack: StackId,
        time_us: u64,
        line_of: &BTreeMap<StackId, usize>,
    ) {
        // Before the first snapshot: that snapshot has what these entries did.
        let Some(followed) = &mut self.followed else { return };
        let freed = followed.block(entry.addr).filter(|block| block.state == BlockState::Allocated).copied();
        followed.apply(entry, pool_id, stack);
        let memory = followed.memory();
        self.peaks = [self.peaks[0].max(memory.allocated), self.peaks[1].max(memory.reserved)];
        self.clock = self.clock.max(time_us);
        match entry.action {
            TraceAction::Alloc => {
                let size = followed.block(entry.addr).map_or(Bytes::ZERO, |block| block.size);
                self.count(line_of.get(&stack), |live| live.saturating_add(size.get()));
            }
            TraceAction::FreeRequested => {
                if let Some(block) = freed {
                    self.count(line_of.get(&block.stack), |live| live.saturating_sub(block.size.get()));
                }
            }
            _ => {}
        }
        if is_request(entry.action) {
            let stack = if entry.action == TraceAction::Alloc { u64::from(stack.get()) + 1 } else { 0 };
            self.current.hash =
                (self.current.hash ^ stack).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        }
        self.current.entries.push(SnapshotEntry { entry: *entry, time_us: self.clock, stack, context: 0 });
        self.forget();
    }

    /// Removes what is too old to be kept.
    fn forget(&mut self) {
        while self.kept_entries + self.current.entries.len() > MAX_ENTRIES {
            if let Some(step) = self.kept.pop_front() {
                self.kept_entries -= step.entries.len();
                continue;
            }
            // One very long step: its first half goes.
            self.current.entries.drain(..MAX_ENTRIES / 2);
            self.current.begins_us = self.current.entries.first().map_or(self.clock, |entry| entry.time_us);
        }
    }

    fn count(&mut self, line: Option<&usize>, change: impl Fn(u64) -> u64) {
        let Some(line) = line else { return };
        if self.live.len() <= *line {
            self.live.resize(*line + 1, 0);
        }
        if let Some(live) = self.live.get_mut(*line) {
            *live = change(*live);
        }
    }

    pub(super) fn end_step(&mut self, index: usize, number: u64, lines: &[String]) -> DeviceStep {
        let memory = self.followed.as_ref().map(FollowedDevice::memory).unwrap_or_default();
        let growth = self
            .allocated_before
            .map(|before| memory.allocated.get().cast_signed().wrapping_sub(before.get().cast_signed()));
        let more = |(line, live): (usize, &u64)| {
            let before = self.live_before.get(line).copied().unwrap_or(0);
            live.checked_sub(before).filter(|more| *more > 0).map(|more| (line, more))
        };
        let most = self
            .live
            .iter()
            .enumerate()
            .filter_map(more)
            .max_by_key(|(line, more)| (*more, usize::MAX - line));
        let growing_line = most.and_then(|(line, more)| Some((lines.get(line)?.clone(), more)));
        let is_like_before = self.kept.back().is_some_and(|before| before.hash == self.current.hash);
        let step = DeviceStep {
            device: index,
            peak_allocated: self.peaks[0],
            peak_reserved: self.peaks[1],
            allocated: memory.allocated,
            reserved: memory.reserved,
            growth,
            growing_line,
            is_like_before,
            memory: self.memory,
            has_gap: self.has_gap || self.followed.is_none(),
        };
        self.has_gap = false;
        self.live_before.clone_from(&self.live);
        self.allocated_before = self.followed.is_some().then_some(memory.allocated);
        self.peaks = [memory.allocated, memory.reserved];
        // The mark is between the last entry before and the first after.
        self.clock += 1;
        let next = StepEntries { number: number + 1, begins_us: self.clock, ..StepEntries::default() };
        let done = std::mem::replace(&mut self.current, next);
        if self.followed.is_some() {
            self.kept_entries += done.entries.len();
            self.kept.push_back(done);
        }
        step
    }
}
