//! The traces that are timed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use blockyard_measure::OperationList;
use blockyard_pytorch::RecordedRun;

/// All bytes of the device on which traces are replayed: those of the GPU on which the programs were
/// recorded.
pub const CAPACITY: u64 = 150_109_880_320;

/// The recorded programs, under PyTorch's default settings.
pub const PROGRAMS: [&str; 5] =
    ["gpt2_varlen", "llama_generate", "gnn_random", "resnet50_amp", "multistream"];

/// The traces, and sentences about recorded programs that are missing.
#[derive(Debug)]
pub struct Suite {
    /// Programs first, then random allocations, then ping-pong.
    pub traces: Vec<OperationList>,
    /// Sentences about recordings that are missing.
    pub missing: Vec<String>,
}

impl Suite {
    /// All traces that are timed with our allocator and PyTorch's.
    ///
    /// # Errors
    ///
    /// When a recording exists and cannot be read.
    pub fn load(workspace: &Path) -> Result<Self> {
        let mut suite = Self::programs(workspace)?;
        let counts = [("1k", 1000), ("10k", 10_000), ("100k", 100_000)];
        let sizes = [("1MiB", 1 << 20), ("64MiB", 64 << 20), ("1GiB", 1 << 30)];
        for (count_name, count) in counts {
            for (size_name, most) in sizes {
                let name = format!("rmm_{count_name}_{size_name}");
                suite.traces.push(OperationList::random_allocations(&name, count, most));
            }
        }
        suite.traces.extend(ping_pongs(100_000));
        Ok(suite)
    }

    /// The recorded programs alone.
    ///
    /// # Errors
    ///
    /// When a recording exists and cannot be read.
    pub fn programs(workspace: &Path) -> Result<Self> {
        let mut suite = Self { traces: Vec::new(), missing: Vec::new() };
        for name in PROGRAMS {
            match recording(workspace, name)? {
                Some(run) => suite.traces.push(
                    OperationList::recorded(name, &run).with_context(|| format!("{name} cannot be replayed"))?,
                ),
                None => suite.missing.push(format!(
                    "{name} is left out: the recording is not in the repository; BLOCKYARD_RECORDINGS names the folder \
                     of {name}.jsonl.gz"
                )),
            }
        }
        Ok(suite)
    }
}

/// Traces that allocate and free a block of one size `pairs` times, one trace for each size.
pub fn ping_pongs(pairs: usize) -> Vec<OperationList> {
    let sizes = [("1KiB", 1 << 10), ("2MiB", 2 << 20), ("64MiB", 64 << 20)];
    sizes.map(|(name, size)| OperationList::ping_pong(&format!("pingpong_{name}"), size, pairs)).into()
}

/// A recorded program, if its file exists.
///
/// # Errors
///
/// When the file exists and cannot be read.
pub fn recording(workspace: &Path, name: &str) -> Result<Option<RecordedRun>> {
    let Some(path) = find(workspace, name) else { return Ok(None) };
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let run = RecordedRun::read(&bytes).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(run))
}

/// The file of a recorded program, if it exists.
pub fn find(workspace: &Path, name: &str) -> Option<PathBuf> {
    let elsewhere = std::env::var_os("BLOCKYARD_RECORDINGS").map(PathBuf::from);
    let folders = [Some(workspace.join("tests/fixtures/programs")), elsewhere];
    let file = format!("{name}.jsonl.gz");
    folders.into_iter().flatten().map(|folder| folder.join(&file)).find(|path| path.is_file())
}
