//! Free blocks of one kind, in best-fit order.

use std::collections::BTreeSet;

use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::block::{Block, BlockIndex};

/// A free block's place in the order: stream handle, then size, then address.
pub(crate) type FreeKey = (StreamId, Bytes, DeviceAddr, BlockIndex);

/// The free blocks of the small or the large pool (`BlockPool`).
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeSet {
    blocks: BTreeSet<FreeKey>,
    /// Unmapped blocks of expandable segments, by stream handle and address.
    unmapped: BTreeSet<(StreamId, DeviceAddr, BlockIndex)>,
    /// Searches so far, counted only while garbage collection is possible (`get_free_blocks_call_count`).
    pub(crate) calls: u64,
}

impl FreeSet {
    pub(crate) fn insert(&mut self, index: BlockIndex, block: &Block) {
        self.blocks.insert(key(index, block));
    }

    pub(crate) fn remove(&mut self, index: BlockIndex, block: &Block) -> bool {
        self.blocks.remove(&key(index, block))
    }

    pub(crate) fn contains(&self, index: BlockIndex, block: &Block) -> bool {
        self.blocks.contains(&key(index, block))
    }

    /// Whether it holds neither cached nor unmapped blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.unmapped.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn insert_unmapped(&mut self, index: BlockIndex, block: &Block) {
        self.unmapped.insert((block.stream, block.addr, index));
    }

    pub(crate) fn remove_unmapped(&mut self, index: BlockIndex, block: &Block) {
        self.unmapped.remove(&(block.stream, block.addr, index));
    }

    pub(crate) fn contains_unmapped(&self, index: BlockIndex, block: &Block) -> bool {
        self.unmapped.contains(&(block.stream, block.addr, index))
    }

    /// The stream's unmapped blocks by ascending address.
    pub(crate) fn unmapped_of(&self, stream: StreamId) -> impl Iterator<Item = BlockIndex> {
        let lowest = (stream, DeviceAddr::default(), BlockIndex::LOWEST);
        self.unmapped.range(lowest..).take_while(move |key| key.0 == stream).map(|key| key.2)
    }

    /// The stream's blocks of at least `size`, smallest first, lowest address first among equals.
    pub(crate) fn fitting(&self, stream: StreamId, size: Bytes) -> impl Iterator<Item = BlockIndex> {
        self.blocks.range(lowest(stream, size)..).take_while(move |key| key.0 == stream).map(|key| key.3)
    }

    /// Blocks of the stream smaller than `size`, largest first.
    pub(crate) fn smaller_than(&self, stream: StreamId, size: Bytes) -> impl Iterator<Item = BlockIndex> {
        let range = self.blocks.range(..lowest(stream, size));
        range.rev().take_while(move |key| key.0 == stream).map(|key| key.3)
    }

    /// All blocks, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BlockIndex> {
        self.blocks.iter().map(|key| key.3)
    }
}

fn key(index: BlockIndex, block: &Block) -> FreeKey {
    (block.stream, block.size, block.addr, index)
}

fn lowest(stream: StreamId, size: Bytes) -> FreeKey {
    (stream, size, DeviceAddr::default(), BlockIndex::LOWEST)
}
