//! Programs that a real H200 ran with PyTorch 2.11, run here: how many of the printed lines are equal, and how many of the
//! allocations and frees, up to the first that differs.
//!
//! What is reached is in `floors.txt`, and more fails as less does: `cargo xtask update programs` writes it, and with it the signatures of second
//! derivatives that count as recorded.
//!
//! `cargo xtask truth programs programs/dqn` shows where a program differs. With `--requests FILE` its requests are written there, each with
//! number, bytes, line and operator of its allocation; `--recorded FILE` compares other programs, in the form of
//! `tests/fixtures/pytorch_programs/recorded.jsonl.gz`. `--learn FOLDER` takes what cuDNN allocated in the program into the tables of the
//! crate `gpus`, where they have nothing for a shape yet; only if with it every line is equal and there are as many events as were
//! recorded. The folder has the recording with its addresses, `dqn.json.gz`. The command tells the test by variables.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests, and a table for people")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::rc::Rc;

use blockyard_python::{DeviceRun, Program, ProgramSettings};
use blockyard_torch::memory::LogEntry;
use blockyard_torch::tables;
use flate2::read::GzDecoder;
use serde_json::Value;

#[path = "support/run.rs"]
mod support;

use support::{run, run_with};

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

impl Score {
    fn is_equal(&self) -> bool {
        self.lines == self.all_lines && self.events == self.all_events
    }
}

/// The signatures of second derivatives that count as recorded.
fn second_derivatives_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../torch/src/autograd/second_derivatives.txt")
}

fn recorded() -> Vec<Value> {
    let path = std::env::var_os("RECORDED").map_or_else(
        || {
            PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("../../tests/fixtures/pytorch_programs/recorded.jsonl.gz")
        },
        PathBuf::from,
    );
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("the fixture is gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("the fixture is JSON")).collect()
}

/// How many events are equal, up to the first that differs if their number does: bytes of each allocation, negative for its free.
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
    let pairs = ours.iter().zip(&recorded);
    // A size that depends on data differs without moving what follows.
    if ours.len() == recorded.len() {
        return pairs.filter(|(ours, theirs)| ours == theirs).count();
    }
    pairs.take_while(|(ours, theirs)| ours == theirs).count()
}

/// Of a program that is named, prints what differs: the lines, and the events around the first that is not as recorded.
fn print_differences(name: &str, printed: &str, wanted: &str, devices: &[DeviceRun], recorded: &[Vec<i64>]) {
    println!("{name}");
    for (wanted, printed) in wanted.lines().zip(printed.lines()).filter(|(wanted, printed)| wanted != printed)
    {
        println!("  an H200 printed: {wanted}\n  printed here:    {printed}");
    }
    for (device, recorded) in devices.iter().zip(recorded) {
        let equal = same_events(device, recorded);
        println!("  {equal} of {} events equal, {} here", recorded.len(), device.requests.len());
        if let Some(path) = std::env::var_os("REQUESTS") {
            let line = |entry: &LogEntry| {
                let (LogEntry::Allocate(number, _) | LogEntry::Free(number) | LogEntry::Unordered(number)) =
                    entry;
                let origin = device.origins.get(*number as usize);
                let (size, line, operator) = origin
                    .map_or((0, 0, ""), |origin| (origin.requested.get(), origin.line, origin.operator));
                format!("{entry:?} bytes {size} line {line} {operator}\n")
            };
            std::fs::write(path, device.requests.iter().map(line).collect::<String>())
                .expect("the requests can be written");
        }
        let entries = device.requests.iter().filter(|entry| !matches!(entry, LogEntry::Unordered(_)));
        let bytes = |entry: &&LogEntry| {
            let (sign, number) = match entry {
                LogEntry::Free(number) => (-1, *number),
                LogEntry::Allocate(number, _) | LogEntry::Unordered(number) => (1, *number),
            };
            let origin = device.origins.get(number as usize);
            origin.map_or(0, |origin| sign * i64::try_from(origin.requested.get()).unwrap_or(i64::MAX))
        };
        let pairs = entries.clone().map(|entry| bytes(&entry)).zip(recorded);
        let first = pairs.take_while(|(ours, theirs)| ours == *theirs).count();
        for (index, entry) in entries.enumerate().skip(first.saturating_sub(12)).take(40) {
            let (sign, number) = match entry {
                LogEntry::Free(number) => (-1, *number),
                LogEntry::Allocate(number, _) | LogEntry::Unordered(number) => (1, *number),
            };
            let Some(origin) = device.origins.get(number as usize) else { continue };
            let ours = sign * i64::try_from(origin.requested.get()).unwrap_or(i64::MAX);
            let theirs = recorded.get(index).copied().unwrap_or(0);
            let mark = if ours == theirs { ' ' } else { '*' };
            println!(
                "  {mark} {index:>6} here {ours:>13} recorded {theirs:>13}  line {:<4} {} {:?}",
                origin.line, origin.operator, origin.phase
            );
        }
    }
}

/// Runs a program with what cuDNN was recorded to take, where the tables have nothing, and adds that to the tables.
fn learn(program: &Value, folder: &std::path::Path) -> BTreeMap<u32, u64> {
    let source = program["source"].as_str().unwrap_or_default().to_owned();
    let wanted = program["stdout"].as_str().unwrap_or_default().to_owned();
    let recorded: Vec<Vec<i64>> =
        serde_json::from_value(program["events"].clone()).expect("events are numbers");
    let events = recorded.first().cloned().unwrap_or_default();
    let trace = trace(program, folder);
    assert_eq!(trace.len(), events.len(), "the recording is of another run");
    let work = move || {
        let learned = Rc::new(RefCell::new(BTreeMap::new()));
        let shared = Rc::clone(&learned);
        tables::set_learner(Some(Rc::new(move |numbers, operands| {
            let key = tables::hash(numbers);
            if let Some(size) = tables::recorded_size(key, operands) {
                return Some(size);
            }
            let session = blockyard_torch::session();
            let at = session.device(0).ok()?.log_len();
            // A workspace is freed as soon as the kernel is queued.
            let size = match (trace.get(at), trace.get(at + 1)) {
                (Some((address, size)), Some((freed, negative)))
                    if address == freed && *size == -negative =>
                {
                    size.unsigned_abs()
                }
                _ => 0,
            };
            shared.borrow_mut().insert(key, tables::encode(size, operands));
            Some(size)
        })));
        let printed = Rc::new(RefCell::new(String::new()));
        let sink = Rc::clone(&printed);
        let program = Program { file: "x.py".to_owned(), source, arguments: Vec::new() };
        let print = move |text: &str| sink.borrow_mut().push_str(text);
        let finished = blockyard_python::run(&program, &ProgramSettings::default(), Box::new(print));
        tables::set_learner(None);
        let is_equal = *printed.borrow() == wanted
            && finished.devices.iter().any(|device| device.requests.len() == events.len());
        println!("{} new sizes, equal with them: {is_equal}", learned.borrow().len());
        if !is_equal {
            print_differences("with the new sizes", &printed.borrow(), &wanted, &finished.devices, &[events]);
            return BTreeMap::new();
        }
        learned.take()
    };
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(work).expect("a thread starts");
    thread.join().expect("the program ran")
}

/// The allocations and frees of a recording: address, and bytes that are negative for a free.
fn trace(program: &Value, folder: &std::path::Path) -> Vec<(u64, i64)> {
    let name = program["name"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let file = std::fs::File::open(folder.join(format!("{name}.json.gz"))).expect("the recording is there");
    let recording: Value =
        serde_json::from_reader(GzDecoder::new(file)).expect("the recording is JSON in gzip");
    let entries = recording["trace"].as_array().cloned().unwrap_or_default();
    let request = |entry: &Value| {
        let (address, size) = (entry[1].as_u64()?, entry[2].as_i64()?);
        match entry[0].as_str()? {
            "alloc" => Some((address, size)),
            "free_requested" => Some((address, -size)),
            _ => None,
        }
    };
    entries.iter().filter_map(request).collect()
}

fn learn_all<'a>(programs: impl Iterator<Item = &'a Value>, folder: &std::path::Path) {
    let mut entries = tables::recorded();
    programs.for_each(|program| entries.extend(learn(program, folder)));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../gpus/src/tables.bin");
    std::fs::write(path, tables::write(&entries)).expect("the tables can be written");
}

fn score(program: &Value) -> (Score, Vec<String>) {
    let text = |key: &str| program[key].as_str().unwrap_or_default().to_owned();
    let settings = ProgramSettings {
        devices: u8::try_from(program["devices"].as_u64().unwrap_or(1)).unwrap_or(1),
        ..ProgramSettings::default()
    };
    let (printed, finished) = run_with(&text("source"), &format!("{}.py", text("name")), settings);
    let wanted = text("stdout");
    let recorded: Vec<Vec<i64>> =
        serde_json::from_value(program["events"].clone()).expect("events are numbers");
    if std::env::var("COMPARE").is_ok_and(|name| name == text("name")) {
        print_differences(&text("name"), &printed, &wanted, &finished.devices, &recorded);
        println!("{:#?}\n{:#?}\n{}", finished.marks, finished.notes, finished.traceback.unwrap_or_default());
    }
    let same = |(device, recorded): (&DeviceRun, &Vec<i64>)| same_events(device, recorded);
    let score = Score {
        name: text("name"),
        lines: wanted.lines().zip(printed.lines()).filter(|(wanted, printed)| wanted == printed).count(),
        all_lines: wanted.lines().count(),
        events: finished.devices.iter().zip(&recorded).map(same).sum(),
        all_events: recorded.iter().map(Vec::len).sum(),
        marks: finished.marks.len(),
    };
    (score, finished.second_derivatives)
}

fn row(score: &Score) -> String {
    let Score { name, lines, all_lines, events, all_events, marks } = score;
    format!("{name:<36} {lines:>4} of {all_lines:<4} {events:>6} of {all_events:<6} {marks:>3}")
}

/// What counts as recorded must be what the programs that are equal whole have.
fn compare_second_derivatives(scores: &[Score], signatures: Vec<Vec<String>>) {
    let equal = scores.iter().zip(signatures).filter(|(score, _)| score.is_equal());
    let found: BTreeSet<String> = equal.flat_map(|(_, signatures)| signatures).collect();
    let path = second_derivatives_file();
    if std::env::var_os("UPDATE_FLOORS").is_some() {
        let mut text = String::new();
        for signature in &found {
            let _ = writeln!(text, "{signature}");
        }
        std::fs::write(&path, text).expect("the signatures can be written");
    }
    let listed = std::fs::read_to_string(&path).expect("the signatures are there");
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let unproved: Vec<&String> = listed.difference(&found).collect();
    let missing: Vec<&String> = found.difference(&listed).collect();
    assert!(unproved.is_empty(), "no program that is equal has these second derivatives: {unproved:#?}");
    assert!(missing.is_empty(), "these second derivatives are recorded and would be marked: {missing:#?}");
}

#[test]
fn recorded_programs_print_and_allocate_what_they_did_on_an_h200() {
    // One name, or several with commas between.
    let only = std::env::var("COMPARE").ok();
    let is_wanted = |program: &&Value| {
        let name = program["name"].as_str().unwrap_or_default();
        only.as_deref().is_none_or(|only| only.split(',').any(|only| only == name))
    };
    let programs = recorded();
    let programs = programs.iter().filter(is_wanted);
    if let Some(folder) = std::env::var_os("LEARN") {
        learn_all(programs, &PathBuf::from(folder));
        return;
    }
    let (scores, signatures): (Vec<Score>, Vec<Vec<String>>) = programs.map(score).unzip();
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
    if only.is_none() {
        compare_second_derivatives(&scores, signatures);
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
fn an_uncaught_exception_is_printed_as_cpython_prints_it() {
    let source = "def f(x):\n    return x[\"a\"] + 1\n\nf({})\n".to_owned();
    let (_, finished) = run(&source);
    assert_eq!(finished.status, 1);
    let expected = "Traceback (most recent call last):\n  File \"x.py\", line 4, in <module>\n    f({})\n    ~^^^^\n  File \"x.py\", line 2, \
                    in f\n    return x[\"a\"] + 1\n           ~^^^^^\nKeyError: 'a'\n";
    assert_eq!(finished.traceback.as_deref(), Some(expected));
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
    let settings = ProgramSettings { most_operators: 100, ..ProgramSettings::default() };
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
