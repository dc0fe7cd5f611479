use blockyard_device::VirtualHostMemory;
use blockyard_record::Stat;

use super::*;

type Allocator = HostAllocator<VirtualHostMemory>;

fn allocator(config: PinnedConfig) -> Allocator {
    HostAllocator::new(VirtualHostMemory::new(Bytes::gib(1)), config)
}

fn default() -> Allocator {
    allocator(PinnedConfig::default())
}

fn allocate(allocator: &mut Allocator, size: u64) -> HostAllocation {
    allocator.allocate(Bytes::new(size)).unwrap()
}

fn values(stat: Stat) -> [i64; 4] {
    [stat.current, stat.peak, stat.allocated, stat.freed]
}

const SIDE: StreamId = StreamId::new(1);
const OTHER: StreamId = StreamId::new(2);

#[test]
fn sizes_are_rounded_up_to_powers_of_two() {
    let mut ours = default();
    for (size, block) in [(1, 1), (2, 2), (1025, 2048), (4096, 4096), (40_960, 65_536)] {
        let before = ours.stats().allocated_bytes.current;
        let kept = allocate(&mut ours, size);
        assert_eq!(ours.stats().allocated_bytes.current - before, block, "{size}");
        assert!(kept.addr().get() > 0);
    }
    assert_eq!(allocate(&mut ours, 0).addr().get(), 0);
    assert_eq!(ours.stats().allocations.current, 5, "nothing is counted for zero bytes");
    let too_large = ours.allocate(Bytes::new((1 << 63) + 1));
    assert!(matches!(too_large, Err(HostError::TooLarge { .. })));
    let more_than_there_is = ours.allocate(Bytes::new(1 << 63));
    assert!(matches!(more_than_there_is, Err(HostError::Memory(DeviceError::OutOfMemory { .. }))));
    assert_eq!(ours.stats().allocations.current, 5);
}

#[test]
fn a_pinned_tensor_counts_as_a_real_program_printed_it() {
    let mut ours = default();
    let tensor = allocate(&mut ours, 3 * 1000 * 1000 * 4);
    ours.record_stream(&tensor, StreamId::DEFAULT).unwrap();
    ours.memory_mut().advance_all();
    let stats = ours.stats();
    assert_eq!((stats.active_bytes.current, stats.active_requests.current), (16_777_216, 1));
    assert_eq!((stats.allocated_bytes.current, stats.allocations.current), (16_777_216, 1));
    assert_eq!((stats.num_host_alloc, stats.num_host_free), (1, 0));
}

#[test]
fn the_block_of_the_size_that_was_freed_last_comes_first_and_none_is_split() {
    let mut ours = default();
    let [first, second] = [1000, 1000].map(|size| allocate(&mut ours, size));
    let (low, high) = (first.addr(), second.addr());
    ours.free(second).unwrap();
    ours.free(first).unwrap();
    let small = allocate(&mut ours, 500);
    assert!(small.addr() > high, "a block of 1024 does not serve 500 bytes");
    assert_eq!(allocate(&mut ours, 600).addr(), low);
    assert_eq!(allocate(&mut ours, 1024).addr(), high);
}

#[test]
fn a_block_that_streams_used_waits_for_all_of_them() {
    let mut ours = default();
    let used = allocate(&mut ours, 100);
    let addr = used.addr();
    ours.record_stream(&used, SIDE).unwrap();
    ours.record_stream(&used, SIDE).unwrap();
    assert!(ours.record_stream_at(addr, OTHER));
    assert!(!ours.record_stream_at(addr.offset(Bytes::new(1)), OTHER), "only the start is known");
    ours.free(used).unwrap();
    assert!(!ours.record_stream_at(addr, OTHER), "no allocated block starts there");
    assert_ne!(allocate(&mut ours, 100).addr(), addr);
    ours.memory_mut().advance(SIDE);
    assert_ne!(allocate(&mut ours, 100).addr(), addr);
    ours.memory_mut().advance(OTHER);
    assert_eq!(allocate(&mut ours, 100).addr(), addr);
}

#[test]
fn the_default_stream_counts_like_any_other() {
    let mut ours = default();
    let used = allocate(&mut ours, 100);
    let addr = used.addr();
    ours.record_stream(&used, StreamId::DEFAULT).unwrap();
    ours.free(used).unwrap();
    assert_ne!(allocate(&mut ours, 100).addr(), addr);
}

#[test]
fn events_are_looked_at_oldest_first_up_to_one_that_is_not_complete() {
    let mut ours = default();
    let [first, second] = [100, 100].map(|size| allocate(&mut ours, size));
    let (low, high) = (first.addr(), second.addr());
    ours.record_stream(&first, SIDE).unwrap();
    ours.record_stream(&second, OTHER).unwrap();
    ours.free(first).unwrap();
    ours.free(second).unwrap();
    ours.memory_mut().advance(OTHER);
    let third = allocate(&mut ours, 100);
    assert!(third.addr() > high, "the second is ready, but stands behind the first");
    ours.memory_mut().advance(SIDE);
    assert_eq!([(); 2].map(|()| allocate(&mut ours, 100).addr()), [high, low]);
}

#[test]
fn with_background_threads_an_allocation_looks_only_for_its_size() {
    let mut ours = allocator(PinnedConfig { use_background_threads: true, ..PinnedConfig::default() });
    let [small, large] = [100, 1000].map(|size| allocate(&mut ours, size));
    let (low, high) = (small.addr(), large.addr());
    for (block, stream) in [(small, SIDE), (large, OTHER)] {
        ours.record_stream(&block, stream).unwrap();
        ours.free(block).unwrap();
    }
    ours.memory_mut().advance(OTHER);
    assert_eq!(allocate(&mut ours, 1000).addr(), high, "found behind one that is not ready");
    ours.memory_mut().advance(SIDE);
    let active = ours.stats().active_requests.current;
    assert_ne!(allocate(&mut ours, 4000).addr(), low);
    assert_eq!(ours.stats().active_requests.current, active + 1, "nothing else was looked at");
    ours.process_events().unwrap();
    assert_eq!(ours.stats().active_requests.current, active);
    assert_eq!(allocate(&mut ours, 100).addr(), low);
}

#[test]
fn empty_cache_releases_cached_blocks() {
    let mut ours = default();
    let [first, second, third] = [100, 1000, 1000].map(|size| allocate(&mut ours, size));
    ours.record_stream(&third, SIDE).unwrap();
    ours.free(first).unwrap();
    ours.free(third).unwrap();
    ours.empty_cache().unwrap();
    assert_eq!(ours.memory_mut().used(), Bytes::new(2048), "one is in use, one waits");
    ours.memory_mut().advance_all();
    ours.free(second).unwrap();
    ours.empty_cache().unwrap();
    assert_eq!(ours.memory_mut().used(), Bytes::ZERO);
    let stats = ours.stats();
    assert_eq!(values(stats.allocations), [0, 3, 3, 3]);
    assert_eq!(values(stats.allocated_bytes), [0, 2176, 2176, 2176]);
    assert_eq!((stats.num_host_alloc, stats.num_host_free), (3, 3));
}

#[test]
fn active_counts_fall_when_a_block_becomes_reusable() {
    // Release 2.11 counts an allocation, a free and an allocation of one block as two active requests, and
    // the bytes of a pending block as -1.
    let mut ours = default();
    let block = allocate(&mut ours, 10_000);
    assert_eq!(values(ours.stats().active_requests), [1, 1, 1, 0]);
    assert_eq!(values(ours.stats().active_bytes), [16_384, 16_384, 16_384, 0]);
    ours.free(block).unwrap();
    assert_eq!(values(ours.stats().active_requests), [0, 1, 1, 1]);
    let block = allocate(&mut ours, 10_000);
    assert_eq!(values(ours.stats().active_requests), [1, 1, 2, 1]);
    assert_eq!(values(ours.stats().allocations), [1, 1, 1, 0], "the same block");
    ours.record_stream(&block, SIDE).unwrap();
    ours.free(block).unwrap();
    assert_eq!(values(ours.stats().active_bytes), [16_384, 16_384, 32_768, 16_384], "pending is active");
    ours.memory_mut().advance_all();
    ours.process_events().unwrap();
    assert_eq!(values(ours.stats().active_bytes), [0, 16_384, 32_768, 32_768]);
}

#[test]
fn peaks_of_active_blocks_are_sums_over_sizes() {
    let mut ours = default();
    let small = allocate(&mut ours, 100);
    ours.free(small).unwrap();
    let large = allocate(&mut ours, 1000);
    assert_eq!(ours.stats().active_bytes.peak, 128 + 1024, "though they were never active together");
    ours.reset_peak_stats();
    assert_eq!(ours.stats().active_bytes.peak, 1024);
    assert_eq!(ours.stats().allocated_bytes.peak, 128 + 1024, "both are held");
    ours.free(large).unwrap();
}

#[test]
fn resets_touch_what_pytorch_resets() {
    let mut ours = default();
    ours.memory_mut().set_call_time(30);
    let [first, second] = [100, 1000].map(|size| allocate(&mut ours, size));
    ours.free(first).unwrap();
    ours.memory_mut().set_call_time(50);
    ours.empty_cache().unwrap();
    let time = ours.stats().host_alloc_time;
    assert_eq!((time.total, time.max, time.min, time.count, time.average()), (60, 30, 30, 2, 30));
    let time = ours.stats().host_free_time;
    assert_eq!((time.total, time.max, time.min, time.count, time.average()), (50, 50, 50, 1, 50));
    ours.reset_accumulated_stats();
    let stats = ours.stats();
    assert_eq!((stats.num_host_alloc, stats.num_host_free), (0, 0));
    assert_eq!(values(stats.allocations), [1, 2, 0, 0]);
    assert_eq!(
        (stats.host_alloc_time.total, stats.host_alloc_time.count, stats.host_alloc_time.max),
        (0, 0, 30)
    );
    assert_eq!(stats.host_alloc_time.average(), 0);
    ours.reset_peak_stats();
    assert_eq!((ours.stats().host_alloc_time.max, ours.stats().host_alloc_time.min), (0, 0));
    assert_eq!(values(ours.stats().allocations), [1, 1, 0, 0]);
    ours.free(second).unwrap();
}

#[test]
fn registered_memory_is_touched_by_threads_and_given_back_as_it_was_pinned() {
    let registers = PinnedConfig { use_host_register: true, register_threads: 8, ..PinnedConfig::default() };
    let mut ours = allocator(registers);
    let large = allocate(&mut ours, 32 << 10);
    let small = allocate(&mut ours, 16 << 10);
    assert_eq!(ours.memory_mut().pinning(large.addr()), Some(Pinning::Registered { threads: 8 }));
    assert_eq!(
        ours.memory_mut().pinning(small.addr()),
        Some(Pinning::Registered { threads: 1 }),
        "fewer pages than threads"
    );
    ours.set_config(PinnedConfig::default());
    let plain = allocate(&mut ours, 64 << 10);
    assert_eq!(ours.memory_mut().pinning(plain.addr()), Some(Pinning::Allocated));
    for block in [large, small, plain] {
        ours.free(block).unwrap();
    }
    ours.empty_cache().unwrap();
    assert_eq!(ours.memory_mut().used(), Bytes::ZERO);
}

#[test]
fn blocks_are_carved_from_a_reserve_that_is_never_given_back() {
    let mut ours = allocator(PinnedConfig { reserve_segment_size: Bytes::mib(1), ..PinnedConfig::default() });
    ours.memory_mut().set_call_time(100);
    let first = allocate(&mut ours, 1);
    let second = allocate(&mut ours, 5000);
    let third = allocate(&mut ours, 1000);
    assert_eq!(second.addr().get() - first.addr().get(), 4096);
    assert_eq!(third.addr().get() - second.addr().get(), 8192);
    assert_eq!(ours.memory_mut().used(), Bytes::mib(1));
    assert_eq!(ours.stats().host_alloc_time.count, 1, "the reserve counts as one call");
    assert_eq!(values(ours.stats().allocations), [3, 3, 3, 0], "and as no block");
    let outside = allocate(&mut ours, 1 << 20);
    assert_eq!(ours.memory_mut().used(), Bytes::mib(2), "too large for what is left");
    for block in [first, second, third, outside] {
        ours.free(block).unwrap();
    }
    ours.empty_cache().unwrap();
    assert_eq!(ours.memory_mut().used(), Bytes::mib(1));
    assert_eq!(ours.stats().host_free_time.count, 1);
    assert_eq!(values(ours.stats().allocations), [0, 4, 4, 4]);
    let next = allocate(&mut ours, 1);
    assert_eq!(
        next.addr().get() - VirtualHostMemory::FIRST_ADDR.get(),
        4 * 4096,
        "it goes on and never back"
    );
}

#[test]
fn a_reserve_is_decided_when_new_memory_is_first_needed() {
    let mut ours = default();
    let before = allocate(&mut ours, 1);
    ours.set_config(PinnedConfig { reserve_segment_size: Bytes::mib(1), ..PinnedConfig::default() });
    let after = allocate(&mut ours, 1);
    assert_eq!(ours.memory_mut().used(), Bytes::new(2));
    ours.free(before).unwrap();
    ours.free(after).unwrap();
}

#[test]
fn allocations_of_another_allocator_are_refused() {
    let (mut ours, mut theirs) = (default(), default());
    let kept = allocate(&mut ours, 100);
    let foreign = allocate(&mut theirs, 100);
    assert_eq!(kept.addr(), foreign.addr());
    assert!(matches!(ours.record_stream(&foreign, SIDE), Err(HostError::InvalidPointer(_))));
    assert!(matches!(ours.free(foreign), Err(HostError::InvalidPointer(_))));
    assert_eq!(ours.stats().active_requests.current, 1);
    ours.free(kept).unwrap();
}

/// Settings of 2.13 and later.
fn thresholds(round: u64, cached: u64) -> Allocator {
    let config = PinnedConfig {
        max_round_threshold: Bytes::new(round),
        max_cached_size: Bytes::new(cached),
        ..PinnedConfig::default()
    };
    allocator(config)
}

#[test]
fn a_request_above_either_threshold_gets_a_block_of_its_size() {
    let size_of = |ours: &mut Allocator, size| {
        let before = ours.stats().allocated_bytes.current;
        let kept = allocate(ours, size);
        assert!(kept.addr().get() > 0);
        ours.stats().allocated_bytes.current - before
    };
    let mut ours = thresholds(1000, u64::MAX);
    assert_eq!([999, 1000, 1001].map(|size| size_of(&mut ours, size)), [1024, 1024, 1001]);
    let mut ours = thresholds(u64::MAX, 1000);
    assert_eq!([999, 1000, 1001].map(|size| size_of(&mut ours, size)), [1024, 1024, 1001]);
}

#[test]
fn a_block_that_is_too_large_for_the_cache_goes_back_when_its_free_completes() {
    let mut ours = thresholds(u64::MAX, 1000);
    let (plain, used) = (allocate(&mut ours, 5000), allocate(&mut ours, 6000));
    ours.record_stream(&used, SIDE).unwrap();
    ours.free(plain).unwrap();
    assert_eq!(values(ours.stats().allocated_bytes), [6000, 11_000, 11_000, 5000]);
    assert_eq!(values(ours.stats().active_bytes)[0], 6000);
    ours.free(used).unwrap();
    assert_eq!(ours.stats().num_host_free, 1, "a stream still uses the block");
    ours.memory_mut().advance_all();
    ours.process_events().unwrap();
    assert_eq!((ours.stats().num_host_free, ours.stats().active_bytes.current), (2, 0));
    // The size is rounded up to 1024, which is also above the threshold, so the block is not cached.
    let rounded = allocate(&mut ours, 1000);
    ours.free(rounded).unwrap();
    assert_eq!(ours.stats().allocations.current, 0);
}

#[test]
fn of_blocks_that_were_not_rounded_the_newest_that_is_large_enough_serves() {
    let mut ours = thresholds(1000, u64::MAX);
    let [large, small] = [1900, 1500].map(|size| allocate(&mut ours, size));
    let (large_addr, small_addr) = (large.addr(), small.addr());
    ours.free(large).unwrap();
    ours.free(small).unwrap();
    let first = allocate(&mut ours, 1600);
    assert_eq!(first.addr(), large_addr, "the block that was freed last has 1500 bytes");
    assert_eq!(ours.stats().active_bytes.current, 1900);
    assert_eq!(allocate(&mut ours, 1400).addr(), small_addr);
    assert_eq!(ours.stats().allocations.current, 2);
}
