//! Blocks and the table that owns them.

use std::ops::{Index, IndexMut};

use blockyard_record::{AllocationId, BlockId, BlockState, Bytes, DeviceAddr, PoolKind, SegmentId, StreamId};

use crate::allocator::Search;
use crate::private_pool::PoolIndex;

/// Where a block stands in its table. Places are used again after a block is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockIndex(u32);

impl BlockIndex {
    pub(crate) const LOWEST: Self = Self(0);
}

/// A part of a segment. Neighbors in address order are linked (`prev` and `next` in PyTorch).
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) id: BlockId,
    pub(crate) segment: SegmentId,
    /// Where its segment starts.
    pub(crate) base: DeviceAddr,
    pub(crate) addr: DeviceAddr,
    pub(crate) size: Bytes,
    /// What it was last handed out for; stays when the block becomes inactive, since PyTorch shows it so.
    pub(crate) requested: Bytes,
    pub(crate) stream: StreamId,
    /// The memory pool that its segment belongs to.
    pub(crate) owner: PoolIndex,
    pub(crate) pool: PoolKind,
    pub(crate) state: BlockState,
    /// Whether its segment gets memory page by page.
    pub(crate) is_expandable: bool,
    /// The size of its pages; 0 in segments that the device gave whole.
    pub(crate) page: Bytes,
    pub(crate) allocation: Option<AllocationId>,
    /// Other streams that used it since it was handed out, ascending.
    pub(crate) streams: Vec<StreamId>,
    /// Those of them that were noted while a scope on a pool was open; a free does not wait for these.
    pub(crate) streams_in_scope: Vec<StreamId>,
    /// Events of those streams that its free still waits for.
    pub(crate) outstanding: usize,
    pub(crate) previous: Option<BlockIndex>,
    pub(crate) next: Option<BlockIndex>,
    /// The free set's call counter when the block was put there, for garbage collection.
    pub(crate) calls_when_freed: u64,
}

impl Block {
    /// The one block of a new segment: cached or, where the segment gets memory by pages of `page` bytes, without memory yet.
    pub(crate) fn of_segment(
        id: BlockId,
        segment: SegmentId,
        (addr, size): (DeviceAddr, Bytes),
        search: &Search,
        page: Option<Bytes>,
    ) -> Self {
        Self {
            id,
            segment,
            base: addr,
            addr,
            size,
            requested: Bytes::ZERO,
            stream: search.stream,
            owner: search.owner,
            pool: search.pool,
            state: if page.is_some() { BlockState::Unmapped } else { BlockState::Inactive },
            is_expandable: page.is_some(),
            page: page.unwrap_or(Bytes::ZERO),
            allocation: None,
            streams: Vec::new(),
            streams_in_scope: Vec::new(),
            outstanding: 0,
            previous: None,
            next: None,
            calls_when_freed: 0,
        }
    }

    /// Whether it is nobody's: ready to be used, or ready to get memory.
    pub(crate) fn is_available(&self) -> bool {
        !self.state.is_active()
    }

    /// Whether it has neighbors (`is_split`).
    pub(crate) fn is_split(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }
}

/// All blocks of an allocator.
///
/// An index is valid from [`BlockTable::insert`] to [`BlockTable::remove`]; the allocator holds indices only in block
/// links, free sets, pending queues and live allocations, and takes them out of all of these before it removes a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockTable {
    blocks: Vec<Option<Block>>,
    vacant: Vec<BlockIndex>,
    minted: u32,
}

impl BlockTable {
    /// A new identity.
    pub(crate) fn mint(&mut self) -> BlockId {
        let id = BlockId::new(self.minted);
        self.minted = self.minted.wrapping_add(1);
        id
    }

    /// Lets new identities follow `taken`.
    pub(crate) fn skip(&mut self, taken: BlockId) {
        self.minted = self.minted.max(taken.get().wrapping_add(1));
    }

    pub(crate) fn insert(&mut self, block: Block) -> BlockIndex {
        if let Some(index) = self.vacant.pop() {
            self.blocks[index.0 as usize] = Some(block);
            return index;
        }
        self.blocks.push(Some(block));
        // A table of 2^32 blocks of 512 bytes each would cover 2 TiB in the smallest blocks there are.
        BlockIndex(u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX))
    }

    pub(crate) fn remove(&mut self, index: BlockIndex) {
        self.blocks[index.0 as usize] = None;
        self.vacant.push(index);
    }

    pub(crate) fn get(&self, index: BlockIndex) -> Option<&Block> {
        self.blocks.get(index.0 as usize).and_then(Option::as_ref)
    }

    /// The first blocks of all segments, in no order that means anything.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().flatten().filter(|block| block.previous.is_none())
    }

    /// `head` and the blocks behind it, in address order.
    pub(crate) fn chain<'a>(&'a self, head: &'a Block) -> impl Iterator<Item = &'a Block> {
        std::iter::successors(Some(head), |block| block.next.and_then(|next| self.get(next)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (BlockIndex, &Block)> {
        (0..)
            .zip(&self.blocks)
            .filter_map(|(index, block)| block.as_ref().map(|block| (BlockIndex(index), block)))
    }
}

// Indexing is fine because of the rule at the table: every index in the allocator's hands is valid.
impl Index<BlockIndex> for BlockTable {
    type Output = Block;

    #[expect(
        clippy::expect_used,
        reason = "an index is valid as long as anything holds it, see the table's rule"
    )]
    fn index(&self, index: BlockIndex) -> &Block {
        self.blocks[index.0 as usize].as_ref().expect("a held index is valid")
    }
}

impl IndexMut<BlockIndex> for BlockTable {
    #[expect(
        clippy::expect_used,
        reason = "an index is valid as long as anything holds it, see the table's rule"
    )]
    fn index_mut(&mut self, index: BlockIndex) -> &mut Block {
        self.blocks[index.0 as usize].as_mut().expect("a held index is valid")
    }
}
