//! The encoding of a saved state, about ten bytes a block. Addresses and links between blocks are left out,
//! because they follow from the order of the blocks.

use blockyard_rules::size::MIN_BLOCK_SIZE;
use std::collections::BTreeMap;

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize, Serializer};

use super::{BlockEntry, MemoryState, SegmentEntry};
use crate::varint::{self, Reader};
use crate::{
    AllocationId, Backend, BlockId, BlockState, Bytes, DeviceAddr, PoolId, PoolKind, SegmentId, Stats,
    StreamId,
};

/// An encoded [`MemoryState`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PackedState {
    capacity: Bytes,
    limit: Option<Bytes>,
    backend: Backend,
    segments: Vec<PackedSegment>,
    /// The blocks of all segments, one after the other.
    #[serde(with = "serde_bytes")]
    blocks: Vec<u8>,
    stats: Stats,
    requested: Bytes,
    fresh_front: Option<BlockId>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PackedSegment {
    id: SegmentId,
    addr: DeviceAddr,
    size: Bytes,
    stream: StreamId,
    pool_id: PoolId,
    pool: PoolKind,
    is_expandable: bool,
    blocks: u32,
}

/// The bytes encode no state.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a saved state that does not add up")]
pub(super) struct PackedStateError;

// The first byte of a block: its state, and which fields follow.
const STATES: [BlockState; 4] =
    [BlockState::Inactive, BlockState::Allocated, BlockState::PendingFree, BlockState::Unmapped];
const STATE: u8 = 0x03;
const HAS_ALLOCATION: u8 = 0x04;
const HAS_STREAMS: u8 = 0x08;
/// The size is in units of 512 bytes, as all sizes of the allocator are.
const IN_UNITS: u8 = 0x10;
/// The requested size follows, as its difference from the size; without this bit the requested size is zero.
const HAS_REQUESTED: u8 = 0x20;
const UNIT: u64 = MIN_BLOCK_SIZE.get();

/// The ids of the block before. The ids of the next block are encoded as differences from these.
#[derive(Clone, Copy, Default)]
struct PreviousBlock {
    id: u32,
    allocation: u32,
}

impl Serialize for MemoryState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PackedState::from(self).serialize(serializer)
    }
}

impl From<&MemoryState> for PackedState {
    fn from(state: &MemoryState) -> Self {
        let mut bytes = Vec::new();
        let mut previous_block = PreviousBlock::default();
        let mut segments = Vec::with_capacity(state.segments.len());
        for (addr, segment) in &state.segments {
            let mut blocks = 0_u32;
            for block in state.chain(segment) {
                previous_block.write(block, &mut bytes);
                blocks = blocks.saturating_add(1);
            }
            let SegmentEntry { id, size, stream, pool_id, pool, is_expandable, first: _ } = *segment;
            segments.push(PackedSegment {
                id,
                addr: *addr,
                size,
                stream,
                pool_id,
                pool,
                is_expandable,
                blocks,
            });
        }
        let MemoryState { capacity, limit, backend, stats, requested, fresh_front, .. } = *state;
        Self { capacity, limit, backend, segments, blocks: bytes, stats, requested, fresh_front }
    }
}

impl TryFrom<PackedState> for MemoryState {
    type Error = PackedStateError;

    fn try_from(packed: PackedState) -> Result<Self, PackedStateError> {
        let mut reader = Reader(&packed.blocks);
        let mut previous_block = PreviousBlock::default();
        let count: u64 = packed.segments.iter().map(|segment| u64::from(segment.blocks)).sum();
        // A block takes at least three bytes.
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= packed.blocks.len())
            .ok_or(PackedStateError)?;
        let mut slots: Vec<BlockEntry> = Vec::with_capacity(count);
        let mut segments = BTreeMap::new();
        let mut segment_addrs = FxHashMap::default();
        for segment in &packed.segments {
            let first = u32::try_from(slots.len()).map_err(|_| PackedStateError)?;
            let mut addr = segment.addr;
            for index in 0..segment.blocks {
                let slot = first.checked_add(index).ok_or(PackedStateError)?;
                let mut block = previous_block.read(&mut reader).ok_or(PackedStateError)?;
                block.segment = segment.addr;
                block.addr = addr;
                block.previous = slot.checked_sub(1).filter(|_| index > 0);
                block.next = slot.checked_add(1).filter(|_| segment.blocks.saturating_sub(index) > 1);
                addr = addr.offset(block.size);
                slots.push(block);
            }
            if segment.blocks == 0 || addr != segment.addr.offset(segment.size) {
                return Err(PackedStateError);
            }
            let PackedSegment { id, addr, size, stream, pool_id, pool, is_expandable, blocks: _ } = *segment;
            segments.insert(addr, SegmentEntry { id, size, stream, pool_id, pool, is_expandable, first });
            segment_addrs.insert(id, addr);
        }
        let mut block_slots = FxHashMap::with_capacity_and_hasher(slots.len(), FxBuildHasher);
        block_slots.extend((0..).zip(&slots).map(|(slot, block)| (block.id, slot)));
        // Removed blocks may have had higher ids. The recorder has already checked that no id comes twice.
        let next_block = slots.iter().map(|block| u64::from(block.id.get()) + 1).max().unwrap_or(0);
        let PackedState { capacity, limit, backend, stats, requested, fresh_front, .. } = packed;
        let vacant = Vec::new();
        Ok(Self {
            capacity,
            limit,
            backend,
            segments,
            segment_addrs,
            slots,
            vacant,
            block_slots,
            next_block,
            stats,
            requested,
            fresh_front,
        })
    }
}

impl PreviousBlock {
    fn write(&mut self, block: &BlockEntry, bytes: &mut Vec<u8>) {
        let size = block.size.get();
        // All states are in the list.
        let state = STATES.iter().position(|state| *state == block.state);
        let mut tag = state.and_then(|state| u8::try_from(state).ok()).unwrap_or(0);
        let mut flag = |is_set: bool, flag: u8| tag |= if is_set { flag } else { 0 };
        flag(block.allocation.is_some(), HAS_ALLOCATION);
        flag(!block.streams.is_empty(), HAS_STREAMS);
        flag(size.is_multiple_of(UNIT), IN_UNITS);
        flag(!block.requested.is_zero(), HAS_REQUESTED);
        bytes.push(tag);
        varint::push_difference(bytes, self.id.into(), block.id.get().into());
        self.id = block.id.get();
        varint::push(bytes, if tag & IN_UNITS == 0 { size } else { size / UNIT });
        if tag & HAS_REQUESTED != 0 {
            varint::push_difference(bytes, block.requested.get(), size);
        }
        if let Some(allocation) = block.allocation {
            varint::push_difference(bytes, self.allocation.into(), allocation.get().into());
            self.allocation = allocation.get();
        }
        if tag & HAS_STREAMS != 0 {
            varint::push(bytes, block.streams.len() as u64);
            for stream in &block.streams {
                varint::push(bytes, stream.get());
            }
        }
    }

    /// The next block. Its links to other blocks are filled in later.
    fn read(&mut self, reader: &mut Reader<'_>) -> Option<BlockEntry> {
        let tag = reader.byte()?;
        self.id = reader.add_small_difference(self.id)?;
        let size = reader.number()?;
        let size = if tag & IN_UNITS == 0 { size } else { size.checked_mul(UNIT)? };
        let requested = if tag & HAS_REQUESTED == 0 {
            0
        } else {
            // Encoded as the difference from the size.
            size.wrapping_sub(reader.add_difference(0)?)
        };
        let allocation = if tag & HAS_ALLOCATION == 0 {
            None
        } else {
            self.allocation = reader.add_small_difference(self.allocation)?;
            Some(AllocationId::new(self.allocation))
        };
        let mut streams = Vec::new();
        if tag & HAS_STREAMS != 0 {
            for _ in 0..reader.small()? {
                streams.push(StreamId::new(reader.number()?));
            }
        }
        Some(BlockEntry {
            id: BlockId::new(self.id),
            segment: DeviceAddr::default(),
            addr: DeviceAddr::default(),
            size: Bytes::new(size),
            requested: Bytes::new(requested),
            state: STATES[usize::from(tag & STATE)],
            allocation,
            streams,
            previous: None,
            next: None,
        })
    }
}
