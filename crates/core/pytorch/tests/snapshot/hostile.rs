use std::io::Write;
use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{Limits, SnapshotError, read_within};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::pickles::{opcodes, pickle};
use crate::{fixture, read, unpacked};

fn error(bytes: &[u8]) -> SnapshotError {
    read(bytes).expect_err("this is no snapshot")
}

fn message(bytes: &[u8]) -> String {
    error(bytes).to_string()
}

/// A snapshot of two entries, a segment with two blocks and an annotation.
fn small() -> Value {
    let frames = json!([{"name": "f", "filename": "a.py", "line": 3}]);
    let entry = |action: &str, size: u64| {
        json!({"action": action, "addr": 0x7f00_0000_0000_u64, "size": size, "stream": 0, "time_us": 5, "compile_context": "N/A",
            "user_metadata": "", "frames": frames})
    };
    json!({
        "segments": [{
            "device": 0, "address": 0x7f00_0000_0000_u64, "total_size": 2 << 20, "allocated_size": 512, "active_size": 512,
            "requested_size": 100, "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false,
            "frames": frames,
            "blocks": [
                {"address": 0x7f00_0000_0000_u64, "size": 512, "requested_size": 100, "state": "active_allocated", "frames": frames},
                {"address": 0x7f00_0000_0200_u64, "size": (2 << 20) - 512, "requested_size": 0, "state": "inactive", "frames": []},
            ],
        }],
        "device_traces": [[entry("segment_alloc", 2 << 20), entry("alloc", 100)]],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1},
        "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 4}],
    })
}

/// The parts of the small snapshot: a JSON pointer, the path in notes, and the fields that must not be
/// missing.
const PARTS: [(&str, &str, &[&str]); 5] = [
    ("/segments/0", "segments[0]", &["address", "total_size"]),
    ("/segments/0/blocks/1", "segments[0].blocks[1]", &["size", "state"]),
    ("/device_traces/0/1", "device_traces[0][1]", &["action", "addr", "size"]),
    ("/external_annotations/0", "external_annotations[0]", &["stage", "name"]),
    ("/device_traces/0/1/frames/0", "device_traces[0][1].frames[0]", &[]),
];

#[test]
fn the_small_snapshot_is_one() {
    let file = read(&pickle(&small())).unwrap();
    assert_eq!((file.devices[0].trace.len(), file.devices[0].segments[0].blocks.len()), (2, 2));
    assert_eq!(read(small().to_string().as_bytes()).unwrap().devices[0].trace.len(), 2);
}

#[test]
fn each_field_may_be_missing_or_its_item_is_passed_over() {
    for (pointer, path, needed) in PARTS {
        let whole = small();
        let fields: Vec<String> =
            whole.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for field in fields {
            let mut value = whole.clone();
            value.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&field);
            for bytes in [pickle(&value), value.to_string().into_bytes()] {
                let notes = read(&bytes).unwrap_or_else(|error| panic!("{path}.{field}: {error}")).notes;
                if needed.contains(&field.as_str()) {
                    let expected = format!("1 item is passed over; the first is {path}.{field}: is missing");
                    assert_eq!(notes, [expected]);
                } else {
                    assert_eq!(notes, Vec::<String>::new(), "{path}.{field}");
                }
            }
        }
    }
}

#[test]
fn whole_parts_may_be_missing() {
    for part in ["segments", "device_traces", "allocator_settings", "external_annotations"] {
        let mut value = small();
        value.as_object_mut().unwrap().remove(part);
        assert!(read(&pickle(&value)).is_ok(), "without {part}");
        value[part] = json!([]);
        assert!(read(&pickle(&value)).is_ok(), "with an empty {part}");
        value[part] = json!(null);
        assert!(read(&pickle(&value)).is_ok(), "with None for {part}");
    }
    assert_eq!(
        message(&pickle(&json!({"state_dict": 1, "epoch": 2}))),
        "this is a dictionary with the keys epoch, state_dict, not a memory snapshot of PyTorch \
         (torch.cuda.memory._dump_snapshot writes one)"
    );
}

#[test]
fn each_field_of_the_wrong_kind_is_counted() {
    for (pointer, path, needed) in PARTS {
        let whole = small();
        let fields: Vec<String> =
            whole.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for field in fields {
            for wrong in [json!([[]]), json!({"a": 1}), json!([null, 2, {"state": 1}])] {
                let mut value = whole.clone();
                value.pointer_mut(pointer).unwrap()[&field] = wrong.clone();
                for bytes in [pickle(&value), value.to_string().into_bytes()] {
                    let what = format!("{path}.{field} = {wrong}");
                    let file = read(&bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
                    let is_named = |note: &String| {
                        note.contains(&format!("the first is {path}.{field}"))
                            || note.contains(&format!("not known are passed over: {field} ("))
                            || (field == "device" && note.starts_with("segments of devices"))
                    };
                    // The device of an entry is the position of its trace in the list; an annotation with a
                    // wrong device counts for all devices. Metadata may be of any type.
                    let is_silent = ["is_expandable", "device", "user_metadata"].contains(&field.as_str());
                    assert!(is_silent || file.notes.iter().any(is_named), "{what}: {:?}", file.notes);
                    assert!(!needed.is_empty() || file.devices[0].trace.len() == 2, "{what}");
                }
            }
        }
    }
    let mut value = small();
    value["device_traces"][0][1]["size"] = json!(-5);
    assert_eq!(
        read(&pickle(&value)).unwrap().notes,
        ["1 item is passed over; the first is device_traces[0][1].size: -5 is below zero"]
    );
}

#[test]
fn a_file_of_which_nothing_can_be_read_says_what_is_wrong_first() {
    let mut value = small();
    value["device_traces"] = json!([]);
    value["segments"][0]["address"] = json!("nowhere");
    assert_eq!(
        message(&pickle(&value)),
        "segments[0].address: the text \"nowhere\" where a whole number is expected"
    );
}

#[test]
fn fields_and_actions_of_other_releases_are_counted() {
    let mut value = small();
    value["device_traces"][0][0]["new_field"] = json!({"a": [1, 2]});
    value["device_traces"][0][1]["new_field"] = json!("text");
    value["segments"][0]["vendor"] = json!(null);
    let other = json!({"action": "worry", "addr": 1, "size": 2});
    value["device_traces"][0].as_array_mut().unwrap().push(other);
    let file = read(&pickle(&value)).unwrap();
    assert_eq!(file.devices[0].trace.len(), 2);
    assert_eq!(
        file.notes,
        [
            "fields that are not known are passed over: new_field (2 times), vendor (1 time)",
            "entries of traces with actions that are not known are passed over: worry (1 time)",
        ]
    );
}

/// The backend makes what `torch.accelerator.memory.dump_snapshot` (pytorch#189014) writes: it has the same lists,
/// and may have more.
#[test]
fn a_snapshot_of_any_backend_opens_and_what_it_adds_is_counted() {
    let mut value = small();
    value["allocator_settings"] = json!({"PYTORCH_NPU_ALLOC_CONF": "page_size:1g"});
    value["device_type"] = json!("npu");
    value.as_object_mut().unwrap().remove("external_annotations");
    value["segments"][0]["page_size"] = json!(1 << 30);
    let other = json!({"action": "workspace_snapshot", "addr": 1, "size": 2, "stream": 0});
    value["device_traces"][0].as_array_mut().unwrap().extend([other.clone(), other]);
    for bytes in [pickle(&value), value.to_string().into_bytes()] {
        let file = read(&bytes).unwrap();
        assert_eq!((file.devices[0].trace.len(), file.devices[0].segments.len()), (2, 1));
        assert_eq!(
            file.notes,
            [
                "fields that are not known are passed over: device_type (1 time), page_size (1 time)",
                "entries of traces with actions that are not known are passed over: workspace_snapshot (2 times)",
            ]
        );
    }
}

#[test]
fn every_cut_is_said_with_its_byte() {
    let whole = unpacked("mem_pool_cache_100.pickle.gz");
    for length in 2..whole.len() {
        match error(&whole[..length]) {
            SnapshotError::CutShort { byte, .. } => assert!(byte <= length as u64),
            other => panic!("cut to {length}: {other}"),
        }
    }
    let cut = whole.windows(13).position(|bytes| bytes == b"device_traces").unwrap() + 2000;
    let text = message(&whole[..cut]);
    assert!(text.starts_with("the file is cut short: it ends after byte "), "{text}");
    assert!(text.contains(", in device_traces[0]["), "{text}");
}

#[test]
fn every_cut_and_every_changed_byte_of_a_packed_file_is_an_error() {
    let whole = fixture("mem_pool_cache_100.pickle.gz");
    for length in 0..whole.len() {
        read(&whole[..length]).expect_err("a part is not the whole");
    }
    for name in
        ["checkerboard.zip", "checkerboard.pickle.zst", "checkerboard.html.gz", "checkerboard.json.gz"]
    {
        let whole = fixture(name);
        for length in (0..whole.len()).step_by(7) {
            // The directory of a zip archive comes last, and so does what follows the snapshot in a page.
            let _ = read(&whole[..length]);
        }
    }
    let whole = unpacked("side_stream_cache_80.pickle.gz");
    for place in 0..whole.len() {
        for change in [1, 0x20, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] = damaged[place].wrapping_add(change);
            let _ = read(&damaged);
        }
    }
}

#[test]
fn code_is_named_and_never_run() {
    // What torch.save writes for a state_dict.
    let model = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01.";
    assert_eq!(
        message(model),
        "byte 2: the opcode GLOBAL of collections.OrderedDict would run code, which this program never does; a memory \
         snapshot has none, a file of torch.save (a model, a checkpoint) or of another program has"
    );
    let shell = b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x94\x85\x94R\x94.";
    let SnapshotError::Code { byte, opcode, name, .. } = error(shell) else { panic!("no error of code") };
    assert_eq!((byte, opcode, name.as_str()), (19, "STACK_GLOBAL", "posix.system"));
    for opcode in *b"Rbio\x81\x92PQ\x82\x83\x84" {
        let mut bytes = vec![0x80, 2, b'N', b'N', b'N', opcode, 0, 0, 0, 0];
        bytes.push(b'.');
        assert!(matches!(error(&bytes), SnapshotError::Code { byte: 5, .. }), "{opcode:#x}");
    }
    let mut inside = vec![0x80, 4];
    let mut value = small();
    value["device_traces"][0][1]["user_metadata"] = json!("HERE");
    opcodes(&value, &mut inside);
    let at = inside.windows(4).position(|bytes| bytes == b"HERE").unwrap() - 5;
    inside.truncate(at);
    inside.extend(b"cos\nsystem\n");
    let text = message(&inside);
    assert!(text.contains("in device_traces[0][1].user_metadata: the opcode GLOBAL of os.system"), "{text}");
}

#[test]
fn a_model_of_torch_save_is_said_to_be_one() {
    let mut archive =
        vec![b'P', b'K', 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0];
    archive.extend([16, 0, 0, 0]);
    archive.extend(b"archive/data.pkl\x80\x02N.");
    assert!(
        message(&archive).starts_with("this is a file of torch.save (a model, a checkpoint), not"),
        "{}",
        message(&archive)
    );
    // Before release 1.6 a file began with a number of ten bytes.
    let old = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    assert!(message(old).starts_with("this is a file of an old torch.save"), "{}", message(old));
}

#[test]
fn other_files_are_called_by_their_kind() {
    for (bytes, kind) in [
        (b"\x89PNG\r\n".as_slice(), "a PNG image"),
        (b"a = alloc 3MiB", "another kind of text"),
        (b"{\"meta\": 1}", "a recording of operations"),
        (b"<html><body>nothing</body></html>", "a web page without a snapshot"),
        (b"\x80\x04K\x07.", "a pickle of the number 7"),
        (b"\x80\x04]K\x07a.", "a list of something else"),
        (b"\x00\x01\x02\xff", "another kind of file"),
    ] {
        assert!(message(bytes).starts_with(&format!("this is {kind}")), "{}", message(bytes));
    }
    assert!(message(&unpacked("protocol0.pickle.gz")).starts_with("this is a pickle of protocol 0"));
    assert_eq!(error(b""), SnapshotError::Empty);
}

#[test]
fn what_would_take_all_memory_is_refused() {
    let limits = Limits { content: 1 << 30, memory: 16 << 20 };
    let read = |bytes: &[u8]| read_within(bytes, limits, &mut |_| ControlFlow::Continue(()));
    let gzip = |head: &[u8], filler: &[u8], count: usize| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(head).unwrap();
        for _ in 0..count {
            encoder.write_all(filler).unwrap();
        }
        encoder.finish().unwrap()
    };
    // Endless values, lists, dictionaries, tuples, memoized values and marks.
    for filler in [b"N".as_slice(), b"]", b"}", b")", b"N\x94", b"]\x94", b"(", b"]\x940"] {
        let bomb = gzip(b"\x80\x04", &filler.repeat(1 << 16), 400);
        let error = read(&bomb).expect_err("too much");
        let is_refused = matches!(error, SnapshotError::TooLarge(_) | SnapshotError::Damaged { .. });
        assert!(is_refused, "{filler:?}: {error}");
    }
    // Zeros are no pickle: nothing of it is unpacked.
    assert!(matches!(read(&gzip(b"", &vec![0; 1 << 20], 100)), Err(SnapshotError::OtherKind(_))));
    // Lengths beyond the end of the file.
    for claim in [
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f".as_slice(),
        b"\x80\x04X\xff\xff\xff\xff",
        b"\x80\x04N\xff",
    ] {
        read(claim).expect_err("not that long");
    }
    let far = b"\x80\x04Nr\xff\xff\xff\xff.";
    assert!(matches!(read(far), Err(SnapshotError::Damaged { byte: 3, .. })));
    let tiny = Limits { content: 1 << 16, memory: 1 << 30 };
    let whole = fixture("resnet50_amp.pickle.gz");
    let result = read_within(whole.as_slice(), tiny, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(result, Err(SnapshotError::TooLarge(_))));
}

/// Ten million entries, each with another stack, made while they are read.
struct Stacks {
    number: u32,
    ready: Vec<u8>,
}

impl std::io::Read for Stacks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.ready.len() < buffer.len() && self.number < 10_000_000 {
            let ready = &mut self.ready;
            ready
                .extend(b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01\x8c\x06frames](}(");
            ready.extend(b"\x8c\x04name\x8c\x01f\x8c\x08filename\x8c\x04a.py\x8c\x04lineJ");
            ready.extend(self.number.to_le_bytes());
            ready.extend(b"ueu");
            self.number += 1;
        }
        let length = self.ready.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.ready[..length]);
        self.ready.drain(..length);
        Ok(length)
    }
}

#[test]
fn stacks_without_end_are_refused_before_they_fill_the_memory() {
    let head = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94](".to_vec();
    let limits = Limits { content: 2 << 30, memory: 64 << 20 };
    let mut seen = 0;
    let result = read_within(Stacks { number: 0, ready: head }, limits, &mut |bytes| {
        seen = bytes;
        ControlFlow::Continue(())
    });
    let error = result.expect_err("more stacks than the memory has room for");
    assert!(matches!(error, SnapshotError::TooLarge(_)), "{error}");
    assert!(error.to_string().contains("memory"), "{error}");
    assert!(seen < 900 << 20, "it was refused only after {seen} bytes");
}

#[test]
fn lists_that_hold_themselves_come_to_an_end() {
    // `a = []; a.append(a)`, and the same as a list of segments, of blocks and of frames.
    for bytes in [
        b"\x80\x04]\x94h\x00a.".as_slice(),
        b"\x80\x04}\x94\x8c\x08segments\x94]\x94h\x02as.",
        b"\x80\x04}\x94\x8c\x0ddevice_traces\x94]\x94h\x02as.",
        b"\x80\x04}\x94(\x8c\x08segments\x94]\x94}\x94(\x8c\x0atotal_size\x94K\x01\x8c\x06blocks\x94h\x02uau.",
    ] {
        read(bytes).expect_err("no snapshot");
    }
}

#[test]
fn reading_can_be_broken_off() {
    let whole = fixture("resnet50_amp.pickle.gz");
    let mut calls = 0;
    let result = blockyard_pytorch::snapshot::read(whole.as_slice(), &mut |bytes| {
        calls += 1;
        if bytes > 30_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(result, Err(SnapshotError::Cancelled)));
    assert!(calls > 0);
}

/// A pickle of protocol 0 is text: the reader of recordings meets it, and says what to do.
#[test]
fn a_pickle_of_protocol_0_is_named_with_the_way_out() {
    for text in ["(dp0\nVsegments\np1\n(lp2\ns.", "}q\u{1}X\u{8}"] {
        let error = blockyard_pytorch::RecordedRun::parse(text).unwrap_err().to_string();
        assert!(error.contains("pickle.dump(snapshot, file, protocol=4)"), "{error}");
    }
}
