//! What PyTorch 2.12 to 2.15 added to snapshots.

use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{DeviceSnapshot, FieldError, SnapshotError, SnapshotFile};
use blockyard_record::{Bytes, PoolId, Recording, TraceAction, TraceEntry};

use crate::{open, read};

fn record(file: &SnapshotFile, place: usize) -> Recording {
    blockyard_pytorch::trace::record(file, place, "", &mut |_| ControlFlow::Continue(())).unwrap().recording
}

fn host(file: &SnapshotFile) -> &DeviceSnapshot {
    file.host.as_ref().expect("the snapshot has host memory")
}

#[test]
fn a_snapshot_of_2_15_opens_with_all_its_parts() {
    let file = open("small_2.15.pickle");
    assert_eq!(file.notes, Vec::<String>::new());
    assert_eq!(file.devices.len(), 1);
    // An annotation is no entry: it changes no memory.
    assert_eq!((file.devices[0].trace.len(), file.devices[0].segments.len()), (12, 3));
    let pools: Vec<Option<PoolId>> =
        file.devices[0].trace.iter().map(|entry| file.contexts[entry.context as usize].pool_id).collect();
    let private = Some(PoolId { capture: 0, user: 1 });
    assert_eq!(pools.iter().filter(|pool| **pool == private).count(), 2);
    assert!(pools.iter().all(Option::is_some));
    for name in ["max_round_threshold", "max_cached_size"] {
        let value = file.settings.values.iter().find(|(known, _)| known == name);
        assert_eq!(value.map(|(_, value)| value.as_str()), Some("-1"), "{name}");
    }
    let metadata = |index: usize| {
        let entry = file.devices[0].trace.get(index).unwrap();
        file.contexts[entry.context as usize].user_metadata.map(|text| file.stacks.texts().get(text))
    };
    assert_eq!((metadata(0), metadata(5)), (None, Some("{\"phase\":\"fwd\"}")));
    assert_eq!(open("small_2.11.pickle").host.map(|host| host.segments.len()), None);
}

#[test]
fn host_memory_is_drawn_block_by_block() {
    let file = open("small_2.15.pickle");
    let place = file.host_place().unwrap();
    assert_eq!((place, file.memory(place).unwrap().name()), (1, "host (pinned memory)".to_owned()));
    assert_eq!((host(&file).trace.len(), host(&file).segments.len()), (6, 2));
    let found =
        blockyard_pytorch::trace::record(&file, place, "", &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((found.is_host, found.notes), (true, Vec::new()));
    let recording = found.recording;
    let most = recording.breakdowns_from(0).map(|breakdown| breakdown.allocated()).max();
    assert_eq!(most, Some(Bytes::kib(16) + Bytes::kib(512)));
    let end = recording.state_at(recording.event_count()).unwrap().breakdown();
    assert_eq!((end.allocated(), end.reserved()), (Bytes::kib(16), Bytes::kib(528)));
    // Pinned blocks are not rounded to the units of a GPU's allocator.
    assert_eq!(end.rounding, Bytes::ZERO);
    let trace: Vec<TraceEntry> = host(&file).trace.iter().map(|entry| entry.entry).collect();
    assert_eq!(recording.trace().unwrap(), trace);
}

#[test]
fn blocks_of_host_memory_may_be_smaller_than_a_gpu_rounds_to() {
    let mut value = small_host();
    value["host_traces"][0]["size"] = 48.into();
    value["host_traces"][1]["size"] = 48.into();
    value["host_segments"] = serde_json::json!([]);
    let file = read(value.to_string().as_bytes()).unwrap();
    let recording = record(&file, file.host_place().unwrap());
    let most = recording.breakdowns_from(0).map(|breakdown| breakdown.allocated()).max();
    assert_eq!(most, Some(Bytes::new(48)));
}

/// A snapshot with one pinned block and no other memory.
fn small_host() -> serde_json::Value {
    let entry = |action: &str| serde_json::json!({"action": action, "addr": 4096, "size": 64, "stream": 0});
    serde_json::json!({
        "segments": [], "device_traces": [],
        "host_segments": [{"device": -1, "address": 4096, "total_size": 64, "blocks": [
            {"address": 4096, "size": 64, "requested_size": 64, "state": "active_allocated", "frames": []}
        ]}],
        "host_traces": [entry("segment_alloc"), entry("alloc")],
    })
}

#[test]
fn host_memory_is_not_taken_for_a_gpu() {
    let file = read(small_host().to_string().as_bytes()).unwrap();
    assert_eq!((file.devices.len(), file.host_place()), (0, Some(0)));
    let error = blockyard_pytorch::trace::recorded_run(&file, 0, "").expect_err("no requests of a GPU");
    assert!(matches!(error, SnapshotError::Field { error: FieldError::HostMemory, .. }), "{error}");
    assert_eq!(record(&file, 0).step_count(), 1);
}

#[test]
fn an_annotation_names_its_block() {
    let file = open("small_2.15.pickle");
    let recording = record(&file, 0);
    let end = recording.state_at(recording.event_count()).unwrap().snapshot();
    let blocks = end.segments.iter().flat_map(|segment| &segment.blocks);
    let named: Vec<(Bytes, &str)> =
        blocks.filter_map(|block| Some((block.size, recording.name(block.allocation?)?))).collect();
    assert_eq!(named, [(Bytes::mib(20), "saved for backward")]);
}

#[test]
fn annotations_name_the_block_that_is_there_at_their_moment() {
    let entry = |action: &str, text: &str| serde_json::json!({"action": action, "addr": 2 << 20, "size": 1024, "stream": 0, "user_metadata": text});
    let segment =
        serde_json::json!({"action": "segment_alloc", "addr": 2 << 20, "size": 2 << 20, "stream": 0});
    let value = serde_json::json!({"segments": [], "device_traces": [[
        entry("annotate", "too early"), segment, entry("alloc", ""), entry("annotate", "first"), entry("annotate", "again"),
        entry("annotate", "first"), entry("free_requested", ""), entry("free_completed", ""), entry("annotate", "too late"),
        entry("alloc", ""), entry("annotate", "second"),
    ]]});
    let file = read(value.to_string().as_bytes()).unwrap();
    assert_eq!(file.devices[0].trace.tensor_annotations().len(), 6);
    let found = blockyard_pytorch::trace::record(&file, 0, "", &mut |_| ControlFlow::Continue(())).unwrap();
    let names: Vec<Option<&str>> =
        (0..2).map(|number| found.recording.name(blockyard_record::AllocationId::new(number))).collect();
    assert_eq!(names, [Some("first, again"), Some("second")]);
    assert_eq!(found.notes, ["2 annotations of a tensor name memory that holds no block; left out"]);
    // A ring buffer that lost its first entries lost their annotations too.
    let late = file.devices[0].trace.from(4);
    let texts = late.tensor_annotations().iter().map(|annotation| annotation.after).collect::<Vec<_>>();
    assert_eq!((late.len(), texts), (1, vec![0, 1]));
}

#[test]
fn the_trace_names_the_pools_of_requests() {
    use blockyard_pytorch::trace;
    use blockyard_workload::Request;
    let mut file = open("small_2.15.pickle");
    let pools = |file: &SnapshotFile| {
        let run = trace::recorded_run(file, 0, "").unwrap();
        let inferred = trace::requests_after(&run, trace::beginning(file, 0).unwrap()).unwrap();
        let entered = |request: &Request| match request {
            Request::EnterPool { pool_id } => Some(*pool_id),
            _ => None,
        };
        (inferred.workload.requests().iter().filter_map(entered).collect::<Vec<_>>(), inferred.notes)
    };
    let private = PoolId { capture: 0, user: 1 };
    let (entered, notes) = pools(&file);
    assert_eq!(entered, [private]);
    assert!(!notes.iter().any(|note| note.contains("because the segment exists at the end")), "{notes:?}");
    // The segment may be released before the end: then only the entry has its pool.
    file.devices[0].segments.retain(|segment| segment.pool_id == PoolId::DEFAULT);
    let run = blockyard_pytorch::trace::recorded_run(&file, 0, "").unwrap();
    let named = run.trace.unwrap().into_iter().zip(run.trace_pools);
    let private: Vec<TraceAction> =
        named.filter(|(_, pool)| *pool == private).map(|(entry, _)| entry.action).collect();
    assert_eq!(private, [TraceAction::SegmentAlloc, TraceAction::Alloc]);
    assert!(
        blockyard_pytorch::trace::recorded_run(&open("small_2.11.pickle"), 0, "")
            .unwrap()
            .trace_pools
            .is_empty()
    );
}

#[test]
fn what_is_written_has_the_host_and_the_annotations() {
    let file = open("small_2.15.pickle");
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes).unwrap();
    let again = read(&bytes).unwrap();
    assert_eq!(again.notes, Vec::<String>::new());
    let entries = |device: &DeviceSnapshot| -> Vec<(TraceEntry, u64)> {
        device.trace.iter().map(|entry| (entry.entry, entry.time_us)).collect()
    };
    for (found, expected) in again.memories().zip(file.memories()) {
        assert_eq!(entries(found), entries(expected));
        let places = |device: &DeviceSnapshot| -> Vec<(usize, u64, Bytes)> {
            let annotations = device.trace.tensor_annotations().iter();
            annotations.map(|annotation| (annotation.after, annotation.addr, annotation.size)).collect()
        };
        assert_eq!(places(found), places(expected));
        assert_eq!(found.segments.len(), expected.segments.len());
        assert_eq!(found.is_host, expected.is_host);
    }
    assert_eq!(again.memories().count(), 2);
    assert_eq!(again.settings, file.settings);
    let name = record(&again, 0).name(blockyard_record::AllocationId::new(2)).map(str::to_owned);
    assert_eq!(name.as_deref(), Some("saved for backward"));
}

#[test]
fn metadata_of_any_kind_is_read_as_json() {
    let mut value = small_host();
    let nested = serde_json::json!({"phase": "fwd", "layers": [1, 2.5, null, true]});
    value["host_traces"][0]["user_metadata"] = nested.clone();
    value["host_traces"][1]["internal_metadata"] = serde_json::json!("graph");
    for bytes in [value.to_string().into_bytes(), crate::pickles::pickle(&value)] {
        let file = read(&bytes).unwrap();
        assert_eq!(file.notes, Vec::<String>::new());
        let texts = file.stacks.texts();
        let context = |index: usize| {
            let entry = host(&file).trace.get(index).unwrap();
            file.contexts[entry.context as usize]
        };
        let text = texts.get(context(0).user_metadata.unwrap());
        assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), nested);
        assert_eq!(context(1).internal_metadata.map(|text| texts.get(text)), Some("graph"));
    }
    // A list in itself has no end.
    let endless = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]](}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01\x8c\x0duser_metadata]\x94h\x00aueau.";
    let notes = read(endless).unwrap().notes;
    assert_eq!(notes, ["values of kinds that are not known are passed over: user_metadata (1 time)"]);
}
