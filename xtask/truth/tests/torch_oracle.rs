//! Calls in which our operators once differed from PyTorch, each with PyTorch's own events: none may differ
//! again. PyTorch is not needed.
//!
//! A second test makes random calls on both sides where there is a PyTorch:
//! `TORCH=PYTHON cargo test -p blockyard-truth`. Without `TORCH` that test says that it is skipped.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests, and a line for people")]

use std::path::Path;

use blockyard_python::Interpreter;
use blockyard_truth::torch_oracle::{
    CallComparison, CallRun, Calls, OracleReport, OurProcesses, OurSide, PyTorch, RecordedCall, Sides, Times,
    compare, compare_calls, program, read_findings, run_ours,
};

fn kept(file: &str) -> Vec<RecordedCall> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/torch_oracle");
    let text = std::fs::read_to_string(folder.join(file)).expect("the fixture is there");
    read_findings(&text).expect("the fixture has a finding a line")
}

/// The calls whose events are not PyTorch's.
fn different(findings: &[RecordedCall]) -> String {
    let calls: Vec<_> = findings.iter().map(|finding| finding.call.clone()).collect();
    let ours = run_ours(&program(&calls)).expect("the interpreter answers").calls();
    let mut different = Vec::new();
    for (number, finding) in findings.iter().enumerate() {
        let here = ours.get(&number).expect("every call is reached");
        let printed = here.printed.clone();
        let theirs = CallRun { events: finding.events.clone(), printed, ..CallRun::default() };
        let comparison = compare(here, &theirs);
        if comparison != CallComparison::Equal {
            different.push(format!(
                "{}: {comparison:?}\n{}  here    {:?} {:?}\n  PyTorch {:?}",
                finding.call.operator, finding.call.body, here.events, here.error, finding.events
            ));
        }
    }
    different.join("\n")
}

#[test]
fn no_kept_call_differs_from_pytorch_again() {
    let findings = kept("calls.jsonl");
    assert!(findings.len() >= 40, "{}", findings.len());
    assert_eq!(different(&findings), "");
}

/// Programs with cycles of references whose events once differed. When an object dies depends on Python's
/// release in some of them.
#[test]
fn no_kept_lifetime_differs_from_pytorch_again() {
    let python = Interpreter::of_recordings().filter(|python| python.version.starts_with("3.12."));
    if python.is_none() {
        println!("skipped: the events are those of Python 3.12");
        return;
    }
    let findings = kept("cycles.jsonl");
    assert!(findings.len() >= 20, "{}", findings.len());
    assert_eq!(different(&findings), "");
}

#[test]
fn a_call_without_one_of_its_events_is_not_equal() {
    let theirs = CallRun { events: vec![512, -512], ..CallRun::default() };
    let ours = CallRun { events: vec![512], ..CallRun::default() };
    assert_eq!(compare(&ours, &theirs), CallComparison::Different);
    assert_eq!(compare(&CallRun { is_estimated: true, ..ours }, &theirs), CallComparison::Estimated);
    assert_eq!(compare(&theirs, &theirs), CallComparison::Equal);
}

#[test]
fn the_same_seed_makes_the_same_calls() {
    let bodies = |seed| -> Vec<String> {
        Calls::new(seed, None).expect("the table is understood").take(50).map(|call| call.body).collect()
    };
    assert_eq!(bodies(7), bodies(7));
    assert_ne!(bodies(7), bodies(8));
}

#[test]
fn a_process_that_ends_early_is_counted_and_ends_no_other() {
    let folder = tempfile::tempdir().expect("a folder of temporary files");
    let ours =
        OurSide::Apart(OurProcesses::new("false".into(), folder.path().to_owned(), "python3".to_owned()));
    let error = ours.run("ends", "print('# 0')").expect_err("`false` writes no result");
    assert!(error.to_string().contains("ended early"), "{error}");
    // A process that ended early is tried once more.
    assert_eq!(ours.died_count(), 2);
    let program = env!("CARGO_BIN_EXE_blockyard-truth").into();
    let ours = OurSide::Apart(OurProcesses::new(program, folder.path().to_owned(), "python3".to_owned()));
    let source = "import torch\nx = torch.empty(4, device='cuda')\nprint('# 0')\n";
    let apart = ours.run("runs", source).expect("our side runs");
    assert_eq!(apart, run_ours(source).expect("our side runs"));
    assert_eq!((ours.died_count(), apart.lines.len()), (0, 1));
}

/// Families whose calls are all equal or marked; the others are listed in `docs/benchmarks/programs.md`.
#[test]
fn random_calls_of_dropout_and_attention_are_pytorchs() {
    let Ok(python) = std::env::var("TORCH") else {
        println!("skipped: TORCH names no Python that has PyTorch for CUDA");
        return;
    };
    let pytorch = PyTorch::find(&python).expect("TORCH has PyTorch for CUDA");
    let (mut report, mut times) = (OracleReport::default(), Times::default());
    for family in ["dropout", "attention"] {
        let calls: Vec<_> = Calls::new(5, Some(family)).expect("the table is understood").take(100).collect();
        let sides = Sides { pytorch: &pytorch, ours: &OurSide::Here };
        let compared = compare_calls(sides, family, &calls, &mut times);
        for (call, compared) in calls.iter().zip(compared) {
            report.add(call, compared);
        }
    }
    assert!(report.count(CallComparison::Equal) > 150, "{report}");
    assert_eq!(report.count(CallComparison::Different), 0, "{report}");
}
