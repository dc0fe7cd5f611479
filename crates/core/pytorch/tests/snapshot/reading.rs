use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{FileKind, SnapshotFile, SnapshotSegment, file_kind};
use blockyard_pytorch::{MemoryFile, OpenError};
use blockyard_record::{BlockState, Bytes, Frame, PoolId, TraceAction};

use crate::{fixture, open, unpacked};

/// The contents of a file, independent of how its texts are numbered.
fn content(file: &SnapshotFile) -> Vec<String> {
    let stack = |stack| -> Vec<Frame<'_>> {
        file.stacks.frames(stack).map(|frame| file.stacks.frame(frame)).collect()
    };
    let mut lines = Vec::new();
    for device in &file.devices {
        lines.push(format!("device {}", device.index));
        lines.extend(
            device
                .trace
                .iter()
                .map(|entry| format!("{:?} {} {:?}", entry.entry, entry.time_us, stack(entry.stack))),
        );
        for segment in &device.segments {
            let SnapshotSegment { addr, size, pool, .. } = segment;
            lines.push(format!("{addr} {size} {pool:?} {:?}", stack(segment.stack)));
            lines.extend(segment.blocks.iter().map(|block| {
                format!("  {} {} {:?} {:?}", block.addr(), block.size, block.state, stack(block.stack))
            }));
        }
    }
    lines
}

#[test]
fn every_protocol_and_container_says_the_same() {
    let expected = open("checkerboard_default_100.pickle.gz");
    let trace = &expected.devices[0].trace;
    assert_eq!((expected.devices.len(), trace.len(), expected.devices[0].segments.len()), (1, 113, 4));
    for name in [
        "protocol2.pickle.gz",
        "protocol3.pickle.gz",
        "protocol4.pickle.gz",
        "protocol5.pickle.gz",
        "checkerboard.json.gz",
        "checkerboard.html.gz",
        "checkerboard.zip",
        "checkerboard.pickle.zst",
    ] {
        let found = open(name);
        assert_eq!(content(&found), content(&expected), "{name}");
        assert_eq!(found.settings, expected.settings, "{name}");
        assert_eq!(found.notes, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_bare_list_of_segments_is_a_snapshot_without_a_trace() {
    let whole = open("checkerboard_default_100.pickle.gz");
    let segments = open("segments.pickle.gz");
    assert_eq!(segments.devices[0].segments.len(), 4);
    assert!(segments.devices[0].trace.is_empty());
    for (found, expected) in segments.devices[0].segments.iter().zip(&whole.devices[0].segments) {
        assert_eq!(
            (found.addr, found.size, found.blocks.len()),
            (expected.addr, expected.size, expected.blocks.len())
        );
    }
}

#[test]
fn entries_have_what_pytorch_wrote() {
    let file = open("checkerboard_default_100.pickle.gz");
    let trace = &file.devices[0].trace;
    let first = trace.get(0).unwrap();
    assert_eq!(first.entry.action, TraceAction::SegmentAlloc);
    assert_eq!((first.entry.addr, first.entry.size), (139_957_918_236_672, Bytes::mib(240)));
    assert_eq!(first.time_us, 1_795_299_330_742_135);
    let inner = file.stacks.frames(first.stack).next().unwrap();
    assert_eq!(file.stacks.frame(inner), Frame { name: "buf", filename: "train.py", line: 12 });
    let last = trace.get(112).unwrap().entry;
    assert_eq!(
        (last.action, last.addr, last.size),
        (TraceAction::OutOfMemory, 143_325_069_312, Bytes::mib(300))
    );
    let segment = &file.devices[0].segments[0];
    assert_eq!(segment.sums[0], Bytes::mib(120));
    let block = &segment.blocks[0];
    assert_eq!(
        (block.size, block.requested, block.state),
        (Bytes::mib(20), Some(Bytes::mib(20)), BlockState::Inactive)
    );
}

#[test]
fn pools_and_devices_are_told_apart() {
    let pools = open("mem_pool_cache_100.pickle.gz");
    let private =
        pools.devices[0].segments.iter().filter(|segment| segment.pool_id == PoolId { capture: 0, user: 1 });
    assert!(private.count() > 0);
    let ranks = [open("rank0.pickle.gz"), open("rank1.pickle.gz")];
    let indices: Vec<u32> =
        ranks.iter().flat_map(|rank| rank.devices.iter().map(|device| device.index)).collect();
    assert_eq!(indices, [0, 1]);
    assert_eq!(ranks[0].devices[0].trace.len(), 9082);
    assert_eq!(ranks[0].devices[0].trace.streams().len(), 3);
    assert_eq!(ranks[0].annotations.len(), 1068);
    let first = ranks[0].annotations[0];
    assert_eq!(ranks[0].stacks.texts().get(first.name), "step 0");
    assert_eq!((first.is_end, first.device), (false, Some(0)));
}

#[test]
fn stacks_are_there_once() {
    let file = open("resnet50_amp.pickle.gz");
    assert_eq!((file.devices[0].trace.len(), file.stacks.len(), file.stacks.frame_count()), (13096, 67, 66));
}

#[test]
fn kinds_are_told_by_the_beginning() {
    for name in ["protocol2.pickle.gz", "checkerboard.json.gz", "checkerboard.html.gz", "segments.pickle.gz"]
    {
        assert_eq!(file_kind(&fixture(name)[..200]), FileKind::Snapshot, "{name}");
        assert_eq!(file_kind(&unpacked(name)), FileKind::Snapshot, "{name}");
    }
    assert_eq!(file_kind(&fixture("checkerboard.zip")), FileKind::Packed);
    assert_eq!(file_kind(b"{\"meta\": {\"name\": \"x\"}}"), FileKind::Recording);
    assert_eq!(file_kind(b"a = alloc 3MiB"), FileKind::Other);
    assert_eq!(file_kind(b""), FileKind::Other);
    let opened = |bytes: &[u8]| MemoryFile::read(bytes, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(opened(&fixture("checkerboard.zip")), Ok(MemoryFile::Snapshot(_))));
    assert!(matches!(opened(b"{\"meta\": 3}"), Err(OpenError::Recording(_))));
    assert!(matches!(opened(b"a = alloc 3MiB"), Ok(MemoryFile::Text(text)) if text == "a = alloc 3MiB"));
    assert!(matches!(opened(b"\xff\xfe\x00"), Err(OpenError::Unknown(_))));
}
