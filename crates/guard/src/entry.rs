//! The terms of an entry, and what a run of its program took.

use std::fmt;

use blockyard_record::Bytes;

use crate::Tolerance;

/// A line of the program, or a sentence where the stack had no line of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramLine {
    /// The file, below the folder of the baseline's file where it lies there; or the sentence.
    pub file: String,
    /// Counted from 1; 0 where it is not known.
    pub line: u32,
    /// The function; empty where it is not known.
    pub function: String,
    /// The text of the line, without its indentation; empty where it was not read.
    pub code: String,
}

impl ProgramLine {
    /// The file and the number.
    #[must_use]
    pub fn place(&self) -> String {
        if self.line == 0 { self.file.clone() } else { format!("{}:{}", self.file, self.line) }
    }
}

impl fmt::Display for ProgramLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())?;
        if !self.function.is_empty() && self.function != "<module>" {
            write!(f, " {}", self.function)?;
        }
        if !self.code.is_empty() {
            write!(f, "  `{}`", self.code)?;
        }
        Ok(())
    }
}

/// What a line holds at the peak of allocated memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The line.
    pub line: ProgramLine,
    /// Whole blocks.
    pub bytes: Bytes,
}

/// What a run took, as the file keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// PyTorch's version.
    pub torch: String,
    /// Whether nothing was assumed in the run.
    pub is_exact: bool,
    /// Most bytes of allocated blocks at one time.
    pub peak_allocated: Bytes,
    /// Most bytes of segments at one time.
    pub peak_reserved: Bytes,
    /// The peak allocated of each step.
    pub steps: Vec<Bytes>,
    /// The lines that hold most at the peak allocated, those first that hold most.
    pub holders: Vec<Holder>,
    /// How many further lines there are; they hold the rest of the peak.
    pub further: u64,
}

/// What a program is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The program, from the folder of the file.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The short name of the GPU.
    pub gpu: String,
    /// After how many steps of its first optimizer a run ends; without it, the program runs to its end.
    pub steps: Option<u32>,
    /// `PYTORCH_CUDA_ALLOC_CONF`; without it, the environment's.
    pub conf: Option<String>,
    /// The most that may be reserved.
    pub budget: Option<Bytes>,
    /// How much the peaks may grow.
    pub tolerance: Tolerance,
    /// How many lines a baseline has.
    pub lines: usize,
    /// What the program took when the file was written.
    pub baseline: Option<Baseline>,
}

impl Entry {
    /// The lines of a baseline where the file does not say how many.
    pub const LINES: usize = 10;
    /// The GPU where the file names none.
    pub const GPU: &'static str = "h200";

    /// The program and its arguments, as a person types them.
    #[must_use]
    pub fn command(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// Why a run did not reach its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// A request found no memory, at this line where it is known.
    OutOfMemory(Option<String>),
    /// For another reason, in a sentence.
    Failed(String),
}

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredRun {
    /// PyTorch's version.
    pub torch: String,
    /// Whether nothing was assumed.
    pub is_exact: bool,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
    /// What a person should know and what makes no number an estimate.
    pub remarks: Vec<String>,
    /// Most bytes of allocated blocks at one time.
    pub peak_allocated: Bytes,
    /// Most bytes of segments at one time.
    pub peak_reserved: Bytes,
    /// The peak allocated of each step.
    pub steps: Vec<Bytes>,
    /// All lines that hold something at the peak allocated, those first that hold most; none where the run left no history.
    pub holders: Vec<Holder>,
    /// Why the run ended early.
    pub ended: Option<RunFailure>,
}

impl MeasuredRun {
    /// The baseline that this run leaves, with at most this many lines.
    #[must_use]
    pub fn baseline(&self, lines: usize) -> Baseline {
        Baseline {
            torch: self.torch.clone(),
            is_exact: self.is_exact,
            peak_allocated: self.peak_allocated,
            peak_reserved: self.peak_reserved,
            steps: self.steps.clone(),
            holders: self.holders.iter().take(lines).cloned().collect(),
            further: self.holders.len().saturating_sub(lines) as u64,
        }
    }
}
