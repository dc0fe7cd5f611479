//! `cargo xtask oracle`: our allocator against PyTorch's own library.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use blockyard_oracle::{
    Bounds, FailedSequence, Fixture, FuzzSummary, Library, Sequence, compare, find_wheel, fuzz, generate,
    version, wheel,
};
use blockyard_rules::Release;
use lexopt::prelude::*;

const HELP: &str = "\
Runs random sequences of operations on PyTorch's own allocator and on ours, and compares every address, every statistic after
every operation, the trace and the final blocks.

cargo xtask oracle [--operations N] [--seconds S] [--seed N]  until N operations (ten million) or S seconds, for each release
                   [--release 2.11,2.15]                      releases of PyTorch, or `all`; else the newest. Each is fetched once
                   [--if-present]                             only releases fetched before; ends with status 3 if there are none
cargo xtask oracle --replay FILE                              one sequence, with all statistics
cargo xtask oracle --record FILE                              puts PyTorch's answers into a sequence written by hand
cargo xtask oracle --save SEED NAME COUNT [--release R]       keeps the first operations of a seed's sequence as a test
";

/// The exit status if the wheel is missing.
const WHEEL_MISSING: u8 = 3;

/// A run stops after this many sequences that differ.
const MAX_FAILURES: u64 = 3;

enum Command {
    Help,
    Fuzz { seed: Option<u64>, bounds: Bounds, releases: Vec<Release>, only_if_present: bool },
    Replay(PathBuf),
    Record(PathBuf),
    Save { seed: u64, name: String, count: usize, release: Release },
}

fn main() -> ExitCode {
    match parse(lexopt::Parser::from_env()).and_then(run) {
        Ok(End::Same) => ExitCode::SUCCESS,
        Ok(End::Different) => ExitCode::FAILURE,
        Ok(End::WheelMissing) => ExitCode::from(WHEEL_MISSING),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: lexopt::Parser) -> Result<Command> {
    let mut bounds = Bounds { operations: 10_000_000, time: Duration::MAX };
    let (mut seed, mut only_if_present) = (None, false);
    let mut releases = Vec::new();
    let mut saved = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("operations") => bounds.operations = arguments.value()?.parse()?,
            Long("seed") => seed = Some(arguments.value()?.parse()?),
            Long("if-present") => only_if_present = true,
            Long("release") => releases = parse_releases(&arguments.value()?.string()?)?,
            Long("replay") => return Ok(Command::Replay(arguments.value()?.into())),
            Long("record") => return Ok(Command::Record(arguments.value()?.into())),
            Long("save") => {
                let seed = arguments.value()?.parse()?;
                let name = arguments.value()?.parse()?;
                saved = Some((seed, name, arguments.value()?.parse()?));
            }
            Long("seconds") => {
                bounds.time = Duration::from_secs(arguments.value()?.parse()?);
                bounds.operations = u64::MAX;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some((seed, name, count)) = saved {
        let release = releases.first().copied().unwrap_or(Release::LATEST);
        return Ok(Command::Save { seed, name, count, release });
    }
    if releases.is_empty() {
        releases = if only_if_present { Release::ALL.to_vec() } else { vec![Release::LATEST] };
    }
    Ok(Command::Fuzz { seed, bounds, releases, only_if_present })
}

fn parse_releases(text: &str) -> Result<Vec<Release>> {
    if text == "all" {
        return Ok(Release::ALL.to_vec());
    }
    text.split(',').map(|release| Ok(release.parse()?)).collect()
}

/// The end of a run without an error.
enum End {
    Same,
    Different,
    WheelMissing,
}

impl End {
    fn of(is_same: bool) -> Self {
        if is_same { Self::Same } else { Self::Different }
    }
}

fn run(command: Command) -> Result<End> {
    let target = target();
    let start = |release| Library::start(&target, &wheel(&target, release)?, release);
    match command {
        Command::Help => print!("{HELP}"),
        Command::Fuzz { seed, bounds, mut releases, only_if_present } => {
            if only_if_present {
                releases.retain(|release| find_wheel(&target, *release).is_some());
            }
            if releases.is_empty() {
                return Ok(End::WheelMissing);
            }
            let mut is_same = true;
            for release in releases {
                println!("    PyTorch {}", version(release));
                is_same &= run_fuzz(&mut start(release)?, release, seed, bounds)?;
            }
            return Ok(End::of(is_same));
        }
        Command::Replay(file) => {
            let sequence = read(&file)?.sequence;
            return replay(&mut start(sequence.release)?, &sequence, &file).map(End::of);
        }
        Command::Record(file) => {
            let Fixture { notes, sequence, .. } = read(&file)?;
            let mut library = start(sequence.release)?;
            let answer = library.run(&sequence, false)?;
            fs::write(&file, Fixture::new(notes, sequence, &answer).text())?;
        }
        Command::Save { seed, name, count, release } => {
            let mut sequence = generate::sequence(seed, release);
            sequence.operations.truncate(count);
            let answer = start(release)?.run(&sequence, false)?;
            let version = version(release);
            let notes =
                vec![format!("The beginning of sequence {seed}, and what PyTorch {version} answered.")];
            let file = fixtures().join(format!("{name}.txt"));
            fs::create_dir_all(fixtures())?;
            fs::write(&file, Fixture::new(notes, sequence, &answer).text())?;
            println!("    {}", file.display());
        }
    }
    Ok(End::Same)
}

/// Runs random sequences; returns whether all results were the same.
fn run_fuzz(library: &mut Library, release: Release, seed: Option<u64>, bounds: Bounds) -> Result<bool> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = seed.unwrap_or(now.as_secs());
    println!("    seed {seed}");
    let mut reported_at = Instant::now();
    let summary = fuzz(
        library,
        release,
        seed,
        bounds,
        |summary| {
            if reported_at.elapsed() >= Duration::from_secs(5) {
                reported_at = Instant::now();
                println!("    {}", progress(summary, bounds));
            }
            if summary.differences < MAX_FAILURES {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        },
        |failure| keep(&failure),
    )?;
    println!("{summary}");
    Ok(summary.differences == 0)
}

fn progress(summary: &FuzzSummary, bounds: Bounds) -> String {
    let FuzzSummary { operations, sequences, elapsed, differences, .. } = summary;
    let end = if bounds.operations == u64::MAX {
        format!("{:.0} of {:.0} s", elapsed.as_secs_f64(), bounds.time.as_secs_f64())
    } else {
        format!("{} %", operations.saturating_mul(100) / bounds.operations.max(1))
    };
    let rate = summary.rate();
    format!("{end}: {operations} operations in {sequences} sequences, {rate} a second, {differences} differ")
}

/// Keeps a failing sequence as a test that fails until the allocator is right.
fn keep(failure: &FailedSequence) -> Result<()> {
    println!("    sequence {:#x}: {}", failure.seed, failure.description);
    let Some(expected) = &failure.expected else {
        println!("    PyTorch's library died over it; see target/oracle/driver.log\n{:#?}", failure.sequence);
        return Ok(());
    };
    let notes = vec![
        format!(
            "Shrunk from sequence {:#x}, and what PyTorch {} answered. Ours was different:",
            failure.seed,
            version(failure.sequence.release),
        ),
        failure.description.replace('\n', " "),
    ];
    let fixture = Fixture::new(notes, failure.sequence.clone(), expected);
    let file = fixtures().join(format!("difference-{:016x}.txt", failure.seed));
    fs::create_dir_all(fixtures())?;
    fs::write(&file, fixture.text()).with_context(|| format!("cannot write {}", file.display()))?;
    println!("    kept as {}", file.display());
    Ok(())
}

fn replay(library: &mut Library, sequence: &Sequence, file: &Path) -> Result<bool> {
    let difference = compare(library, sequence, true)?;
    match &difference {
        None => println!("    {} operations, all equal", sequence.operations.len()),
        Some(difference) => println!("    {difference}"),
    }
    if sequence.operations.is_empty() {
        bail!("{} has no operations", file.display());
    }
    Ok(difference.is_none())
}

fn read(file: &Path) -> Result<Fixture> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Fixture::parse(&text).with_context(|| format!("{} is not a sequence", file.display()))
}

fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}

/// Cargo's target folder.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn fixtures() -> PathBuf {
    root().join("tests/fixtures/oracle")
}
