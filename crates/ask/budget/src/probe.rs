//! The result of one run of the program.

use blockyard_answers::{FitHolder, FitPeaks, FitRank, FitRun};
use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// The memory that a run with one value takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The value; of a run of ranks, the rank.
    pub value: u64,
    /// The run.
    #[serde(flatten)]
    pub run: FitPeaks,
    /// The holders of the peak of the last iteration.
    pub holders: Vec<FitHolder>,
    /// Whether cached segments were released to serve a request: peak reserved says little then.
    #[serde(default)]
    pub has_released: bool,
}

impl Probe {
    /// A probe with these fields and no others.
    #[must_use]
    pub fn of(value: u64, fits: bool, peak_allocated: Bytes, peak_reserved: Bytes) -> Self {
        let run = FitPeaks { fits, peak_allocated, peak_reserved, exact: true, ..FitPeaks::default() };
        Self { value, run, ..Self::default() }
    }

    /// The most bytes of segments; if the run ran out of memory, until then.
    pub fn peak_reserved(&self) -> Bytes {
        self.run.peak_reserved
    }
}

impl From<&Probe> for FitRun {
    fn from(probe: &Probe) -> Self {
        Self { value: probe.value, run: probe.run.clone() }
    }
}

impl From<Probe> for FitRank {
    fn from(probe: Probe) -> Self {
        Self { rank: probe.value, holders: probe.holders, run: probe.run }
    }
}
