//! The same requests under other addresses of segments.
//!
//! Best fit takes the smallest free block that is large enough, and of several that are equally large the one
//! with the lowest address. Which segment lies lower is the driver's choice: a new segment is put into a gap
//! between the libraries that the process has loaded. Recordings show no rule, so a number that depends on
//! such a tie cannot be known. The allocators of this module get every request of a program, on devices whose
//! addresses come in other orders. A number on which all these allocators agree depends on no tie that they
//! decide differently.

use blockyard_allocator::BackendAllocation;
use blockyard_device::{AddressOrder, VirtualDevice};
use blockyard_record::{Bytes, PoolId, PoolKind, SegmentSnapshot, Stats, StreamId};
use blockyard_rules::AllocatorConfig;

use super::{Allocator, Sink};
use crate::{Result, TorchError, session};

/// An allocation under each of the other orders; `None` where the memory ran out.
#[derive(Debug, Default)]
pub(super) struct OtherBlocks([Option<BackendAllocation>; AddressOrder::OTHER_ORDERS]);

/// What of a list of segments depends on the addresses that the driver chooses, beside the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependence {
    /// Neither the segments nor their order.
    Nothing,
    /// The order of the segments.
    Order,
    /// The segments, or their blocks.
    Content,
}

/// All that a snapshot says of a segment but its address.
type Content = (Bytes, StreamId, PoolId, PoolKind, bool, Vec<(Bytes, Bytes, &'static str)>);

fn contents(segments: &[SegmentSnapshot]) -> Vec<Content> {
    let content = |segment: &SegmentSnapshot| {
        let blocks = segment.blocks.iter().map(|block| (block.size, block.requested, block.state.name()));
        let SegmentSnapshot { size, stream, pool_id, pool, is_expandable, .. } = *segment;
        (size, stream, pool_id, pool, is_expandable, blocks.collect())
    };
    segments.iter().map(content).collect()
}

/// An allocator for each of the other orders.
#[derive(Debug)]
pub(super) struct OtherAddresses([Allocator; AddressOrder::OTHER_ORDERS]);

impl OtherAddresses {
    /// An allocator for each of the other orders, on a device of `total` bytes.
    pub(super) fn new(total: Bytes, config: &AllocatorConfig) -> Self {
        Self(AddressOrder::others(Some(AddressOrder::Rising)).map(|order| {
            let device = VirtualDevice::new(total).with_order(order);
            Allocator::new(device, config.clone(), Sink { recorder: None })
        }))
    }

    /// Sends the same request to the allocator of each order.
    pub(super) fn each(&mut self, request: impl FnMut(&mut Allocator)) {
        self.0.iter_mut().for_each(request);
    }

    /// Takes the same bytes under each order. Marks a failure, or its text, that depends on the order.
    pub(super) fn allocate(
        &mut self,
        requested: Bytes,
        stream: StreamId,
        actual: &Result<BackendAllocation>,
    ) -> OtherBlocks {
        let mut is_same = true;
        let mut blocks = OtherBlocks::default();
        for (allocator, block) in self.0.iter_mut().zip(&mut blocks.0) {
            match (allocator.allocate(requested, stream), actual) {
                (Ok(allocation), Ok(_)) => *block = Some(allocation),
                (Err(error), Err(TorchError::OutOfMemory { text, .. })) => {
                    is_same &= error.to_string() == *text;
                }
                (Ok(allocation), Err(_)) => {
                    is_same = false;
                    // The program gets no memory, so nothing may stay allocated here.
                    let _freed = allocator.free(allocation);
                }
                (Err(_), _) => is_same = false,
            }
        }
        if !is_same {
            let operator = session().current_origin.running.get().name;
            session().note_estimate(
                operator,
                "whether memory runs out depends on addresses that the driver chooses",
            );
        }
        blocks
    }

    /// Frees an allocation under each order.
    pub(super) fn free(&mut self, blocks: &mut OtherBlocks) {
        for (allocator, block) in self.0.iter_mut().zip(&mut blocks.0) {
            if let Some(allocation) = block.take() {
                // The block came from this allocator, which knows it until it is freed here.
                let _freed = allocator.free(allocation);
            }
        }
    }

    /// Notes under each order that a stream uses an allocation.
    pub(super) fn record_stream(&mut self, blocks: &OtherBlocks, stream: StreamId) {
        for (allocator, block) in self.0.iter_mut().zip(&blocks.0) {
            if let Some(allocation) = block {
                // What is wrong with the request is reported by the device's own allocator.
                let _same = allocator.record_stream(allocation, stream);
            }
        }
    }

    /// What of the listed segments is another one under the other orders.
    pub(super) fn dependence_of(&self, listed: &[SegmentSnapshot], pool: PoolId) -> Dependence {
        let in_order = contents(listed);
        let sorted = |mut contents: Vec<Content>| {
            contents.sort_unstable();
            contents
        };
        let content = sorted(in_order.clone());
        let dependence = |other: Vec<Content>| {
            if other == in_order {
                Dependence::Nothing
            } else if sorted(other) == content {
                Dependence::Order
            } else {
                Dependence::Content
            }
        };
        // A backend without snapshots refuses them before it comes here.
        let others = self.0.iter().filter_map(|other| other.listed_segments(pool).ok());
        others.map(|other| dependence(contents(&other))).max().unwrap_or(Dependence::Nothing)
    }

    /// The statistics under each order.
    pub(super) fn stats(&self) -> impl Iterator<Item = Stats> {
        self.0.iter().map(Allocator::stats)
    }
}
