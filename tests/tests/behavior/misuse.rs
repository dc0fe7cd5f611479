//! Misuse: an error, and everything as it was.

use std::collections::BTreeSet;

use blockyard_allocator::{AllocError, BackendAllocator, CachingAllocator, PoolOptions, SharedAllocator};
use blockyard_device::{DeviceError, DeviceMemory, StreamEvent, VirtualDevice, forward_device};
use blockyard_record::{Bytes, DeviceAddr, Event, PoolId, Snapshot, Stats, StreamId};
use blockyard_rules::AllocatorConfig;

const MAIN: StreamId = StreamId::DEFAULT;
const SIDE: StreamId = StreamId::new(1);

/// A device that knows which streams there are, as a driver is, and fails for others.
struct StrictDevice {
    memory: VirtualDevice,
    streams: BTreeSet<StreamId>,
}

impl DeviceMemory for StrictDevice {
    type Event = StreamEvent;

    forward_device!(|device| device.memory => total_memory, memory_info, allocate_segment, release_segment);
    forward_device!(|device| device.memory => is_complete, wait);

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        if self.streams.contains(&stream) {
            return self.memory.record_event(stream);
        }
        let source = format!("there is no stream {stream}").into();
        Err(DeviceError::Driver { operation: "record an event", source })
    }
}

type StrictAllocator = SharedAllocator<StrictDevice, Vec<Event>>;

fn shared() -> StrictAllocator {
    let device =
        StrictDevice { memory: VirtualDevice::new(Bytes::gib(1)), streams: BTreeSet::from([MAIN, SIDE]) };
    SharedAllocator::new(CachingAllocator::new(device, AllocatorConfig::default(), Vec::new()))
}

/// The visible state of the allocator: snapshot, statistics, events.
fn moment(shared: &StrictAllocator) -> (Snapshot, Stats, Vec<Event>) {
    shared.with(|allocator| {
        allocator.check().unwrap();
        (allocator.snapshot(), allocator.stats(), allocator.sink().clone())
    })
}

/// Checks that the address can neither be freed nor recorded for a stream, and that nothing changes.
#[track_caller]
fn check_refused(shared: &StrictAllocator, addr: DeviceAddr) {
    let before = moment(shared);
    for refused in [shared.free(addr), shared.record_stream(addr, SIDE)] {
        assert!(
            matches!(refused, Err(AllocError::InvalidPointer(reported)) if reported == addr),
            "{refused:?}"
        );
    }
    assert_eq!(moment(shared), before);
}

#[test]
fn a_double_free_is_an_error_and_nothing_changes() {
    let shared = shared();
    let (one, other) = (shared.allocate(Bytes::new(1000), MAIN), shared.allocate(Bytes::new(1000), MAIN));
    let (one, other) = (one.unwrap(), other.unwrap());
    shared.free(one).unwrap();
    check_refused(&shared, one);
    // After this free, its block is a part of the block before it.
    shared.free(other).unwrap();
    check_refused(&shared, other);
    check_refused(&shared, one);
    shared.with(CachingAllocator::empty_cache).unwrap();
    check_refused(&shared, one);
}

#[test]
fn a_double_free_while_the_first_is_pending_is_an_error_and_nothing_changes() {
    let shared = shared();
    let addr = shared.allocate(Bytes::mib(3), MAIN).unwrap();
    shared.record_stream(addr, SIDE).unwrap();
    shared.free(addr).unwrap();
    check_refused(&shared, addr);
}

#[test]
fn a_free_of_an_address_that_was_allocated_again_is_a_free() {
    let shared = shared();
    let addr = shared.allocate(Bytes::mib(3), MAIN).unwrap();
    shared.free(addr).unwrap();
    assert_eq!(shared.allocate(Bytes::mib(3), MAIN).unwrap(), addr);
    shared.free(addr).unwrap();
    check_refused(&shared, addr);
}

#[test]
fn a_foreign_pointer_is_an_error_and_nothing_changes() {
    let shared = shared();
    let addr = shared.allocate(Bytes::mib(3), MAIN).unwrap();
    let inside = addr.offset(Bytes::new(512));
    let behind = addr.offset(Bytes::mib(3));
    // Addresses 2 TiB apart look alike to the table of live addresses.
    let windows = [1 << 41, 1 << 42, 3 << 41].map(|away| DeviceAddr::new(addr.get() ^ away));
    let odd = [DeviceAddr::new(1), DeviceAddr::new(addr.get() + 1), DeviceAddr::new(u64::MAX)];
    for foreign in [inside, behind].into_iter().chain(windows).chain(odd) {
        check_refused(&shared, foreign);
    }
    // This allocator never allocated anything at the address.
    check_refused(&self::shared(), addr);
    shared.free(addr).unwrap();
}

#[test]
fn address_zero_is_nobodys_and_ignored() {
    let shared = shared();
    let before = moment(&shared);
    shared.free(DeviceAddr::default()).unwrap();
    shared.record_stream(DeviceAddr::default(), SIDE).unwrap();
    assert_eq!(moment(&shared), before);
}

#[test]
fn a_stream_never_seen_is_an_error_when_its_work_is_waited_for_and_nothing_changes() {
    let shared = shared();
    let never_seen = StreamId::new(77);
    let addr = shared.allocate(Bytes::mib(3), MAIN).unwrap();
    shared.record_stream(addr, SIDE).unwrap();
    shared.record_stream(addr, never_seen).unwrap();
    let before = moment(&shared);
    for _ in 0..2 {
        let refused = shared.free(addr);
        assert!(matches!(refused, Err(AllocError::Device(DeviceError::Driver { .. }))), "{refused:?}");
        assert_eq!(moment(&shared), before);
    }
    // The allocation is still live and can be freed once the device knows the stream.
    shared.with(|allocator| allocator.device_mut().streams.insert(never_seen));
    shared.free(addr).unwrap();
    check_refused(&shared, addr);
    shared.with(CachingAllocator::empty_cache).unwrap();
    assert_eq!(moment(&shared).1.reserved_bytes.all.current, 0);
}

#[test]
fn a_block_of_another_allocator_is_an_error_and_nothing_changes() {
    let (ours, theirs) = (shared(), shared());
    let foreign = theirs.allocate(Bytes::mib(3), MAIN).unwrap();
    check_refused(&ours, foreign);
    // The same address, and not the same block.
    let handle = ours.with(|allocator| allocator.allocate(Bytes::mib(3), MAIN)).unwrap();
    assert_eq!(handle.addr(), foreign);
    check_refused(&ours, foreign);
    let before = moment(&theirs);
    let refused = theirs.with(|allocator| allocator.record_stream(&handle, SIDE));
    assert!(matches!(refused, Err(AllocError::InvalidPointer(_))), "{refused:?}");
    let refused = theirs.with(|allocator| allocator.free(handle));
    assert!(matches!(refused, Err(AllocError::InvalidPointer(_))), "{refused:?}");
    assert_eq!(moment(&theirs), before);
    theirs.free(foreign).unwrap();
}

#[test]
fn an_allocation_with_an_owner_is_not_freed_by_its_address() {
    let shared = shared();
    let handle = shared.with(|allocator| allocator.allocate(Bytes::mib(3), MAIN)).unwrap();
    check_refused(&shared, handle.addr());
    shared.with(|allocator| allocator.free(handle)).unwrap();
}

#[test]
fn pages_on_a_device_without_them_are_an_error_and_nothing_changes() {
    let shared = shared();
    let addr = shared.allocate(Bytes::mib(3), MAIN).unwrap();
    shared.free(addr).unwrap();
    shared.with(|allocator| allocator.apply_settings("expandable_segments:True")).unwrap();
    let before = moment(&shared);
    for size in [1, 3, 900] {
        let refused = shared.allocate(Bytes::mib(size), MAIN);
        assert!(matches!(refused, Err(AllocError::NoVirtualMemory)), "{refused:?}");
        assert_eq!(moment(&shared), before);
    }
    shared.with(|allocator| allocator.apply_settings("expandable_segments:False")).unwrap();
    assert_eq!(shared.allocate(Bytes::mib(3), MAIN).unwrap(), addr);
}

#[test]
fn a_pool_that_was_given_up_while_a_scope_on_it_is_open_keeps_no_memory() {
    let shared = shared();
    let pool = PoolId { capture: 1, user: 0 };
    shared.with(|allocator| {
        allocator.begin_allocate_to_pool(pool, None).unwrap();
        allocator.destroy_pool(pool).unwrap();
        let allocation = allocator.allocate(Bytes::mib(3), MAIN).unwrap();
        allocator.free(allocation).unwrap();
        allocator.end_allocate_to_pool(pool).unwrap();
        allocator.empty_cache().unwrap();
    });
    assert!(moment(&shared).0.segments.is_empty());
}

#[test]
fn the_last_number_of_a_pool_is_no_end_of_pools() {
    shared().with(|allocator| {
        let last = PoolId { capture: 0, user: u32::MAX };
        allocator.begin_allocate_to_pool(last, None).unwrap();
        let (one, other) =
            (allocator.create_pool(PoolOptions::default()), allocator.create_pool(PoolOptions::default()));
        assert!(one != other && one != last && other != last);
        allocator.release_pool(one).unwrap();
        allocator.release_pool(other).unwrap();
    });
}

#[test]
fn uncached_memory_of_another_allocator_is_an_error_and_nothing_changes() {
    let allocator = || {
        let device = VirtualDevice::new(Bytes::gib(1));
        BackendAllocator::new(device, AllocatorConfig::default(), Vec::<Event>::new())
    };
    let (mut ours, mut theirs) = (allocator(), allocator());
    let mine = ours.allocate(Bytes::mib(3), MAIN).unwrap();
    theirs.set_caching(false);
    let foreign = theirs.allocate(Bytes::mib(3), MAIN).unwrap();
    assert_eq!(mine.addr(), foreign.addr(), "there our device has a segment of the allocator's own");

    let before =
        (ours.snapshot(), ours.stats(), ours.sink().clone(), ours.device_mut().memory_info().unwrap());
    let refused = [ours.record_stream(&foreign, SIDE), ours.free(foreign)];
    assert!(
        refused.iter().all(|refused| matches!(refused, Err(AllocError::InvalidPointer(_)))),
        "{refused:?}"
    );
    let after =
        (ours.snapshot(), ours.stats(), ours.sink().clone(), ours.device_mut().memory_info().unwrap());
    assert_eq!(after, before);
    ours.free(mine).unwrap();
    ours.empty_cache().unwrap();
}
