use serde::{Deserialize, Serialize};

use crate::{AllocationId, BlockId, Bytes, Event, Refusal, SegmentId, StreamId};

/// Events in columns; what does not fit the columns stands in `wide`, which `first` then indexes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EventColumns {
    kinds: Vec<u8>,
    first: Vec<u32>,
    second: Vec<u32>,
    amount: Vec<u64>,
    wide: Vec<Event>,
}

// The kinds of the `kinds` column; `OVERSIZE` is a flag on top.
mod kind {
    pub(super) const WIDE: u8 = 0;
    pub(super) const SEGMENT_RELEASED: u8 = 1;
    pub(super) const SEGMENT_REFUSED_BY_DEVICE: u8 = 2;
    pub(super) const SEGMENT_REFUSED_BY_FRACTION: u8 = 3;
    pub(super) const SPLIT: u8 = 4;
    pub(super) const ALLOCATED: u8 = 5;
    pub(super) const STREAM_RECORDED: u8 = 6;
    pub(super) const FREE_REQUESTED: u8 = 7;
    pub(super) const FREE_COMPLETED: u8 = 8;
    pub(super) const MERGED: u8 = 9;
    pub(super) const RETRY_STARTED: u8 = 10;
    pub(super) const STREAMS_SYNCHRONIZED: u8 = 11;
    pub(super) const PEAK_RESET: u8 = 13;
    pub(super) const ACCUMULATED_RESET: u8 = 14;
    pub(super) const FRACTION_SET: u8 = 15;
    pub(super) const FRACTION_LIFTED: u8 = 16;
    pub(super) const SNAPSHOT_TAKEN: u8 = 17;
    pub(super) const RANGE_RELEASED: u8 = 19;
    pub(super) const MAPPED: u8 = 20;
    pub(super) const MAPPED_IN_PART: u8 = 21;
    pub(super) const OVERSIZE: u8 = 0x80;
}

impl EventColumns {
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn push(&mut self, event: &Event) {
        let oversize = |is_oversize: bool| if is_oversize { kind::OVERSIZE } else { 0 };
        let (kind, first, second, amount) = match *event {
            Event::SegmentAllocated { .. }
            | Event::RangeReserved { .. }
            | Event::Unmapped { .. }
            | Event::OutOfMemory { .. } => (kind::WIDE, self.push_wide(*event), 0, 0),
            Event::SegmentReleased { segment, is_oversize } => {
                (kind::SEGMENT_RELEASED | oversize(is_oversize), segment.get(), 0, 0)
            }
            Event::RangeReleased { segment } => (kind::RANGE_RELEASED, segment.get(), 0, 0),
            Event::Mapped { block, size, rest: None } => (kind::MAPPED, block.get(), 0, size.get()),
            Event::Mapped { block, size, rest: Some(rest) } => {
                (kind::MAPPED_IN_PART, block.get(), rest.get(), size.get())
            }
            Event::SegmentRefused { size, refusal: Refusal::Device } => {
                (kind::SEGMENT_REFUSED_BY_DEVICE, 0, 0, size.get())
            }
            Event::SegmentRefused { size, refusal: Refusal::Fraction } => {
                (kind::SEGMENT_REFUSED_BY_FRACTION, 0, 0, size.get())
            }
            Event::Split { block, front, size } => (kind::SPLIT, block.get(), front.get(), size.get()),
            Event::Allocated { block, allocation, requested, is_oversize } => {
                (kind::ALLOCATED | oversize(is_oversize), block.get(), allocation.get(), requested.get())
            }
            Event::StreamRecorded { block, stream } => (kind::STREAM_RECORDED, block.get(), 0, stream.get()),
            Event::FreeRequested { block, is_oversize } => {
                (kind::FREE_REQUESTED | oversize(is_oversize), block.get(), 0, 0)
            }
            Event::FreeCompleted { block } => (kind::FREE_COMPLETED, block.get(), 0, 0),
            Event::Merged { block, absorbed } => (kind::MERGED, block.get(), absorbed.get(), 0),
            Event::RetryStarted => (kind::RETRY_STARTED, 0, 0, 0),
            Event::StreamsSynchronized => (kind::STREAMS_SYNCHRONIZED, 0, 0, 0),
            Event::SnapshotTaken { active } => (kind::SNAPSHOT_TAKEN, 0, 0, active.get()),
            Event::PeakReset => (kind::PEAK_RESET, 0, 0, 0),
            Event::AccumulatedReset => (kind::ACCUMULATED_RESET, 0, 0, 0),
            Event::FractionSet { limit: Some(limit) } => (kind::FRACTION_SET, 0, 0, limit.get()),
            Event::FractionSet { limit: None } => (kind::FRACTION_LIFTED, 0, 0, 0),
        };
        self.kinds.push(kind);
        self.first.push(first);
        self.second.push(second);
        self.amount.push(amount);
    }

    fn push_wide(&mut self, event: Event) -> u32 {
        self.wide.push(event);
        u32::try_from(self.wide.len() - 1).unwrap_or(u32::MAX)
    }

    // `None` also for bytes that no event encodes to, so that a damaged file cannot do harm.
    pub(crate) fn get(&self, index: usize) -> Option<Event> {
        let tagged = *self.kinds.get(index)?;
        let first = *self.first.get(index)?;
        let second = *self.second.get(index)?;
        let amount = *self.amount.get(index)?;
        let is_oversize = tagged & kind::OVERSIZE != 0;
        let block = BlockId::new(first);
        Some(match tagged & !kind::OVERSIZE {
            kind::WIDE => *self.wide.get(first as usize)?,
            kind::RANGE_RELEASED => Event::RangeReleased { segment: SegmentId::new(first) },
            kind::MAPPED => Event::Mapped { block, size: Bytes::new(amount), rest: None },
            kind::MAPPED_IN_PART => {
                Event::Mapped { block, size: Bytes::new(amount), rest: Some(BlockId::new(second)) }
            }
            kind::SEGMENT_RELEASED => Event::SegmentReleased { segment: SegmentId::new(first), is_oversize },
            kind::SEGMENT_REFUSED_BY_DEVICE => {
                Event::SegmentRefused { size: Bytes::new(amount), refusal: Refusal::Device }
            }
            kind::SEGMENT_REFUSED_BY_FRACTION => {
                Event::SegmentRefused { size: Bytes::new(amount), refusal: Refusal::Fraction }
            }
            kind::SPLIT => Event::Split { block, front: BlockId::new(second), size: Bytes::new(amount) },
            kind::ALLOCATED => Event::Allocated {
                block,
                allocation: AllocationId::new(second),
                requested: Bytes::new(amount),
                is_oversize,
            },
            kind::STREAM_RECORDED => Event::StreamRecorded { block, stream: StreamId::new(amount) },
            kind::FREE_REQUESTED => Event::FreeRequested { block, is_oversize },
            kind::FREE_COMPLETED => Event::FreeCompleted { block },
            kind::MERGED => Event::Merged { block, absorbed: BlockId::new(second) },
            kind::RETRY_STARTED => Event::RetryStarted,
            kind::STREAMS_SYNCHRONIZED => Event::StreamsSynchronized,
            kind::PEAK_RESET => Event::PeakReset,
            kind::ACCUMULATED_RESET => Event::AccumulatedReset,
            kind::FRACTION_SET => Event::FractionSet { limit: Some(Bytes::new(amount)) },
            kind::SNAPSHOT_TAKEN => Event::SnapshotTaken { active: Bytes::new(amount) },
            kind::FRACTION_LIFTED => Event::FractionSet { limit: None },
            _ => return None,
        })
    }
}
