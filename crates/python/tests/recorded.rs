//! Programs that a real H200 ran with PyTorch 2.11, run here: how many of the printed lines are equal, and
//! how many of the allocations and frees, up to the first that differs.
//!
//! What is reached is in `floors.txt`, and more fails as less does: `cargo xtask update programs` writes it,
//! and with it the signatures of second derivatives that count as recorded (`examples/recorded.rs`).
//!
//! `cargo xtask truth programs programs/dqn` shows where a program differs. With `--requests FILE` its
//! requests are written there, each with number, bytes, line and operator of its allocation;
//! `--recorded FILE` compares other programs, in the form of
//! `tests/fixtures/pytorch_programs/recorded.jsonl.gz`. The command tells the test by variables.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests, and a table for people")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use blockyard_python::ProgramSettings;

#[path = "support/recorded.rs"]
mod programs;
#[path = "support/run.rs"]
mod support;

use programs::{Score, is_named, proved, recorded, row, score, second_derivatives_file, table};
use support::{run, run_with};

/// What counts as recorded must be what the programs that are equal whole have.
fn compare_second_derivatives(found: &BTreeSet<String>) {
    let listed = std::fs::read_to_string(second_derivatives_file()).expect("the signatures are there");
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let unproved: Vec<&String> = listed.difference(found).collect();
    let missing: Vec<&String> = found.difference(&listed).collect();
    assert!(unproved.is_empty(), "no program that is equal has these second derivatives: {unproved:#?}");
    assert!(missing.is_empty(), "these second derivatives are recorded and would be marked: {missing:#?}");
}

#[test]
fn recorded_programs_print_and_allocate_what_they_did_on_an_h200() {
    if !support::has_python_of_recordings() {
        return;
    }
    // One name, or several with commas between.
    let only = std::env::var("COMPARE").ok();
    let programs = recorded(std::env::var_os("RECORDED").map(PathBuf::from));
    let programs = programs.iter().filter(|program| is_named(program, only.as_deref()));
    let (scores, signatures): (Vec<Score>, Vec<Vec<String>>) = programs.map(score).unzip();
    println!("{}", table(&scores));
    if only.is_none() {
        compare_second_derivatives(&proved(&scores, signatures));
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/floors.txt");
    let floors = std::fs::read_to_string(&path).expect("floors are there");
    let mut failures = String::new();
    for score in &scores {
        let numbers = |line: &str| -> Vec<usize> {
            line.split_whitespace().filter_map(|part| part.parse().ok()).collect()
        };
        let floor =
            floors.lines().find(|line| line.split_whitespace().next() == Some(&score.name)).map(numbers);
        let Some([lines, _, events, _, marks]) = floor.as_deref() else {
            let _ = writeln!(failures, "{} has no floor", score.name);
            continue;
        };
        // Both ways: a gain that nobody writes down could be lost again unseen.
        if (score.lines, score.events, score.marks) != (*lines, *events, *marks) {
            let _ =
                writeln!(failures, "{} (before: {lines} lines, {events} events, {marks} marks)", row(score));
        }
    }
    assert!(
        failures.is_empty(),
        "not what floors.txt has; where it is better, `cargo xtask update programs` writes it:\n{failures}"
    );
}

#[test]
fn out_of_memory_is_caught_and_a_loop_without_end_is_stopped() {
    let run = |source: &str, settings: ProgramSettings| {
        let (printed, finished) = run_with(source, "x.py", settings);
        (finished, printed)
    };
    let source = "import torch\ntry:\n    torch.empty(10**12, device='cuda')\nexcept torch.OutOfMemoryError as e:\n    print(str(e)[:56])\n";
    let (finished, printed) = run(source, ProgramSettings::default());
    assert_eq!(
        (finished.status, printed.as_str()),
        (0, "CUDA out of memory. Tried to allocate 3725.29 GiB. GPU 0\n")
    );
    let settings = ProgramSettings { max_operators: 100, ..ProgramSettings::default() };
    let (finished, _) = run("import torch\nx = torch.zeros(1)\nwhile True:\n    x = x + 1\n", settings);
    assert!(
        finished.traceback.is_some_and(|text| text.contains("called 100 operators, as many as one run may"))
    );
    let settings = ProgramSettings {
        time_limit: Some(std::time::Duration::from_millis(200)),
        ..ProgramSettings::default()
    };
    let (finished, _) = run("while True:\n    pass\n", settings);
    assert!(finished.traceback.is_some_and(|text| text.contains("was stopped after")));
}

#[test]
fn a_name_that_is_not_there_is_refused_with_what_to_use_instead() {
    let (_, finished) = run("import torch\ntorch.fft.rfft(torch.zeros(4))\n");
    assert!(finished.traceback.is_some_and(|text| text.contains("line 2") && text.contains("not modeled")));
}

#[test]
fn a_number_that_nobody_knows_stays_one_in_functions_of_math() {
    let source = "import math, torch\nx = torch.ones(2, device='cuda').sum().item()\n\
                  print(x, math.sqrt(x), math.exp(2 * x), math.log(x, 2), math.pow(2, x), math.sqrt(4))\n";
    let (printed, _) = run(source);
    assert_eq!(printed, "? ? ? ? ? 2.0\n");
}
