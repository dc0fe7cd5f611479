//! Files of another kind, and files that stop in the middle.

use blockyard_replay::job::JobError;

use super::{check_refused, fixture, gunzip, gzip, open};

fn not_a_recording(kind: &str) -> String {
    format!("this is {kind}, not a recording: a recording has one JSON value a line and begins with \"meta\"")
}

#[test]
fn an_empty_file_is_called_empty() {
    for bytes in [Vec::new(), gzip(b""), b"\n\n \r\n".to_vec()] {
        check_refused(bytes, "the file is empty");
    }
}

#[test]
fn files_of_another_kind_are_called_by_their_kind() {
    let noise: Vec<u8> =
        (0..4096_u32).map(|index| index.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let cases: [(&[u8], &str); 8] = [
        (&noise, "not text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        (b"%PDF-1.7", "a PDF document"),
        (&gzip(&gzip(b"text")), "gzip inside gzip"),
        (b"\xff\xfe{\0\"\0", "not text"),
        (b"Dear reader,\nthis is a letter.\n", "another kind of text"),
        (b"a = alloc 3 MiB\nfree a\n", "another kind of text"),
        (b"[1, 2, 3]", "another kind of JSON"),
    ];
    for (bytes, kind) in cases {
        check_refused(bytes, &not_a_recording(kind));
    }
}

#[test]
fn files_that_may_be_snapshots_and_are_not_are_called_by_their_kind() {
    let of = |kind: &str| {
        format!(
            "this is {kind}, not a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot writes one)"
        )
    };
    let short = "the file is cut short: it ends after byte 3".to_owned();
    let cases: [(&[u8], String); 6] = [
        (b"PK\x03\x04\x14\0\0\0", of("a zip archive without a snapshot")),
        (b"\x80\x04\x95\x10\0\0\0", short.clone()),
        (&gzip(b"\x80\x04\x95\x10\0\0\0"), short),
        (
            br#"{"segments": [], "device_traces": []}"#,
            "the snapshot: it has neither segments nor traces".to_owned(),
        ),
        (br#"{"some": "thing"}"#, of("a dictionary with the keys some")),
        (b"{\n  \"some\": \"thing\"\n}\n", of("a dictionary with the keys some")),
    ];
    for (bytes, message) in cases {
        check_refused(bytes, &message);
    }
}

#[test]
fn json_of_any_depth_is_refused() {
    let error = open("[".repeat(1_000_000)).expect_err("this is no snapshot").to_string();
    assert!(
        error.contains(" ... ") && error.contains("recursion limit exceeded") && error.len() < 200,
        "{error}"
    );
    let deep =
        format!("{{\"meta\":{{\"total_memory\":1}}}}\n{{\"op\":\"alloc\",\"oom\":{}", "[".repeat(1_000_000));
    check_refused(deep, "line 2: column 147: recursion limit exceeded");
}

#[test]
fn gzip_that_stops_in_the_middle_is_called_cut_off() {
    for name in ["programs/gnn_random", "synthetic/default-mix", "programs/cudagraph_mlp"] {
        let whole = fixture(name);
        let few = (2..40).chain(whole.len() - 12..whole.len());
        let cuts = few.chain((40..whole.len()).step_by(whole.len() / 40));
        for cut in cuts {
            let error = open(&whole[..cut]).expect_err("half a recording is none");
            let JobError::File { name, message } = error else { panic!("{name} cut at {cut}: {error:?}") };
            assert_eq!(name, "it.jsonl");
            assert!(message.starts_with("the gzip data is cut off or damaged: "), "cut at {cut}: {message}");
        }
    }
}

#[test]
fn gzip_with_something_behind_it_is_called_damaged() {
    let bytes = [gzip(b"{}"), b"something".to_vec()].concat();
    let error = open(bytes).unwrap_err().to_string();
    assert!(error.starts_with("it.jsonl: the snapshot: the gzip data is cut off or damaged: "), "{error}");
    let behind_a_recording = [fixture("programs/gnn_random"), b"something".to_vec()].concat();
    let error = open(behind_a_recording).unwrap_err().to_string();
    assert!(error.starts_with("it.jsonl: the gzip data is cut off or damaged: "), "{error}");
}

#[test]
fn a_text_that_stops_in_the_middle_is_refused_with_its_line() {
    let text = gunzip(&fixture("programs/gnn_random"));
    let last_line = text.trim_end().lines().count();
    let meta = text.lines().next().unwrap().len();
    check_refused(&text.as_bytes()[..meta - 1], "line 1: column 98: EOF while parsing an object");
    check_refused(
        &text.as_bytes()[..meta],
        "the recording is empty: it holds neither operations nor a trace",
    );
    for cut in [meta + 50, text.len() / 2, text.trim_end().len() - 1] {
        let error = open(&text.as_bytes()[..cut]).unwrap_err().to_string();
        let line = text[..cut].lines().count();
        assert!(line <= last_line);
        assert!(error.starts_with(&format!("it.jsonl: line {line}: column ")), "{error}");
        assert!(error.contains("EOF while parsing"), "{error}");
    }
}

#[test]
fn what_editors_do_to_a_text_is_no_error() {
    let lines = ["{\"meta\":{\"total_memory\":1048576}}", "{\"op\":\"empty_cache\"}"];
    for text in [
        lines.join("\r\n"),
        format!("\u{feff}{}\n\n", lines.join("\n")),
        format!("\n {}", lines.join("\n\n")),
    ] {
        assert_eq!(open(text).expect("the recording is fine").workload.requests().len(), 1);
    }
}
