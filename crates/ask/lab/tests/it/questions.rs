//! Questions and answers keep their meaning on their way to a worker and back.

use blockyard_lab::{Conditions, LabAnswer, Question, RunSource, SearchResult, replay_under};
use blockyard_record::Bytes;
use blockyard_workload::Workload;

use crate::{on, on_requests};

const FRAGMENTED: &str = "capacity 96 MiB
a = alloc 8 MiB; b = alloc 12 MiB; c = alloc 8 MiB; d = alloc 12 MiB; e = alloc 50 MiB
free a, c, e
f = alloc 70 MiB";

fn sent<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    postcard::from_bytes(&postcard::to_allocvec(value).unwrap()).unwrap()
}

#[test]
fn the_rows_and_the_result_of_a_search_travel_as_bytes() {
    let source = RunSource::File { name: "fragmented".to_owned(), bytes: FRAGMENTED.as_bytes().to_vec() };
    let runs = source.runs(&mut on).unwrap();
    let own = Conditions::default();
    let row = replay_under(&runs[0], &own.and_limit(Bytes::mib(64)), 0, &mut on_requests).unwrap();
    assert_eq!(sent(&row), row);
    let found = SearchResult::of(&runs[0], &own, row.clone(), vec![row], &mut on_requests).unwrap();
    assert_eq!(sent(&found), found);
}

#[test]
fn every_question_and_its_answer_travel_as_bytes() {
    let source = RunSource::File { name: "fragmented".to_owned(), bytes: FRAGMENTED.as_bytes().to_vec() };
    let runs = sent(&source).runs(&mut on).unwrap();
    let own = Conditions::default();
    let questions = [
        Question::WhatIf { conditions: vec![Conditions::with_conf("no_such:1"), own.clone()], samples: 8 },
        Question::Autopsy(own.clone()),
        Question::Bound,
        Question::CompareAllocators(own),
        Question::Leaks,
        Question::Diff(source),
    ];
    for question in questions {
        let asked = sent(&question);
        assert_eq!(asked, question);
        let answer = asked.ask(&runs[0], &mut || 0, &mut on).unwrap();
        assert_eq!(sent(&answer), answer);
        if let LabAnswer::Autopsy(found) = answer {
            assert!(!found.expect("the last request fails").failure.changes.is_empty());
        }
    }
}

const LEAK: &str = "capacity 4 GiB
repeat 120 as i { a = alloc 30 MiB
kept[i] = alloc 10 MiB
free a }";

#[test]
fn the_forecast_of_a_verdict_travels_as_bytes() {
    let source = RunSource::File { name: "leak".to_owned(), bytes: LEAK.as_bytes().to_vec() };
    let runs = source.runs(&mut on).unwrap();
    let answer = Question::Verdict(Conditions::default()).ask(&runs[0], &mut || 0, &mut on).unwrap();
    assert_eq!(sent(&answer), answer);
    let LabAnswer::Verdict(found) = answer else { panic!("{answer:?}") };
    assert!(found.answer.forecast.is_some(), "{}", found.answer.headline);
}

#[test]
fn a_workload_of_the_page_is_the_run_that_its_text_is() {
    let workload = Workload::parse(FRAGMENTED).unwrap();
    let source = RunSource::Workload {
        name: "fragmented".to_owned(),
        workload: Box::new(workload),
        conf: String::new(),
        capacity: Bytes::mib(96),
    };
    let file = RunSource::File { name: "fragmented".to_owned(), bytes: FRAGMENTED.as_bytes().to_vec() };
    let question = Question::Autopsy(Conditions::default());
    let answers = [source, file].map(|source| {
        let runs = source.runs(&mut on).unwrap();
        question.ask(&runs[0], &mut || 0, &mut on).unwrap()
    });
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn what_is_no_run_is_said() {
    for (bytes, said) in [
        (&b"\xff\xfe"[..], "neither a recording"),
        (b"a = alloc 3 MBB", "line 1"),
        (b"\x80\x04\x95rest", "byte"),
    ] {
        let source = RunSource::File { name: "file".to_owned(), bytes: bytes.to_vec() };
        let error = source.runs(&mut on).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
