//! Keeping a program on one core.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this thread may use, ascending.
///
/// # Errors
///
/// When the system does not say.
pub fn cores() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask for the cores of this process")?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Keeps this thread, and those that it starts, on `cores`.
///
/// # Errors
///
/// When the system refuses.
pub fn pin(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    sched_setaffinity(None, &set).with_context(|| format!("cannot stay on the cores {cores:?}"))
}
