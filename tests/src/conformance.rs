//! The rules for every [`DeviceMemory`]. Each function panics if the device breaks a rule.

use blockyard_device::{DeviceError, DeviceMemory, VirtualMemory};
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::pattern_memory::patterned;
use crate::{Fault, PatternMemory};

const SIDE: StreamId = StreamId::new(1);
const OTHER: StreamId = StreamId::new(2);

/// Segments are aligned, apart from each other, counted, and given back only once.
pub fn check_segments<D: DeviceMemory>(device: &mut D) {
    leaves_nothing(device, segments_come_and_go);
}

fn segments_come_and_go<D: DeviceMemory>(device: &mut D) {
    let sizes = [512, 2 << 20, 20 << 20, (2 << 20) + 512, 2 << 20, 22 << 20].map(Bytes::new);
    let before = free(device);
    let mut segments: Vec<(DeviceAddr, Bytes)> = Vec::new();
    for size in sizes {
        let base = device.allocate_segment(size).expect("there is room");
        assert_eq!(base.get() % 512, 0, "{base} is not aligned");
        for (other, length) in &segments {
            let is_apart = base.offset(size) <= *other || other.offset(*length) <= base;
            assert!(is_apart, "{size} at {base} overlap {length} at {other}");
        }
        segments.push((base, size));
    }
    let taken: Bytes = segments.iter().map(|(_, size)| *size).sum();
    assert!(before - free(device) >= taken, "free memory counts {taken} of segments");
    let (inner, _) = segments[1];
    assert_unknown(device.release_segment(inner.offset(Bytes::new(512))));
    for (base, _) in &segments {
        device.release_segment(*base).expect("it was allocated");
    }
    for (base, _) in segments {
        assert_unknown(device.release_segment(base));
    }
}

/// A size that does not fit is out of memory and changes nothing; smaller sizes still work.
pub fn check_out_of_memory<D: DeviceMemory>(device: &mut D) {
    leaves_nothing(device, |device| {
        let total = device.total_memory();
        for size in [total.saturating_add(Bytes::mib(2)), Bytes::new(1 << 59), Bytes::new(u64::MAX)] {
            match device.allocate_segment(size) {
                Err(DeviceError::OutOfMemory { requested }) => assert_eq!(requested, size),
                other => panic!("{size} came to {other:?}"),
            }
        }
    });
    leaves_nothing(device, segments_until_none_is_left);
}

fn segments_until_none_is_left<D: DeviceMemory>(device: &mut D) {
    let piece = Bytes::new((device.total_memory().get() / 8).next_multiple_of(Bytes::mib(2).get()));
    let mut segments = Vec::new();
    let refused = loop {
        match device.allocate_segment(piece) {
            Ok(base) => segments.push(base),
            Err(error) => break error,
        }
        assert!(segments.len() <= 8, "a device gives no more than it has");
    };
    assert!(matches!(refused, DeviceError::OutOfMemory { .. }), "{refused:?}");
    let last = segments.pop().expect("an eighth of the device is free");
    device.release_segment(last).expect("it was allocated");
    segments.push(device.allocate_segment(piece).expect("there is room again"));
    for base in segments {
        device.release_segment(base).expect("it was allocated");
    }
}

/// Events complete in the order of their stream, once they were waited for or the stream was advanced, and
/// not before.
pub fn check_events<D: PatternMemory>(device: &mut D) {
    // A driver may wait for other streams when it makes a stream.
    for stream in [SIDE, OTHER] {
        drop(device.record_event(stream).unwrap());
    }
    device.hold(SIDE).unwrap();
    let first = device.record_event(SIDE).unwrap();
    let second = device.record_event(SIDE).unwrap();
    assert!(!device.is_complete(&first).unwrap() && !device.is_complete(&second).unwrap());
    let other = device.record_event(OTHER).unwrap();
    device.wait(&other).unwrap();
    assert!(device.is_complete(&other).unwrap());
    assert!(!device.is_complete(&first).unwrap(), "streams are independent");
    device.resume(SIDE).unwrap();
    device.wait(&second).unwrap();
    assert!(device.is_complete(&first).unwrap() && device.is_complete(&second).unwrap());
    let default = device.record_event(StreamId::DEFAULT).unwrap();
    let side = device.record_event(SIDE).unwrap();
    device.advance_streams(Some(StreamId::DEFAULT));
    assert!(device.is_complete(&default).unwrap());
    device.advance_streams(None);
    assert!(device.is_complete(&side).unwrap());
    // Events that no one waits for must not take memory in the end.
    for _ in 0..10_000 {
        drop(device.record_event(OTHER).unwrap());
    }
    device.advance_streams(None);
}

/// Addresses get memory page by page, all requested pages or none, and only where addresses were reserved.
///
/// A device without virtual memory passes.
pub fn check_virtual_memory<D: DeviceMemory>(device: &mut D) {
    if device.virtual_memory().is_some() {
        leaves_nothing(device, pages_come_and_go);
    }
}

fn pages_come_and_go<D: DeviceMemory>(device: &mut D) {
    let page = Bytes::mib(20);
    let pages = |count: u64| Bytes::new(page.get() * count);
    // Like the allocator, the test reserves more addresses than the device has memory.
    let size = pages(device.total_memory().get() / page.get() + 8);
    let base = memory(device).reserve(size).expect("addresses are plenty");
    assert_eq!(base.get() % Bytes::mib(2).get(), 0);
    let before = free(device);
    memory(device).map(base, pages(3), page).expect("there is room");
    assert!(before - free(device) >= pages(3));
    assert_unknown(memory(device).map(base.offset(pages(2)), pages(2), page));
    assert_unknown(memory(device).map(base.offset(size), page, page));
    assert_unknown(memory(device).unmap(base.offset(pages(2)), pages(2), page));
    assert_unknown(memory(device).release(base));
    memory(device).unmap(base.offset(pages(1)), pages(1), page).expect("it has memory");
    assert_unknown(memory(device).unmap(base.offset(pages(1)), pages(1), page));
    memory(device).map(base.offset(pages(1)), pages(1), page).expect("there is room");
    leaves_nothing(device, |device| match memory(device).map(base.offset(pages(3)), size - pages(3), page) {
        Err(DeviceError::OutOfMemory { .. }) => {}
        other => panic!("more than the device has came to {other:?}"),
    });
    memory(device).unmap(base, pages(3), page).expect("it has memory");
    memory(device).release(base).expect("it has no memory");
    assert_unknown(memory(device).release(base));
}

/// Bytes stay where they were written, across the borders of pages and while other pages are unmapped.
pub fn check_data<D: PatternMemory>(device: &mut D) {
    let size = Bytes::mib(2);
    let (low, high) = (device.allocate_segment(size).unwrap(), device.allocate_segment(size).unwrap());
    let stream = StreamId::DEFAULT;
    device.fill(stream, patterned(low, size, 1)).unwrap();
    device.fill(SIDE, patterned(high, size, 2)).unwrap();
    device.check(stream, patterned(low, size, 1)).unwrap();
    device.check(SIDE, patterned(high, size, 2)).unwrap();
    assert_eq!(device.faults().unwrap(), []);
    // A check that cannot fail proves nothing.
    let inner = low.offset(Bytes::kib(512));
    device.fill(stream, patterned(inner, Bytes::new(512), 3)).unwrap();
    device.check(stream, patterned(low, size, 1)).unwrap();
    match device.faults().unwrap().as_slice() {
        [Fault { block, wrong: 128, first, found: Some(_) }] if *block == patterned(low, size, 1) => {
            assert!(*first >= inner && *first < inner.offset(Bytes::new(512)), "{first}");
        }
        faults => panic!("the overwritten words came to {faults:?}"),
    }
    for base in [low, high] {
        device.release_segment(base).unwrap();
    }
    if device.virtual_memory().is_some() {
        check_mapped_data(device);
    }
}

fn check_mapped_data<D: PatternMemory>(device: &mut D) {
    let page = Bytes::mib(2);
    let pages = |count: u64| Bytes::new(page.get() * count);
    let base = memory(device).reserve(pages(8)).unwrap();
    memory(device).map(base, pages(4), page).unwrap();
    let stream = StreamId::DEFAULT;
    device.fill(stream, patterned(base, pages(4), 7)).unwrap();
    device.check(stream, patterned(base, pages(4), 7)).unwrap();
    memory(device).unmap(base.offset(pages(1)), pages(1), page).unwrap();
    device.check(stream, patterned(base, page, 7)).unwrap();
    memory(device).map(base.offset(pages(1)), pages(1), page).unwrap();
    memory(device).map(base.offset(pages(4)), pages(4), page).unwrap();
    device.fill(stream, patterned(base.offset(pages(1)), page, 8)).unwrap();
    device.fill(SIDE, patterned(base.offset(pages(4)), pages(4), 9)).unwrap();
    device.check(stream, patterned(base, page, 7)).unwrap();
    device.check(stream, patterned(base.offset(pages(1)), page, 8)).unwrap();
    device.check(SIDE, patterned(base.offset(pages(4)), pages(4), 9)).unwrap();
    assert_eq!(device.faults().unwrap(), []);
    memory(device).unmap(base, pages(8), page).unwrap();
    memory(device).release(base).unwrap();
}

/// Repeats an action until it leaves as much memory free as before; panics if it never does.
///
/// A driver takes and keeps some memory when an action is done for the first time; a leak loses memory each
/// time.
fn leaves_nothing<D: DeviceMemory>(device: &mut D, act: impl Fn(&mut D)) {
    let mut seen = vec![free(device)];
    for _ in 0..3 {
        act(device);
        let left = free(device);
        if seen.last() == Some(&left) {
            return;
        }
        seen.push(left);
    }
    panic!("each time less memory is free: {seen:?}");
}

fn memory<D: DeviceMemory>(device: &mut D) -> &mut dyn VirtualMemory {
    device.virtual_memory().expect("it had virtual memory before")
}

#[track_caller]
fn free<D: DeviceMemory>(device: &mut D) -> Bytes {
    device.memory_info().expect("the device tells").free
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "calls stand in its place")]
fn assert_unknown(result: Result<(), DeviceError>) {
    assert!(matches!(result, Err(DeviceError::UnknownSegment(_))), "{result:?}");
}
