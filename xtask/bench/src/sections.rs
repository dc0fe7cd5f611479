//! The sections of the benchmark: one module for each comparison.

mod crates;
mod dry_run;
mod instructions;
mod lab;
mod lock;
mod memory;
mod memory_viz;
mod page;
mod parts;
mod programs;
mod pytorch;
mod replay;
mod snapshots;
mod threads;
mod wasm;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use blockyard_measure::Section;
use indicatif::{ProgressBar, ProgressStyle};

pub use instructions::count;
pub use memory::HeapUse;

/// A section of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct SectionEntry {
    /// The name of the section on the command line.
    pub name: &'static str,
    /// A line of help.
    pub about: &'static str,
    /// Measures the section.
    pub measure: fn(&BenchContext) -> Result<Section>,
}

/// Every section, in the order in which they are measured.
///
/// A new section is a module beside these and a line here.
/// [`Section::time`](blockyard_measure::Section::time) makes a row of closures that are timed in turns;
/// `parts.rs` is the shortest example.
pub const SECTIONS: &[SectionEntry] = &[
    entry("pytorch", "PyTorch's own library, ns a pair", pytorch::pytorch),
    entry("instructions", "the same in instructions, under valgrind", instructions::instructions),
    entry("wasm", "WebAssembly in Chromium beside native code, ns a pair", wasm::wasm),
    entry("crates", "offset-allocator and VMA's virtual blocks, ns a pair", crates::crates),
    entry(
        "replay",
        "replays of recorded programs, silent, recorded, and under 24 configurations",
        replay::replay,
    ),
    entry("lab", "questions of the lab: 64 settings, an autopsy; seconds on all cores", lab::lab),
    entry(
        "snapshots",
        "opening snapshots of 96 MB, 300 MB and 1 GB, beside Python; seconds",
        snapshots::snapshots,
    ),
    entry(
        "memory-viz",
        "the same snapshot in our page and in PyTorch's MemoryViz.js (--memory-viz DIR), in Chromium; seconds",
        memory_viz::memory_viz,
    ),
    entry(
        "page",
        "the page's thread a move of the scrubber and a key in a long text, in Chromium; ms",
        page::page,
    ),
    entry("programs", "PyTorch programs without PyTorch, beside `import torch`; seconds", programs::programs),
    entry(
        "dry-run",
        "a dry run beside `import torch`, a step of 8 billion parameters; seconds",
        dry_run::dry_run_start,
    ),
    entry(
        "dry-run-operators",
        "operators in a dry run, beside PyTorch's own host time; us of the processor",
        dry_run::dry_run_operators,
    ),
    entry("parts", "small parts of the allocator by themselves, ns a call", parts::parts),
    entry("heap", "the allocator's own memory, bytes a live block", memory::heap),
    entry("recordings", "a recording in memory, bytes an event", memory::recordings),
    entry("lock", "the allocator's lock beside parking_lot's, ns a pair", lock::lock),
    entry("threads", "two threads on two streams, ours and PyTorch's", threads::threads),
];

const fn entry(
    name: &'static str,
    about: &'static str,
    measure: fn(&BenchContext) -> Result<Section>,
) -> SectionEntry {
    SectionEntry { name, about, measure }
}

/// The folders and options that every section needs.
#[derive(Clone, Debug)]
pub struct BenchContext {
    /// The root of the repository.
    pub workspace: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// How many rounds each contender has.
    pub rounds: usize,
    /// The cores that may be used.
    pub cores: Vec<usize>,
    /// The folder of PyTorch's `MemoryViz.js`.
    pub memory_viz: Option<PathBuf>,
}

/// A progress bar for long work; hidden if standard error is not a terminal.
fn progress(name: &'static str, steps: usize) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} {msg}")?;
    Ok(ProgressBar::new(steps as u64).with_style(style).with_prefix(name))
}

/// At least this many pairs in a timed turn.
const PAIRS_A_TURN: usize = 50_000;

/// How often a trace of `pairs` is replayed in a timed turn.
fn times_for(pairs: usize) -> Result<u32> {
    Ok(u32::try_from(PAIRS_A_TURN.div_ceil(pairs.max(1)))?)
}

/// The note for every time that involves a device.
const FAKE_DEVICE: &str = "fake device: no driver call is in the timed part, except where the trace itself releases \
                           segments and takes new ones";

/// Builds a part of the workspace, such as another target's, that a section measures.
fn cargo_build(context: &BenchContext, what: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet"]).args(what).arg("--target-dir").arg(&context.target);
    let status = build.current_dir(&context.workspace).status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo build {} failed", what.join(" "));
    Ok(())
}
