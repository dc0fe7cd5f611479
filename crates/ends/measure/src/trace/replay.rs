//! Our allocator, called directly.

use std::time::{Duration, Instant};

use blockyard_allocator::{AllocError, Allocation, CachingAllocator};
use blockyard_device::{Advance, VirtualDevice};
use blockyard_record::{Bytes, EventSink, NullSink, Stats, StreamId};
use blockyard_rules::AllocatorConfig;

use super::{Operation, OperationList, fold};
use crate::Contender;

/// Our allocator on a virtual device, with the allocations in a list's slots.
#[derive(Debug)]
pub struct Replay<S: EventSink = NullSink> {
    allocator: CachingAllocator<VirtualDevice, S>,
    live: Vec<Option<Allocation>>,
    /// The hash of the addresses so far ([`fold`](super::fold)).
    hash: u64,
}

impl Replay {
    /// An allocator without segments, with a slot for each slot of the trace.
    #[must_use]
    pub fn new(trace: &OperationList, config: AllocatorConfig, capacity: Bytes) -> Self {
        Self {
            allocator: CachingAllocator::new(VirtualDevice::new(capacity), config, NullSink),
            live: (0..trace.slots).map(|_| None).collect(),
            hash: 0,
        }
    }
}

impl<S: EventSink> Replay<S> {
    /// Runs all operations of the trace once; returns the hash of the addresses.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    pub fn run(&mut self, trace: &OperationList) -> Result<u64, AllocError> {
        self.run_ops(&trace.operations)
    }

    /// The time of `times` replays of the trace.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    pub fn time(&mut self, trace: &OperationList, times: u32) -> Result<Duration, AllocError> {
        let begun = Instant::now();
        for _ in 0..times {
            self.run(trace)?;
        }
        Ok(begun.elapsed())
    }

    /// Runs some operations of the trace; returns the hash of the addresses.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    pub fn run_ops(&mut self, ops: &[Operation]) -> Result<u64, AllocError> {
        self.hash = 0;
        self.replay_ops(ops)?;
        Ok(self.hash)
    }

    /// How many bytes of memory the slots take.
    pub fn slot_bytes(&self) -> usize {
        self.live.capacity() * size_of::<Option<Allocation>>()
    }

    /// The number of allocated blocks, and of all blocks.
    pub fn blocks(&self) -> (usize, usize) {
        let snapshot = self.allocator.snapshot();
        let all = snapshot.segments.iter().map(|segment| segment.blocks.len()).sum();
        (self.live.iter().flatten().count(), all)
    }

    /// The allocator's counters.
    pub fn stats(&self) -> Stats {
        self.allocator.stats()
    }
}

impl<S: EventSink> Contender for Replay<S> {
    type Error = AllocError;

    fn name(&self) -> &'static str {
        "blockyard"
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize_with(count.max(self.live.len()), || None);
    }

    fn allocate(&mut self, slot: usize, size: Bytes, stream: StreamId) -> Result<(), AllocError> {
        let allocation = self.allocator.allocate(size, stream)?;
        self.hash = fold(self.hash, allocation.addr().get() - VirtualDevice::FIRST_ADDR.get());
        self.live[slot] = Some(allocation);
        Ok(())
    }

    fn free(&mut self, slot: usize) -> Result<(), AllocError> {
        match self.live[slot].take() {
            Some(allocation) => self.allocator.free(allocation),
            None => Ok(()),
        }
    }

    fn record_stream(&mut self, slot: usize, stream: StreamId) -> Result<(), AllocError> {
        match &self.live[slot] {
            Some(allocation) => self.allocator.record_stream(allocation, stream),
            None => Ok(()),
        }
    }

    fn advance(&mut self, stream: Option<StreamId>) {
        self.allocator.device_mut().advance_streams(stream);
    }

    fn empty_cache(&mut self) -> Result<(), AllocError> {
        self.allocator.empty_cache()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayed_trace_leaves_nothing_allocated() {
        let trace = OperationList::random_allocations("r", 1000, 64 << 20);
        let replay = || Replay::new(&trace, AllocatorConfig::default(), Bytes::gib(140));
        let (mut one, mut other) = (replay(), replay());
        let (cold, warm) = (one.run(&trace).unwrap(), one.run(&trace).unwrap());
        assert_eq!((cold, warm), (other.run(&trace).unwrap(), other.run(&trace).unwrap()));
        assert_ne!(cold, warm, "a warm cache places otherwise");
        let stats = one.stats();
        assert_eq!((stats.allocation.all.current, stats.allocation.all.allocated), (0, 2000));
    }
}
