use std::path::Path;

use crate::{blockyard, file, json};

fn snapshot(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/snapshots");
    folder.join(name).to_str().expect("a path of text").to_owned()
}

#[test]
fn a_snapshot_is_told_in_lines() {
    let path = snapshot("checkerboard_default_100.pickle.gz");
    let called = blockyard(["snapshot", "--top", "1", &path]);
    assert_eq!((called.status, called.err.as_str()), (0, ""));
    let lines: Vec<&str> = called.out.lines().map(str::trim).collect();
    assert_eq!(lines[0], format!("{path}: default settings"));
    assert_eq!(lines[1], "device 0: 113 events in 0.035 s, 52 allocations, 1 out of memory, 1 stream");
    assert_eq!(lines[2], "peak allocated  960 MiB (1,006,632,960 bytes), after request 4, event 8");
    assert_eq!(lines[5], "certificate     52 of 52 placements identical, as PyTorch 2.11");
    let holder = "960 MiB (1,006,632,960 bytes) in 4 blocks: buf train.py:12 < checkerboard_default train.py:17 < <module> train.py:92";
    assert_eq!(lines[12], holder);
}

#[test]
fn host_memory_and_texts_of_tensors_are_in_the_lines() {
    let path = snapshot("small_2.15.pickle");
    let called = blockyard(["snapshot", "--top", "5", &path]);
    assert_eq!((called.status, called.err.as_str()), (0, ""));
    let named = "20 MiB (20,971,520 bytes) in 1 block (saved for backward): <module> snap.py:7";
    assert!(called.out.contains(named), "{}", called.out);
    let (device, host) = called.out.split_once("  host (pinned memory): ").expect("the host has its lines");
    assert!(device.contains("certificate     4 of 4 placements identical"), "{device}");
    assert!(host.starts_with("6 events in 0.000 s, 2 allocations, 0 out of memory, 1 stream"), "{host}");
    assert!(host.contains("not replayed: host (pinned) memory has another allocator than a GPU"), "{host}");
    let alone = blockyard(["snapshot", "--device", "host", &path]);
    assert!(!alone.out.contains("device 0") && alone.out.contains("host (pinned memory)"), "{}", alone.out);
    let value = json(blockyard(["snapshot", "--json", &path]).out.trim_end());
    assert_eq!(
        (value["devices"].as_array().unwrap().len(), &value["host"]["peak_allocated"]),
        (1, &540_672.into())
    );
    let missing = blockyard(["snapshot", "--device", "host", &snapshot("small_2.11.pickle")]);
    assert_eq!(missing.status, 2);
    assert!(
        missing.out.contains("the snapshot has nothing about host (pinned memory); it has 0"),
        "{}",
        missing.out
    );
}

#[test]
fn host_memory_is_exported_as_a_figure_and_not_as_a_run_of_a_gpu() {
    let path = snapshot("small_2.15.pickle");
    let out = file("host.svg", "");
    let called = blockyard(["export", "--device", "host", &path, &out]);
    assert_eq!((called.status, called.err.as_str()), (0, ""));
    assert!(std::fs::read_to_string(&out).unwrap().contains("528 KiB"));
    let run = blockyard(["export", "--device", "host", &path, &file("host.jsonl", "")]);
    assert_ne!(run.status, 0);
    assert!(run.err.contains("host memory has its own allocator"), "{}", run.err);
}

#[test]
fn the_json_has_what_is_documented() {
    let called =
        blockyard(["snapshot", "--json", "--at", "oom", &snapshot("checkerboard_default_100.pickle.gz")]);
    assert_eq!(called.status, 0);
    let value = json(called.out.trim_end());
    let documented = include_str!("../../../../../docs/snapshot-json.md");
    let check = |value: &serde_json::Value| {
        for field in value.as_object().unwrap().keys() {
            let is_documented = ["`", "[]`"].iter().any(|end| documented.contains(&format!("{field}{end}")));
            assert!(is_documented, "{field} is not documented");
        }
    };
    let device = &value["devices"][0];
    for part in [
        &value,
        device,
        &device["certificate"],
        &device["at"],
        &device["at"]["top"][0],
        &device["oom_events"][0],
    ] {
        check(part);
    }
    assert_eq!(value["version"], 1);
    for (field, expected) in [
        ("index", 0),
        ("events", 113),
        ("allocations", 52),
        ("peak_allocated", 1_006_632_960_u64),
        ("peak_reserved", 1_006_632_960),
        ("segments", 4),
        ("reserved", 1_006_632_960),
        ("allocated", 503_316_480),
        ("ooms", 1),
    ] {
        assert_eq!(device[field], expected, "{field}");
    }
    assert_eq!(device["certificate"]["placements"], 52);
    assert_eq!(device["certificate"]["identical"], 52);
    assert_eq!(device["certificate"]["first_difference"], serde_json::Value::Null);
    assert_eq!(device["at"]["cached"], 503_316_480);
    assert_eq!(device["oom_events"][0]["size"], 314_572_800);
}

#[test]
fn a_folder_is_a_file_for_each_rank() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ranks");
    std::fs::create_dir_all(&folder).unwrap();
    for rank in ["rank1.pickle.gz", "rank0.pickle.gz"] {
        std::fs::copy(snapshot(rank), folder.join(rank)).unwrap();
    }
    std::fs::write(folder.join("notes.txt"), "not a snapshot").unwrap();
    let called = blockyard(["snapshot", "--json", "--no-certificate", folder.to_str().unwrap()]);
    assert_eq!(called.status, 0, "{}", called.out);
    let ranks: Vec<serde_json::Value> = called.out.lines().map(json).collect();
    let indices: Vec<_> = ranks.iter().map(|rank| rank["devices"][0]["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [0, 1]);
    assert_eq!(ranks[0]["annotations"], 1068);
    assert_eq!(ranks[0]["devices"][0]["certificate"], serde_json::Value::Null);
}

#[test]
fn moments_and_devices_that_are_not_there_are_errors() {
    let path = snapshot("resnet50_amp.pickle.gz");
    for (arguments, message) in [
        (["--at", "oom"], "no request of the trace ran out of memory"),
        (["--at", "99999"], "the trace has 13096 events, so there is no moment after 99999"),
        (["--device", "3"], "the snapshot has nothing about device 3; it has 0"),
    ] {
        let called =
            blockyard(["snapshot", "--no-certificate"].into_iter().chain(arguments).chain([path.as_str()]));
        assert_eq!(called.status, 2);
        assert!(called.out.contains(message), "{}", called.out);
    }
    let called = blockyard(["snapshot", "--no-certificate", "--json", "--at", "13096", &path]);
    let device = &json(called.out.trim_end())["devices"][0];
    assert_eq!(device["at"]["allocated"], device["allocated"]);
}

#[test]
fn what_is_no_snapshot_is_said_and_the_others_are_shown() {
    let model = file("model.pickle", b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01.");
    let called =
        blockyard(["snapshot", "--no-certificate", &model, &snapshot("mem_pool_cache_100.pickle.gz")]);
    assert_eq!(called.status, 2);
    assert!(
        called.out.contains("the opcode GLOBAL of collections.OrderedDict would run code"),
        "{}",
        called.out
    );
    assert!(called.out.contains("device 0: 51 events"), "{}", called.out);
}

#[test]
fn snapshots_are_verified_and_played() {
    let path = snapshot("rank1.pickle.gz");
    let called = blockyard(["verify", &path]);
    assert_eq!(called.status, 0, "{}", called.out);
    assert!(called.out.starts_with(&format!("{path}: identical: events 9086/9086, ")), "{}", called.out);
    let called = blockyard(["play", "--last", &snapshot("checkerboard_default_100.pickle.gz")]);
    assert_eq!(called.status, 0);
    assert!(called.out.starts_with("81. alloc 300 MiB\n   out of memory"), "{}", called.out);
    let called = blockyard(["verify", &snapshot("segments.pickle.gz")]);
    assert_eq!(called.status, 2);
    assert!(called.out.contains("the snapshot has no trace"), "{}", called.out);
}

/// The picture has the figure's size twice with the heading above, the color of reserved memory, and dark
/// strokes of letters in its upper left.
fn has_figure_and_texts(png: &[u8]) {
    let picture = resvg::tiny_skia::Pixmap::decode_png(png).unwrap();
    assert_eq!((picture.width(), picture.height()), (2560, 1066));
    let count = |wanted: &dyn Fn(u8, u8, u8) -> bool| {
        picture.pixels().iter().filter(|pixel| wanted(pixel.red(), pixel.green(), pixel.blue())).count()
    };
    assert!(count(&|red, green, blue| red < 90 && green < 90 && blue < 90) > 2_000, "no texts");
    assert!(
        count(&|red, green, blue| red.abs_diff(blue) > 60 || green.abs_diff(blue) > 60) > 100_000,
        "no areas"
    );
}

#[test]
fn exports_are_what_they_say() {
    let source = snapshot("rank0.pickle.gz");
    let out = |name: &str| file(name, "");
    let pickle = out("rank0.pickle");
    assert_eq!(blockyard(["export", &source, &pickle]).status, 0);
    let again = blockyard(["snapshot", "--json", "--no-certificate", &pickle]);
    let first = blockyard(["snapshot", "--json", "--no-certificate", &source]);
    let without_file = |text: &str| {
        let mut value = json(text.trim_end());
        value.as_object_mut().unwrap().remove("file");
        value
    };
    assert_eq!(without_file(&again.out), without_file(&first.out));

    let jsonl = out("rank0.jsonl");
    assert_eq!(blockyard(["export", &source, &jsonl]).status, 0);
    assert!(blockyard(["verify", &jsonl]).out.contains("identical: events 9082/9082"));
    let from_jsonl = out("again.pickle");
    assert_eq!(blockyard(["export", &jsonl, &from_jsonl]).status, 0);
    assert!(blockyard(["verify", &from_jsonl]).out.contains("identical: events 9082/9082"));

    let csv = out("rank0.csv");
    assert_eq!(blockyard(["export", &source, &csv]).status, 0);
    let text = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(
        text.lines().nth(1).unwrap(),
        "1,2,1795300156115310,16384000,393216,0,0,16777216,16777216,16777216"
    );
    let svg = out("rank0.svg");
    assert_eq!(blockyard(["export", &source, &svg]).status, 0);
    let text = std::fs::read_to_string(&svg).unwrap();
    // A snapshot does not tell the memory of its device.
    assert!(text.starts_with("<svg ") && !text.contains("capacity"), "{text}");
    let png = out("rank0.png");
    // Drawing a PNG needs no font of the system.
    assert_eq!(blockyard(["export", &source, &png]).status, 0);
    has_figure_and_texts(&std::fs::read(&png).unwrap());
    let called = blockyard(["export", &source, &out("rank0.docx")]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("\"docx\" is not a format to export"), "{}", called.err);
}
