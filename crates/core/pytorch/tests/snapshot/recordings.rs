//! Recordings of snapshots: what happened, without an allocator.

use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{DeviceSnapshot, SnapshotFile};
use blockyard_pytorch::trace::{DeviceRecording, Misfits};
use blockyard_record::{BlockState, Bytes, Event, SegmentSnapshot, StackId, TraceAction};

use serde_json::json;

use crate::pickles::pickle;
use crate::{open, read};

fn record(file: &SnapshotFile, place: usize) -> DeviceRecording {
    blockyard_pytorch::trace::record(file, place, "test", &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Segments with their blocks: address, size, state, and the requested bytes of active blocks.
type Picture = Vec<(u64, Bytes, Vec<(u64, Bytes, BlockState, Option<Bytes>)>)>;

fn picture(segments: &[SegmentSnapshot]) -> Picture {
    let runs = segments.iter().flat_map(SegmentSnapshot::mapped_runs);
    runs.map(|segment| {
        let blocks = segment.blocks.iter().map(|block| {
            let requested = block.state.is_active().then_some(block.requested);
            (block.addr.get(), block.size, block.state, requested)
        });
        (segment.addr.get(), segment.size, blocks.collect())
    })
    .collect()
}

fn expected(device: &DeviceSnapshot) -> Picture {
    let segments = device.segments.iter().map(|segment| {
        let blocks = segment.blocks.iter().map(|block| {
            let requested = if block.state.is_active() { block.requested } else { None };
            (block.addr(), block.size, block.state, requested)
        });
        (segment.addr, segment.size, blocks.collect())
    });
    segments.collect()
}

#[track_caller]
fn check(name: &str) -> Vec<DeviceRecording> {
    let file = open(name);
    let recordings: Vec<DeviceRecording> =
        (0..file.devices.len()).map(|place| record(&file, place)).collect();
    for (device, found) in file.devices.iter().zip(&recordings) {
        assert_eq!(found.misfits, Misfits::default(), "{name}");
        let recording = &found.recording;
        let end = recording.state_at(recording.event_count()).unwrap();
        assert_eq!(picture(&end.snapshot().segments), expected(device), "{name}");
        // Every entry is an event, in order, and equals the entry of the trace.
        let trace = recording.trace().unwrap();
        assert_eq!(trace.len(), device.trace.len(), "{name}");
        for (index, entry) in trace.iter().enumerate() {
            assert_eq!(Some(*entry), device.trace.entry(index), "{name}, entry {index}");
        }
    }
    recordings
}

#[test]
fn the_end_of_a_recording_is_what_the_snapshot_shows() {
    for name in [
        "checkerboard_default_100.pickle.gz",
        "long_lived_in_buffers_100.pickle.gz",
        "mem_pool_cache_100.pickle.gz",
        "side_stream_cache_80.pickle.gz",
        "rounding_100.pickle.gz",
        "rank0.pickle.gz",
        "rank1.pickle.gz",
        "resnet50_amp.pickle.gz",
    ] {
        check(name);
    }
}

#[test]
fn allocations_have_the_stacks_of_their_entries() {
    let file = open("resnet50_amp.pickle.gz");
    let found = record(&file, 0).recording;
    let entries = file.devices[0].trace.iter();
    let stacks: Vec<StackId> =
        entries.filter(|entry| entry.entry.action == TraceAction::Alloc).map(|entry| entry.stack).collect();
    for (number, stack) in (0..).zip(&stacks) {
        assert_eq!(found.allocation_stack(blockyard_record::AllocationId::new(number)), *stack);
    }
    assert_eq!(stacks.iter().filter(|stack| **stack != StackId::EMPTY).count(), 2045);
    assert_eq!(found.stacks().len(), 67);
}

#[test]
fn steps_have_their_time_and_markers_their_steps() {
    let file = open("rank0.pickle.gz");
    let recording = record(&file, 0).recording;
    let times: Vec<u64> = recording.times_us_from(0).collect();
    assert_eq!(times.len(), recording.step_count());
    assert_eq!(times[0], 1_795_300_156_115_310);
    assert_eq!(recording.time_us(times.len() - 1), Some(1_795_300_158_858_628));
    let step = recording.markers().iter().find(|marker| marker.text == "step 0").unwrap();
    assert_eq!(step.start_us, 1_795_300_157_626_818);
    let (start, end) = (step.start_step as usize, step.end_step.unwrap() as usize);
    assert!(times[start - 1] < step.start_us && times[start] >= step.start_us);
    assert!(times[end - 1] < step.end_us.unwrap() && times[end] >= step.end_us.unwrap());
    assert!(recording.markers().iter().all(|marker| marker.end_us.is_some()));
}

#[test]
fn a_failed_request_says_what_was_free() {
    let file = open("checkerboard_default_100.pickle.gz");
    let recording = record(&file, 0).recording;
    let [(step, outcome)] = recording.failed_steps() else { panic!("one request failed") };
    assert_eq!(*step as usize, recording.step_count() - 1);
    let text = format!("{outcome:?}");
    assert!(
        text.contains(
            "A process limit between 960 MiB and 1.23 GiB, not the GPU: 300 MiB were asked for, 960 MiB were"
        ),
        "{text}"
    );
    // The file does not have PyTorch's message, so no message imitates it.
    assert!(!text.contains("CUDA out of memory") && !text.contains("Tried to allocate"), "{text}");
}

#[test]
fn a_snapshot_without_a_trace_is_a_moment() {
    let file = open("segments.pickle.gz");
    let found = record(&file, 0);
    assert_eq!((found.recording.event_count(), found.recording.step_count()), (0, 0));
    assert_eq!(picture(&found.recording.initial_state().snapshot().segments), expected(&file.devices[0]));
    assert!(found.notes[0].starts_with("the snapshot has no trace"));
}

#[test]
fn a_ring_buffer_that_lost_its_beginning_is_found_from_the_end() {
    let whole = open("resnet50_amp.pickle.gz");
    let full = record(&whole, 0).recording;
    for cut in [1, 2, 50, 333, 5000, 13_000] {
        let mut file = whole.clone();
        file.devices[0].trace = whole.devices[0].trace.from(cut);
        let found = record(&file, 0);
        assert_eq!(found.misfits, Misfits::default(), "from {cut}");
        let recording = &found.recording;
        let end = recording.state_at(recording.event_count()).unwrap();
        assert_eq!(picture(&end.snapshot().segments), expected(&file.devices[0]), "from {cut}");
        assert!(found.notes[0].starts_with("the trace begins late"), "{:?}", found.notes);
        // The memory at the beginning is the memory of the whole recording at that entry, except for sizes
        // that no entry tells.
        let mut state = full.initial_state();
        let mut entries = 0;
        for event in full.events_from(0) {
            if entries == cut {
                break;
            }
            entries += usize::from(state.trace_entry(&event).is_some());
            state.apply(&event).unwrap();
        }
        let active = |segments: &[SegmentSnapshot]| -> Vec<(u64, Bytes, BlockState)> {
            let blocks = segments.iter().flat_map(|segment| &segment.blocks);
            let active = blocks.filter(|block| block.state.is_active());
            active.map(|block| (block.addr.get(), block.requested, block.state)).collect()
        };
        let start = recording.initial_state().snapshot();
        assert_eq!(active(&start.segments), active(&state.snapshot().segments), "from {cut}");
        for open in recording.open_sizes() {
            let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
            let block = blocks.clone().find(|block| block.allocation == Some(open.allocation)).unwrap();
            let exact = state
                .snapshot()
                .segments
                .iter()
                .flat_map(|segment| segment.blocks.clone())
                .find(|exact| exact.addr == block.addr)
                .unwrap();
            assert!(
                (block.size..=block.size.saturating_add(open.extra)).contains(&exact.size),
                "{block:?} {exact:?}"
            );
        }
    }
}

#[test]
fn frees_that_are_missing_are_counted() {
    let whole = open("resnet50_amp.pickle.gz");
    let mut file = whole.clone();
    // Every third completed or requested free is lost, as with `skip_actions`.
    let mut count = 0;
    file.devices[0].trace = whole.devices[0].trace.without(|entry| {
        count += 1;
        count % 3 == 0 && matches!(entry.action, TraceAction::FreeCompleted | TraceAction::FreeRequested)
    });
    let found = record(&file, 0);
    assert!(found.misfits.missing_frees > 0, "{:?}", found.misfits);
    assert!(found.notes.iter().any(|note| note.contains("missing in the trace")), "{:?}", found.notes);
    let recording = &found.recording;
    recording.state_at(recording.event_count()).unwrap();
    // Without segment entries, the segments are those of the end.
    let mut file = whole.clone();
    file.devices[0].trace = whole.devices[0].trace.without(|entry| entry.action == TraceAction::SegmentAlloc);
    let found = record(&file, 0);
    assert_eq!(found.misfits, Misfits::default());
    assert_eq!(found.recording.trace().unwrap().len(), file.devices[0].trace.len());
}

#[test]
fn a_trace_without_any_segment_says_why_nothing_is_drawn() {
    let alloc = |line: u64, size: u64| {
        json!({"action": "alloc", "addr": 7 * line, "size": size, "stream": 0,
            "frames": [{"name": "f", "filename": "a.py", "line": line}]})
    };
    let many: Vec<_> =
        (1..=12).map(|line| alloc(line, 100 * line)).chain([alloc(3, 5000), alloc(3, 1)]).collect();
    let nothing = json!({"action": "snapshot", "addr": 0, "size": 0, "stream": 0});
    let file = json!({"segments": [], "device_traces": [many, [nothing]]});
    let file = read(&pickle(&file)).unwrap();
    let unplaced = blockyard_pytorch::trace::unplaced(&file, 0).unwrap().expect("no memory");
    assert!(
        unplaced.reason.starts_with(
            "The trace of device 0 has 14 allocations of 12.5 KiB in all, in memory that no segment"
        ),
        "{}",
        unplaced.reason
    );
    assert_eq!(unplaced.actions, [("alloc".to_owned(), 14)]);
    assert_eq!((unplaced.stack_count, unplaced.stacks.len()), (12, 10));
    let first = unplaced.stacks[0];
    assert_eq!((first.allocations, first.requested.get()), (3, 5301));
    assert_eq!(file.stacks.frames(first.stack).map(|frame| file.stacks.frame(frame).line).next(), Some(3));
    assert!(unplaced.stacks.is_sorted_by(|one, next| one.requested >= next.requested));
    let other = blockyard_pytorch::trace::unplaced(&file, 1).unwrap().expect("no memory either");
    assert!(other.reason.contains("no allocation and no segment (entries: 1)"), "{}", other.reason);
    assert_eq!(other.actions, [("snapshot".to_owned(), 1)]);
    for name in ["resnet50_amp.pickle.gz", "segments.pickle.gz", "mem_pool_cache_100.pickle.gz"] {
        assert_eq!(blockyard_pytorch::trace::unplaced(&open(name), 0).unwrap(), None, "{name} has memory");
    }
    blockyard_pytorch::trace::unplaced(&file, 2).expect_err("there is no third device");
}

#[test]
fn a_failed_request_needs_the_segment_that_pytorch_asks_for() {
    // The trace has the size of the request alone: PyTorch takes a segment of 20 MiB for a request of 2 MiB.
    for (name, size, segment) in [
        ("../oom/loss_history_100.pickle.gz", Bytes::mib(2), Bytes::mib(20)),
        ("checkerboard_default_100.pickle.gz", Bytes::mib(300), Bytes::mib(300)),
    ] {
        let recording = record(&open(name), 0).recording;
        let asked = (0..recording.event_count()).find_map(|event| match recording.event(event) {
            Some(Event::OutOfMemory { requested, segment_size, .. }) => Some((requested, segment_size)),
            _ => None,
        });
        assert_eq!(asked, Some((size, segment)), "{name}");
    }
}
