//! `backend:cudaMallocAsync`: three statistics, granules of 32 MiB, and the calls that PyTorch refuses.

use blockyard_allocator::{AllocError, BackendAllocator, MallocAsyncAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Backend, Bytes, Event, Stat, Stats, StreamId};
use blockyard_rules::{AllocatorConfig, Release};

use crate::picture::{DEVICE, Device};

type Allocator = MallocAsyncAllocator<VirtualDevice, Vec<Event>>;

fn allocator(capacity: Bytes) -> Allocator {
    MallocAsyncAllocator::new(VirtualDevice::new(capacity), AllocatorConfig::default(), Vec::new())
}

fn device(capacity: Bytes) -> Device {
    Device::of(capacity).with("backend:cudaMallocAsync")
}

/// The current bytes in use, their peak, the current reserved bytes and their peak, after a check that no
/// other statistic is reported.
#[track_caller]
fn reported(stats: &Stats) -> [i64; 4] {
    let (used, reserved) = (stats.allocated_bytes.all, stats.reserved_bytes.all);
    let mut expected = Stats { max_split_size: 0, ..Stats::default() };
    expected.allocated_bytes.all = Stat { current: used.current, peak: used.peak, ..Stat::default() };
    expected.active_bytes.all = expected.allocated_bytes.all;
    expected.reserved_bytes.all = Stat { current: reserved.current, peak: reserved.peak, ..Stat::default() };
    assert_eq!(*stats, expected, "everything else is zero");
    [used.current, used.peak, reserved.current, reserved.peak]
}

const GRANULE: i64 = 32 << 20;

#[test]
fn bytes_in_use_are_not_rounded_and_reserved_ones_come_in_granules() {
    let mut allocator = allocator(Bytes::gib(1));
    let small = allocator.allocate(Bytes::new(1896), StreamId::DEFAULT).unwrap();
    assert_eq!(reported(&allocator.stats()), [1896, 1896, GRANULE, GRANULE]);
    let large = allocator.allocate(Bytes::new(361_375_922), StreamId::DEFAULT).unwrap();
    assert_eq!(large.addr().get() - small.addr().get(), 2048);
    assert_eq!(reported(&allocator.stats()), [361_377_818, 361_377_818, 11 * GRANULE, 11 * GRANULE]);
    allocator.free(large).unwrap();
    allocator.check().unwrap();
    assert_eq!(reported(&allocator.stats()), [1896, 361_377_818, 11 * GRANULE, 11 * GRANULE]);
    allocator.reset_peak_stats();
    allocator.empty_cache().unwrap();
    allocator.check().unwrap();
    assert_eq!(reported(&allocator.stats()), [1896, 1896, GRANULE, 11 * GRANULE]);
    allocator.free(small).unwrap();
    allocator.empty_cache().unwrap();
    allocator.check().unwrap();
    assert_eq!(reported(&allocator.stats()), [0, 1896, 0, 11 * GRANULE]);
}

#[test]
fn granules_that_nobody_uses_move_before_the_pool_grows() {
    let mut allocator = allocator(Bytes::gib(1));
    let hole = allocator.allocate(Bytes::mib(96), StreamId::DEFAULT).unwrap();
    let fence = allocator.allocate(Bytes::mib(32), StreamId::DEFAULT).unwrap();
    allocator.free(hole).unwrap();
    let wide = allocator.allocate(Bytes::mib(128), StreamId::DEFAULT).unwrap();
    allocator.check().unwrap();
    assert_eq!(wide.addr().get() - fence.addr().get(), 32 << 20, "the hole is too small");
    assert_eq!(allocator.stats().reserved_bytes.all.current, 5 * GRANULE, "three granules moved, one is new");
    assert_eq!(allocator.stats().reserved_bytes.all.peak, 5 * GRANULE);
}

#[test]
fn memory_that_other_streams_used_is_not_the_streams_own_any_more() {
    let mut allocator = allocator(Bytes::gib(1));
    let [first, second] = [(); 2].map(|()| allocator.allocate(Bytes::mib(1), StreamId::DEFAULT).unwrap());
    let fence = allocator.allocate(Bytes::mib(1), StreamId::DEFAULT).unwrap();
    let place = second.addr();
    allocator.record_stream(&first, StreamId::new(1)).unwrap();
    allocator.record_stream(&second, StreamId::DEFAULT).unwrap();
    allocator.free(first).unwrap();
    allocator.free(second).unwrap();
    let again = allocator.allocate(Bytes::mib(1), StreamId::DEFAULT).unwrap();
    assert_eq!(again.addr(), place, "only the second one is in the order of the stream");
    allocator.check().unwrap();
    allocator.free(fence).unwrap();
    allocator.free(again).unwrap();
}

#[test]
fn out_of_memory_has_pytorchs_text() {
    let played =
        device(Bytes::mib(64)).play("a = alloc 40 MiB; b = alloc 40 MiB; set_fraction 0.5; c = alloc 1500");
    let expected = [
        "Allocation on device 0 would exceed allowed memory. (out of memory)\n\
         Currently allocated     : 40.00 MiB\n\
         Requested               : 40.00 MiB\n\
         Device limit            : 64.00 MiB\n\
         Free (according to CUDA): 0 bytes\n\
         PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
        "Allocation on device 0 would exceed allowed memory. (out of memory)\n\
         Currently allocated     : 40.00 MiB\n\
         Requested               : 1.46 KiB\n\
         Device limit            : 64.00 MiB\n\
         Free (according to CUDA): 0 bytes\n\
         PyTorch limit (set by user-supplied memory fraction)\n                        : 32.00 MiB",
    ];
    assert_eq!(played.messages(), expected);
}

#[test]
fn more_than_an_exbibyte_has_the_native_text() {
    let mut allocator = allocator(Bytes::gib(1));
    let error = allocator.allocate(Bytes::new(1 << 60), StreamId::DEFAULT).unwrap_err();
    assert_eq!(error.to_string(), "CUDA out of memory. Tried to allocate more than 1EB memory.");
    assert_eq!(allocator.allocate(Bytes::ZERO, StreamId::DEFAULT).unwrap().addr().get(), 0);
}

#[test]
fn snapshots_and_pools_are_refused_and_change_nothing() {
    let played = device(Bytes::gib(1)).play("a = alloc 3 MiB; snapshot; free a");
    assert_eq!(played.messages().len(), 1);
    assert!(
        played.messages()[0].starts_with("Calling snapshot with backend:cudaMallocAsync is not meaningful.")
    );
    let config = AllocatorConfig::parse("backend:cudaMallocAsync", Release::default()).unwrap();
    assert_eq!(config.backend(), Backend::CudaMallocAsync);
    let mut allocator = BackendAllocator::new(VirtualDevice::new(Bytes::gib(1)), config, Vec::<Event>::new());
    let refused = allocator.create_pool(blockyard_allocator::PoolOptions::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cudaMallocAsync does not yet support createOrIncrefPool. If you need it, please file an issue describing your use \
         case."
    );
    assert!(allocator.sink().is_empty());
}

#[test]
fn accumulated_counts_and_the_memory_fraction_are_the_drivers() {
    let played = device(Bytes::gib(1)).play("a = alloc 3 MiB; reset_accumulated; free a");
    assert_eq!(played.stats.requested_bytes.all.allocated, 3 << 20, "resetting has no effect");
    let mut allocator = allocator(Bytes::gib(1));
    assert!(allocator.memory_fraction() > 1.0, "no limit is the largest number over the device");
    allocator.set_memory_fraction(0.25).unwrap();
    assert!((allocator.memory_fraction() - 0.25).abs() < f64::EPSILON);
    assert!(matches!(allocator.set_memory_fraction(1.5), Err(AllocError::InvalidFraction(_))));
}

#[test]
fn allocations_of_another_allocator_are_refused() {
    let (mut ours, mut theirs) = (allocator(Bytes::gib(1)), allocator(Bytes::gib(1)));
    let kept = ours.allocate(Bytes::mib(1), StreamId::DEFAULT).unwrap();
    let foreign = theirs.allocate(Bytes::mib(1), StreamId::DEFAULT).unwrap();
    assert_eq!(kept.addr(), foreign.addr());
    let before = (ours.snapshot(), ours.sink().clone());
    assert!(matches!(ours.free(foreign), Err(AllocError::InvalidPointer(_))));
    assert_eq!((ours.snapshot(), ours.sink().clone()), before);
    ours.free(kept).unwrap();
    assert_eq!(DEVICE.play("").stats, Stats::default());
}

#[test]
fn from_2_14_on_cached_memory_goes_back_before_a_request_fails() {
    for (release, reserved) in [(Release::V2_13, 3), (Release::V2_14, 1), (Release::V2_15, 1)] {
        let config = AllocatorConfig::parse("backend:cudaMallocAsync", release).unwrap();
        let mut allocator = MallocAsyncAllocator::new(VirtualDevice::new(Bytes::mib(96)), config, Vec::new());
        let cached = allocator.allocate(Bytes::mib(64), StreamId::DEFAULT).unwrap();
        let kept = allocator.allocate(Bytes::mib(32), StreamId::DEFAULT).unwrap();
        allocator.free(cached).unwrap();
        let failed = allocator.allocate(Bytes::mib(80), StreamId::DEFAULT);
        assert!(matches!(failed, Err(AllocError::MallocAsyncOutOfMemory(_))), "{release}: {failed:?}");
        allocator.check().unwrap();
        assert_eq!(reported(&allocator.stats())[2], reserved * GRANULE, "{release}");
        allocator.free(kept).unwrap();
    }
}
