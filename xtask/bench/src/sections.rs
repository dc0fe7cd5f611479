//! The comparisons.

mod instructions;
mod pytorch;
mod threads;

use std::path::PathBuf;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

pub use instructions::{count, instructions};
pub use pytorch::pytorch;
pub use threads::threads;

/// What every section is told.
#[derive(Clone, Debug)]
pub struct Context {
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

/// What must be said beside every time that involves a device.
const FAKE_DEVICE: &str = "fake device: no driver call is in the timed part, except where the trace itself releases \
                           segments and takes new ones";
