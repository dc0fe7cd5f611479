//! Texts of the workload language.

use std::ops::ControlFlow;

use blockyard_record::{Bytes, StreamId};
use blockyard_replay::{RunSettings, run};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::edit::{EditAction, EditError, insert};
use blockyard_workload::{Request, TensorId, Workload, parse_size};

/// The most requests of a workload, since longer workloads would only be slow.
const MAX_REQUESTS: u64 = 2_000;

/// Reads the bytes as a workload. An error names a place in the text; a text that can be read runs, and can
/// be edited at any point.
pub fn workload(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = parse_size(&text);
    if Workload::length(&text).is_ok_and(|length| length > MAX_REQUESTS) {
        return;
    }
    let workload = match Workload::parse(&text) {
        Ok(workload) => workload,
        Err(error) => {
            let (line, column, length) = error.position();
            let lines = text.split('\n').count();
            assert!(line >= 1 && line as usize <= lines && column >= 1 && length >= 1, "{error}");
            let found = text.split('\n').nth(line as usize - 1).unwrap_or_default();
            assert!((column as usize) <= found.chars().count() + 1, "{error}");
            return;
        }
    };
    check_names(&workload);
    check_run(&workload);
    check_edits(&text, &workload, data);
}

fn check_names(workload: &Workload) {
    for (index, request) in workload.requests().iter().enumerate() {
        assert!(workload.line(index).is_some_and(|line| line > 0));
        if let Request::Allocate { tensor, stream, .. } = request {
            assert!(workload.tensor_name(*tensor).is_some());
            assert!(workload.stream_name(*stream).is_some());
        }
    }
    assert!(workload.labels().is_sorted_by_key(|(index, _)| *index));
}

fn check_run(workload: &Workload) {
    let settings = RunSettings {
        title: String::new(),
        config: AllocatorConfig::parse("expandable_segments:False", Release::default()).unwrap(),
        capacity: Bytes::mib(100),
    };
    let recording = run(workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(recording.step_count(), workload.requests().len());
    recording.state_at(recording.event_count() / 2).unwrap();
}

fn check_edits(text: &str, workload: &Workload, data: &[u8]) {
    // The place and the kind of the edit follow from the text, so that the same text is the same test.
    let seed =
        data.iter().fold(data.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let done = seed % (workload.requests().len() + 1);
    let tensor = TensorId::new(u32::try_from(seed / 7 % 8).unwrap());
    let stream = StreamId::new((seed / 3 % 3) as u64);
    for action in [
        EditAction::Allocate { size: Bytes::mib(3), stream },
        EditAction::Free { tensor },
        EditAction::RecordStream { tensor, stream },
        EditAction::Advance { stream: None },
        EditAction::DeclareStream,
    ] {
        match insert(text, workload, done, action) {
            Ok(edit) => {
                let after = Workload::parse(&edit.text).unwrap();
                let removed = usize::from(matches!(action, EditAction::Free { .. }));
                let (before, after) = (workload.requests().len(), after.requests().len());
                assert!(after <= before + edit.added && after + removed >= before + edit.added);
            }
            Err(EditError::Stale | EditError::Text(_) | EditError::OutOfRange { .. }) => {
                panic!("the text and its workload belong together")
            }
            Err(_) => {}
        }
    }
}
