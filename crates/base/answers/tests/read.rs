//! Answers that the command printed are read by the types, and written again as they were.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use blockyard_answers::{
    Answer, AnswerLine, Bytes, DocumentError, DryRunAnswer, FitAnswer, FitBy, FitReplay, FitResult,
    GuardAnswer, QuestionKind, QuestionLine, SettingResult, SnapshotLine, VERSION, VerifyLine, read,
};
use serde_json::{Value, json};

/// The lines of all recorded answers, each with the name of its file.
fn recorded() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/answers");
    let commands = std::fs::read_to_string(folder.join("commands.txt")).unwrap();
    let names = commands.lines().map(|line| line.split_once(": ").unwrap().0);
    let lines = names.flat_map(|name| {
        let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        assert!(!text.is_empty(), "{name}");
        text.lines().map(|line| (name.to_owned(), line.to_owned())).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn each_recorded_answer_is_read_and_written_again_as_it_was() {
    let recorded = recorded();
    assert!(recorded.len() >= 27);
    for (name, line) in recorded {
        let value: Value = serde_json::from_str(&line).unwrap();
        let written = match name.split('-').next().unwrap() {
            "snapshot" => serde_json::to_value(serde_json::from_str::<SnapshotLine>(&line).unwrap()),
            "verify" => serde_json::to_value(serde_json::from_str::<VerifyLine>(&line).unwrap()),
            _ => serde_json::to_value(serde_json::from_str::<QuestionLine>(&line).unwrap()),
        };
        assert_eq!(written.unwrap(), value, "{name}");
    }
}

#[test]
fn the_versions_are_those_of_the_recorded_answers() {
    for (name, line) in recorded() {
        let value: Value = serde_json::from_str(&line).unwrap();
        let version = match name.split('-').next().unwrap() {
            "verify" => Value::Null,
            _ => json!(VERSION),
        };
        assert_eq!(value.get("version").cloned().unwrap_or(Value::Null), version, "{name}");
    }
}

#[test]
fn the_recorded_answers_have_every_question_and_both_results_of_a_setting() {
    let recorded = recorded();
    let has = |part: &str| recorded.iter().any(|(_, line)| line.contains(part));
    let answers = recorded.iter().filter_map(|(_, line)| serde_json::from_str::<AnswerLine>(line).ok());
    let kinds: Vec<(QuestionKind, String)> = answers
        .map(|line| {
            let json = serde_json::to_value(&line.answer).unwrap();
            (line.answer.kind(), json["question"].as_str().unwrap().to_owned())
        })
        .collect();
    for kind in QuestionKind::ALL {
        assert!(kinds.contains(&(kind, kind.name().to_owned())), "{kind:?}");
        assert_eq!(QuestionKind::from_name(kind.name()), Some(kind));
    }
    assert!(kinds.iter().all(|(kind, name)| kind.name() == name));
    for part in ["\"first_oom\":{", "\"error\":\"", "\"timeline\":[[", "\"layout\":[[", "\"steps\":[20,120]"]
    {
        assert!(has(part), "{part}");
    }
    let wrong = recorded.iter().find(|(name, _)| name == "what-if-wrong").unwrap();
    let QuestionLine::Answer(line) = serde_json::from_str(&wrong.1).unwrap() else { panic!("no answer") };
    let Answer::WhatIf(answer) = line.answer else { panic!("another question") };
    assert!(matches!(answer.baseline.result, SettingResult::Replayed(_)));
    assert!(answer.settings.iter().all(|row| matches!(row.outcome.result, SettingResult::Failed { .. })));
}

#[test]
fn another_version_is_an_error_in_words() {
    let error = |text: &str| read::<QuestionLine>(text).unwrap_err().to_string();
    for found in [0, 2] {
        assert_eq!(
            error(&format!(r#"{{"version": {found}, "question": "leaks"}}"#)),
            format!(
                "the text has version {found} of an answer to a question about a run, and this Blockyard reads \
                 version 1"
            )
        );
    }
    for text in ["{}", r#"{"version": "1"}"#, "[]"] {
        assert_eq!(
            error(text),
            "an answer to a question about a run has a version, and the text has none",
            "{text}"
        );
    }
    assert!(error("{").starts_with("the text is not JSON: "));
    assert!(error(r#"{"version": 1}"#).starts_with("the text is not an answer to a question about a run: "));
    let later = r#"{"version": 2}"#;
    for error in [
        read::<SnapshotLine>(later).unwrap_err(),
        read::<GuardAnswer>(later).unwrap_err(),
        read::<DryRunAnswer>(later).unwrap_err(),
        read::<FitAnswer>(later).unwrap_err(),
    ] {
        assert!(matches!(error, DocumentError::OtherVersion { found: 2, .. }), "{error}");
    }
}

#[test]
fn a_document_is_read_as_it_is() {
    for (name, line) in recorded() {
        if !name.starts_with("snapshot") && !name.starts_with("verify") {
            assert_eq!(read::<QuestionLine>(&line).unwrap(), serde_json::from_str(&line).unwrap(), "{name}");
        }
    }
}

#[test]
fn a_field_that_a_reader_does_not_know_is_passed_over() {
    let line = r#"{"version": 1, "run": "run", "question": "bound", "requests": 1, "limit": null, "lower_bound": 512,
        "request": 1, "layout_peak": 512, "peak_reserved": null, "ooms": null, "ooms_at_high": null, "notes": [], "added": 7}"#;
    let QuestionLine::Answer(line) = serde_json::from_str(line).unwrap() else { panic!("no answer") };
    assert_eq!(line.file, None);
    let Answer::Bound(bound) = line.answer else { panic!("another question") };
    assert_eq!(bound.lower_bound, Bytes::new(512));
}

/// Reports that `blockyard fit` printed, by name.
fn recorded_fits() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/fit/answers");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<(String, String)> = files
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn each_recorded_fit_is_read_and_written_again() {
    let recorded = recorded_fits();
    assert_eq!(recorded.len(), 8);
    for (name, text) in recorded {
        let answer: FitAnswer = serde_json::from_str(&text).unwrap();
        assert_eq!(answer.call.version, VERSION, "{name}");
        // A field that the types do not know would be missing here.
        let recorded: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&answer).unwrap(), recorded, "{name}");
    }
}

#[test]
fn the_recorded_fits_have_every_form() {
    let result = |name: &str| -> FitResult {
        let recorded = recorded_fits();
        let (_, text) = recorded.iter().find(|(known, _)| known == name).unwrap();
        serde_json::from_str::<FitAnswer>(text).unwrap().result
    };
    let FitResult::Largest(largest) = result("largest") else { panic!("another question") };
    assert_eq!(
        (largest.others.len(), largest.first.growth.is_some(), largest.first.settings.len()),
        (1, true, 2)
    );
    let FitResult::Largest(fails) = result("largest-fails") else { panic!("another question") };
    assert_eq!((fails.first.failed_at, fails.first.largest), (Some(8), None));
    let FitResult::Largest(none) = result("largest-none") else { panic!("another question") };
    assert_eq!((none.vary.values.list, none.first.largest), (Some(vec![60, 90, 100]), None));
    let FitResult::Map(map) = result("map") else { panic!("another question") };
    assert!(matches!(map.by, FitBy::Option(_)) && map.first.rows.iter().all(|row| row.value.is_some()));
    let FitResult::Map(map) = result("map-settings") else { panic!("another question") };
    assert!(matches!(map.by, FitBy::Settings { .. }) && map.first.rows.iter().all(|row| row.conf.is_some()));
    let FitResult::Map(map) = result("map-layouts") else { panic!("another question") };
    assert!(matches!(map.by, FitBy::Layouts { .. }) && map.first.rows.iter().all(|row| row.layout.is_some()));
    let FitResult::Settings(settings) = result("settings") else { panic!("another question") };
    assert!(settings.first.settings.iter().any(|row| matches!(row.result, FitReplay::Failed { .. })));
    assert!(settings.first.settings.iter().any(|row| row.run.is_some()));
    let FitResult::Layouts(layouts) = result("layouts") else { panic!("another question") };
    assert!(layouts.first.layouts.iter().any(|row| row.under_limit.is_some()));
    assert!(layouts.first.layouts.iter().any(|row| row.error.is_some()));
}
