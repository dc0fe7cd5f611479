//! The page's samples are the recordings of the fixtures, with their traces in columns.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;

use blockyard_pytorch::{CompactTrace, RecordedRun};

fn read(path: &str) -> RecordedRun {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    RecordedRun::read(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn samples_are_the_recordings_of_the_fixtures() {
    for name in ["gpt2_varlen", "resnet50_amp", "gnn_random"] {
        let sample = read(&format!("../web/samples/{name}.jsonl.gz"));
        assert!(sample == read(&format!("fixtures/programs/{name}.jsonl.gz")), "{name}");
    }
}

#[test]
fn columns_keep_every_recorded_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let run = RecordedRun::read(&std::fs::read(&path).unwrap()).unwrap();
        let Some(trace) = run.trace else { continue };
        let columns = serde_json::to_string(&CompactTrace::of(&trace)).unwrap();
        let text = format!("{{\"meta\":{{\"total_memory\":1}}}}\n{{\"compact_trace\":{columns}}}");
        assert!(RecordedRun::parse(&text).unwrap().trace == Some(trace), "{}", path.display());
    }
}
