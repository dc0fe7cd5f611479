//! Programs that a real H200 ran with PyTorch 2.11, run here: how many of the printed lines are equal, and how many of the
//! allocations and frees, up to the first that differs.
//!
//! What was reached before is in `floors.txt`, and may only grow: `UPDATE_FLOORS=1 cargo test -p blockyard-python` writes it.

#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use blockyard_python::{DeviceRun, Program, ProgramSettings, run_on_thread};
use blockyard_torch::memory::LogEntry;
use flate2::read::GzDecoder;
use serde_json::Value;

/// One row of the table.
#[derive(Debug, PartialEq)]
struct Score {
    name: String,
    lines: usize,
    all_lines: usize,
    events: usize,
    all_events: usize,
    marks: usize,
}

fn recorded() -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/pytorch_programs/recorded.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("the fixture is gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("the fixture is JSON")).collect()
}

/// How many events are equal up to the first that differs: bytes of each allocation, negative for its free.
///
/// Frees whose order PyTorch leaves to a hash table are compared as a set.
fn same_events(device: &DeviceRun, recorded: &[i64]) -> usize {
    let bytes = |number: u32| {
        let origin = device.origins.get(number as usize);
        origin.and_then(|origin| i64::try_from(origin.requested.get()).ok()).unwrap_or(0)
    };
    let mut ours = Vec::new();
    let mut sets = Vec::new();
    for entry in &device.requests {
        match entry {
            LogEntry::Allocate(number, _) => ours.push(bytes(*number)),
            LogEntry::Free(number) => ours.push(-bytes(*number)),
            LogEntry::Unordered(count) => sets.push(ours.len()..ours.len() + *count as usize),
        }
    }
    let mut recorded = recorded.to_vec();
    for set in sets {
        if let (Some(ours), Some(recorded)) = (ours.get_mut(set.clone()), recorded.get_mut(set)) {
            ours.sort_unstable();
            recorded.sort_unstable();
        }
    }
    ours.iter().zip(&recorded).take_while(|(ours, theirs)| ours == theirs).count()
}

fn score(program: &Value) -> Score {
    let text = |key: &str| program[key].as_str().unwrap_or_default().to_owned();
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&printed);
    let settings = ProgramSettings {
        devices: u8::try_from(program["devices"].as_u64().unwrap_or(1)).unwrap_or(1),
        ..ProgramSettings::default()
    };
    let file = format!("{}.py", text("name"));
    let run = Program { file, source: text("source"), arguments: Vec::new() };
    let finished = run_on_thread(run, settings, move |text: &str| {
        sink.lock().expect("no printing failed").push_str(text);
    })
    .expect("the interpreter answers");
    let printed = printed.lock().expect("no printing failed").clone();
    let wanted = text("stdout");
    let recorded: Vec<Vec<i64>> =
        serde_json::from_value(program["events"].clone()).expect("events are numbers");
    let same = |(device, recorded): (&DeviceRun, &Vec<i64>)| same_events(device, recorded);
    Score {
        name: text("name"),
        lines: wanted.lines().zip(printed.lines()).filter(|(wanted, printed)| wanted == printed).count(),
        all_lines: wanted.lines().count(),
        events: finished.devices.iter().zip(&recorded).map(same).sum(),
        all_events: recorded.iter().map(Vec::len).sum(),
        marks: finished.marks.len(),
    }
}

fn row(score: &Score) -> String {
    let Score { name, lines, all_lines, events, all_events, marks } = score;
    format!("{name:<36} {lines:>4} of {all_lines:<4} {events:>6} of {all_events:<6} {marks:>3}")
}

#[test]
fn recorded_programs_print_and_allocate_what_they_did_on_an_h200() {
    let scores: Vec<Score> = recorded().iter().map(score).collect();
    let mut table =
        String::from("program                              lines        events           marks\n");
    for score in &scores {
        let _ = writeln!(table, "{}", row(score));
    }
    println!("{table}");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/floors.txt");
    if std::env::var_os("UPDATE_FLOORS").is_some() {
        std::fs::write(&path, &table).expect("floors can be written");
    }
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
        if score.lines < *lines || score.events < *events || score.marks > *marks {
            let _ =
                writeln!(failures, "{} (before: {lines} lines, {events} events, {marks} marks)", row(score));
        }
    }
    assert!(failures.is_empty(), "worse than before:\n{failures}");
}

#[test]
fn an_uncaught_exception_is_printed_as_cpython_prints_it() {
    let source = "def f(x):\n    return x[\"a\"] + 1\n\nf({})\n".to_owned();
    let run = Program { file: "x.py".to_owned(), source, arguments: Vec::new() };
    let finished =
        run_on_thread(run, ProgramSettings::default(), |_: &str| {}).expect("the interpreter answers");
    assert_eq!(finished.status, 1);
    let expected = "Traceback (most recent call last):\n  File \"x.py\", line 4, in <module>\n    f({})\n    ~^^^^\n  File \"x.py\", line 2, \
                    in f\n    return x[\"a\"] + 1\n           ~^^^^^\nKeyError: 'a'\n";
    assert_eq!(finished.traceback.as_deref(), Some(expected));
}

#[test]
fn out_of_memory_is_caught_and_a_loop_without_end_is_stopped() {
    let run = |source: &str, settings: ProgramSettings| {
        let printed = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&printed);
        let program = Program { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
        let finished = run_on_thread(program, settings, move |text: &str| {
            sink.lock().expect("no printing failed").push_str(text);
        })
        .expect("the interpreter answers");
        let printed = printed.lock().expect("no printing failed").clone();
        (finished, printed)
    };
    let source = "import torch\ntry:\n    torch.empty(10**12, device='cuda')\nexcept torch.OutOfMemoryError as e:\n    print(str(e)[:56])\n";
    let (finished, printed) = run(source, ProgramSettings::default());
    assert_eq!(
        (finished.status, printed.as_str()),
        (0, "CUDA out of memory. Tried to allocate 3725.29 GiB. GPU 0\n")
    );
    let settings = ProgramSettings { most_operators: 100, ..ProgramSettings::default() };
    let (finished, _) = run("import torch\nx = torch.zeros(1)\nwhile True:\n    x = x + 1\n", settings);
    assert!(finished.traceback.is_some_and(|text| text.contains("called as many operators as one run may")));
    let settings = ProgramSettings {
        time_limit: Some(std::time::Duration::from_millis(200)),
        ..ProgramSettings::default()
    };
    let (finished, _) = run("while True:\n    pass\n", settings);
    assert!(finished.traceback.is_some_and(|text| text.contains("was stopped after")));
}

#[test]
fn a_name_that_is_not_there_is_refused_with_what_to_use_instead() {
    let run = Program {
        file: "x.py".to_owned(),
        source: "import torch\ntorch.fft.rfft(torch.zeros(4))\n".to_owned(),
        arguments: Vec::new(),
    };
    let finished =
        run_on_thread(run, ProgramSettings::default(), |_: &str| {}).expect("the interpreter answers");
    assert!(finished.traceback.is_some_and(|text| text.contains("line 2") && text.contains("not modeled")));
}

#[test]
fn a_number_that_nobody_knows_stays_one_in_functions_of_math() {
    let source = "import math, torch\nx = torch.ones(2, device='cuda').sum().item()\n\
                  print(x, math.sqrt(x), math.exp(2 * x), math.log(x, 2), math.pow(2, x), math.sqrt(4))\n";
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&printed);
    let program = Program { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    run_on_thread(program, ProgramSettings::default(), move |text: &str| {
        sink.lock().expect("no printing failed").push_str(text);
    })
    .expect("the interpreter answers");
    assert_eq!(printed.lock().expect("no printing failed").as_str(), "? ? ? ? ? 2.0\n");
}
