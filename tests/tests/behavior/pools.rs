//! Memory pools of a program's own.

use blockyard_allocator::{AllocError, Allocation, CachingAllocator, PoolOptions};
use blockyard_device::VirtualDevice;
use blockyard_figure::describe_step;
use blockyard_record::{Bytes, Event, PoolId, StreamId};
use blockyard_rules::{AllocatorConfig, Release};
use expect_test::expect;

use crate::picture::{DEVICE, Device, check};

type Allocator = CachingAllocator<VirtualDevice, Vec<Event>>;

fn allocator(capacity: Bytes) -> Allocator {
    CachingAllocator::new(VirtualDevice::new(capacity), AllocatorConfig::default(), Vec::new())
}

/// Allocates inside `use_mem_pool` of the memory pool, or outside of any for `None`.
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
fn a_pool_that_serves_on_out_of_memory_lends_its_cache() {
    let mut allocator = allocator(Bytes::mib(80));
    let plain = allocator.create_pool(PoolOptions::default());
    let serving = allocator.create_pool(PoolOptions { serves_on_oom: true, ..PoolOptions::default() });
    let first = allocate(&mut allocator, Bytes::mib(40), Some(plain)).unwrap();
    let second = allocate(&mut allocator, Bytes::mib(40), Some(serving)).unwrap();
    let base = second.addr();
    let failed = allocate(&mut allocator, Bytes::mib(40), None);
    assert!(matches!(failed, Err(AllocError::OutOfMemory(_))), "{failed:?}");
    assert_eq!(allocator.stats().num_alloc_retries, 1);

    allocator.free(first).unwrap();
    allocator.free(second).unwrap();
    let served = allocate(&mut allocator, Bytes::mib(30), None).unwrap();
    assert_eq!(served.addr(), base);
    let message = allocate(&mut allocator, Bytes::mib(30), None).unwrap_err().to_string();
    let sums = "Of the allocated memory 80.00 MiB is allocated by PyTorch, with 50.00 MiB allocated in private pools \
        (e.g., CUDA Graphs), and 0 bytes is reserved by PyTorch but unallocated.";
    assert!(message.contains(sums), "{message}");
    let stats = allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams), (2, 2, 2));
}

#[test]
fn a_pool_keeps_its_segments_to_itself_until_it_goes() {
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
fn a_pool_that_never_splits_hands_out_whole_segments() {
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
fn a_workload_makes_pools_enters_them_and_gives_them_up() {
    let played = check(
        "
        pool p; pool whole no_split
        enter p
        a = alloc 1 MiB; b = alloc 1 MiB; c = alloc 1 MiB
        leave p
        d = alloc 1000
        enter whole; e = alloc 4 MiB; leave whole
        free a; empty_cache
        f = alloc 1 MiB                # not the cached one of p
        free b, c; destroy p
        ",
        &expect![[r#"
            S3 small default: 0..1024 d (1000) | 1024..1049600 f (1048576) | 1049600..2097152 cached (0)
            S4 large default: 0..20971520 e (4194304)
            allocation 3/5/6/3
            segment 2/4/4/2
            active 3/5/6/3
            inactive_split 1/3/4/3
            allocated_bytes 22021120/24118272/25166848/3145728
            reserved_bytes 23068672/27262976/27262976/4194304
            active_bytes 22021120/24118272/25166848/3145728
            inactive_split_bytes 1047552/4193280/5241856/4194304
            requested_bytes 5243880/7341032/8389608/3145728
            num_sync_all_streams 2, num_device_alloc 4, num_device_free 2
        "#]],
    );
    assert_eq!(played.messages(), [""; 0]);
    let pools: Vec<PoolId> = played.segments.iter().map(|segment| segment.pool_id).collect();
    assert_eq!(pools, [PoolId::DEFAULT, PoolId { capture: 0, user: 2 }]);
}

#[test]
fn as_a_workload() {
    let text = "
        pool plain; pool spare use_on_oom
        enter plain; a = alloc 40 MiB; leave plain
        enter spare; b = alloc 40 MiB; leave spare
        c = alloc 40 MiB               # out of memory: both are in use
        free a, b
        d = alloc 30 MiB               # in the pool with use_on_oom
        e = alloc 30 MiB               # out of memory: the plain pool has no use_on_oom
        ";
    let played = Device::of(Bytes::mib(80)).play(text);
    let messages = played.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    let sums = "Of the allocated memory 80.00 MiB is allocated by PyTorch, with 50.00 MiB allocated in private pools \
        (e.g., CUDA Graphs), and 0 bytes is reserved by PyTorch but unallocated.";
    assert!(messages[1].contains(sums), "{}", messages[1]);
    let stats = played.stats;
    assert_eq!((stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams), (2, 2, 2));
}

#[test]
fn what_pytorch_refuses_about_pools_is_refused() {
    let text = "pool p; enter p; enter p; leave p; leave p; destroy p";
    let played = DEVICE.play(text);
    assert_eq!(
        played.messages(),
        [
            "beginAllocateToPool: already recording to mempool_id (0, 1)",
            "endAllocatePool: not currently recording to mempool_id (0, 1)"
        ]
    );
}

#[test]
fn a_pool_that_is_destroyed_while_it_is_used_is_released_once_it_is_left() {
    let text = "pool p; enter p; a = alloc 1 MiB; free a; destroy p";
    assert_eq!(DEVICE.play(text).stats.segment.all.current, 1);
    assert_eq!(DEVICE.play(text).stats.num_sync_all_streams, 0, "nothing is waited for");
    let later = DEVICE.play(&format!("{text}; leave p; empty_cache"));
    assert_eq!((later.stats.segment.all.current, later.messages().len()), (0, 0));
}

#[test]
fn settings_change_in_the_middle_of_a_run() {
    let text = "
        big = alloc 80 MiB; free big
        set max_split_size_mb:40
        x = alloc 20 MiB               # the cached block may not be split any more
        set
        y = alloc 20 MiB               # now it may again
        set expandable_segments:maybe
        set backend:cudaMallocAsync
        ";
    let played = DEVICE.play(text);
    let sizes: Vec<u64> = played.segments.iter().map(|segment| segment.size.get() >> 20).collect();
    assert_eq!(sizes, [80, 20]);
    assert_eq!(played.segments[0].blocks.len(), 2, "y was split off");
    assert_eq!(
        played.messages(),
        [
            "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'maybe'",
            "Allocator backend parsed at runtime != allocator backend parsed at load time, cudaMallocAsync != native",
        ]
    );
    assert_eq!(played.stats.max_split_size, -1);
}

#[test]
fn steps_that_have_no_events_are_reported_too() {
    let played = DEVICE.play("pool p use_on_oom; enter p; leave p; destroy p; set max_split_size_mb:64");
    let reported: Vec<String> = (0..5)
        .map(|step| describe_step(&played.recording, step))
        .map(|words| format!("{}: {}", words.title, words.sentence))
        .collect();
    assert_eq!(
        reported,
        [
            "pool p use_on_oom: makes a memory pool; requests elsewhere that would fail may take what it has cached",
            "enter p: what follows comes from the memory pool p",
            "leave p: what follows does not come from the memory pool p any more",
            "destroy p: nothing is reserved, so nothing is released",
            "set max_split_size_mb:64: changes the allocator's settings; blocks and segments stay as they are",
        ]
    );
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
fn a_pool_serves_while_a_scope_for_another_stream_is_open_on_it() {
    let mut allocator = allocator(Bytes::mib(40));
    let serving = allocator.create_pool(PoolOptions { serves_on_oom: true, ..PoolOptions::default() });
    let cached = allocate(&mut allocator, Bytes::mib(40), Some(serving)).unwrap();
    let base = cached.addr();
    allocator.free(cached).unwrap();
    allocator.begin_allocate_to_pool(serving, Some(StreamId::new(1))).unwrap();
    let served = allocator.allocate(Bytes::mib(30), StreamId::DEFAULT).unwrap();
    assert_eq!(served.addr(), base);
}

const SCOPE_OUT_OF_MEMORY: &str = "
    a = alloc 40 MiB; free a
    pool p; enter p
    b = alloc 40 MiB
    empty_cache
    leave p
    c = alloc 40 MiB
";

#[test]
fn until_2_12_nothing_of_the_default_pool_is_released_inside_a_scope_even_when_memory_runs_out() {
    let played = Device::of(Bytes::mib(60)).under(Release::V2_12).play(SCOPE_OUT_OF_MEMORY);
    let stats = played.stats;
    // Cached memory stays, and serves `c` after the scope.
    assert_eq!((stats.num_ooms, stats.num_alloc_retries, stats.num_sync_all_streams), (1, 0, 0));
    assert_eq!((stats.segment.all.freed, stats.allocation.all.current), (0, 1));
}

#[test]
fn since_2_13_a_request_inside_a_scope_releases_the_cache_of_the_default_pool() {
    let played = Device::of(Bytes::mib(60)).under(Release::V2_13).play(SCOPE_OUT_OF_MEMORY);
    let stats = played.stats;
    // `b` passes in the second attempt, and leaves too little for `c`.
    assert_eq!((stats.num_ooms, stats.num_alloc_retries), (1, 2));
    assert_eq!((stats.segment.all.freed, stats.allocation.all.current), (1, 1));
}

#[test]
fn a_lent_block_is_split_as_if_segments_did_not_expand() {
    let spare = "pool spare use_on_oom; enter spare; a = alloc 40 MiB; leave spare; free a";
    let played = Device::of(Bytes::mib(40))
        .play(&format!("{spare}; set expandable_segments:True; b = alloc 39.5 MiB"));
    assert_eq!(played.messages().len(), 0);
    assert_eq!(
        played.stats.allocated_bytes.all.current,
        40 << 20,
        "a rest of half a MiB stays with the block"
    );
    let plain = Device::of(Bytes::mib(40));
    let own = plain.play("a = alloc 40 MiB; free a; set expandable_segments:True; b = alloc 39.5 MiB");
    assert_eq!(own.stats.allocated_bytes.all.current, 79 << 19, "and is split off where nothing is served");
}

#[test]
fn the_snapshot_of_a_pool_ends_at_the_first_gap_of_an_expandable_segment() {
    let config = AllocatorConfig::parse("expandable_segments:True", Release::default()).unwrap();
    let mut allocator = CachingAllocator::new(VirtualDevice::new(Bytes::gib(1)), config, Vec::new());
    let pool = allocator.create_pool(PoolOptions::default());
    let [low, middle, high] = [(); 3].map(|()| allocate(&mut allocator, Bytes::mib(20), Some(pool)).unwrap());
    assert_eq!(allocator.pool_snapshot(pool).segments[0].size, Bytes::mib(60));
    allocator.free(middle).unwrap();
    // Giving the pool up releases its cache, here the hole, and leaves the blocks in use.
    allocator.destroy_pool(pool).unwrap();
    let segments = allocator.pool_snapshot(pool).segments;
    assert_eq!(segments.len(), 1);
    assert_eq!((segments[0].addr, segments[0].size), (low.addr(), Bytes::mib(20)));
    assert_eq!(allocator.snapshot().segments[0].mapped_runs().len(), 2, "the snapshot of all pools has both");
    allocator.free(low).unwrap();
    allocator.empty_cache().unwrap();
    assert_eq!(allocator.pool_snapshot(pool).segments, [], "what follows a gap alone is not listed");
    allocator.free(high).unwrap();
}
