//! Writes what follows from the recorded programs. The test `recorded` holds the files against
//! the programs.
//!
//! `update` writes `floors.txt`, `marked.txt` and the second derivatives that count as recorded
//! (`cargo xtask update programs`).
//!
//! `learn FOLDER [NAMES [RECORDED]]` takes what cuDNN allocated in the programs into the tables of the crate
//! `gpus`, where they have nothing for a shape yet; only if with it every line is equal and there are as many
//! events as were recorded. The folder has the recordings with their addresses, such as `dqn.json.gz`
//! (`cargo xtask learn program-tables FOLDER`).
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a command for people, over helpers of tests")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blockyard_gpus::tables;
use blockyard_python::ProgramSettings;
use flate2::read::GzDecoder;
use serde_json::Value;

#[path = "../tests/support/marked.rs"]
mod marked;
#[path = "../tests/support/recorded.rs"]
mod programs;
#[path = "../tests/support/run.rs"]
#[allow(dead_code, reason = "tests run programs in more ways")]
mod support;

use marked::compare;
use programs::{
    Score, for_each, is_named, print_differences, proved, random, recorded, run_recorded, score,
    second_derivatives_file, table,
};

const HEAD: &str = "# Lines of recorded programs that differ from what an H200 printed and have no mark: program | lines | what is known of the cause.\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["update"] => update(),
        ["learn", folder, rest @ ..] => {
            let programs = recorded(rest.get(1).map(PathBuf::from));
            let named = programs.iter().filter(|program| is_named(program, rest.first().copied()));
            learn_all(named, Path::new(folder));
        }
        _ => {
            println!("recorded update | recorded learn FOLDER [NAMES [RECORDED]]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn update() {
    let mut all = recorded(None);
    let named = all.len();
    all.extend(random());
    let runs = for_each(&all, |program| {
        let (printed, finished) = run_recorded(program);
        (score(program, &printed, &finished), compare(program, &printed, &finished))
    });
    let (scores, comparisons): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let (scores, signatures): (Vec<Score>, Vec<Vec<String>>) = scores.into_iter().take(named).unzip();
    let floors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/floors.txt");
    std::fs::write(floors, table(&scores)).expect("floors can be written");
    let signatures: String =
        proved(&scores, &signatures).into_iter().map(|signature| signature + "\n").collect();
    std::fs::write(second_derivatives_file(), signatures).expect("the signatures can be written");
    let equal = comparisons.iter().skip(named).filter(|comparison| comparison.is_equal).count();
    let text = pinned_text(equal, &marked::unmarked(comparisons.iter()));
    std::fs::write(marked::pinned_file(), text).expect("the file can be written");
}

/// `marked.txt` for these lines; the reasons stay.
fn pinned_text(equal: usize, found: &BTreeMap<String, String>) -> String {
    let (_, pinned) = marked::pinned();
    let mut text = format!("{HEAD}{equal} random programs are equal in every line.\n");
    for (name, lines) in found {
        let reason = pinned.get(name).map_or("the cause is not known", |(_, reason)| reason);
        let _ = writeln!(text, "{name} | {lines} | {reason}");
    }
    text
}

/// Runs a program with what cuDNN was recorded to take, where the tables have nothing, and adds that to the
/// tables.
fn learn(program: &Value, folder: &Path) -> BTreeMap<u32, u64> {
    let source = program["source"].as_str().unwrap_or_default().to_owned();
    let wanted = program["stdout"].as_str().unwrap_or_default().to_owned();
    let recorded: Vec<Vec<i64>> =
        serde_json::from_value(program["events"].clone()).expect("events are numbers");
    let events = recorded.first().cloned().unwrap_or_default();
    let trace = trace(program, folder);
    assert_eq!(trace.len(), events.len(), "the recording is of another run");
    let source = format!(
        "import _host\n_host.learn_from({trace:?})\n{source}\nimport _host\nfor _entry in _host.learned(): print('{LEARNED}', *_entry)\n"
    );
    let (printed, finished) = support::run_with(&source, "x.py", ProgramSettings::default());
    let (learned, lines): (Vec<&str>, Vec<&str>) =
        printed.split_inclusive('\n').partition(|line| line.starts_with(LEARNED));
    let printed = lines.concat();
    let is_equal =
        printed == wanted && finished.devices.iter().any(|device| device.requests.len() == events.len());
    println!("{} new sizes, equal with them: {is_equal}", learned.len());
    if !is_equal {
        print_differences("with the new sizes", &printed, &wanted, &finished.devices, &[events]);
        return BTreeMap::new();
    }
    let entry = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    learned.into_iter().filter_map(entry).collect()
}

/// How a line begins that the program prints for us.
const LEARNED: &str = "learned by blockyard:";

/// The allocations and frees of a recording: address, and bytes that are negative for a free.
fn trace(program: &Value, folder: &Path) -> Vec<(u64, i64)> {
    let name = program["name"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let file = std::fs::File::open(folder.join(format!("{name}.json.gz"))).expect("the recording exists");
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

fn learn_all<'a>(programs: impl Iterator<Item = &'a Value>, folder: &Path) {
    let mut entries = tables::recorded();
    programs.for_each(|program| entries.extend(learn(program, folder)));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../base/gpus/src/tables.bin");
    std::fs::write(path, tables::write(&entries)).expect("the tables can be written");
}
