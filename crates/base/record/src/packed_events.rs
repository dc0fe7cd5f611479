//! Events as bytes, about five each.

use blockyard_rules::size::MIN_BLOCK_SIZE;
use serde::{Deserialize, Serialize};

use crate::encoding::EncodingError;
use crate::varint::{self, Reader};
use crate::{AllocationId, BlockId, Bytes, Event, FailureCause, SegmentId, StreamId};

/// Events as bytes, about five bytes each: an event is encoded as its difference from a prediction, which is
/// made from the event before.
///
/// Events are encoded in groups that can be decoded alone, so that decoding any event takes one group. Rare
/// events with many fields are kept in `wide` as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "UncheckedEvents")]
pub(crate) struct PackedEvents {
    count: usize,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// Where each group starts in `bytes`.
    groups: Vec<u64>,
    wide: Vec<Event>,
    /// The prediction for the next event.
    #[serde(skip)]
    prediction: EventPrediction,
}

/// The encoded form, before it is checked.
#[derive(Deserialize)]
struct UncheckedEvents {
    count: usize,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    groups: Vec<u64>,
    wide: Vec<Event>,
}

impl TryFrom<UncheckedEvents> for PackedEvents {
    type Error = EncodingError;

    fn try_from(
        UncheckedEvents { count, bytes, groups, wide }: UncheckedEvents,
    ) -> Result<Self, Self::Error> {
        // An event takes at least one byte. Without this check, a damaged count would make a reader loop for
        // hours.
        if count > bytes.len() || groups.len() != count.div_ceil(GROUP) {
            return Err(EncodingError::Events);
        }
        Ok(Self { count, bytes, groups, wide, prediction: EventPrediction::default() })
    }
}

/// Events in one group.
const GROUP: usize = 64;

/// The values that the next event probably has.
#[derive(Clone, Copy, Debug, Default)]
struct EventPrediction {
    /// The block that the event before was about.
    block: u32,
    /// The newest block.
    newest: u32,
    /// The allocation before.
    allocation: u32,
}

impl EventPrediction {
    /// Updates the prediction after an event in `wide`. Such an event may make a segment, which is one new
    /// block.
    fn follow_wide(&mut self, event: &Event) {
        if let Event::SegmentAllocated { block, .. } | Event::RangeReserved { block, .. } = event {
            self.block = block.get();
            self.newest = block.get();
        }
    }
}

// The low five bits of an event's first byte; the flags are above them.
mod kind {
    pub(super) const WIDE: u8 = 0;
    pub(super) const SEGMENT_RELEASED: u8 = 1;
    pub(super) const SEGMENT_FAILED_ON_DEVICE: u8 = 2;
    pub(super) const SEGMENT_ABOVE_FRACTION: u8 = 3;
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
    pub(super) const MASK: u8 = 0x1f;
}

/// The amount of the event is encoded in units of 512 bytes.
const IN_UNITS: u8 = 0x20;
/// The event concerns the same block as the event before.
const SAME_BLOCK: u8 = 0x40;
const OVERSIZE: u8 = 0x80;

const UNIT: u64 = MIN_BLOCK_SIZE.get();

fn oversize(is_oversize: bool) -> u8 {
    if is_oversize { OVERSIZE } else { 0 }
}

impl PackedEvents {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of memory.
    pub(crate) fn memory_size(&self) -> usize {
        self.bytes.capacity()
            + self.groups.capacity() * size_of::<u64>()
            + self.wide.capacity() * size_of::<Event>()
    }

    /// Releases memory that was kept for more events.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.groups.shrink_to_fit();
        self.wide.shrink_to_fit();
    }

    pub(crate) fn push(&mut self, event: &Event) {
        if self.count.is_multiple_of(GROUP) {
            self.groups.push(self.bytes.len() as u64);
            self.prediction = EventPrediction::default();
        }
        self.count += 1;
        match *event {
            Event::SegmentAllocated { .. }
            | Event::RangeReserved { .. }
            | Event::Unmapped { .. }
            | Event::OutOfMemory { .. } => {
                self.push_number(kind::WIDE, self.wide.len() as u64);
                self.wide.push(*event);
                self.prediction.follow_wide(event);
            }
            Event::SegmentReleased { segment, is_oversize } => {
                self.push_number(kind::SEGMENT_RELEASED | oversize(is_oversize), segment.get().into());
            }
            Event::RangeReleased { segment } => self.push_number(kind::RANGE_RELEASED, segment.get().into()),
            Event::Mapped { block, size, remainder: None } => {
                self.push_about_block(kind::MAPPED, block, Some(size.get()));
            }
            Event::Mapped { block, size, remainder: Some(remainder) } => {
                self.push_about_block(kind::MAPPED_IN_PART, block, Some(size.get()));
                self.push_new_block(remainder);
            }
            Event::SegmentFailed { size, cause: FailureCause::Device } => {
                self.push_amount(kind::SEGMENT_FAILED_ON_DEVICE, size.get());
            }
            Event::SegmentFailed { size, cause: FailureCause::Fraction } => {
                self.push_amount(kind::SEGMENT_ABOVE_FRACTION, size.get());
            }
            Event::Split { block, front, size } => {
                self.push_about_block(kind::SPLIT, block, Some(size.get()));
                self.push_new_block(front);
                // The next event probably allocates the front.
                self.prediction.block = front.get();
            }
            Event::Allocated { block, allocation, requested, is_oversize } => {
                self.push_about_block(kind::ALLOCATED | oversize(is_oversize), block, Some(requested.get()));
                let next = u64::from(self.prediction.allocation) + 1;
                varint::push_difference(&mut self.bytes, next, allocation.get().into());
                self.prediction.allocation = allocation.get();
            }
            Event::StreamRecorded { block, stream } => {
                self.push_about_block(kind::STREAM_RECORDED, block, Some(stream.get()));
            }
            Event::FreeRequested { block, is_oversize } => {
                self.push_about_block(kind::FREE_REQUESTED | oversize(is_oversize), block, None);
            }
            Event::FreeCompleted { block } => self.push_about_block(kind::FREE_COMPLETED, block, None),
            Event::Merged { block, absorbed } => {
                self.push_about_block(kind::MERGED, block, None);
                varint::push_difference(&mut self.bytes, block.get().into(), absorbed.get().into());
            }
            Event::RetryStarted => self.bytes.push(kind::RETRY_STARTED),
            Event::StreamsSynchronized => self.bytes.push(kind::STREAMS_SYNCHRONIZED),
            Event::SnapshotTaken { active } => self.push_amount(kind::SNAPSHOT_TAKEN, active.get()),
            Event::PeakReset => self.bytes.push(kind::PEAK_RESET),
            Event::AccumulatedReset => self.bytes.push(kind::ACCUMULATED_RESET),
            Event::FractionSet { limit: Some(limit) } => self.push_amount(kind::FRACTION_SET, limit.get()),
            Event::FractionSet { limit: None } => self.bytes.push(kind::FRACTION_LIFTED),
        }
    }

    fn push_number(&mut self, tag: u8, number: u64) {
        self.bytes.push(tag);
        varint::push(&mut self.bytes, number);
    }

    fn push_amount(&mut self, tag: u8, amount: u64) {
        if amount.is_multiple_of(UNIT) {
            self.push_number(tag | IN_UNITS, amount / UNIT);
        } else {
            self.push_number(tag, amount);
        }
    }

    /// Appends the first byte of an event, its amount if it has one, and its block.
    fn push_about_block(&mut self, tag: u8, block: BlockId, amount: Option<u64>) {
        let before = self.prediction.block;
        let tag = tag | if block.get() == before { SAME_BLOCK } else { 0 };
        match amount {
            Some(amount) => self.push_amount(tag, amount),
            None => self.bytes.push(tag),
        }
        if block.get() != before {
            varint::push_difference(&mut self.bytes, before.into(), block.get().into());
        }
        self.prediction.block = block.get();
    }

    fn push_new_block(&mut self, block: BlockId) {
        let next = u64::from(self.prediction.newest) + 1;
        varint::push_difference(&mut self.bytes, next, block.get().into());
        self.prediction.newest = block.get();
    }

    /// The event with this index. Also `None` for bytes that encode no event, so that a damaged file causes
    /// no panic.
    pub(crate) fn get(&self, index: usize) -> Option<Event> {
        self.from(index)?.next()
    }

    /// The events from `index` on. The iterator ends early if the bytes are damaged.
    pub(crate) fn from(&self, index: usize) -> Option<Events<'_>> {
        if index >= self.count {
            return None;
        }
        let at = index - index % GROUP;
        let mut events =
            Events { packed: self, at, reader: Reader(&[]), prediction: EventPrediction::default() };
        for _ in at..index {
            events.next()?;
        }
        Some(events)
    }
}

/// Events in order.
#[derive(Debug)]
pub(crate) struct Events<'a> {
    packed: &'a PackedEvents,
    at: usize,
    reader: Reader<'a>,
    prediction: EventPrediction,
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if self.at >= self.packed.count {
            return None;
        }
        if self.at.is_multiple_of(GROUP) {
            let start = usize::try_from(*self.packed.groups.get(self.at / GROUP)?).ok()?;
            self.reader = Reader(self.packed.bytes.get(start..)?);
            self.prediction = EventPrediction::default();
        }
        self.at += 1;
        self.read()
    }
}

impl Events<'_> {
    fn read(&mut self) -> Option<Event> {
        let tag = self.reader.byte()?;
        let is_oversize = tag & OVERSIZE != 0;
        Some(match tag & kind::MASK {
            kind::WIDE => {
                let event = *self.packed.wide.get(self.reader.small()? as usize)?;
                self.prediction.follow_wide(&event);
                event
            }
            kind::SEGMENT_RELEASED => {
                Event::SegmentReleased { segment: SegmentId::new(self.reader.small()?), is_oversize }
            }
            kind::RANGE_RELEASED => Event::RangeReleased { segment: SegmentId::new(self.reader.small()?) },
            kind::MAPPED => {
                let (size, block) = (self.amount(tag)?, self.block(tag)?);
                Event::Mapped { block, size, remainder: None }
            }
            kind::MAPPED_IN_PART => {
                let (size, block) = (self.amount(tag)?, self.block(tag)?);
                Event::Mapped { block, size, remainder: Some(self.new_block()?) }
            }
            kind::SEGMENT_FAILED_ON_DEVICE => {
                Event::SegmentFailed { size: self.amount(tag)?, cause: FailureCause::Device }
            }
            kind::SEGMENT_ABOVE_FRACTION => {
                Event::SegmentFailed { size: self.amount(tag)?, cause: FailureCause::Fraction }
            }
            kind::SPLIT => {
                let (size, block, front) = (self.amount(tag)?, self.block(tag)?, self.new_block()?);
                self.prediction.block = front.get();
                Event::Split { block, front, size }
            }
            kind::ALLOCATED => {
                let (requested, block) = (self.amount(tag)?, self.block(tag)?);
                let next = u64::from(self.prediction.allocation) + 1;
                self.prediction.allocation = u32::try_from(self.reader.add_difference(next)?).ok()?;
                let allocation = AllocationId::new(self.prediction.allocation);
                Event::Allocated { block, allocation, requested, is_oversize }
            }
            kind::STREAM_RECORDED => {
                let stream = StreamId::new(self.amount(tag)?.get());
                Event::StreamRecorded { block: self.block(tag)?, stream }
            }
            kind::FREE_REQUESTED => Event::FreeRequested { block: self.block(tag)?, is_oversize },
            kind::FREE_COMPLETED => Event::FreeCompleted { block: self.block(tag)? },
            kind::MERGED => {
                let block = self.block(tag)?;
                Event::Merged {
                    block,
                    absorbed: BlockId::new(self.reader.add_small_difference(block.get())?),
                }
            }
            kind::RETRY_STARTED => Event::RetryStarted,
            kind::STREAMS_SYNCHRONIZED => Event::StreamsSynchronized,
            kind::PEAK_RESET => Event::PeakReset,
            kind::ACCUMULATED_RESET => Event::AccumulatedReset,
            kind::FRACTION_SET => Event::FractionSet { limit: Some(self.amount(tag)?) },
            kind::FRACTION_LIFTED => Event::FractionSet { limit: None },
            kind::SNAPSHOT_TAKEN => Event::SnapshotTaken { active: self.amount(tag)? },
            _ => return None,
        })
    }

    fn amount(&mut self, tag: u8) -> Option<Bytes> {
        let amount = self.reader.number()?;
        let amount = if tag & IN_UNITS == 0 { Some(amount) } else { amount.checked_mul(UNIT) };
        amount.map(Bytes::new)
    }

    fn block(&mut self, tag: u8) -> Option<BlockId> {
        if tag & SAME_BLOCK == 0 {
            self.prediction.block = self.reader.add_small_difference(self.prediction.block)?;
        }
        Some(BlockId::new(self.prediction.block))
    }

    fn new_block(&mut self) -> Option<BlockId> {
        let next = u64::from(self.prediction.newest) + 1;
        self.prediction.newest = u32::try_from(self.reader.add_difference(next)?).ok()?;
        Some(BlockId::new(self.prediction.newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceAddr, PoolId, PoolKind};

    fn events() -> Vec<Event> {
        let [block, front] = [7, u32::MAX].map(BlockId::new);
        let (size, odd, most) = (Bytes::mib(3), Bytes::new(1_000_001), Bytes::new(u64::MAX));
        let (segment, stream, addr) =
            (SegmentId::new(900), StreamId::new(u64::MAX), DeviceAddr::new(1 << 47));
        let (pool_id, pool) = (PoolId { capture: 0, user: 3 }, PoolKind::Large);
        vec![
            Event::SegmentAllocated { segment, block, addr, size, stream, pool_id, pool, is_oversize: true },
            Event::Split { block, front, size },
            Event::Allocated {
                block: front,
                allocation: AllocationId::new(0),
                requested: odd,
                is_oversize: false,
            },
            Event::Allocated {
                block,
                allocation: AllocationId::new(u32::MAX),
                requested: most,
                is_oversize: true,
            },
            Event::StreamRecorded { block, stream },
            Event::FreeRequested { block, is_oversize: true },
            Event::FreeRequested { block: front, is_oversize: false },
            Event::FreeCompleted { block: front },
            Event::Merged { block: front, absorbed: block },
            Event::SegmentFailed { size, cause: FailureCause::Device },
            Event::SegmentFailed { size: odd, cause: FailureCause::Fraction },
            Event::SegmentReleased { segment, is_oversize: true },
            Event::RangeReserved { segment, block, addr, size, stream, pool_id, pool },
            Event::Mapped { block, size, remainder: Some(front) },
            Event::Mapped { block: front, size, remainder: None },
            Event::Unmapped { block, before: Some((front, size)), after: None },
            Event::RangeReleased { segment },
            Event::RetryStarted,
            Event::StreamsSynchronized,
            Event::OutOfMemory {
                requested: odd,
                rounded: size,
                segment_size: most,
                stream,
                device_free: size,
                is_rejected: true,
            },
            Event::SnapshotTaken { active: odd },
            Event::PeakReset,
            Event::AccumulatedReset,
            Event::FractionSet { limit: Some(odd) },
            Event::FractionSet { limit: None },
        ]
    }

    #[test]
    fn every_event_comes_back_from_any_place() {
        let mut packed = PackedEvents::default();
        // The list has several groups; a group begins anywhere in the cycle of events.
        let all: Vec<Event> = events().into_iter().cycle().take(5 * GROUP + 3).collect();
        for event in &all {
            packed.push(event);
        }
        assert_eq!(packed.len(), all.len());
        for (index, event) in all.iter().enumerate() {
            assert_eq!(packed.get(index).as_ref(), Some(event), "event {index}");
        }
        assert_eq!(packed.get(all.len()), None);
        let rest: Vec<Event> = packed.from(70).unwrap().collect();
        assert_eq!(rest, all[70..]);
    }

    #[test]
    fn bytes_that_are_no_events_do_no_harm() {
        let mut packed = PackedEvents::default();
        for event in events() {
            packed.push(&event);
        }
        for place in 0..packed.bytes.len() {
            for change in [1, 0x20, 0x40, 0x80, 0xff] {
                let mut damaged = packed.clone();
                damaged.bytes[place] = damaged.bytes[place].wrapping_add(change);
                assert!(damaged.from(0).unwrap().count() <= packed.len());
            }
        }
        packed.groups[0] = u64::MAX;
        assert_eq!(packed.get(0), None);
    }
}
