//! Progress of long work.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

/// The progress of long work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The phase, in words for people: `reading`, `running`, `replaying` and others.
    pub phase: String,
    /// How much is done: requests, or bytes while a file is read.
    pub done: u64,
    /// How much there is in all, in the same unit; 0 while that is not known.
    pub total: u64,
}

/// Gets the progress, and may cancel the work.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

impl Progress {
    /// The progress of a phase: how much is done, and how much there is in all.
    #[must_use]
    pub fn new(phase: &str, done: usize, total: usize) -> Self {
        Self { phase: phase.to_owned(), done: done as u64, total: total as u64 }
    }

    /// How many requests or events pass between two reports: often enough for a smooth progress bar and a
    /// quick cancel, and too rare to cost time.
    pub const INTERVAL: usize = 4096;

    /// Whether progress is reported before the request or event of this index.
    pub const fn is_due(index: usize) -> bool {
        index.is_multiple_of(Self::INTERVAL)
    }
}
