//! Memory pools of a program's own (W11, W12).

use blockyard_allocator::{AllocError, Allocation, AllocatorConfig, CachingAllocator, PoolOptions};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, Event, PoolId, StreamId};

type Allocator = CachingAllocator<VirtualDevice, Vec<Event>>;

fn allocator(capacity: Bytes) -> Allocator {
    CachingAllocator::new(VirtualDevice::new(capacity), AllocatorConfig::default(), Vec::new())
}

/// Allocates as inside `use_mem_pool`, or outside for no pool.
fn allocate(allocator: &mut Allocator, size: Bytes, pool: Option<PoolId>) -> Result<Allocation, AllocError> {
    if let Some(pool) = pool {
        allocator.begin_allocate_to_pool(pool, None).unwrap();
    }
    let result = allocator.allocate(size, StreamId::DEFAULT);
    if let Some(pool) = pool {
        allocator.end_allocate_to_pool(pool).unwrap();
        allocator.release_pool(pool).unwrap();
    }
    allocator.check().unwrap();
    result
}

#[test]
fn w11_a_pool_that_serves_on_out_of_memory_lends_its_cache() {
    let mut allocator = allocator(Bytes::mib(80));
    let plain = allocator.create_pool(PoolOptions::default());
    let lending = allocator.create_pool(PoolOptions { serves_on_oom: true, ..PoolOptions::default() });
    let first = allocate(&mut allocator, Bytes::mib(40), Some(plain)).unwrap();
    let second = allocate(&mut allocator, Bytes::mib(40), Some(lending)).unwrap();
    let base = second.addr();
    let failed = allocate(&mut allocator, Bytes::mib(40), None);
    assert!(matches!(failed, Err(AllocError::OutOfMemory(_))), "{failed:?}");
    assert_eq!(allocator.stats().num_alloc_retries, 1);

    allocator.free(first).unwrap();
    allocator.free(second).unwrap();
    let lent = allocate(&mut allocator, Bytes::mib(30), None).unwrap();
    assert_eq!(lent.addr(), base);
    let message = allocate(&mut allocator, Bytes::mib(30), None).unwrap_err().to_string();
    let sums = "Of the allocated memory 80.00 MiB is allocated by PyTorch, with 50.00 MiB allocated in private pools \
        (e.g., CUDA Graphs), and 0 bytes is reserved by PyTorch but unallocated.";
    assert!(message.contains(sums), "{message}");
    let stats = allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams), (2, 2, 2));
}

#[test]
fn w12_a_pool_keeps_its_segments_to_itself_until_it_goes() {
    let mut allocator = allocator(Bytes::gib(1));
    let pool = allocator.create_pool(PoolOptions::default());
    assert_eq!(pool, PoolId { capture: 0, user: 1 });
    let tensors = [(); 3].map(|()| allocate(&mut allocator, Bytes::mib(1), Some(pool)).unwrap());
    let segments = allocator.snapshot().segments;
    assert!(segments.iter().all(|segment| segment.pool_id == pool && segment.size == Bytes::mib(2)));
    assert_eq!(segments.len(), 2);

    let outside = allocate(&mut allocator, Bytes::new(1024), None).unwrap();
    assert_eq!(allocator.stats().segment.all.current, 3);
    let [first, second, third] = tensors;
    let freed = first.addr();
    allocator.free(first).unwrap();
    let other = allocate(&mut allocator, Bytes::mib(1), None).unwrap();
    assert_ne!(other.addr(), freed, "the default pool does not use the pool's cache");

    for tensor in [second, third, outside, other] {
        allocator.free(tensor).unwrap();
    }
    allocator.empty_cache().unwrap();
    assert_eq!(allocator.stats().segment.all.current, 2, "the pool's segments stay while it lives");
    let synchronized = allocator.stats().num_sync_all_streams;
    allocator.destroy_pool(pool).unwrap();
    assert_eq!(allocator.stats().segment.all.current, 0);
    assert_eq!(allocator.stats().num_sync_all_streams, synchronized + 1);
}

#[test]
fn w12_a_pool_that_never_splits_hands_out_whole_segments() {
    let mut allocator = allocator(Bytes::gib(1));
    let pool = allocator.create_pool(PoolOptions { never_splits: true, ..PoolOptions::default() });
    let large = [(); 2].map(|()| allocate(&mut allocator, Bytes::mib(4), Some(pool)).unwrap());
    let stats = allocator.stats();
    assert_eq!(stats.segment.all.current, 2);
    assert_eq!(stats.allocated_bytes.all.current, 41_943_040);
    assert_eq!(stats.requested_bytes.all.current, 8_388_608);
    let small = [(); 2].map(|()| allocate(&mut allocator, Bytes::new(512), Some(pool)).unwrap());
    assert_eq!(allocator.stats().segment.small_pool.current, 2);
    for tensor in large.into_iter().chain(small) {
        allocator.free(tensor).unwrap();
    }
}

#[test]
fn a_use_noted_inside_a_scope_ends_with_its_allocation() {
    let mut allocator = allocator(Bytes::gib(1));
    let side = StreamId::new(1);
    let pool = allocator.create_pool(PoolOptions::default());
    let first = allocate(&mut allocator, Bytes::mib(1), None).unwrap();
    allocator.begin_allocate_to_pool(pool, None).unwrap();
    allocator.record_stream(&first, side).unwrap();
    allocator.end_allocate_to_pool(pool).unwrap();
    allocator.free(first).unwrap();
    allocator.device_mut().advance(side);

    // The same block again, used on the same stream outside of a scope and freed inside.
    let second = allocate(&mut allocator, Bytes::mib(1), None).unwrap();
    allocator.record_stream(&second, side).unwrap();
    allocator.begin_allocate_to_pool(pool, None).unwrap();
    allocator.free(second).unwrap();
    allocator.end_allocate_to_pool(pool).unwrap();
    let _other = allocate(&mut allocator, Bytes::mib(1), None).unwrap();
    assert_eq!(allocator.stats().active.all.current, 2, "the side stream's work is not done");
}

#[test]
fn a_pool_lends_while_a_scope_for_another_stream_is_open_on_it() {
    let mut allocator = allocator(Bytes::mib(40));
    let lending = allocator.create_pool(PoolOptions { serves_on_oom: true, ..PoolOptions::default() });
    let cached = allocate(&mut allocator, Bytes::mib(40), Some(lending)).unwrap();
    let base = cached.addr();
    allocator.free(cached).unwrap();
    allocator.begin_allocate_to_pool(lending, Some(StreamId::new(1))).unwrap();
    let lent = allocator.allocate(Bytes::mib(30), StreamId::DEFAULT).unwrap();
    assert_eq!(lent.addr(), base);
}
