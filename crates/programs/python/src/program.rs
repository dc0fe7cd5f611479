//! A program, the settings of its run, and what the run gave.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use blockyard_answers::{EstimatedOperator, ProgramNote};
use blockyard_gpus::GpuProfile;
use blockyard_record::{AllocationId, Bytes, Recording, Snapshot, Stats};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_torch::memory::{Category, LogEntry, Phase};
use serde::{Deserialize, Serialize};

/// The text of a program, with its name and its arguments.
#[derive(Clone, Debug)]
pub struct ProgramSource {
    /// The name that tracebacks show.
    pub file: String,
    /// The text of the program.
    pub source: String,
    /// The arguments after the file's name in `sys.argv`.
    pub arguments: Vec<String>,
}

/// The GPUs, the settings and the limits of a run.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The Python that runs the program, a name on the path or a file; `None` for the first that is found.
    pub python: Option<String>,
    /// The GPU; all devices are of this kind.
    pub gpu: GpuProfile,
    /// How many devices the program sees.
    pub devices: u8,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub config: AllocatorConfig,
    /// The folder of the program's own modules; `None` where the program has no modules.
    pub folder: Option<PathBuf>,
    /// The non-PyTorch memory of each GPU: bytes that the program cannot have.
    pub non_pytorch: Bytes,
    /// Whether recordings are made.
    pub is_recorded: bool,
    /// Whether the program is confined: no network, no other processes, and of the files only those of its
    /// folder and of Python, to read.
    pub is_confined: bool,
    /// Whether the rules of the Python that made the recordings hold, 3.12.3: when its garbage collector runs,
    /// and that a closed generator keeps its variables. For comparisons with recordings.
    pub has_rules_of_recordings: bool,
    /// How many operators a program may call before it is stopped.
    pub max_operators: u64,
    /// How many allocations and frees of GPU memory a program may ask for before it is stopped.
    pub max_requests: u64,
    /// How long a program may run before it is stopped.
    pub time_limit: Option<Duration>,
    /// How many bytes of the host's memory a program may use before it is stopped.
    pub host_memory: Option<Bytes>,
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self {
            python: None,
            gpu: GpuProfile::H200,
            devices: 1,
            config: AllocatorConfig::of(Release::OF_RECORDED_OPERATORS),
            non_pytorch: Bytes::ZERO,
            folder: None,
            is_recorded: false,
            is_confined: false,
            has_rules_of_recordings: false,
            max_operators: 5_000_000,
            max_requests: 10_000_000,
            time_limit: None,
            host_memory: None,
        }
    }
}

/// Where an allocation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationOrigin {
    /// The recording's id of the allocation.
    pub allocation: Option<AllocationId>,
    /// Bytes as requested.
    pub requested: Bytes,
    /// The line that ran, counted from 1; 0 where none did.
    pub line: u32,
    /// The operator or the node of autograd, an index into [`DeviceRun::operators`].
    pub operator: u32,
    /// The part of an iteration that ran.
    pub phase: Phase,
    /// The purpose of the block.
    pub category: Category,
}

/// The allocations and the memory of a program on one GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceRun {
    /// `PYTORCH_CUDA_ALLOC_CONF` as the program left it.
    pub conf: String,
    /// The statistics at the end.
    pub stats: Stats,
    /// The segments at the end.
    pub snapshot: Snapshot,
    /// The names of operators that allocated memory, in the order of their first allocations.
    pub operators: Vec<String>,
    /// The origin of each allocation, by the allocation's number.
    pub origins: Vec<AllocationOrigin>,
    /// The allocations and frees in order, as the program asked for them.
    pub requests: Vec<LogEntry>,
    /// The line of the program at each step of the recording.
    pub step_lines: Vec<u32>,
    /// The recording; `None` if recordings are not made, or if the run was too long to record.
    pub recording: Option<Recording>,
}

impl DeviceRun {
    /// The operator or the node of autograd of an allocation.
    pub fn operator(&self, origin: &AllocationOrigin) -> &str {
        let index = usize::try_from(origin.operator).unwrap_or(usize::MAX);
        self.operators.get(index).map_or("", String::as_str)
    }
}

/// The end of a piece of standard output, with what the run had done by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedMark {
    /// The bytes of standard output up to the end of the piece.
    pub bytes: usize,
    /// How many allocations and frees were asked for.
    pub requests: u64,
    /// How many unverified estimates there were.
    pub estimates: u64,
}

/// How a program ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramOutcome {
    /// The exit status: 0, the argument of `sys.exit`, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that the program did not catch; empty after `sys.exit()`.
    pub traceback: Option<String>,
    /// Why the program ran out of memory, where one of its lists is the cause.
    pub cause: Option<ProgramNote>,
    /// Remarks about the program, in order.
    pub notes: Vec<ProgramNote>,
    /// Operators whose results are unverified estimates.
    pub estimates: Vec<EstimatedOperator>,
    /// The signatures of the backward functions that took part in a second derivative.
    pub second_derivatives: Vec<String>,
    /// The program's work on each device.
    pub devices: Vec<DeviceRun>,
    /// The pieces of standard output, in order.
    pub printed: Vec<PrintedMark>,
    /// The objects of the program that kept blocks, as JSON that the crate `lab` reads; empty where blocks
    /// did not become more and more.
    pub keepers: String,
    /// Why memory is alive at a step, for `run_to_step`.
    pub referrers: Option<Referrers>,
}

/// A line of standard output, with what the run had done when the line's first and last piece were printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedLine<'a> {
    /// The text, without its end.
    pub text: &'a str,
    /// At the first piece.
    pub begin: PrintedMark,
    /// At the last piece.
    pub end: PrintedMark,
}

impl ProgramOutcome {
    /// The lines of this run's standard output, in order.
    pub fn lines<'a>(&self, output: &'a str) -> Vec<PrintedLine<'a>> {
        let last = PrintedMark { bytes: usize::MAX, requests: u64::MAX, estimates: u64::MAX };
        let mut marks = self.printed.iter().copied();
        let mut mark = marks.next().unwrap_or(last);
        let mut begin = 0;
        let mut lines = Vec::new();
        for text in output.split_inclusive('\n') {
            let end = begin + text.len();
            while mark.bytes <= begin {
                mark = marks.next().unwrap_or(last);
            }
            let first = mark;
            while mark.bytes < end {
                mark = marks.next().unwrap_or(last);
            }
            lines.push(PrintedLine { text: text.trim_end_matches('\n'), begin: first, end: mark });
            begin = end;
        }
        lines
    }
}

/// Why the blocks of the first GPU are alive at one step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Referrers {
    /// How many steps the recording had.
    pub step: usize,
    /// The reasons in words, by the block's number, an index into [`DeviceRun::origins`].
    pub reasons: BTreeMap<u32, Vec<String>>,
    /// The line that ran.
    pub line: u32,
    /// The operator or the node of autograd that ran, which holds the blocks without another reason.
    pub operator: String,
}
