//! The comparisons.

mod crates;
mod instructions;
mod lock;
mod memory;
mod pytorch;
mod replay;
mod threads;
mod wasm;

use std::path::PathBuf;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

pub use crates::crates;
pub use instructions::{count, instructions};
pub use lock::lock;
pub use memory::{Counted, heap, recordings};
pub use pytorch::pytorch;
pub use replay::replay;
pub use threads::threads;
pub use wasm::wasm;

/// What every section is told.
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
}

/// A bar that says how far long work has come; nothing where nobody looks.
fn progress(name: &'static str, steps: usize) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} {msg}")?;
    Ok(ProgressBar::new(steps as u64).with_style(style).with_prefix(name))
}

/// At least so many pairs in a timed turn.
const PAIRS_A_TURN: usize = 50_000;

/// How often a trace of `pairs` is replayed in a timed turn.
fn times_for(pairs: usize) -> Result<u32> {
    Ok(u32::try_from(PAIRS_A_TURN.div_ceil(pairs.max(1)))?)
}

/// What must be said beside every time that involves a device.
const FAKE_DEVICE: &str = "fake device: no driver call is in the timed part, except where the trace itself releases \
                           segments and takes new ones";
