use std::ops::ControlFlow;

use blockyard_lab::{Conditions, LabError, Outcome, Row, Run, what_if};
use blockyard_record::Bytes;
use blockyard_workload::Workload;

use crate::{on, program};

fn answer(row: &Row) -> &Outcome {
    row.outcome_at_lowest().unwrap_or_else(|| panic!("{:?}", row.outcome))
}

/// PyTorch's peak reserved of `gnn_random` under each setting, in bytes, as recorded.
const GNN_RANDOM: [(&str, u64); 3] = [
    ("", 6_589_251_584),
    ("expandable_segments:True", 2_545_942_528),
    ("max_split_size_mb:128", 19_706_937_344),
];

#[test]
fn each_recording_of_gnn_random_tells_the_peaks_of_the_other_two() {
    let conditions = GNN_RANDOM.map(|(conf, _)| Conditions::with_conf(conf));
    for name in ["gnn_random", "gnn_random.expandable_segments", "gnn_random.max_split_size_mb_128"] {
        let run = program(name);
        let found = what_if(&run, &conditions, 0, &mut on).unwrap();
        let peaks: Vec<u64> = found.rows.iter().map(|row| answer(row).peak_reserved.get()).collect();
        assert_eq!(peaks, GNN_RANDOM.map(|(_, peak)| peak), "from {name}");
        assert!(found.rows.iter().all(Row::fits), "from {name}");
    }
}

#[test]
fn a_wrong_setting_is_a_row_with_pytorchs_error() {
    let run = program("gnn_random");
    let conditions = ["max_split_size_mb:1", "no_such_setting:1", ""].map(Conditions::with_conf);
    let found = what_if(&run, &conditions, 0, &mut on).unwrap();
    let errors: Vec<String> =
        found.rows.iter().filter_map(|row| row.outcome.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "PYTORCH_CUDA_ALLOC_CONF: CachingAllocator option max_split_size_mb too small, must be >= 20",
            "PYTORCH_CUDA_ALLOC_CONF: Unrecognized key 'no_such_setting' in CUDA allocator config."
        ]
    );
    assert_eq!(found.rows[2].outcome, found.baseline.outcome);
    assert_eq!(found.differences, [None, None, None]);
}

#[test]
fn a_timeline_has_the_peaks_of_the_whole_run() {
    let run = program("gpt2_varlen");
    let found = what_if(&run, &[Conditions::with_conf("max_split_size_mb:64")], 100, &mut on).unwrap();
    for row in found.rows.iter().chain([&found.baseline]) {
        let outcome = answer(row);
        assert!((90..=100).contains(&outcome.timeline.len()));
        assert_eq!(outcome.timeline.iter().map(|at| at.reserved).max(), Some(outcome.peak_reserved));
        assert_eq!(outcome.timeline.iter().map(|at| at.allocated).max(), Some(outcome.peak_allocated));
        assert_eq!(outcome.timeline.last().unwrap().until, run.requests().len() as u64);
    }
}

#[test]
fn the_first_difference_is_the_first_request_that_a_setting_serves_differently() {
    let text = "a = alloc 3 MiB; b = alloc 30 MiB; free b; c = alloc 18 MiB";
    let run = Run::from_workload("three", Workload::parse(text).unwrap(), "", Bytes::gib(1));
    let found = what_if(&run, &[Conditions::with_conf("max_split_size_mb:20")], 0, &mut on).unwrap();
    assert_eq!(found.differences[0].as_ref().unwrap().request, 4);
}

#[test]
fn a_limit_ends_a_recorded_run_at_its_first_failure() {
    let run = program("gpt2_varlen");
    let limited = run.conditions().and_limit(Bytes::gib(10));
    let found = what_if(&run, &[limited], 0, &mut on).unwrap();
    let outcome = answer(&found.rows[0]);
    let oom = outcome.first_oom.as_ref().unwrap();
    assert_eq!((outcome.ooms, outcome.requests), (1, oom.request));
    assert!(outcome.peak_reserved <= Bytes::gib(10));
    assert!(oom.message.contains("10.00 GiB allowed"), "{}", oom.message);
}

#[test]
fn a_question_can_be_cancelled() {
    let run = program("gnn_random");
    let mut calls = 0;
    let cancelled = what_if(&run, &[Conditions::with_conf("")], 0, &mut |progress| {
        calls += 1;
        assert_eq!(progress.total, 3 * run.requests().len() as u64);
        if calls < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(matches!(cancelled, Err(LabError::Cancelled)));
}

#[test]
fn a_run_under_other_conditions_is_what_a_row_says() {
    let run = program("gnn_random");
    let limited =
        Conditions { limit: Some(Bytes::gib(2)), ..Conditions::with_conf("expandable_segments:True") };
    let other = run.under(&limited);
    let row = blockyard_lab::replay_under(&run, &limited, 0, &mut crate::on_requests).unwrap();
    let own = blockyard_lab::replay_under(&other, &other.conditions(), 0, &mut crate::on_requests).unwrap();
    assert_eq!(row.outcome, own.outcome);
    let failed = row.outcome_at_lowest().unwrap().first_oom.as_ref().expect("2 GiB are too few").request;
    let cut = other.until_oom(&mut crate::on_requests).unwrap();
    assert_eq!(cut.requests().len() as u64, failed);
    assert_eq!(run.until_oom(&mut crate::on_requests).unwrap().requests().len(), run.requests().len());
}

#[test]
fn a_given_device_says_that_the_limit_of_the_process_is_left_out() {
    let run = crate::oom::snapshot("checkerboard_default", 1.0);
    let device = Conditions { capacity: Some(Bytes::gib(24)), ..Conditions::with_conf("") };
    let limited = Conditions { limit: Some(Bytes::gib(1)), ..device.clone() };
    let found = what_if(&run, &[device, limited], 0, &mut on).unwrap();
    let said =
        |row: usize| answer(&found.rows[row]).warnings.iter().any(|text| text.contains("is left out here"));
    assert_eq!([said(0), said(1)], [true, false]);
}

/// A part of one request has the memory after the request, not the one before it.
#[test]
fn a_timeline_has_the_memory_after_each_request() {
    let text = "a = alloc 30 MiB; b = alloc 40 MiB; free b; empty_cache; free a";
    let run = Run::from_workload("example", Workload::parse(text).unwrap(), "", Bytes::gib(1));
    let found = what_if(&run, &[], 5, &mut on).unwrap();
    let outcome = found.baseline.outcome_at_lowest().unwrap();
    let samples = outcome
        .timeline
        .iter()
        .map(|sample| (sample.until, sample.allocated.get() >> 20, sample.reserved.get() >> 20));
    let expected = [(1, 30, 30), (2, 70, 70), (3, 30, 70), (4, 30, 30), (5, 0, 30)];
    assert_eq!(samples.collect::<Vec<_>>(), expected);
    assert_eq!((outcome.peak_allocated, outcome.peak_reserved), (Bytes::mib(70), Bytes::mib(70)));
}
