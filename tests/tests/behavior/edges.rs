//! Requests at the edge: zero bytes, far too many bytes, pointers of another allocator.

use blockyard_allocator::{AllocError, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, Event, NullSink, StreamId};
use blockyard_rules::AllocatorConfig;
use expect_test::expect;

use crate::picture::{DEVICE, check};

#[test]
fn zero_bytes_are_allocated_without_a_trace() {
    let played = check("a = alloc 0; stream side; record_stream a side; free a", &expect![[""]]);
    assert_eq!(played.recording.event_count(), 0);
    assert!(played.messages().is_empty());
}

#[test]
fn an_exbibyte_is_refused_before_anything_is_counted() {
    let played = check("a = alloc 1152921504606846976; b = alloc 18446744073709551615", &expect![[""]]);
    let message = "CUDA out of memory. Tried to allocate more than 1EB memory.";
    let wanted = [
        format!("a = alloc 1152921504606846976 B: {message}"),
        format!("b = alloc 18446744073709551615 B: {message}"),
    ];
    assert_eq!(played.messages(), wanted);
    assert_eq!(played.recording.event_count(), 0);
}

#[test]
fn a_byte_less_than_an_exbibyte_is_an_ordinary_failure() {
    let played = DEVICE.play("a = alloc 1152921504606846975");
    assert!(played.messages()[0].starts_with("CUDA out of memory. Tried to allocate 1073741824.00 GiB. "));
    assert_eq!(played.stats.num_ooms, 1);
}

#[test]
fn what_failed_is_skipped_later_and_says_so() {
    let played = DEVICE.play("stream side; big = alloc 2 GiB; record_stream big side; free big; a = alloc 1");
    assert_eq!(played.messages()[1..], ["big was never allocated: its request failed"; 2]);
    assert_eq!(played.stats.allocation.all.current, 1);
}

#[test]
fn an_allocation_of_another_allocator_is_refused_and_nothing_changes() {
    let allocator = || {
        CachingAllocator::new(
            VirtualDevice::new(Bytes::gib(1)),
            AllocatorConfig::default(),
            Vec::<Event>::new(),
        )
    };
    let (mut ours, mut theirs) = (allocator(), allocator());
    let mine = ours.allocate(Bytes::mib(3), StreamId::DEFAULT).unwrap();
    let foreign = theirs.allocate(Bytes::mib(3), StreamId::DEFAULT).unwrap();
    assert_eq!(mine.addr(), foreign.addr(), "both devices begin at the same address");

    let before = (ours.snapshot(), ours.stats(), ours.sink().clone());
    let recorded = ours.record_stream(&foreign, StreamId::new(7));
    assert!(matches!(recorded, Err(AllocError::InvalidPointer(addr)) if addr == mine.addr()), "{recorded:?}");
    let freed = ours.free(foreign);
    assert!(matches!(freed, Err(AllocError::InvalidPointer(addr)) if addr == mine.addr()), "{freed:?}");
    assert_eq!((ours.snapshot(), ours.stats(), ours.sink().clone()), before);
    ours.check().unwrap();
    ours.free(mine).unwrap();
}

#[test]
fn a_limit_set_later_does_not_release_parts_of_a_segment() {
    let device = VirtualDevice::new(Bytes::mib(100));
    let mut allocator = CachingAllocator::new(device, AllocatorConfig::default(), Vec::<Event>::new());
    let whole = allocator.allocate(Bytes::mib(100), StreamId::DEFAULT).unwrap();
    allocator.free(whole).unwrap();
    let low = allocator.allocate(Bytes::mib(30), StreamId::DEFAULT).unwrap();
    let high = allocator.allocate(Bytes::mib(30), StreamId::DEFAULT).unwrap();
    allocator.free(low).unwrap();
    // Both cached parts, 30 MiB before and 40 MiB after the used block, are over the new limit and have a
    // neighbor.
    allocator.apply_settings("max_split_size_mb:20").unwrap();
    for size in [65, 15, 25] {
        let failed = allocator.allocate(Bytes::mib(size), StreamId::DEFAULT);
        assert!(matches!(failed, Ok(_) | Err(AllocError::OutOfMemory(_))), "{failed:?}");
        allocator.check().unwrap();
    }
    allocator.free(high).unwrap();
    allocator.check().unwrap();
}

#[test]
fn a_part_of_a_divided_segment_is_never_released_by_itself() {
    // PyTorch asks the device to release the part here, which the device refuses.
    let device = VirtualDevice::new(Bytes::mib(64));
    let mut allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
    let whole = allocator.allocate(Bytes::mib(50), StreamId::DEFAULT).unwrap();
    allocator.free(whole).unwrap();
    let _front = allocator.allocate(Bytes::mib(10), StreamId::DEFAULT).unwrap();
    allocator.apply_settings("max_split_size_mb:20").unwrap();
    let failed = allocator.allocate(Bytes::mib(60), StreamId::DEFAULT);
    assert!(matches!(failed, Err(AllocError::OutOfMemory(_))), "{failed:?}");
    allocator.check().unwrap();
    assert_eq!(allocator.stats().reserved_bytes.all.current, 50 << 20);
}
