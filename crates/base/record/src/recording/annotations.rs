//! The parts of a recording other than its events: stacks, wall-clock times, markers, and sizes that the
//! source of the recording leaves open.

use blockyard_rules::size::MIN_BLOCK_SIZE;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Recorder, Recording};
use crate::packed_times::PackedTimes;
use crate::{AllocationId, Bytes, SegmentId, StackId, Stacks};

/// Extra sizes of blocks are stored as multiples of this.
const UNIT: u64 = MIN_BLOCK_SIZE.get();

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Annotations {
    stacks: Arc<Stacks>,
    /// The stack of each allocation and of each segment. Numbers beyond the end have the stack without
    /// frames.
    allocations: Vec<StackId>,
    segments: Vec<StackId>,
    /// One time for each step, or no times at all.
    times: PackedTimes,
    markers: Vec<Marker>,
    /// The allocations whose blocks may be larger than recorded, ascending, with the extra size in units of
    /// 512 bytes.
    open: Vec<(u32, u64)>,
}

/// A moment or a time span of a run that the program named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The name.
    pub text: String,
    /// How many steps were done when the span began.
    pub start_step: u32,
    /// How many steps were done when the span ended; `None` if the span does not end within the recording.
    pub end_step: Option<u32>,
    /// When the span began, in microseconds.
    pub start_us: u64,
    /// When the span ended, in microseconds; `None` if the span does not end within the recording.
    pub end_us: Option<u64>,
}

/// A block whose size the source of the recording leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSize {
    /// The allocation that the block serves. The recording shows the smallest possible block.
    pub allocation: AllocationId,
    /// How much larger the block may be.
    pub extra: Bytes,
}

impl Recording {
    /// The stacks that [`Recording::allocation_stack`] and [`Recording::segment_stack`] number.
    #[must_use]
    pub fn stacks(&self) -> &Arc<Stacks> {
        &self.annotations.stacks
    }

    /// The stack that the allocation was made from; [`StackId::EMPTY`] if the stack is not known.
    #[must_use]
    pub fn allocation_stack(&self, allocation: AllocationId) -> StackId {
        self.annotations.allocations.get(allocation.get() as usize).copied().unwrap_or_default()
    }

    /// The stack that the segment was made from; [`StackId::EMPTY`] if the stack is not known.
    #[must_use]
    pub fn segment_stack(&self, segment: SegmentId) -> StackId {
        self.annotations.segments.get(segment.get() as usize).copied().unwrap_or_default()
    }

    /// When the step happened, in microseconds, if that is known.
    #[must_use]
    pub fn time_us(&self, step: usize) -> Option<u64> {
        self.annotations.times.get(step)
    }

    /// The times of all steps from `step` on, in order. This is faster than [`Recording::time_us`] for each
    /// step. Empty if times are not known.
    pub fn times_us_from(&self, step: usize) -> impl Iterator<Item = u64> + '_ {
        self.annotations.times.from(step)
    }

    /// Moments and time spans that the program named, in the order in which they begin.
    #[must_use]
    pub fn markers(&self) -> &[Marker] {
        &self.annotations.markers
    }

    /// The blocks whose sizes are open, by ascending allocation.
    #[must_use]
    pub fn open_sizes(&self) -> impl ExactSizeIterator<Item = OpenSize> + '_ {
        self.annotations.open.iter().map(|(allocation, units)| OpenSize {
            allocation: AllocationId::new(*allocation),
            extra: Bytes::new(units.saturating_mul(UNIT)),
        })
    }
}

impl Annotations {
    /// Bytes of memory, without the stacks, which recordings share.
    pub(super) fn size(&self) -> usize {
        (self.allocations.capacity() + self.segments.capacity()) * size_of::<StackId>()
            + self.times.memory_size()
            + self.markers.capacity() * size_of::<Marker>()
            + self.open.capacity() * size_of::<(u32, u64)>()
    }

    pub(super) fn shrink(&mut self) {
        self.allocations.shrink_to_fit();
        self.segments.shrink_to_fit();
        self.times.shrink();
        self.markers.shrink_to_fit();
        self.open.shrink_to_fit();
    }

    pub(super) fn finish_step(&mut self, steps: usize, time: Option<u64>) {
        let Some(time) = time else {
            // Once one step has a time, each step has one.
            if self.times.len() > 0 {
                let last = self.times.last();
                self.times.push(last);
            }
            return;
        };
        // Steps before the first known time.
        while self.times.len() + 1 < steps {
            self.times.push(time);
        }
        self.times.push(time);
    }

    pub(super) fn add_allocation(&mut self, id: AllocationId, stack: StackId) {
        put(&mut self.allocations, id.get(), stack);
    }

    pub(super) fn add_segment(&mut self, id: SegmentId, stack: StackId) {
        put(&mut self.segments, id.get(), stack);
    }
}

/// Numbers are assigned in ascending order without gaps, so the list is never longer than the count of
/// allocations or segments.
fn put(stacks: &mut Vec<StackId>, number: u32, stack: StackId) {
    if stack == StackId::EMPTY {
        return;
    }
    let number = number as usize;
    if number >= stacks.len() {
        stacks.resize(number, StackId::EMPTY);
        stacks.push(stack);
    } else if let Some(place) = stacks.get_mut(number) {
        *place = stack;
    }
}

impl Recorder {
    /// Sets the stacks that the stack numbers refer to.
    pub fn set_stacks(&mut self, stacks: Arc<Stacks>) {
        self.recording.annotations.stacks = stacks;
    }

    /// Sets the stack of all allocations and segments that follow, until the next call.
    pub fn set_stack(&mut self, stack: StackId) {
        self.stack = stack;
    }

    /// Sets the stack of an allocation: one that the recording begins with, or one that was recorded without
    /// a stack.
    pub fn set_allocation_stack(&mut self, allocation: AllocationId, stack: StackId) {
        self.recording.annotations.add_allocation(allocation, stack);
    }

    /// Sets the stack of a segment that the recording begins with.
    pub fn set_segment_stack(&mut self, segment: SegmentId, stack: StackId) {
        self.recording.annotations.add_segment(segment, stack);
    }

    /// Sets the time of the current step, in microseconds. A step without a time has the time of the step
    /// before.
    pub fn set_time_us(&mut self, time: u64) {
        self.time = Some(time);
    }

    /// Sets the moments and time spans that the program named.
    pub fn set_markers(&mut self, markers: Vec<Marker>) {
        self.recording.annotations.markers = markers;
    }

    /// Marks the block of an allocation as possibly larger than recorded. The extra size counts in whole
    /// units of 512 bytes.
    pub fn set_open_size(&mut self, allocation: AllocationId, extra: Bytes) {
        let units = extra.get() / UNIT;
        let open = &mut self.recording.annotations.open;
        match open.binary_search_by_key(&allocation.get(), |(allocation, _)| *allocation) {
            Ok(place) => open[place].1 = units,
            Err(place) => open.insert(place, (allocation.get(), units)),
        }
    }
}
