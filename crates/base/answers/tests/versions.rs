//! Documents of version 1 and of version 2, side by side: the command printed both for the same questions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use blockyard_answers::{
    Answer, Bytes, DocumentError, DryRunAnswer, FitAnswer, GuardAnswer, LimitKind, LimitSource, QuestionLine,
    SettingOutcome, SettingResult, SnapshotLine, read,
};
use serde_json::{Value, json};

/// The first line of a recorded answer.
fn text(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/answers");
    let text = std::fs::read_to_string(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().next().unwrap().to_owned()
}

/// The answer of version 1, and the answer of version 2 to the same question.
fn both(name: &str) -> [Answer; 2] {
    [format!("version-1/{name}.jsonl"), format!("{name}.jsonl")].map(|path| {
        let QuestionLine::Answer(line) = read(&text(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
        else {
            panic!("{path} is not an answer")
        };
        line.answer
    })
}

/// The numbers of requests that fail at both bounds of the limit, and the peaks reserved.
fn bounds(row: &SettingOutcome) -> [Option<u64>; 4] {
    let SettingResult::Replayed(outcome) = &row.result else { return [None; 4] };
    let reserved =
        [Some(outcome.peak_reserved), outcome.peak_reserved_at_high].map(|peak| peak.map(Bytes::get));
    [Some(outcome.ooms), outcome.ooms_at_high, reserved[0], reserved[1]]
}

#[test]
fn both_versions_of_each_answer_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/answers/version-1");
    let mut questions = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let (old, new) = (text(&format!("version-1/{name}")), text(&name));
        let raw = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!((&raw(&old)["version"], &raw(&new)["version"]), (&json!(1), &json!(2)), "{name}");
        let [old, new] = [old, new].map(|text| match read::<QuestionLine>(&text).unwrap() {
            QuestionLine::Answer(line) => {
                (line.version, line.run, serde_json::to_value(&line.answer).unwrap()["question"].clone())
            }
            QuestionLine::Error(line) => (line.version, line.file, json!(line.error)),
        });
        assert_eq!(old, new, "{name}");
        questions.push(new.2.to_string());
    }
    for question in ["what-if", "search", "autopsy", "bound", "compare-allocators", "diff", "leaks"] {
        assert!(questions.contains(&format!("\"{question}\"")), "{question}");
    }
    assert_eq!(questions.len(), 18);
}

#[test]
fn a_document_of_the_newest_version_is_read_as_it_is() {
    for name in ["what-if", "what-if-wrong", "autopsy", "search", "leaks", "verdict", "no-answer"] {
        let text = text(&format!("{name}.jsonl"));
        assert_eq!(read::<QuestionLine>(&text).unwrap(), serde_json::from_str(&text).unwrap(), "{name}");
    }
}

#[test]
fn rows_of_version_1_have_the_same_numbers_at_both_bounds() {
    let [Answer::WhatIf(old), Answer::WhatIf(new)] = both("what-if") else { panic!("another question") };
    assert_eq!((old.limit, new.limit.map(|limit| limit.source)), (None, Some(LimitSource::Inferred)));
    let [ooms, at_high, reserved, reserved_at_high] = bounds(&old.settings[0].outcome);
    assert!(ooms.is_some() && ooms == at_high && reserved == reserved_at_high);
    assert_eq!((old.baseline.release.as_str(), old.baseline.capacity), ("", new.baseline.capacity));
    let [Answer::WhatIf(old), Answer::WhatIf(new)] = both("what-if-timeline") else {
        panic!("another question")
    };
    assert_eq!(bounds(&old.baseline), bounds(&new.baseline));
    let [Answer::Search(old), Answer::Search(new)] = both("search-fits") else { panic!("another question") };
    assert_eq!((old.settings.is_empty(), bounds(&old.baseline)), (false, bounds(&new.baseline)));
    let [Answer::CompareAllocators(old), Answer::CompareAllocators(new)] = both("compare-allocators-limit")
    else {
        panic!("another question")
    };
    assert!(old.allocators.iter().all(|row| row.failed == row.failed_at_high));
    assert_eq!(old.allocators.len(), new.allocators.len());
    let [Answer::Bound(old), Answer::Bound(new)] = both("bound") else { panic!("another question") };
    assert_eq!((old.lower_bound, old.ooms), (new.lower_bound, None));
}

#[test]
fn the_limit_of_version_1_has_the_names_of_version_2() {
    let [Answer::Autopsy(old), Answer::Autopsy(new)] = both("autopsy") else { panic!("another question") };
    assert_eq!((old.limit, old.cause), (new.limit, new.cause));
    assert!(old.limit.is_some());
    let changes = old.failure.iter().flat_map(|failure| failure.changes.iter().chain(&failure.in_vain));
    assert!(changes.clone().count() > 0 && changes.clone().all(|change| !change.depends_on_limit));
    for (source, origin, kind) in [
        ("fraction", LimitSource::Inferred, LimitKind::MemoryFraction),
        ("device", LimitSource::Inferred, LimitKind::Device),
        ("given", LimitSource::Given, LimitKind::MemoryFraction),
    ] {
        let mut value: Value = serde_json::from_str(&text("version-1/autopsy.jsonl")).unwrap();
        value["limit"]["source"] = json!(source);
        let QuestionLine::Answer(line) = read(&value.to_string()).unwrap() else { panic!("no answer") };
        let Answer::Autopsy(autopsy) = line.answer else { panic!("another question") };
        assert_eq!(autopsy.limit.map(|limit| (limit.source, limit.by)), Some((origin, kind)), "{source}");
    }
    let [Answer::Autopsy(old), Answer::Autopsy(_)] = both("autopsy-fits") else { panic!("another question") };
    assert_eq!((old.cause, old.limit, old.failure), (None, None, None));
}

#[test]
fn other_answers_of_version_1_lack_single_fields() {
    let [Answer::Leaks(old), Answer::Leaks(new)] = both("leaks") else { panic!("another question") };
    assert_eq!((&old.live, old.growing.len()), (&new.live, new.growing.len()));
    assert!(old.growing.iter().all(|site| site.first_request == 0));
    let [Answer::Diff(old), Answer::Diff(new)] = both("diff-steps") else { panic!("another question") };
    assert_eq!((old.steps, old.limit, old.limit_before), (new.steps, None, None));
    assert_eq!(old.alignment, new.alignment);
}

#[test]
fn a_version_that_is_not_known_is_an_error_in_words() {
    let error = |text: &str| read::<QuestionLine>(text).unwrap_err().to_string();
    assert_eq!(
        error(r#"{"version": 3, "question": "leaks"}"#),
        "the text has version 3 of an answer to a question about a run, and this Blockyard reads versions 1 \
         to 2: a newer Blockyard reads the text"
    );
    for text in ["{}", r#"{"version": 0}"#, r#"{"version": "2"}"#, "[]"] {
        assert_eq!(
            error(text),
            "an answer to a question about a run has a version, and the text has none",
            "{text}"
        );
    }
    assert!(error("{").starts_with("the text is not JSON: "));
    assert!(error(r#"{"version": 2}"#).starts_with("the text is not an answer to a question about a run: "));
    let later = r#"{"version": 2}"#;
    for error in [
        read::<SnapshotLine>(later).unwrap_err(),
        read::<GuardAnswer>(later).unwrap_err(),
        read::<DryRunAnswer>(later).unwrap_err(),
        read::<FitAnswer>(later).unwrap_err(),
    ] {
        assert!(matches!(error, DocumentError::UnknownVersion { found: 2, newest: 1, .. }), "{error}");
    }
}
