//! Settings of a whole allocator: caching, the memory fraction.

use blockyard_allocator::{AllocError, BackendAllocation, BackendAllocator, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, Event, Snapshot, Stats, StreamId};
use blockyard_rules::{AllocatorConfig, Release};

fn backend(capacity: Bytes) -> BackendAllocator<VirtualDevice, Vec<Event>> {
    BackendAllocator::new(VirtualDevice::new(capacity), AllocatorConfig::default(), Vec::new())
}

#[test]
fn without_caching_the_device_is_asked_each_time_and_nothing_shows_it() {
    let mut allocator = backend(Bytes::mib(64));
    allocator.set_caching(false);
    let first = allocator.allocate(Bytes::mib(40), StreamId::DEFAULT).unwrap();
    assert!(matches!(first, BackendAllocation::Uncached(_)));
    assert_eq!((first.id(), first.addr()), (None, VirtualDevice::FIRST_ADDR));
    let failed = allocator.allocate(Bytes::mib(40), StreamId::DEFAULT).unwrap_err();
    assert_eq!(failed.to_string(), "CUDA error: out of memory");
    assert!(matches!(
        allocator.allocate(Bytes::new(1 << 60), StreamId::DEFAULT),
        Err(AllocError::TooLarge { .. })
    ));
    assert_eq!(allocator.allocate(Bytes::ZERO, StreamId::DEFAULT).unwrap().addr().get(), 0);
    allocator.record_stream(&first, StreamId::new(1)).unwrap();
    allocator.free(first).unwrap();
    let again = allocator.allocate(Bytes::mib(40), StreamId::DEFAULT).unwrap();
    assert!(allocator.sink().is_empty(), "no event");
    assert_eq!((allocator.stats(), allocator.snapshot()), (Stats::default(), Snapshot::default()));

    // A block that was made without caching goes back to the device also if caching is on by then, and a
    // cached block goes to the cache also if caching is off.
    allocator.set_caching(true);
    let cached = allocator.allocate(Bytes::mib(1), StreamId::DEFAULT).unwrap();
    allocator.free(again).unwrap();
    allocator.set_caching(false);
    allocator.free(cached).unwrap();
    assert_eq!(allocator.stats().reserved_bytes.all.current, 2 << 20, "cached");
}

#[test]
fn the_memory_fraction_reads_back_as_whole_bytes_of_the_device() {
    let device = VirtualDevice::new(Bytes::mib(64));
    let mut allocator = CachingAllocator::new(device, AllocatorConfig::default(), Vec::<Event>::new());
    assert_eq!((allocator.memory_limit(), allocator.memory_fraction().to_bits()), (None, 1.0_f64.to_bits()));
    allocator.set_memory_fraction(0.3333).unwrap();
    assert_eq!(allocator.memory_fraction().to_bits(), 0.333_299_994_468_688_96_f64.to_bits());
    allocator.set_memory_fraction(0.0).unwrap();
    assert_eq!(allocator.memory_limit(), Some(Bytes::ZERO));
    allocator.set_memory_fraction(1.0).unwrap();
    assert_eq!(allocator.memory_limit(), None);
    assert_eq!(
        allocator.set_memory_fraction(1.5).unwrap_err().to_string(),
        "invalid fraction:1.5. Please set within [0, 1]."
    );
}

#[test]
fn the_fraction_among_the_settings_counts_only_when_the_allocator_is_made() {
    let config = AllocatorConfig::parse("per_process_memory_fraction:0.5", Release::default()).unwrap();
    let mut allocator =
        CachingAllocator::new(VirtualDevice::new(Bytes::mib(64)), config, Vec::<Event>::new());
    assert_eq!(allocator.memory_limit(), Some(Bytes::mib(32)));
    allocator.apply_settings("per_process_memory_fraction:0.25,max_split_size_mb:40").unwrap();
    assert_eq!(allocator.memory_limit(), Some(Bytes::mib(32)));
    assert_eq!(allocator.stats().max_split_size, -1, "the statistic is that of the start");
    assert_eq!(allocator.config().max_split_size_signed(), 40 << 20);
}
