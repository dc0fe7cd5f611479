//! The messages between the page and its Python.
//!
//! The page's Python is far larger than the page, and our extension (`crates/programs/python/extension`)
//! writes and reads the messages there. The messages have a separate crate, so that the page is built without
//! Python.

use blockyard_answers::{EstimatedOperator, ProgramNote};
use blockyard_record::{AllocationId, Bytes, Recording};
use blockyard_rules::Release;
use serde::{Deserialize, Serialize};

/// A program to run, with its GPU, its release of PyTorch and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramJob {
    /// The program's text.
    pub source: String,
    /// The arguments, which follow the file's name in `sys.argv`.
    pub arguments: Vec<String>,
    /// The id of the GPU, such as `h200`.
    pub gpu: String,
    /// The release of PyTorch that runs the program.
    pub release: Release,
    /// The memory of the device; `None` for all that the GPU has.
    pub capacity: Option<Bytes>,
    /// Whether the driver and CUDA's libraries take their part of the memory, as on a real GPU.
    pub counts_non_pytorch: bool,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The step at which the page asks why memory is alive; the program runs for this answer alone, and its
    /// output is dropped. `None` for an ordinary run.
    pub referrers_at: Option<usize>,
    /// The lines of a program whose other lines are not the reader's: the first, counted from 1, and the line
    /// after the last. A request that a function of the other lines makes has the line of the reader that
    /// called the function.
    pub own_lines: Option<(u32, u32)>,
}

/// A message of Python to the page.
#[derive(Debug, Serialize, Deserialize)]
pub enum ProgramReply {
    /// The program has printed these pieces, in this order.
    Printed(Vec<PrintedText>),
    /// Why memory is alive at the step that the job names; the page needs no later message.
    Referrers(Referrers),
    /// The program ended.
    Done(Box<Result<ProgramRun, ProgramError>>),
}

/// A piece of the output of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedText {
    /// The text.
    pub text: String,
    /// How many steps of the recording were complete when the piece was printed.
    pub steps: usize,
}

/// Why memory of the first GPU is alive at one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Referrers {
    /// The step, as a number of complete steps of the recording.
    pub step: usize,
    /// The line that ran, counted from 1; 0 where none did.
    pub line: u32,
    /// The operator, or the node of autograd, that ran: it holds the allocations that have no other reason.
    pub operator: String,
    /// The reasons of each allocation, in words.
    pub reasons: Vec<(AllocationId, Vec<String>)>,
}

/// Why a program was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ProgramError {
    /// The page has no GPU of this name.
    #[error("there is no GPU {0:?} here")]
    Gpu(String),
    /// `PYTORCH_CUDA_ALLOC_CONF` is wrong.
    #[error("{0}")]
    Config(String),
}

/// The result of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The exit status: 0, the argument of `sys.exit`, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that the program did not catch; empty after `sys.exit()`.
    pub traceback: Option<String>,
    /// Why the program ran out of memory, where its own lists say so.
    pub cause: Option<ProgramNote>,
    /// Remarks about lines of the program, in order.
    pub notes: Vec<ProgramNote>,
    /// The unverified estimates, in order.
    pub estimates: Vec<EstimatedOperator>,
    /// The objects of the program that kept blocks, as JSON that the crate `lab` reads; empty where blocks
    /// did not become more and more.
    pub keepers: String,
    /// The recording of the first GPU; empty if the program used no GPU.
    pub recording: Option<Recording>,
    /// The bytes that the driver and CUDA's libraries took of the GPU.
    pub non_pytorch: Bytes,
    /// The parts of `non_pytorch`, as the lessons name them.
    pub non_pytorch_parts: Vec<(String, Bytes)>,
    /// The line of the program at each step of the recording.
    pub step_lines: Vec<u32>,
    /// The line and the operator of each allocation, in the order of allocations.
    pub origins: Vec<AllocationOrigin>,
    /// The memory of each line of the program that allocated some, in the order of lines.
    pub lines: Vec<LineMemory>,
    /// How many further GPUs the program used, which are not shown.
    pub further_devices: usize,
}

/// The line and the operator that made an allocation, and its category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationOrigin {
    /// The recording's id; `None` where the allocation failed.
    pub allocation: Option<AllocationId>,
    /// The line, counted from 1; 0 where none ran.
    pub line: u32,
    /// The operator, or the node of autograd.
    pub operator: String,
    /// The phase of the training step: `forward`, `backward` or `optimizer`.
    pub phase: String,
    /// The category of the memory: `parameters`, `gradients`, `optimizer`, `activations`, `workspaces`,
    /// `input`, `temporaries`.
    pub category: String,
}

/// The memory that a line of the program allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineMemory {
    /// The line, counted from 1.
    pub line: u32,
    /// How many allocations the line made.
    pub allocations: u32,
    /// All bytes that the line requested.
    pub requested: Bytes,
    /// The most requested bytes of the line that were alive at once.
    pub peak: Bytes,
}
