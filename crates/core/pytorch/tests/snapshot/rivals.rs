//! Known mistakes of other readers of snapshots, one test each, mostly of `MemoryViz.js` of 2026.

use blockyard_record::{BlockState, Bytes, MemoryState, TraceAction};
use serde_json::{Value, json};

use crate::pickles::{opcodes, pickle};
use crate::{open, read};

const BASE: u64 = 0x7f00_0000_0000;
const MIB: u64 = 1 << 20;

fn entry(action: &str, addr: u64, size: u64, line: u64) -> Value {
    let frames = json!([{"name": action, "filename": "a.py", "line": line}]);
    json!({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 5 + line, "frames": frames})
}

/// The recording of a trace after which no segment is left.
fn recorded(trace: &[Value]) -> blockyard_record::Recording {
    let file = read(&pickle(&json!({"segments": [], "device_traces": [trace]}))).unwrap();
    blockyard_pytorch::trace::record(&file, 0, "test", &mut |_| std::ops::ControlFlow::Continue(()))
        .unwrap()
        .recording
}

/// Address, size, requested bytes and state of all blocks.
fn blocks(state: &MemoryState) -> Vec<(u64, u64, u64, BlockState)> {
    let snapshot = state.snapshot();
    let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
    blocks.map(|block| (block.addr.get(), block.size.get(), block.requested.get(), block.state)).collect()
}

#[test]
fn a_block_that_is_gone_at_the_end_has_its_size_its_request_and_the_stack_of_its_allocation() {
    let recording = recorded(&[
        entry("segment_alloc", BASE, 2 * MIB, 1),
        entry("alloc", BASE, 100, 2),
        entry("alloc", BASE + 512, 1000, 3),
        entry("free_requested", BASE, 100, 4),
        entry("free_completed", BASE, 100, 5),
        entry("free_requested", BASE + 512, 1000, 6),
        entry("free_completed", BASE + 512, 1000, 7),
        entry("segment_free", BASE, 2 * MIB, 8),
    ]);
    assert!(blocks(&recording.state_at(recording.event_count()).unwrap()).is_empty());
    // The states are read backward from the end. Each block has its rounding, which a reader loses that draws
    // a block as large as its request.
    let (events, _) = (0..=recording.event_count())
        .rev()
        .map(|event| (event, blocks(&recording.state_at(event).unwrap())))
        .find(|(_, blocks)| blocks.iter().filter(|block| block.3 == BlockState::Allocated).count() == 2)
        .expect("both were there");
    let state = recording.state_at(events).unwrap();
    let live: Vec<_> = blocks(&state).into_iter().filter(|block| block.3 == BlockState::Allocated).collect();
    assert_eq!(
        live,
        [(BASE, 512, 100, BlockState::Allocated), (BASE + 512, 1024, 1000, BlockState::Allocated)]
    );
    let line_of = |addr: u64| {
        let snapshot = state.snapshot();
        let mut blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        let allocation = blocks.find(|block| block.addr.get() == addr).unwrap().allocation.unwrap();
        let stack = recording.allocation_stack(allocation);
        let frame = recording.stacks().frames(stack).next().unwrap();
        recording.stacks().frame(frame).line
    };
    assert_eq!((line_of(BASE), line_of(BASE + 512)), (2, 3), "not the stack of the free");
}

#[test]
fn frees_of_blocks_that_are_not_there_stop_nothing() {
    // One trace has only frees of unknown blocks, the other has such frees between other entries: each is
    // skipped and counted.
    let lonely = [entry("free_requested", BASE, 512, 1), entry("free_completed", BASE, 512, 2)];
    for trace in [
        lonely.to_vec(),
        [
            &[entry("segment_alloc", BASE, 2 * MIB, 3)],
            &lonely[1..],
            &lonely[..],
            &[entry("alloc", BASE, 7, 4)],
        ]
        .concat(),
    ] {
        let file = read(&pickle(&json!({"segments": [], "device_traces": [trace]}))).unwrap();
        let found =
            blockyard_pytorch::trace::record(&file, 0, "test", &mut |_| std::ops::ControlFlow::Continue(()))
                .unwrap();
        let recording = &found.recording;
        for event in 0..=recording.event_count() {
            recording.state_at(event).unwrap();
        }
        let has_alloc = file.devices[0].trace.iter().any(|entry| entry.entry.action == TraceAction::Alloc);
        assert_eq!(blockyard_pytorch::trace::unplaced(&file, 0).unwrap().is_some(), !has_alloc);
        assert!(found.misfits.unmatched_frees > 0, "{:?}", found.misfits);
    }
}

#[test]
fn a_segment_that_comes_back_stands_at_its_address() {
    let first = [
        entry("segment_alloc", BASE, 2 * MIB, 1),
        entry("segment_alloc", BASE + 64 * MIB, 20 * MIB, 2),
        entry("segment_free", BASE + 64 * MIB, 20 * MIB, 3),
        entry("segment_alloc", BASE + 32 * MIB, 20 * MIB, 4),
    ];
    let recording = recorded(&[&first[..], &[entry("segment_alloc", BASE + 64 * MIB, 20 * MIB, 5)]].concat());
    // At each moment all segments have different addresses, also after one was released and allocated again.
    for event in (0..=recording.event_count()).rev() {
        let snapshot = recording.state_at(event).unwrap().snapshot();
        let addrs: Vec<u64> = snapshot.segments.iter().map(|segment| segment.addr.get()).collect();
        let mut sorted = addrs.clone();
        sorted.sort_unstable();
        let ids = snapshot.segments.len();
        assert_eq!(sorted.len(), ids);
        sorted.dedup();
        assert_eq!(sorted.len(), ids, "two segments at one address after event {event}: {addrs:x?}");
    }
    let end = recording.state_at(recording.event_count()).unwrap().snapshot();
    let mut addrs: Vec<u64> = end.segments.iter().map(|segment| segment.addr.get()).collect();
    addrs.sort_unstable();
    assert_eq!(addrs, [BASE, BASE + 32 * MIB, BASE + 64 * MIB]);
}

#[test]
fn addresses_are_exact_in_json_and_beyond_eight_bytes() {
    // A double cannot hold the odd number exactly, and a pickle writes the large number in nine bytes.
    let odd = (1_u64 << 53) + 513;
    let large = 0xffff_8000_0000_0000_u64;
    let file = json!({"segments": [], "device_traces": [[
        entry("segment_alloc", odd, 2 * MIB, 1), entry("segment_alloc", large, 2 * MIB, 2),
    ]]});
    let from_json = read(file.to_string().as_bytes()).unwrap();
    let addrs: Vec<u64> = from_json.devices[0].trace.iter().map(|entry| entry.entry.addr).collect();
    assert_eq!(addrs, [odd, large]);
    let mut written = Vec::new();
    from_json.write_pickle(&mut written).unwrap();
    assert!(written.windows(2).any(|bytes| bytes == [0x8a, 9]), "nine bytes");
    let from_pickle = read(&written).unwrap();
    assert!(from_pickle.devices[0].trace.iter().map(|entry| entry.entry.addr).eq(addrs));
}

#[test]
fn a_list_of_any_length_may_come_in_one_piece() {
    const ENTRIES: usize = 300_000;
    // Python's pickler appends a thousand values at a time; other writers may append any number.
    let mut one = Vec::new();
    opcodes(&entry("segment_alloc", BASE, 2 * MIB, 1), &mut one);
    let mut bytes = b"\x80\x05}\x94(\x8c\x08segments]\x8c\x0ddevice_traces](](".to_vec();
    for _ in 0..ENTRIES {
        bytes.extend(&one);
    }
    bytes.extend(b"eeu.");
    assert_eq!(read(&bytes).unwrap().devices[0].trace.len(), ENTRIES);
}

#[test]
fn mapped_pages_are_part_of_what_is_reserved() {
    let range = entry("segment_map", BASE, 20 * MIB, 1);
    let recording = recorded(&[
        range,
        entry("alloc", BASE, 12 * MIB, 2),
        entry("segment_map", BASE + 20 * MIB, 40 * MIB, 3),
        entry("alloc", BASE + 12 * MIB, 30 * MIB, 4),
        entry("free_requested", BASE + 12 * MIB, 30 * MIB, 5),
        entry("free_completed", BASE + 12 * MIB, 30 * MIB, 6),
        entry("segment_unmap", BASE + 20 * MIB, 40 * MIB, 7),
    ]);
    let reserved: Vec<Bytes> =
        (0..recording.step_count()).map(|step| recording.breakdown_after(step).unwrap().reserved()).collect();
    assert_eq!(reserved.iter().max(), Some(&Bytes::mib(60)));
    assert_eq!(reserved.last(), Some(&Bytes::mib(20)));
}

#[test]
fn pools_streams_and_categories_that_no_reader_knows_are_no_reason_to_stop() {
    // `categories` without `unknown` stopped MemoryViz.js; here each field that is not known is counted.
    let mut value = json!({"segments": [], "device_traces": [[entry("segment_alloc", BASE, 2 * MIB, 1)]]});
    value["categories"] = json!(["weights", "activations"]);
    value["device_traces"][0][0]["category"] = json!(1);
    let file = read(&pickle(&value)).unwrap();
    assert_eq!(file.devices[0].trace.len(), 1);
    assert!(file.notes.iter().any(|note| note.contains("category (1 time)")), "{:?}", file.notes);
    // And a file in which frees are missing altogether opens too.
    let mut whole = open("checkerboard_default_100.pickle.gz");
    whole.devices[0].trace = whole.devices[0]
        .trace
        .without(|entry| matches!(entry.action, TraceAction::FreeRequested | TraceAction::FreeCompleted));
    blockyard_pytorch::trace::record(&whole, 0, "test", &mut |_| std::ops::ControlFlow::Continue(()))
        .unwrap();
}
