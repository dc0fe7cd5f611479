//! Recorded programs, run here and compared with what an H200 printed and allocated.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use blockyard_python::{DeviceRun, ProgramOutcome, ProgramSettings};
use blockyard_torch::memory::LogEntry;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::support::run_with;

/// One row of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct Score {
    pub(crate) name: String,
    pub(crate) lines: usize,
    all_lines: usize,
    pub(crate) events: usize,
    all_events: usize,
    pub(crate) marks: usize,
}

impl Score {
    fn is_equal(&self) -> bool {
        self.lines == self.all_lines && self.events == self.all_events
    }
}

/// The signatures of second derivatives that count as recorded.
pub(crate) fn second_derivatives_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../torch/src/autograd/second_derivatives.txt")
}

/// A file of recorded programs of the repository.
pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/pytorch_programs").join(name)
}

/// The named programs that were recorded, or those of another file in the same form.
pub(crate) fn recorded(file: Option<PathBuf>) -> Vec<Value> {
    read(&file.unwrap_or_else(|| fixture("recorded.jsonl.gz")))
}

/// The random programs that were recorded.
pub(crate) fn random() -> Vec<Value> {
    read(&fixture("random.jsonl.gz"))
}

fn read(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("the fixture is gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("the fixture is JSON")).collect()
}

/// Whether a program is one of those that are named, with commas between; all are where none is named.
pub(crate) fn is_named(program: &Value, names: Option<&str>) -> bool {
    let name = program["name"].as_str().unwrap_or_default();
    names.is_none_or(|names| names.split(',').any(|other| other == name))
}

/// How many events are equal, up to the first that differs if their number does: bytes of each allocation,
/// negative for its free.
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

/// Of a program that is named, prints what differs: the lines, and the events around the first that is not as
/// recorded.
pub(crate) fn print_differences(
    name: &str,
    printed: &str,
    wanted: &str,
    devices: &[DeviceRun],
    recorded: &[Vec<i64>],
) {
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
                let (size, line, operator) = origin.map_or((0, 0, ""), |origin| {
                    (origin.requested.get(), origin.line, device.operator(origin))
                });
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
                origin.line,
                device.operator(origin),
                origin.phase
            );
        }
    }
}

/// Runs a program on as many devices as it was recorded on.
pub(crate) fn run_recorded(program: &Value) -> (String, ProgramOutcome) {
    let settings = ProgramSettings {
        devices: u8::try_from(program["devices"].as_u64().unwrap_or(1)).unwrap_or(1),
        ..ProgramSettings::default()
    };
    let name = program["name"].as_str().unwrap_or_default();
    run_with(program["source"].as_str().unwrap_or_default(), &format!("{name}.py"), settings)
}

/// Calls a function for each program, on all processors; the results are in the order of the programs.
pub(crate) fn for_each<R: Send>(programs: &[Value], function: impl Fn(&Value) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(program) = programs.get(index)
                {
                    let result = function(program);
                    found.lock().expect("no program failed").insert(index, result);
                }
            });
        }
    });
    found.into_inner().expect("no program failed").into_values().collect()
}

/// The row of a program, and the signatures of its second derivatives.
pub(crate) fn score(program: &Value, printed: &str, finished: &ProgramOutcome) -> (Score, Vec<String>) {
    let text = |key: &str| program[key].as_str().unwrap_or_default().to_owned();
    let wanted = text("stdout");
    // Random programs were recorded without their events.
    let recorded: Vec<Vec<i64>> = serde_json::from_value(program["events"].clone()).unwrap_or_default();
    if std::env::var("COMPARE").is_ok_and(|name| name == text("name")) {
        print_differences(&text("name"), printed, &wanted, &finished.devices, &recorded);
        println!(
            "{:#?}\n{:#?}\n{}",
            finished.estimates,
            finished.notes,
            finished.traceback.as_deref().unwrap_or_default()
        );
    }
    let same = |(device, recorded): (&DeviceRun, &Vec<i64>)| same_events(device, recorded);
    let score = Score {
        name: text("name"),
        lines: wanted.lines().zip(printed.lines()).filter(|(wanted, printed)| wanted == printed).count(),
        all_lines: wanted.lines().count(),
        events: finished.devices.iter().zip(&recorded).map(same).sum(),
        all_events: recorded.iter().map(Vec::len).sum(),
        marks: finished.estimates.len(),
    };
    (score, finished.second_derivatives.clone())
}

pub(crate) fn row(score: &Score) -> String {
    let Score { name, lines, all_lines, events, all_events, marks } = score;
    format!("{name:<36} {lines:>4} of {all_lines:<4} {events:>6} of {all_events:<6} {marks:>3}")
}

/// The floors of these programs, as `floors.txt` has them.
pub(crate) fn table(scores: &[Score]) -> String {
    let mut table =
        String::from("program                              lines        events           marks\n");
    for score in scores {
        let _ = writeln!(table, "{}", row(score));
    }
    table
}

/// The second derivatives of the programs that are equal whole.
pub(crate) fn proved(scores: &[Score], signatures: &[Vec<String>]) -> BTreeSet<String> {
    let equal = scores.iter().zip(signatures).filter(|(score, _)| score.is_equal());
    equal.flat_map(|(_, signatures)| signatures.iter().cloned()).collect()
}
