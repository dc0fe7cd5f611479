//! Recordings whose first events are missing, as a full ring buffer leaves them.

use super::{check_refused, fixture, gunzip, open};

/// The recording's first line and the entries of its trace, as texts.
fn trace_of(name: &str) -> (String, Vec<String>) {
    let text = gunzip(&fixture(name));
    let mut lines = text.lines();
    let meta = lines.next().unwrap().to_owned();
    let trace = lines.find_map(|line| line.strip_prefix("{\"trace\":[[")).expect("a program has a trace");
    let entries = trace.trim_end_matches("]]}").split("],[").map(|entry| format!("[{entry}]")).collect();
    (meta, entries)
}

fn with_trace(meta: &str, entries: &[String]) -> String {
    format!("{meta}\n{{\"trace\":[{}]}}", entries.join(","))
}

#[test]
fn a_trace_that_begins_in_the_middle_is_refused_with_the_entry_that_shows_it() {
    let (meta, entries) = trace_of("programs/gnn_random");
    let whole = open(with_trace(&meta, &entries)).unwrap().opened.unwrap().comparison.unwrap();
    assert!(whole.is_identical());

    // A missing prefix is noticed only if a later entry needs something that it made, which is so for every
    // prefix here, up to the last pages.
    for missing in (1..40).chain((40..entries.len() - 200).step_by(331)) {
        let error = open(with_trace(&meta, &entries[missing..])).unwrap_err().to_string();
        assert!(
            error.starts_with("it.jsonl: the recording begins late: entry "),
            "{missing} missing: {error}"
        );
    }
}

#[test]
fn the_error_names_the_first_entry_that_needs_what_is_missing() {
    let meta = r#"{"meta":{"total_memory":1073741824}}"#;
    let entry = |action: &str| format!(r#"["{action}",2097152,512,0]"#);
    let late = "needs memory from before the first entry, which is not recorded";
    for action in ["alloc", "free_requested", "free_completed", "segment_free", "segment_unmap"] {
        check_refused(
            with_trace(meta, &[entry("snapshot"), entry(action)]),
            &format!("the recording begins late: entry 1 ({action} of 512 B at 0x200000) {late}"),
        );
    }
}

#[test]
fn operations_that_begin_in_the_middle_are_refused_with_the_line_that_shows_it() {
    let text = gunzip(&fixture("synthetic/default-mix"));
    let lines: Vec<&str> = text.lines().collect();
    for missing in [3, 4, 10, 100, 600] {
        let rest = [&lines[..1], &lines[missing..]].concat();
        let error = open(rest.join("\n")).unwrap_err().to_string();
        let (line, message) = error.strip_prefix("it.jsonl: line ").unwrap().split_once(": ").unwrap();
        let line = rest[line.parse::<usize>().unwrap() - 1];
        let id =
            message.strip_prefix("no allocation with id ").unwrap().strip_suffix(" is live here").unwrap();
        assert!(line.contains(&format!("\"id\":{id}")), "{error}: {line}");
    }
}
