//! Recordings of PyTorch's allocator replay identically as WebAssembly too, and a run is the same run on
//! every target.
#![cfg(target_arch = "wasm32")]
#![expect(clippy::expect_used, reason = "a failed expectation fails the test")]

use std::ops::ControlFlow;

use blockyard_record::{Bytes, Recording};
use blockyard_replay::job::{Job, JobOutput, perform};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[path = "../../../crates/show/lessons/tests/it/transcript.rs"]
mod transcript;

fn open(name: &str, bytes: &[u8]) -> JobOutput {
    let job = Job::Open { name: name.to_owned(), bytes: bytes.to_vec(), device: None };
    perform(&job, &mut |_| ControlFlow::Continue(())).expect("the recording can be replayed")
}

#[track_caller]
fn check_identical(name: &str, bytes: &[u8]) {
    let opened = open(name, bytes).opened.expect("a recording was opened");
    let comparison = opened.comparison.expect("the recording was compared");
    assert!(comparison.is_identical(), "{name}: {comparison:?}");
}

#[wasm_bindgen_test]
fn operations_are_identical() {
    check_identical("default-mix", include_bytes!("../../fixtures/synthetic/default-mix.jsonl.gz"));
    check_identical("default-tight", include_bytes!("../../fixtures/synthetic/default-tight.jsonl.gz"));
    check_identical("expand-streams", include_bytes!("../../fixtures/synthetic/expand-streams.jsonl.gz"));
    check_identical("pools-mix", include_bytes!("../../fixtures/synthetic/pools-mix.jsonl.gz"));
}

#[wasm_bindgen_test]
fn a_program_is_identical() {
    check_identical("gpt2_varlen", include_bytes!("../../fixtures/programs/gpt2_varlen.jsonl.gz"));
}

#[wasm_bindgen_test]
fn a_recording_crosses_a_border_as_bytes() {
    let product = open("gnn_random", include_bytes!("../../fixtures/programs/gnn_random.jsonl.gz"));
    let bytes = product.recording.to_bytes().expect("it encodes");
    let again = Recording::from_bytes(&bytes).expect("it decodes");
    let end = again.event_count();
    let state = again.state_at(end).expect("it adds up");
    assert_eq!(state.breakdown().reserved(), Bytes::new(6_589_251_584));
    assert_eq!(state.snapshot(), product.recording.state_at(end).expect("it adds up").snapshot());
}

#[wasm_bindgen_test]
fn sizes_beyond_32_bits_keep_their_value() {
    let job = Job::Run {
        title: "large".to_owned(),
        text: "a = alloc 70 GiB\nb = alloc 9 GiB\nfree a\nc = alloc 8 GiB".to_owned(),
        conf: String::new(),
        capacity: Bytes::gib(80),
    };
    let product = perform(&job, &mut |_| ControlFlow::Continue(())).expect("it runs");
    let breakdown = product.recording.breakdown_after(3).expect("four steps");
    assert_eq!(breakdown.allocated(), Bytes::gib(17));
    assert_eq!(breakdown.cached, Bytes::gib(62));
    assert_eq!(breakdown.capacity(), Bytes::gib(80));
}

#[wasm_bindgen_test]
fn lessons_are_answered_and_exercises_graded_as_elsewhere() {
    let answers = include_str!("../../../crates/show/lessons/tests/answers.txt");
    assert_eq!(transcript::transcript().expect("every lesson plays"), answers);
}
