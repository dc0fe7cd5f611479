//! Programs that a real H200 ran with PyTorch 2.11, run here: how many of the printed lines are equal, how
//! many of the allocations and frees, up to the first that differs, and whether a line that differs is marked.
//!
//! What is reached is in `floors.txt`, and more fails as less does: `cargo xtask update programs` writes it,
//! and with it the signatures of second derivatives that count as recorded (`examples/recorded.rs`).
//!
//! A line that differs has to be marked before it. A mark anywhere in a long program would excuse every line
//! after it. So a line counts as marked only by a mark that can have made it differ: each number of a line has
//! a difference (ours less the GPU's), and where the difference becomes another one than on the line before,
//! other than none, an operator has to have been marked since the last line whose allocated bytes were equal.
//! A peak that stays, or whose difference shrinks, is excused by the mark that excused it first. What is left
//! is pinned in `marked.txt`, line by line and each program with its reason: a line more or a line less fails.
//!
//! `cargo xtask truth programs programs/dqn` shows where a program differs. With `--requests FILE` its
//! requests are written there, each with number, bytes, line and operator of its allocation;
//! `--recorded FILE` compares other programs, in the form of
//! `tests/fixtures/pytorch_programs/recorded.jsonl.gz`. The command tells the test by variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use blockyard_python::ProgramSettings;

use crate::marked::{Comparison, compare, pinned, unmarked};
use crate::programs::{
    Score, for_each, is_named, proved, random, recorded, row, run_recorded, score, second_derivatives_file,
    table,
};
use crate::support::{run, run_with};

/// What the programs gave. Both tests look at it, and each program runs once.
struct Runs {
    scores: Vec<Score>,
    /// The signatures of second derivatives of each program.
    signatures: Vec<Vec<String>>,
    named: Vec<Comparison>,
    random: Vec<Comparison>,
}

static RUNS: LazyLock<Runs> = LazyLock::new(|| {
    // One name, or several with commas between.
    let only = std::env::var("COMPARE").ok();
    let others = std::env::var_os("RECORDED").map(PathBuf::from);
    let random = if others.is_none() { random() } else { Vec::new() };
    let mut programs = recorded(others);
    let named = programs.iter().filter(|program| is_named(program, only.as_deref())).count();
    programs.extend(random);
    programs.retain(|program| is_named(program, only.as_deref()));
    let runs = for_each(&programs, |program| {
        let (printed, finished) = run_recorded(program);
        (score(program, &printed, &finished), compare(program, &printed, &finished))
    });
    let (scores, mut comparisons): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let (scores, signatures) = scores.into_iter().take(named).unzip();
    let random = comparisons.split_off(named);
    Runs { scores, signatures, named: comparisons, random }
});

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
    if !crate::support::has_python_of_recordings() {
        return;
    }
    let Runs { scores, signatures, .. } = &*RUNS;
    println!("{}", table(scores));
    if std::env::var_os("COMPARE").is_none() {
        compare_second_derivatives(&proved(scores, signatures));
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/floors.txt");
    let floors = std::fs::read_to_string(&path).expect("floors are there");
    let mut failures = String::new();
    for score in scores {
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
fn no_line_that_differs_from_the_recording_lacks_a_mark() {
    if !crate::support::has_python_of_recordings() {
        return;
    }
    let Runs { named, random, .. } = &*RUNS;
    let (pinned_equal, pinned) = pinned();
    let equal = random.iter().filter(|comparison| comparison.is_equal).count();
    let (mut count, mut under_mark) = (0, 0);
    let all = || named.iter().chain(random);
    for (_, is_marked, text) in all().flat_map(|comparison| &comparison.differing) {
        count += 1;
        under_mark += usize::from(*is_marked);
        println!("{} {text}", if *is_marked { "marked" } else { "without a mark" });
    }
    println!("{count} lines differ, {under_mark} of them under a mark");
    if std::env::var_os("COMPARE").is_some() || std::env::var_os("RECORDED").is_some() {
        return;
    }
    println!("{equal} of {} random programs are equal in every line", random.len());
    let expected: BTreeMap<String, String> =
        pinned.into_iter().map(|(name, (lines, _))| (name, lines)).collect();
    assert_eq!(
        (equal, unmarked(all())),
        (pinned_equal, expected),
        "not what marked.txt has; where it is better, `cargo xtask update programs` writes it"
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
