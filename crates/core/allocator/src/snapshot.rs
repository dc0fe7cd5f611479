//! Snapshots of the allocator.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockSnapshot, EventSink, SegmentSnapshot, Snapshot};

use crate::CachingAllocator;
use crate::block::Block;

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// All segments and blocks, by ascending address. As in PyTorch, frees whose streams are done are not
    /// completed first.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut segments: Vec<SegmentSnapshot> = self
            .blocks
            .heads()
            .map(|head| {
                let blocks: Vec<BlockSnapshot> =
                    self.blocks.chain(head).map(|block| self.copy(block)).collect();
                let list = &self.free_lists[head.list];
                SegmentSnapshot {
                    id: head.segment,
                    addr: head.addr,
                    size: blocks.iter().map(|block| block.size).sum(),
                    stream: list.stream,
                    pool_id: self.memory_pools[list.memory_pool].id,
                    pool: head.pool,
                    is_expandable: head.is_expandable,
                    blocks,
                }
            })
            .collect();
        segments.sort_by_key(|segment| segment.addr);
        Snapshot { segments }
    }

    fn copy(&self, block: &Block) -> BlockSnapshot {
        BlockSnapshot {
            id: block.id,
            addr: block.addr,
            size: block.size,
            requested: block.requested,
            state: block.state,
            allocation: block.state.is_active().then_some(block.allocation),
            streams: self.blocks.uses(block).map(|uses| uses.streams.clone()).unwrap_or_default(),
        }
    }
}
