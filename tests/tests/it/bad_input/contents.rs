//! Recordings whose lines state impossible things.

use blockyard_record::{Bytes, StepOutcome};
use blockyard_replay::job::JobOutput;

use super::{check_refused, open};

const META: &str = r#"{"meta":{"total_memory":1073741824}}"#;

fn lines(lines: &[&str]) -> String {
    [&[META], lines].concat().join("\n")
}

/// The outcomes of the steps that failed, as texts.
fn failed_steps(product: &JobOutput) -> Vec<String> {
    let failed_steps = product.recording.failed_steps().iter();
    let texts = failed_steps.map(|(step, outcome)| match outcome {
        StepOutcome::Done => format!("{step}: done"),
        StepOutcome::OutOfMemory(_) => format!("{step}: out of memory"),
        StepOutcome::Refused(text) | StepOutcome::Skipped(text) => format!("{step}: {text}"),
    });
    texts.collect()
}

#[test]
fn a_recording_without_events_is_called_empty() {
    let message = "the recording is empty: it holds neither operations nor a trace";
    check_refused(META, message);
    check_refused(lines(&[r#"{"trace":[]}"#]), message);
    check_refused(lines(&[r#"{"segments":[]}"#, r#"{"memory_summary":""}"#]), message);
}

#[test]
fn a_bad_first_line_is_refused_with_the_reason() {
    let cases = [
        (r#"{"meta":{"total_memory":-1}}"#, "line 1: column 26: invalid value: integer `-1`, expected u64"),
        (
            r#"{"meta":{"total_memory":1.5}}"#,
            "line 1: column 27: invalid type: floating point `1.5`, expected u64",
        ),
        (r#"{"meta":{"name":"x"}}"#, "line 1: column 20: missing field `total_memory`"),
        (r#"{"meta":{"name":"x"#, "line 1: column 18: EOF while parsing a string"),
    ];
    for (line, message) in cases {
        check_refused(line, message);
    }
}

#[test]
fn operations_that_make_no_sense_are_refused_with_their_line() {
    let alloc = r#"{"op":"alloc","id":7,"size":5}"#;
    let free = r#"{"op":"free","id":7}"#;
    let cases: [(&[&str], &str); 19] = [
        (&[free], "line 2: no allocation with id 7 is live here"),
        (&[alloc, free, free], "line 4: no allocation with id 7 is live here"),
        (&[r#"{"op":"record_stream","id":7,"stream":1}"#], "line 2: no allocation with id 7 is live here"),
        (
            &[r#"{"op":"alloc","id":7,"size":-5}"#],
            "line 2: column 30: invalid value: integer `-5`, expected u64",
        ),
        (
            &[r#"{"op":"alloc","id":7,"size":5.5}"#],
            "line 2: column 31: invalid type: floating point `5.5`, expected u64",
        ),
        (
            &[r#"{"op":"alloc","id":7,"size":"5"}"#],
            "line 2: column 31: invalid type: string \"5\", expected u64",
        ),
        (
            &[r#"{"op":"alloc","id":7,"size":18446744073709551616}"#],
            "line 2: column 48: invalid type: floating point `1.8446744073709552e+19`, expected u64",
        ),
        (&[r#"{"op":"alloc","id":7}"#], "line 2: the operation has no \"size\""),
        (&[r#"{"op":"alloc","size":7}"#], "line 2: the operation has no \"id\""),
        (&[r#"{"op":"free"}"#], "line 2: the operation has no \"id\""),
        (&[alloc, r#"{"op":"record_stream","id":7}"#], "line 3: the operation has no \"stream\""),
        (&[r#"{"op":"set_fraction"}"#], "line 2: the operation has no \"fraction\""),
        (&[r#"{"op":"frobnicate"}"#], "line 2: unknown operation \"frobnicate\""),
        (&[alloc, "", "free 7"], "line 4: a line of a recording is a JSON object: it begins with \"{\""),
        (&["[1, 2]"], "line 2: a line of a recording is a JSON object: it begins with \"{\""),
        (
            &[r#"{"trace":[["alloc",-5,5,0]]}"#],
            "line 2: column 21: invalid value: integer `-5`, expected u64",
        ),
        (&[r#"{"trace":[["fetch",5,5,0]]}"#], "line 2: column 19: unknown action \"fetch\""),
        (&[alloc, r#"{"segments":[{"total_size":1}]}"#], "line 3: column 29: missing field `address`"),
        (
            &[alloc, r#"{"op":"end","stats":{"num_ooms":1.5}}"#],
            "line 3: column 35: invalid type: floating point `1.5`, expected i64",
        ),
    ];
    for (operations, message) in cases {
        check_refused(lines(operations), message);
    }
}

#[test]
fn sizes_of_all_kinds_get_an_answer() {
    let sizes = [0, 1, (1 << 60) - 1, 1 << 60, u64::MAX];
    let operations = sizes.iter().enumerate().flat_map(|(id, size)| {
        [format!(r#"{{"op":"alloc","id":{id},"size":{size}}}"#), format!(r#"{{"op":"free","id":{id}}}"#)]
    });
    let operations: Vec<String> = operations.collect();
    let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
    let product = open(lines(&operations)).unwrap();
    let too_large = "CUDA out of memory. Tried to allocate more than 1EB memory.";
    assert_eq!(
        failed_steps(&product),
        [
            "4: out of memory".to_owned(),
            "5: tensor 2 was never allocated: its request failed".to_owned(),
            format!("6: alloc 1152921504606846976 B: {too_large}"),
            "7: tensor 3 was never allocated: its request failed".to_owned(),
            format!("8: alloc 18446744073709551615 B: {too_large}"),
            "9: tensor 4 was never allocated: its request failed".to_owned(),
        ]
    );
}

#[test]
fn a_device_of_any_size_gets_an_answer() {
    for conf in ["", "expandable_segments:True"] {
        for (total, is_enough) in [(0, false), (1, false), (u64::MAX, conf.is_empty())] {
            let meta = format!(r#"{{"meta":{{"total_memory":{total},"conf":"{conf}"}}}}"#);
            let product = open(format!("{meta}\n{}", r#"{"op":"alloc","id":7,"size":5}"#)).unwrap();
            assert_eq!(failed_steps(&product).is_empty(), is_enough, "{total} bytes, {conf:?}");
            let breakdown = product.recording.breakdown_after(0).unwrap();
            assert_eq!(breakdown.capacity(), Bytes::new(total));
        }
    }
}

#[test]
fn a_device_of_16_eib_counts_on_without_overflow() {
    let most = (1_u64 << 60) - 1;
    let operations: Vec<String> = (0..20)
        .map(|id| format!(r#"{{"op":"alloc","id":{id},"size":{most}}}"#))
        .chain((0..20).map(|id| format!(r#"{{"op":"free","id":{id}}}"#)))
        .chain((0..40).map(|round| match round % 3 {
            0 => format!(r#"{{"op":"alloc","id":100,"size":{most}}}"#),
            1 => r#"{"op":"free","id":100}"#.to_owned(),
            _ => r#"{"op":"empty_cache"}"#.to_owned(),
        }))
        .collect();
    let meta = format!(r#"{{"meta":{{"total_memory":{}}}}}"#, u64::MAX);
    let product = open(format!("{meta}\n{}", operations.join("\n"))).unwrap();
    for step in 0..product.recording.step_count() {
        let breakdown = product.recording.breakdown_after(step).unwrap();
        let held = breakdown.requested.get().div_ceil(most);
        assert_eq!(
            (breakdown.capacity().get(), breakdown.rounding.get()),
            (u64::MAX, held),
            "after step {step}"
        );
    }
}

#[test]
fn absurd_streams_and_pools_get_an_answer() {
    let alloc = format!(r#"{{"op":"alloc","id":7,"size":5,"stream":{}}}"#, u64::MAX);
    assert!(
        failed_steps(&open(lines(&[&alloc])).unwrap()).is_empty(),
        "without a list the number is the handle"
    );
    let listed = r#"{"meta":{"total_memory":1073741824,"streams":[0,5]}}"#;
    check_refused(
        format!("{listed}\n{alloc}"),
        "line 2: stream 18446744073709551615 is not in the list of streams of the first line",
    );
    let pool = format!(r#"{{"op":"alloc","id":7,"size":5,"pool":{}}}"#, u32::MAX);
    assert!(failed_steps(&open(lines(&[&pool])).unwrap()).is_empty());
    let segment = r#"{"segments":[{"address":2097152,"total_size":2097152,"segment_type":"small","segment_pool_id":[0,4294967295],"blocks":[]}]}"#;
    let trace = r#"{"trace":[["segment_alloc",2097152,2097152,0],["alloc",2097152,5,0]]}"#;
    assert!(failed_steps(&open(lines(&[trace, segment])).unwrap()).is_empty());
}

#[test]
fn fractions_outside_of_0_to_1_are_refused_in_their_step() {
    for fraction in ["-0.5", "1.01", "1e3"] {
        let product = open(lines(&[&format!(r#"{{"op":"set_fraction","fraction":{fraction}}}"#)])).unwrap();
        let text = &failed_steps(&product)[0];
        assert!(
            text.starts_with("0: invalid fraction:") && text.ends_with("Please set within [0, 1]."),
            "{text}"
        );
    }
}

#[test]
fn settings_that_mean_nothing_are_refused_with_the_reason() {
    let cases = [
        ("foo:1", "Unrecognized key 'foo' in CUDA allocator config."),
        (":::", "Unrecognized key ':' in CUDA allocator config."),
        ("é:1", "Unrecognized key 'é' in CUDA allocator config."),
        ("é", "Index out of bounds in ConfigTokenizer: the value of 'é' is missing"),
        (
            "max_split_size_mb",
            "Index out of bounds in ConfigTokenizer: the value of 'max_split_size_mb' is missing",
        ),
        ("max_split_size_mb:1", "CachingAllocator option max_split_size_mb too small, must be >= 20"),
        ("max_split_size_mb:99999999999999999999999", "stoull: '99999999999999999999999' is out of range"),
        (
            "roundup_power2_divisions:[",
            "Expected closing bracket ']' in ConfigTokenizer but reached end of config",
        ),
        ("garbage_collection_threshold:nan", "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"),
        ("per_process_memory_fraction:inf", "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"),
    ];
    for (conf, message) in cases {
        let meta = format!(r#"{{"meta":{{"total_memory":1,"conf":"{conf}"}}}}"#);
        let text = format!("{meta}\n{}", r#"{"op":"empty_cache"}"#);
        check_refused(text, &format!("its settings: {message}"));
    }
}

#[test]
fn segments_that_overlap_differ_from_where_the_second_is_placed() {
    let trace = r#"{"trace":[["segment_alloc",2097152,2097152,0],["alloc",2097152,5,0],
        ["segment_alloc",2097152,20971520,0],["alloc",2097152,3000000,0]]}"#;
    let comparison = open(lines(&[&trace.replace('\n', "")])).unwrap().opened.unwrap().comparison.unwrap();
    let difference = comparison.first_difference.unwrap();
    assert_eq!(difference.what, "trace entry 2");
    assert_eq!(difference.expected, "segment_alloc 0x200000 of 20971520 bytes on stream 0");
}

#[test]
fn what_can_be_nothing_that_happened_differs_and_is_shown() {
    let entry = |action: &str, addr: u64, size: u64| format!("[\"{action}\",{addr},{size},0]");
    let top = u64::MAX - 511;
    let traces = [
        // Where no driver places anything.
        (vec![entry("segment_alloc", top, 2_097_152), entry("alloc", top, 5)], true),
        (vec![entry("segment_alloc", 1, 2_097_152), entry("alloc", 1, 5)], true),
        // Two segments in one place: the device puts the second one elsewhere.
        (
            vec![
                entry("segment_alloc", 2_097_152, 2_097_152),
                entry("alloc", 2_097_152, 5),
                entry("segment_alloc", 2_097_152, 20_971_520),
                entry("alloc", 2_097_152, 3_000_000),
            ],
            false,
        ),
        // A segment of a size that this request does not get, and one of no size.
        (vec![entry("segment_alloc", 4096, 4_194_304), entry("alloc", 4096, 5)], false),
        (vec![entry("segment_alloc", 4096, u64::MAX), entry("alloc", 4096, u64::MAX)], false),
        (vec![entry("segment_alloc", 4096, 2_097_152), entry("alloc", 4096, 0)], false),
    ];
    for (trace, is_identical) in traces {
        let text = lines(&[&format!("{{\"trace\":[{}]}}", trace.join(","))]);
        let comparison = open(text).unwrap().opened.unwrap().comparison.unwrap();
        assert_eq!(comparison.is_identical(), is_identical, "{trace:?}: {comparison:?}");
        assert_eq!(comparison.first_difference.is_none(), is_identical);
    }
}
