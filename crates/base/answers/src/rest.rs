//! The rest of an iteration that failed, a part of the answers of `blockyard verdict` and `autopsy`.

use blockyard_record::{Bytes, counted};
use serde::{Deserialize, Serialize};

/// What becomes of the iteration that failed with a change: the requests that come after the failed one are
/// replayed too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestOfIteration {
    /// Where the requests after the failed one are known from.
    pub from: RestSource,
    /// Whether they are known up to the end of the iteration.
    pub is_whole: bool,
    /// The first of them that fails; null where none does.
    pub fails: Option<LaterFailure>,
}

/// Where the requests after the failed one are known from. Each source asks for the same as the failed iteration up
/// to the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RestSource {
    /// The recorded run did not fail there, and goes on.
    Recording,
    /// An earlier iteration of the run, counted from 1.
    Iteration(u64),
    /// The same iteration of another device, by PyTorch's number.
    Device(u64),
}

/// A request after the failed one that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaterFailure {
    /// How many requests for memory later.
    pub requests_later: u64,
    /// The bytes that the request asks for.
    pub size: Bytes,
    /// The line of the program that asks for them; null where no stack was recorded.
    pub line: Option<String>,
}

impl RestSource {
    /// `its rest is taken from iteration 3`, in a sentence about the iteration that failed.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Recording => "the recording goes on after the failure".to_owned(),
            Self::Iteration(number) => format!("its rest is taken from iteration {number}"),
            Self::Device(number) => format!("its rest is taken from device {number}"),
        }
    }
}

impl RestOfIteration {
    /// Whether the iteration is known to its end, and finishes.
    #[must_use]
    pub fn finishes(&self) -> bool {
        self.is_whole && self.fails.is_none()
    }

    /// What happens after the request that failed, as the end of a sentence that says that it passes.
    #[must_use]
    pub fn end_text(&self) -> String {
        match (&self.fails, self.from) {
            (Some(LaterFailure { requests_later, size, line }), _) => {
                let line = line.as_ref().map_or_else(String::new, |line| format!(" at `{line}`"));
                format!("and {} later {size}{line} run out of memory", counted(*requests_later, "request"))
            }
            (None, RestSource::Recording) if self.is_whole => "and the run finishes".to_owned(),
            (None, _) if self.is_whole => "and the iteration finishes".to_owned(),
            (None, _) => "and so do the requests after it that are known".to_owned(),
        }
    }
}
