//! Each deviation from PyTorch that the allocator's first page names, where no other test shows it.

use blockyard_allocator::{AllocError, Allocation, CachingAllocator, PoolOptions, SharedAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, Event, PoolId, SegmentId, StreamId};
use blockyard_rules::{AllocatorConfig, Release};

type Allocator = CachingAllocator<VirtualDevice, Vec<Event>>;

fn allocator(capacity: Bytes, conf: &str) -> Allocator {
    let config = AllocatorConfig::parse(conf, Release::default()).unwrap();
    CachingAllocator::new(VirtualDevice::new(capacity), config, Vec::new())
}

fn allocate(allocator: &mut Allocator, size: Bytes) -> Allocation {
    allocator.allocate(size, StreamId::DEFAULT).unwrap()
}

fn allocate_in(allocator: &mut Allocator, pool: PoolId, size: Bytes) -> Allocation {
    allocator.begin_allocate_to_pool(pool, None).unwrap();
    let allocation = allocate(allocator, size);
    allocator.end_allocate_to_pool(pool).unwrap();
    allocator.release_pool(pool).unwrap();
    allocation
}

fn completed(allocator: &Allocator) -> Vec<u32> {
    let events = allocator.sink().iter();
    events
        .filter_map(|event| match event {
            Event::FreeCompleted { block } => Some(block.get()),
            _ => None,
        })
        .collect()
}

fn released(allocator: &Allocator) -> Vec<SegmentId> {
    let events = allocator.sink().iter();
    events
        .filter_map(|event| match event {
            Event::SegmentReleased { segment, .. } => Some(*segment),
            _ => None,
        })
        .collect()
}

fn block_of(allocator: &Allocator, allocation: &Allocation) -> u32 {
    let segments = allocator.snapshot().segments;
    let mut blocks = segments.iter().flat_map(|segment| &segment.blocks);
    blocks.find(|block| block.allocation == allocation.id()).unwrap().id.get()
}

#[test]
fn frees_of_several_streams_complete_by_ascending_handle() {
    let mut allocator = allocator(Bytes::gib(1), "");
    let blocks = [9, 3, 5].map(|stream| {
        let allocation = allocate(&mut allocator, Bytes::mib(2));
        allocator.record_stream(&allocation, StreamId::new(stream)).unwrap();
        let block = block_of(&allocator, &allocation);
        allocator.free(allocation).unwrap();
        block
    });
    allocator.device_mut().advance_all();
    let _ = allocate(&mut allocator, Bytes::new(1));
    assert_eq!(completed(&allocator), [blocks[1], blocks[2], blocks[0]]);
}

#[test]
fn frees_that_waited_for_the_end_of_a_scope_complete_in_the_order_of_their_requests() {
    // Since 2.13 frees do not wait for the end of a scope.
    let config = AllocatorConfig::of(Release::V2_12);
    let mut allocator = CachingAllocator::new(VirtualDevice::new(Bytes::gib(1)), config, Vec::new());
    let side = StreamId::new(1);
    let [first, second, outside] = [(); 3].map(|()| allocate(&mut allocator, Bytes::mib(2)));
    allocator.record_stream(&outside, side).unwrap();
    let pool = allocator.create_pool(PoolOptions::default());
    allocator.begin_allocate_to_pool(pool, None).unwrap();
    for allocation in [&first, &second] {
        allocator.record_stream(allocation, side).unwrap();
    }
    let blocks = [&second, &first, &outside].map(|allocation| block_of(&allocator, allocation));
    for allocation in [second, first, outside] {
        allocator.free(allocation).unwrap();
    }
    let inside = allocate(&mut allocator, Bytes::new(1));
    assert_eq!(completed(&allocator), [0; 0], "nothing is looked at while a scope is open");
    allocator.end_allocate_to_pool(pool).unwrap();
    let _ = allocate(&mut allocator, Bytes::new(1));
    assert_eq!(completed(&allocator), blocks[..2], "uses that were noted inside do not count");
    allocator.check().unwrap();
    allocator.device_mut().advance(side);
    let _ = allocate(&mut allocator, Bytes::new(1));
    assert_eq!(completed(&allocator), blocks, "one that was noted before does");
    allocator.free(inside).unwrap();
}

#[test]
fn pools_that_nobody_uses_are_released_in_the_order_of_their_making() {
    let mut allocator = allocator(Bytes::gib(1), "");
    let pools = [2, 1].map(|capture| PoolId { capture, user: 0 });
    for pool in pools {
        allocator.begin_allocate_to_pool(pool, None).unwrap();
        allocator.end_allocate_to_pool(pool).unwrap();
    }
    // The later pool's segment is the older one.
    for pool in [pools[1], pools[0]] {
        allocator.begin_allocate_to_pool(pool, None).unwrap();
        let allocation = allocate(&mut allocator, Bytes::mib(2));
        allocator.end_allocate_to_pool(pool).unwrap();
        allocator.free(allocation).unwrap();
    }
    for pool in [pools[0], pools[1], pools[0], pools[1]] {
        allocator.release_pool(pool).unwrap();
    }
    allocator.empty_cache().unwrap();
    assert_eq!(released(&allocator), [SegmentId::new(1), SegmentId::new(0)]);
}

#[test]
fn pools_that_lend_are_asked_in_the_order_of_their_making() {
    let mut allocator = allocator(Bytes::mib(80), "");
    let serves = PoolOptions { serves_on_oom: true, ..PoolOptions::default() };
    let pools = [(); 2].map(|()| allocator.create_pool(serves));
    for pool in [pools[1], pools[0]] {
        let allocation = allocate_in(&mut allocator, pool, Bytes::mib(40));
        allocator.free(allocation).unwrap();
    }
    let answered = allocate(&mut allocator, Bytes::mib(30));
    let of_first = allocator.pool_snapshot(pools[0]).segments;
    assert_eq!(of_first[0].addr, answered.addr());
    assert_eq!(of_first.len(), 1);
}

#[test]
fn a_second_scope_is_refused_and_counts_no_use() {
    let mut allocator = allocator(Bytes::gib(1), "");
    let pool = allocator.create_pool(PoolOptions::default());
    assert_eq!(allocator.pool_use_count(pool), 1);
    allocator.begin_allocate_to_pool(pool, None).unwrap();
    assert_eq!(allocator.pool_use_count(pool), 2);
    let again = allocator.begin_allocate_to_pool(pool, None);
    assert!(matches!(again, Err(AllocError::AlreadyInPool(id)) if id == pool));
    assert_eq!(allocator.pool_use_count(pool), 2, "PyTorch would count 3 from here on");
    allocator.end_allocate_to_pool(pool).unwrap();
    allocator.release_pool(pool).unwrap();
    assert_eq!(allocator.pool_use_count(pool), 1);
    allocator.destroy_pool(pool).unwrap();
    assert_eq!(allocator.pool_use_count(pool), 0);
}

#[test]
fn a_pool_may_be_given_up_inside_the_scope_of_another() {
    let mut allocator = allocator(Bytes::gib(1), "");
    let [gone, open] = [(); 2].map(|()| allocator.create_pool(PoolOptions::default()));
    let allocation = allocate_in(&mut allocator, gone, Bytes::mib(2));
    allocator.free(allocation).unwrap();
    allocator.begin_allocate_to_pool(open, None).unwrap();
    allocator.destroy_pool(gone).unwrap();
    assert_eq!(released(&allocator), [SegmentId::new(0)]);
    allocator.check().unwrap();
}

#[test]
fn a_pool_of_expandable_segments_ends_when_it_is_empty_and_not_before() {
    let mut allocator = allocator(Bytes::gib(1), "expandable_segments:True");
    let pool = allocator.create_pool(PoolOptions::default());
    // The segment is mapped in one call and unmapped in two pieces, which PyTorch's counter does not
    // distinguish.
    let all = allocate_in(&mut allocator, pool, Bytes::mib(60));
    let base = all.addr();
    allocator.free(all).unwrap();
    let [low, middle, high] = [(); 3].map(|()| allocate_in(&mut allocator, pool, Bytes::mib(20)));
    assert_eq!((low.addr(), high.addr()), (base, base.offset(Bytes::mib(40))));
    allocator.free(low).unwrap();
    allocator.free(high).unwrap();
    allocator.destroy_pool(pool).unwrap();
    allocator.check().unwrap();
    assert_eq!(allocator.stats().reserved_bytes.all.current, 20 << 20, "the live block keeps its page");
    assert_eq!(allocator.snapshot().segments[0].pool_id, pool, "and its pool");
    allocator.free(middle).unwrap();
    allocator.empty_cache().unwrap();
    allocator.check().unwrap();
    assert_eq!(allocator.stats().reserved_bytes.all.current, 0);
}

#[test]
fn an_exbibyte_is_refused_at_the_door_for_plain_memory_too() {
    let shared = SharedAllocator::new(allocator(Bytes::gib(1), ""));
    let refused = shared.allocate(Bytes::new(1 << 60), StreamId::DEFAULT);
    assert!(matches!(refused, Err(AllocError::TooLarge { .. })), "{refused:?}");
    assert_eq!(shared.with(|allocator| allocator.stats().num_ooms), 0);
}
