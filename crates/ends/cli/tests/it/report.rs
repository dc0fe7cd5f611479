//! `blockyard report`: where it writes, and what its options do. What is in a report is tested in
//! `crates/show/report`.

use super::{blockyard, blockyard_with_input, fixture};

fn oom() -> String {
    fixture("oom/loss_history_100").replace(".jsonl.gz", ".pickle.gz")
}

fn out(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path.to_str().expect("a path of text").to_owned()
}

#[test]
fn a_report_is_written_whole_under_the_name_of_the_file_alone() {
    let path = out("report.html");
    let called = blockyard(["report", &oom(), "-o", &path, "--note", "batch <64>", "--note", "second"]);
    assert_eq!((called.status, called.out.as_str(), called.err.as_str()), (0, "", ""));
    let html = std::fs::read_to_string(&path).unwrap();
    assert!(html.contains("<h1>loss_history_100.pickle.gz</h1>") && !html.contains("fixtures"));
    assert!(html.contains("batch &lt;64&gt;") && html.contains("<p class=\"note\">second</p>"));
    assert!(!std::path::Path::new(&format!("{path}.unfinished")).exists());
}

#[test]
fn a_report_goes_to_standard_output_and_comes_from_standard_input() {
    let called = blockyard_with_input(["report", "-", "-o", "-"], "a = alloc 3 MiB\n");
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(called.out.starts_with("<!doctype html>") && called.out.contains("<h1>standard input</h1>"));
    let preset = blockyard(["report", "fragmentation", "-o", "-"]);
    assert!(preset.out.contains("<h1>fragmentation</h1>"), "{}", preset.err);
}

#[test]
fn names_are_left_out_and_limits_are_those_of_the_questions() {
    let called =
        blockyard(["report", &oom(), "-o", "-", "--redact", "--limit", "620 MiB", "--total-memory", "2 GiB"]);
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(!called.out.contains("loss_history") && !called.out.contains(".py"));
    assert!(called.out.contains("was given: 620 MiB (650,117,120 bytes)"));
    let conf = blockyard(["report", "fragmentation", "-o", "-", "--conf", "expandable_segments:True"]);
    assert!(conf.out.contains("<dd>expandable_segments:True</dd>"), "{}", conf.err);
}

#[test]
fn a_wrong_file_leaves_no_report() {
    let path = out("no-report.html");
    for (file, why) in [("no-such-file", "No such file"), (oom().as_str(), "nothing about device 9")] {
        let called = blockyard(["report", file, "-o", &path, "--device", "9"]);
        assert_eq!(called.status, 2);
        assert!(called.err.contains(why) && called.err.contains(file), "{}", called.err);
        assert!(!std::path::Path::new(&path).exists());
    }
}
