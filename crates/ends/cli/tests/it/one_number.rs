//! A request has one number, in every answer and in the figures.

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_figure::steps_at_allocation;
use blockyard_pytorch::{snapshot, trace, unpack};
use blockyard_record::grouped;
use serde_json::Value;

use crate::{blockyard, file, json};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures");
    folder.join(name).to_str().expect("a path of text").to_owned()
}

/// A snapshot whose trace begins after its first `cut` entries, in the middle of the run.
fn late(cut: usize) -> String {
    let bytes = std::fs::read(fixture("snapshots/checkerboard.json.gz")).unwrap();
    let mut whole: Value = serde_json::from_str(&unpack(&bytes).unwrap()).unwrap();
    whole["device_traces"][0].as_array_mut().unwrap().drain(..cut);
    file(&format!("late-{cut}.json"), whole.to_string())
}

fn answer(arguments: &[&str]) -> Value {
    json(blockyard(arguments.iter().copied()).out.trim_end())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The number of the failed request, which all answers and the figure have in common.
fn failed_request(path: &str) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let opened = snapshot::read(&bytes[..], &mut |_| ControlFlow::Continue(())).unwrap();
    let recording = trace::record(&opened, 0, "", &mut |_| ControlFlow::Continue(())).unwrap().recording;
    let figure = u64::from(recording.failed_steps()[0].0) + 1;

    let verdict = answer(&["verdict", "--json", path]);
    assert_eq!(number(&verdict["moment"]), figure, "{path}");
    let sentences: Vec<&str> = verdict["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["text"].as_str().unwrap())
        .collect();
    let asked = format!("request {} asked ", grouped(figure));
    assert!(sentences.iter().any(|sentence| sentence.starts_with(&asked)), "{path}: {sentences:#?}");
    // The page and the report go to these moments of the figures.
    let moments = verdict["findings"].as_array().unwrap().iter().chain(verdict["held"].as_array().unwrap());
    for moment in moments.flat_map(|of| of["moments"].as_array().unwrap()) {
        let step = steps_at_allocation(&recording, number(&moment["allocations_after"]));
        assert_eq!(step.map(|step| step as u64), Some(number(&moment["request"])), "{path}: {moment}");
    }

    let at = answer(&["snapshot", "--json", "--at", "oom", path]);
    assert_eq!(number(&at["devices"][0]["at"]["request"]), figure, "{path}");
    let same = answer(&["snapshot", "--json", "--at", &format!("request:{figure}"), path]);
    assert_eq!(same["devices"][0]["at"]["event"], at["devices"][0]["at"]["event"], "{path}");

    let what_if = answer(&["what-if", "--json", path]);
    assert_eq!(number(&what_if["baseline"]["first_oom"]["request"]), figure, "{path}");
    assert_eq!(number(&what_if["requests"]), recording.step_count() as u64, "{path}");
    let autopsy = answer(&["autopsy", "--json", path]);
    assert_eq!(number(&autopsy["request"]["request"]), figure, "{path}");
    figure
}

#[test]
fn a_request_has_one_number_in_all_answers_and_figures() {
    // Streams and memory pools lead to requests that no figure shows.
    for name in [
        "snapshots/checkerboard_default_100.pickle.gz",
        "snapshots/mem_pool_cache_100.pickle.gz",
        "oom/side_stream_cache_90.pickle.gz",
        "oom/loss_history_100.pickle.gz",
    ] {
        failed_request(&fixture(name));
    }
}

/// Live blocks from before a late recording are no requests: the first request of the trace has the number 1.
#[test]
fn a_recording_that_begins_late_counts_its_own_requests() {
    let path = late(10);
    let whole: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let trace = whole["device_traces"][0].as_array().unwrap();
    let is = |entry: &Value, action: &str| entry["action"] == *action;
    let failure = trace.iter().position(|entry| is(entry, "oom")).unwrap();
    let before = &trace[..failure];
    let asked = before.iter().filter(|entry| is(entry, "alloc") || is(entry, "free_requested")).count();
    assert_eq!(failed_request(&path), asked as u64 + 1);

    let peak = answer(&["snapshot", "--json", &path]);
    let peak = number(&peak["devices"][0]["peak_allocated_request"]);
    let diff = answer(&["diff", "--json", &path, &path]);
    assert_eq!(number(&diff["allocated"]["request_before"]), peak);
    assert_eq!(number(&answer(&["bound", "--json", &path])["request"]), peak);
}

/// Where addresses decide that a replay passes and the run did not, the run is not said to fit.
#[test]
fn a_run_that_failed_and_whose_replay_passes_does_not_fit() {
    let done = blockyard(["verdict", &late(40)]);
    assert_eq!(done.status, 2, "{}", done.out);
    let headline = "it ran out of memory at request 49, and its replay does not: addresses decide";
    assert!(done.out.contains(headline), "{}", done.out);
}
