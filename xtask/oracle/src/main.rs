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
use clap::Parser;

/// Run random sequences of operations on PyTorch's own allocator and on ours, and compare every address, every
/// statistic after every operation, the trace and the final blocks.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask oracle")]
struct Options {
    /// Until N operations, for each release; else ten million.
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// For S seconds, for each release.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// The same seed makes the same sequences; else the time of the day.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Releases of PyTorch with commas between (2.11,2.15), or `all`; else the newest. Each is fetched once.
    #[arg(long, value_name = "RELEASES", value_parser = parse_releases)]
    release: Option<Releases>,
    /// Only releases fetched before; ends with status 3 if there are none.
    #[arg(long)]
    if_present: bool,
    /// Compare one sequence, with all statistics.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Put PyTorch's answers into a sequence written by hand.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Keep the first COUNT operations of a seed's sequence as a test.
    #[arg(long, num_args = 3, value_names = ["SEED", "NAME", "COUNT"], conflicts_with_all = ["replay", "record"])]
    save: Option<Vec<String>>,
}

/// Releases of PyTorch, at least one.
#[derive(Clone, Debug)]
struct Releases(Vec<Release>);

fn parse_releases(text: &str) -> Result<Releases> {
    if text == "all" {
        return Ok(Releases(Release::ALL.to_vec()));
    }
    Ok(Releases(text.split(',').map(str::parse).collect::<Result<_, _>>()?))
}

/// The exit status if the wheel is missing.
const WHEEL_MISSING: u8 = 3;

/// A run stops after this many sequences that differ.
const MAX_FAILURES: u64 = 3;

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(End::Same) => ExitCode::SUCCESS,
        Ok(End::Different) => ExitCode::FAILURE,
        Ok(End::WheelMissing) => ExitCode::from(WHEEL_MISSING),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
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

fn run(options: Options) -> Result<End> {
    let target = target();
    let start = |release| Library::start(&target, &wheel(&target, release)?, release);
    if let Some(file) = &options.replay {
        let sequence = read(file)?.sequence;
        return replay(&mut start(sequence.release)?, &sequence, file).map(End::of);
    }
    if let Some(file) = &options.record {
        let Fixture { notes, sequence, .. } = read(file)?;
        let answer = start(sequence.release)?.run(&sequence, false)?;
        fs::write(file, Fixture::new(notes, sequence, &answer).text())?;
        return Ok(End::Same);
    }
    let releases = options.release.map(|releases| releases.0);
    if let Some([seed, name, count]) = options.save.as_deref() {
        let release = releases.and_then(|releases| releases.first().copied()).unwrap_or(Release::LATEST);
        let seed = seed.parse().context("SEED is a number")?;
        let mut sequence = generate::sequence(seed, release);
        sequence.operations.truncate(count.parse().context("COUNT is a number")?);
        let answer = start(release)?.run(&sequence, false)?;
        let version = version(release);
        let notes = vec![format!("The beginning of sequence {seed}, and what PyTorch {version} answered.")];
        let file = write_fixture(name, &Fixture::new(notes, sequence, &answer))?;
        println!("    {}", file.display());
        return Ok(End::Same);
    }
    let newest = || if options.if_present { Release::ALL.to_vec() } else { vec![Release::LATEST] };
    let mut releases = releases.unwrap_or_else(newest);
    if options.if_present {
        releases.retain(|release| find_wheel(&target, *release).is_some());
    }
    if releases.is_empty() {
        return Ok(End::WheelMissing);
    }
    let operations = if options.seconds.is_some() { u64::MAX } else { 10_000_000 };
    let bounds = Bounds {
        operations: options.operations.unwrap_or(operations),
        time: options.seconds.map_or(Duration::MAX, Duration::from_secs),
    };
    let mut is_same = true;
    for release in releases {
        println!("    PyTorch {}", version(release));
        is_same &= run_fuzz(&mut start(release)?, release, options.seed, bounds)?;
    }
    Ok(End::of(is_same))
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
    let file = write_fixture(&format!("difference-{:016x}", failure.seed), &fixture)?;
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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Cargo's target folder.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Writes a sequence as a test, and returns its file.
fn write_fixture(name: &str, fixture: &Fixture) -> Result<PathBuf> {
    let folder = root().join("tests/fixtures/oracle");
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{name}.txt"));
    fs::write(&file, fixture.text()).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}
