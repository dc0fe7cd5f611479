//! The segments of an earlier moment with their blocks.

use blockyard_record::{
    AllocationId, BlockId, BlockSnapshot, BlockState, Bytes, DeviceAddr, PoolId, PoolKind, SegmentId,
    SegmentSnapshot, Snapshot, StreamId, next_u32,
};

use super::{BlockBefore, MemoryBefore};

/// The addresses of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The address of the first byte.
    pub addr: u64,
    /// The size of the region in bytes; of an expandable segment with the addresses that have no memory.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// Whether it belongs to the small or to the large block pool.
    pub pool: PoolKind,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// Whether its memory is mapped page by page.
    pub is_expandable: bool,
}

impl Region {
    /// The first address after the region.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.addr.saturating_add(self.size.get())
    }
}

impl MemoryBefore {
    /// The pieces of a region that have memory, by ascending address: where each begins and ends.
    #[must_use]
    pub fn pieces(&self, region: &Region) -> Vec<(u64, u64)> {
        if !region.is_expandable {
            return vec![(region.addr, region.end())];
        }
        // A piece that begins below the region belongs to another region.
        let pieces = self.pages.overlapping(region.addr..region.end());
        let pieces = pieces.filter(|(piece, _)| piece.start >= region.addr);
        pieces.map(|(piece, _)| (piece.start, piece.end.min(region.end()))).collect()
    }

    /// The segments, in the order of the regions, which have ascending addresses. Each gap between blocks is
    /// one free block.
    ///
    /// `size_of` gets each active block in this order, with its address and the bytes up to the next one or
    /// the end of the memory, and returns its size, at most those bytes; a block without a size is left out.
    /// Segments, blocks and allocations are numbered from 0 in this order.
    #[must_use]
    pub fn snapshot(
        &self,
        regions: &[Region],
        mut size_of: impl FnMut(u64, &BlockBefore, Bytes) -> Option<Bytes>,
    ) -> Snapshot {
        let mut blocks = Blocks::default();
        let mut snapshot = Snapshot::default();
        for (index, region) in (0..).zip(regions) {
            let mut at = region.addr;
            for (start, end) in self.pieces(region) {
                blocks.push_unused(at, start, BlockState::Unmapped);
                at = start;
                for (addr, block, room) in self.blocks_with_room(start, end) {
                    let Some(size) = size_of(addr, block, room).filter(|size| !size.is_zero()) else {
                        continue;
                    };
                    blocks.push_unused(at, addr, BlockState::Inactive);
                    blocks.push_active(addr, size, block);
                    at = addr.saturating_add(size.get());
                }
                blocks.push_unused(at, end, BlockState::Inactive);
                at = end;
            }
            blocks.push_unused(at, region.end(), BlockState::Unmapped);
            let Region { addr, size, stream, pool, pool_id, is_expandable } = *region;
            snapshot.segments.push(SegmentSnapshot {
                id: SegmentId::new(index),
                addr: DeviceAddr::new(addr),
                size,
                stream,
                pool_id,
                pool,
                is_expandable,
                blocks: std::mem::take(&mut blocks.of_segment),
            });
        }
        snapshot
    }
}

/// The blocks of a segment, and how many blocks and allocations there are in all.
#[derive(Default)]
struct Blocks {
    of_segment: Vec<BlockSnapshot>,
    made: u32,
    allocations: u32,
}

impl Blocks {
    fn push_unused(&mut self, start: u64, end: u64, state: BlockState) {
        if start < end {
            self.push(start, Bytes::new(end.saturating_sub(start)), Bytes::ZERO, state, None);
        }
    }

    fn push_active(&mut self, addr: u64, size: Bytes, block: &BlockBefore) {
        let state = if block.is_pending { BlockState::PendingFree } else { BlockState::Allocated };
        let allocation = AllocationId::new(next_u32(&mut self.allocations));
        self.push(addr, size, block.requested.min(size), state, Some(allocation));
    }

    fn push(
        &mut self,
        addr: u64,
        size: Bytes,
        requested: Bytes,
        state: BlockState,
        allocation: Option<AllocationId>,
    ) {
        let id = BlockId::new(next_u32(&mut self.made));
        let addr = DeviceAddr::new(addr);
        let streams = Vec::new();
        self.of_segment.push(BlockSnapshot { id, addr, size, requested, state, allocation, streams });
    }
}

#[cfg(test)]
mod tests {
    use BlockState::{Allocated, Inactive, PendingFree, Unmapped};

    use super::*;

    #[test]
    fn gaps_become_free_blocks_and_addresses_without_memory_unmapped_ones() {
        let mut memory = MemoryBefore::default();
        for (addr, size) in [(100, 40), (160, 20)] {
            memory.add_pages(addr, Bytes::new(size), StreamId::DEFAULT);
        }
        for (addr, is_pending) in [(110, false), (130, true), (160, false)] {
            memory.blocks.insert(addr, BlockBefore::freed(Bytes::new(7), is_pending));
        }
        let region = Region {
            addr: 100,
            size: Bytes::new(100),
            stream: StreamId::DEFAULT,
            pool: PoolKind::Large,
            pool_id: PoolId::DEFAULT,
            is_expandable: true,
        };
        let mut rooms = Vec::new();
        let snapshot = memory.snapshot(&[region], |addr, _, room| {
            rooms.push(room.get());
            (addr != 160).then_some(Bytes::new(10))
        });
        assert_eq!(rooms, [20, 10, 20]);
        let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        let blocks: Vec<_> =
            blocks.map(|block| (block.id.get(), block.addr.get(), block.size.get(), block.state)).collect();
        assert_eq!(
            blocks,
            [
                (0, 100, 10, Inactive),
                (1, 110, 10, Allocated),
                (2, 120, 10, Inactive),
                (3, 130, 10, PendingFree),
                (4, 140, 20, Unmapped),
                (5, 160, 20, Inactive),
                (6, 180, 20, Unmapped),
            ]
        );
    }
}
