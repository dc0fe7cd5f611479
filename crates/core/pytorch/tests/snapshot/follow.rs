//! Traces that begin with an empty device lead to the segments and blocks of their snapshots.

use blockyard_pytorch::snapshot::{DeviceSnapshot, DeviceTrace, FollowedDevice, SnapshotSegment};
use blockyard_record::{PoolId, StackId, TraceAction};
use blockyard_rules::{AllocatorConfig, Release};

use crate::open;

/// What is compared of segments: all but stacks. A free block has the bytes of its last request.
fn texts(device: &DeviceSnapshot) -> Vec<String> {
    let text = |segment: &SnapshotSegment| {
        let blocks: Vec<String> = segment
            .blocks
            .iter()
            .map(|block| {
                let requested = block.requested.unwrap_or_default();
                format!("{:x} {} {:?} {requested:?}", block.addr(), block.size.get(), block.state)
            })
            .collect();
        let kind = (segment.pool, segment.stream, segment.is_expandable);
        format!(
            "{:x} {} {kind:?} {:?}: {}",
            segment.addr,
            segment.size.get(),
            segment.sums,
            blocks.join(", ")
        )
    };
    device.segments.iter().map(text).collect()
}

#[test]
fn a_whole_trace_leads_to_the_snapshot() {
    // Those whose recording began before the first request, and has no memory pool: entries of 2.11 do not name it.
    for name in ["checkerboard_default_100.pickle.gz"] {
        let file = open(name);
        let config = AllocatorConfig::parse(&file.settings.conf, Release::default()).unwrap();
        for device in &file.devices {
            let empty = DeviceSnapshot { index: device.index, ..DeviceSnapshot::default() };
            let mut followed = FollowedDevice::of(&empty, config.clone());
            for entry in device.trace.iter() {
                followed.apply(&entry.entry, PoolId::DEFAULT, entry.stack);
            }
            assert_eq!(followed.misfits(), 0, "{name}");
            assert_eq!(texts(&followed.snapshot(DeviceTrace::default())), texts(device), "{name}");
            // From the snapshot on, nothing has happened yet.
            let again = FollowedDevice::of(device, config.clone());
            assert_eq!(again.memory(), followed.memory(), "{name}");
            assert_eq!(texts(&again.snapshot(DeviceTrace::default())), texts(device), "{name}");
        }
    }
}

#[test]
fn pages_of_an_expandable_segment_join_and_part() {
    const PAGE: u64 = 20 << 20;
    let config = AllocatorConfig::parse("expandable_segments:True", Release::default()).unwrap();
    let mut followed = FollowedDevice::of(&DeviceSnapshot::default(), config);
    let mut apply = |action, addr: u64, size: u64| {
        let entry = blockyard_record::TraceEntry {
            action,
            addr,
            size: blockyard_record::Bytes::new(size),
            stream: blockyard_record::StreamId::DEFAULT,
        };
        followed.apply(&entry, PoolId::DEFAULT, StackId::EMPTY);
        followed
            .snapshot(DeviceTrace::default())
            .segments
            .iter()
            .map(|one| (one.addr, one.size.get()))
            .collect::<Vec<_>>()
    };
    apply(TraceAction::SegmentMap, 0, PAGE);
    assert_eq!(apply(TraceAction::SegmentMap, 2 * PAGE, PAGE), [(0, PAGE), (2 * PAGE, PAGE)]);
    assert_eq!(apply(TraceAction::SegmentMap, PAGE, PAGE), [(0, 3 * PAGE)]);
    apply(TraceAction::Alloc, 0, PAGE);
    // Memory in use is not unmapped.
    assert_eq!(apply(TraceAction::SegmentUnmap, 0, PAGE), [(0, 3 * PAGE)]);
    assert_eq!(apply(TraceAction::SegmentUnmap, PAGE, PAGE), [(0, PAGE), (2 * PAGE, PAGE)]);
    assert_eq!(followed.misfits(), 1);
}
