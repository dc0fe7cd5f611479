use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

/// How far long work has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done: `reading`, `running`, `replaying`.
    pub phase: String,
    /// Requests done.
    pub done: u64,
    /// All requests; 0 while that is not known.
    pub total: u64,
}

/// Is told about progress, and may break the work off.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

impl Progress {
    pub(crate) fn new(phase: &str, done: usize, total: usize) -> Self {
        Self { phase: phase.to_owned(), done: done as u64, total: total as u64 }
    }
}

// Often enough for a smooth bar and a prompt cancel, rarely enough to cost nothing.
pub(crate) const INTERVAL: usize = 4096;

pub(crate) fn is_due(index: usize) -> bool {
    index.is_multiple_of(INTERVAL)
}
