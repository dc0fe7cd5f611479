//! New ids for all segments, blocks and allocations, so that a recording can begin after any number of
//! allocations.

use blockyard_device::DeviceMemory;
use blockyard_record::{AllocationId, BlockId, EventSink, SegmentId};

use crate::CachingAllocator;
use crate::block::BlockIndex;

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Numbers segments, blocks and allocations again, from 0 on by ascending address.
    ///
    /// A sink that was open before has the old ids, and so has each live [`Allocation`](crate::Allocation).
    pub(crate) fn renumber(&mut self) {
        let heads = self.blocks.iter().filter(|(_, block)| block.previous.is_none());
        let mut heads: Vec<BlockIndex> = heads.map(|(index, _)| index).collect();
        heads.sort_unstable_by_key(|index| self.blocks[*index].addr);
        let old_segments = std::mem::take(&mut self.expandable_segments);
        let (mut segments, mut blocks, mut allocations) = (0, 0, 0);
        for head in heads {
            let segment = SegmentId::new(segments);
            segments += 1;
            if let Some(expandable) = old_segments.get(&self.blocks[head].segment) {
                self.expandable_segments.insert(segment, *expandable);
            }
            let mut next = Some(head);
            while let Some(index) = next {
                let block = &mut self.blocks[index];
                block.segment = segment;
                block.id = BlockId::new(blocks);
                blocks += 1;
                if block.state.is_active() {
                    block.allocation = AllocationId::new(allocations);
                    allocations += 1;
                }
                next = block.next;
            }
        }
        self.next_segment_id = segments;
        self.next_allocation_id = allocations;
        self.blocks.set_next_id(blocks);
    }
}

#[cfg(test)]
mod tests {
    use blockyard_device::VirtualDevice;
    use blockyard_record::{Bytes, Event, MemoryState, NullSink, StateError, StreamId};
    use blockyard_rules::{AllocatorConfig, Release};

    use super::*;
    use crate::SharedAllocator;

    const STREAM: StreamId = StreamId::DEFAULT;

    /// An allocator that has nearly used all ids.
    fn old_allocator<S: EventSink>(sink: S, config: &str) -> CachingAllocator<VirtualDevice, S> {
        let device = VirtualDevice::new(Bytes::gib(1));
        let mut allocator =
            CachingAllocator::new(device, AllocatorConfig::parse(config, Release::default()).unwrap(), sink);
        let taken = u32::MAX - 2;
        allocator.skip_allocations(AllocationId::new(taken));
        allocator.skip_segments(SegmentId::new(taken));
        allocator.blocks.skip(BlockId::new(taken));
        allocator
    }

    /// A sink that is opened later.
    #[derive(Debug, Default)]
    struct LateSink(Option<Vec<Event>>);

    impl EventSink for LateSink {
        fn record(&mut self, event: Event) {
            self.0.iter_mut().for_each(|events| events.push(event));
        }

        fn is_closed(&self) -> bool {
            self.0.is_none()
        }
    }

    #[test]
    fn an_allocator_goes_on_where_its_numbers_begin_again() {
        for config in ["", "expandable_segments:True"] {
            let mut allocator = old_allocator(NullSink, config);
            let held: Vec<_> = (0..8).map(|_| allocator.allocate(Bytes::mib(3), STREAM).unwrap()).collect();
            allocator.check().unwrap();
            for allocation in held {
                allocator.free(allocation).unwrap();
            }
            allocator.empty_cache().unwrap();
            allocator.check().unwrap();
        }
    }

    #[test]
    fn a_state_that_follows_the_events_reports_numbers_that_begin_again() {
        let mut allocator = old_allocator(Vec::new(), "");
        let held: Vec<_> = (0..8).map(|_| allocator.allocate(Bytes::mib(3), STREAM).unwrap()).collect();
        let mut state = MemoryState::new(Bytes::gib(1));
        let error = allocator.sink().iter().find_map(|event| state.apply(event).err());
        assert!(matches!(error, Some(StateError::IdUsedAgain(_))), "{error:?}");
        drop(held);
    }

    #[test]
    fn a_recording_may_begin_after_any_number_of_allocations() {
        for config in ["", "expandable_segments:True"] {
            let shared = SharedAllocator::new(old_allocator(LateSink::default(), config));
            let allocate = |mib| shared.allocate(Bytes::mib(mib), STREAM).unwrap();
            let mut held: Vec<_> = (1..9).map(allocate).collect();
            shared.free(held.remove(3)).unwrap();
            shared.record_stream(held[2], StreamId::new(7)).unwrap();
            shared.free(held.remove(2)).unwrap();
            let mut state = shared.with_fresh_ids(|allocator| {
                allocator.check().unwrap();
                let before = allocator.snapshot();
                let blocks = before.segments.iter().flat_map(|segment| &segment.blocks);
                assert!((0..).zip(blocks).all(|(number, block)| block.id == BlockId::new(number)));
                allocator.sink_mut().0 = Some(Vec::new());
                let max_split_size = allocator.stats().max_split_size;
                MemoryState::beginning_with(Bytes::gib(1), &before, max_split_size).unwrap()
            });
            held.extend((1..9).map(allocate));
            held.drain(..).for_each(|addr| shared.free(addr).unwrap());
            shared.with(|allocator| {
                allocator.empty_cache().unwrap();
                allocator.check().unwrap();
                let events = allocator.sink_mut().0.take().unwrap();
                for event in &events {
                    state.apply(event).unwrap();
                }
                assert_eq!(state.snapshot(), allocator.snapshot());
            });
        }
    }

    #[test]
    fn numbers_stay_while_a_sink_listens() {
        let shared = SharedAllocator::new(old_allocator(Vec::<Event>::new(), ""));
        shared.allocate(Bytes::mib(3), STREAM).unwrap();
        let before = shared.with(|allocator| allocator.snapshot());
        assert_eq!(shared.with_fresh_ids(|allocator| allocator.snapshot()), before);
    }
}
