//! Snapshots written as PyTorch writes them.

use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_record::{Frame, StackId};

use crate::{open, read};

/// The whole contents of a file, independent of how its texts and stacks are numbered.
fn content(file: &SnapshotFile) -> Vec<String> {
    let texts = file.stacks.texts();
    let stack = |stack: StackId| -> Vec<Frame<'_>> {
        file.stacks.frames(stack).map(|frame| file.stacks.frame(frame)).collect()
    };
    let mut lines = vec![format!("{:?}", file.settings)];
    for device in &file.devices {
        lines.extend(device.trace.iter().map(|entry| {
            let context = file.contexts[entry.context as usize];
            let [compile, metadata] =
                [context.compile_context, context.user_metadata].map(|text| text.map(|text| texts.get(text)));
            format!(
                "{:?} {} {compile:?} {metadata:?} {:?} {:?}",
                entry.entry,
                entry.time_us,
                (context.pool_id, context.has_empty_stack),
                stack(entry.stack)
            )
        }));
        for segment in &device.segments {
            lines.push(format!(
                "{:?} {:?}",
                (segment.device, segment.addr, segment.size, segment.stream, segment.pool, segment.pool_id),
                (segment.is_expandable, segment.sums, stack(segment.stack))
            ));
            lines.extend(segment.blocks.iter().map(|block| {
                format!(
                    "{} {:?} {:?}",
                    block.addr(),
                    (block.size, block.requested, block.state),
                    stack(block.stack)
                )
            }));
        }
    }
    lines.extend(file.annotations.iter().map(|annotation| {
        format!(
            "{} {} {:?} {}",
            texts.get(annotation.name),
            annotation.is_end,
            annotation.device,
            annotation.time_us
        )
    }));
    lines
}

fn again(file: &SnapshotFile) -> SnapshotFile {
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes).unwrap();
    read(&bytes).unwrap()
}

#[test]
fn the_objects_that_kept_blocks_stay_in_the_file() {
    let mut file = open("segments.pickle.gz");
    assert_eq!(file.keepers, "");
    file.keepers = r#"{"rows":[]}"#.to_owned();
    let read = again(&file);
    assert_eq!((read.keepers.as_str(), read.notes.as_slice()), (r#"{"rows":[]}"#, &[][..]));
}

#[test]
fn what_is_written_is_read_again() {
    for name in [
        "checkerboard_default_100.pickle.gz",
        "mem_pool_cache_100.pickle.gz",
        "side_stream_cache_80.pickle.gz",
        "rank0.pickle.gz",
        "rank1.pickle.gz",
        "resnet50_amp.pickle.gz",
        "segments.pickle.gz",
    ] {
        let file = open(name);
        assert_eq!(content(&again(&file)), content(&file), "{name}");
    }
}

#[test]
fn contexts_and_pools_are_written_too() {
    let mut file = open("checkerboard_default_100.pickle.gz");
    let mut value: serde_json::Value = {
        let text = crate::unpacked("checkerboard.json.gz");
        serde_json::from_slice(&text).unwrap()
    };
    value["device_traces"][0][3]["user_metadata"] = "epoch 7".into();
    value["device_traces"][0][4]["compile_context"] = "0/1".into();
    value["device_traces"][0][5]["pool_id"] = serde_json::json!([0, 2]);
    let changed = read(&crate::pickles::pickle(&value)).unwrap();
    assert_eq!(changed.contexts.len(), 4);
    assert_eq!(content(&again(&changed)), content(&changed));
    file.settings.values.clear();
    assert_eq!(again(&file).settings.values, []);
}

#[test]
fn a_recording_becomes_a_snapshot_and_a_recording_again() {
    for name in ["resnet50_amp.pickle.gz", "rank0.pickle.gz", "mem_pool_cache_100.pickle.gz"] {
        let file = open(name);
        let record = |file: &SnapshotFile| {
            blockyard_pytorch::trace::record(file, 0, "run", &mut |_| ControlFlow::Continue(()))
                .unwrap()
                .recording
        };
        let recording = record(&file);
        let index = file.devices[0].index;
        let made = SnapshotFile::from_recordings(&[(index, &recording)]).unwrap();
        assert_eq!(made.devices[0].segments.len(), file.devices[0].segments.len(), "{name}");
        let found = record(&again(&made));
        assert_eq!(found.trace().unwrap(), recording.trace().unwrap(), "{name}");
        let events = |recording: &blockyard_record::Recording| recording.events_from(0).collect::<Vec<_>>();
        assert_eq!(events(&found), events(&recording), "{name}");
        assert_eq!(found.markers(), recording.markers(), "{name}");
        let times = |recording: &blockyard_record::Recording| recording.times_us_from(0).collect::<Vec<_>>();
        assert_eq!(times(&found), times(&recording), "{name}");
        let end = recording.state_at(recording.event_count()).unwrap().snapshot();
        assert_eq!(found.state_at(found.event_count()).unwrap().snapshot(), end, "{name}");
    }
}
