//! The terms that an entry sets for its program, and the memory that a run of the program takes.

use blockyard_answers::{GuardFailure, GuardHolder};
use blockyard_record::Bytes;

use super::Tolerance;

/// The memory that a run took, as the file keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// PyTorch's version.
    pub torch: String,
    /// Whether nothing was assumed in the run.
    pub is_exact: bool,
    /// The most bytes of allocated blocks at a time.
    pub peak_allocated: Bytes,
    /// The most bytes of segments at a time.
    pub peak_reserved: Bytes,
    /// The peak allocated of each iteration, in their order.
    pub iteration_peaks: Vec<Bytes>,
    /// The lines that hold most at the peak allocated, the line that holds most first.
    pub holders: Vec<GuardHolder>,
    /// The number of further lines, which hold the rest of the peak.
    pub further: u64,
}

/// The terms for a program, which the guard compares a run with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramEntry {
    /// The program, from the folder of the file.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The short name of the GPU.
    pub gpu: String,
    /// After how many iterations a run ends, which are counted by the steps of its first optimizer; `None`
    /// for a run to the program's end.
    pub iterations: Option<u32>,
    /// `PYTORCH_CUDA_ALLOC_CONF`; `None` for the environment's.
    pub conf: Option<String>,
    /// The most bytes that may be reserved.
    pub budget: Option<Bytes>,
    /// How much the peaks may grow.
    pub tolerance: Tolerance,
    /// How many lines a baseline has.
    pub lines: usize,
    /// The memory that the program took when the file was written.
    pub baseline: Option<Baseline>,
}

impl ProgramEntry {
    /// How many lines a baseline has if the file does not say.
    pub const LINES: usize = 10;
    /// The GPU if the file names none.
    pub const GPU: &'static str = "h200";

    /// The program and its arguments, as a person types them.
    pub fn command(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The memory that a run took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredRun {
    /// PyTorch's version.
    pub torch: String,
    /// Whether nothing was assumed.
    pub is_exact: bool,
    /// The assumptions, in sentences.
    pub notes: Vec<String>,
    /// Sentences that a person should read and that make no number an estimate.
    pub remarks: Vec<String>,
    /// The most bytes of allocated blocks at a time.
    pub peak_allocated: Bytes,
    /// The most bytes of segments at a time.
    pub peak_reserved: Bytes,
    /// The peak allocated of each iteration, in their order.
    pub iteration_peaks: Vec<Bytes>,
    /// All lines that hold bytes at the peak allocated, the line that holds most first; none if the run left
    /// no history.
    pub holders: Vec<GuardHolder>,
    /// Why the run ended early.
    pub failure: Option<GuardFailure>,
}

impl MeasuredRun {
    /// A baseline with the memory of this run and at most this many lines.
    pub fn baseline(&self, lines: usize) -> Baseline {
        Baseline {
            torch: self.torch.clone(),
            is_exact: self.is_exact,
            peak_allocated: self.peak_allocated,
            peak_reserved: self.peak_reserved,
            iteration_peaks: self.iteration_peaks.clone(),
            holders: self.holders.iter().take(lines).cloned().collect(),
            further: self.holders.len().saturating_sub(lines) as u64,
        }
    }
}
