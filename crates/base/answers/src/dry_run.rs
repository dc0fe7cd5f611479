//! The report of `blockyard dry-run`.

use std::fmt;

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// The report of `blockyard dry-run --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunAnswer {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The run. With `--nproc-per-node` that of the rank with the largest peak reserved, but for `exact`,
    /// which is about all ranks, and `status`, which is that of the rank that failed first, or 0.
    #[serde(flatten)]
    pub run: DryRunResult,
    /// The ranks; absent without `--nproc-per-node`.
    #[serde(flatten)]
    pub of_ranks: Option<DryRunRanks>,
}

/// The result of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunResult {
    /// Whether nothing was assumed, and no number depends on the addresses that a driver gives segments, as
    /// far as other orders were tried: see `addresses`.
    pub exact: bool,
    /// The program's exit status.
    pub status: i32,
    /// The name of the exception or signal that ended the program, or null.
    pub error: Option<String>,
    /// The line that raised the exception, or null.
    pub error_at: Option<ProgramLine>,
    /// Whether the process ended before its memory was counted.
    pub is_cut: bool,
    /// What the program printed on standard output.
    pub lines: Vec<DryRunLine>,
    /// The peaks of each device.
    pub peaks: Vec<DryRunPeaks>,
    /// The non-PyTorch memory of each device: an estimate that is in no other number.
    #[serde(rename = "outside")]
    pub non_pytorch: Vec<DryRunNonPytorch>,
    /// By step and device; empty without `--steps`.
    pub steps: Vec<DryRunStep>,
    /// Whether the last two steps were equal; null for fewer than two steps.
    pub steady: Option<bool>,
    /// The holders of the peak of the last measured step, all devices together; empty without `--steps`.
    pub holders: Vec<DryRunHolder>,
    /// The objects of the program that keep more tensors from iteration to iteration, by descending growth;
    /// empty where nothing grows, and with further GPUs or `--address-orders`.
    pub keepers: Vec<Keeper>,
    /// Whether the program fits on each GPU of `--gpu`, in the order of the option.
    pub gpus: Vec<DryRunGpu>,
    /// The assumptions; empty where nothing was assumed.
    pub notes: Vec<DryRunEstimateNote>,
    /// Sentences that a person should read and that make no number an estimate.
    pub remarks: Vec<String>,
    /// The processes that the program started, by device. Their bytes are in no other field, unless the
    /// program itself uses no GPU and each device has one such process.
    pub children: Vec<DryRunChild>,
    /// What the allocator's requests of this run give under other orders of addresses; null beside
    /// `address_orders`.
    pub addresses: Option<DryRunAddresses>,
    /// The runs under other orders of addresses; null without `--address-orders`.
    pub address_orders: Option<DryRunOrders>,
    /// The number of the rank; absent without `--nproc-per-node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The number of the rank on its node; absent without `--nproc-per-node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rank: Option<u32>,
}

/// The ranks of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunRanks {
    /// How many ranks the program has.
    pub world_size: u32,
    /// The rank that failed first, or null.
    pub failed_rank: Option<u32>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Each rank that ran, by ascending rank.
    pub ranks: Vec<DryRunRank>,
}

/// The report of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunRank {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The run of the rank.
    #[serde(flatten)]
    pub run: DryRunResult,
}

/// A line of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramLine {
    /// The file of the line.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

impl fmt::Display for ProgramLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line that the program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunLine {
    /// The text of the line, without its end.
    pub text: String,
    /// Whether the line was printed before the first note, and before numbers depended on the driver's
    /// addresses.
    pub exact: bool,
    /// The first note that was said before the line was printed, else which numbers depend on the driver's
    /// addresses, or null.
    pub why: Option<String>,
}

/// The peaks of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunPeaks {
    /// The index of the device.
    pub device: u64,
    /// The most bytes allocated at a time.
    pub allocated: Bytes,
    /// The most bytes reserved at a time.
    pub reserved: Bytes,
    /// The bytes allocated at the end.
    pub allocated_at_end: Bytes,
}

/// The memory of a device beside the segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunNonPytorch {
    /// The index of the device.
    pub device: u64,
    /// The holders with their bytes.
    pub parts: Vec<DryRunHolder>,
    /// Sentences about memory that is taken and was not recorded.
    pub unknown: Vec<String>,
}

/// The bytes of one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunHolder {
    /// The name of the holder.
    pub what: String,
    /// The bytes of the holder.
    pub bytes: Bytes,
}

/// An object of the program that keeps more tensors from iteration to iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Keeper {
    /// The expression that reaches the object, which begins with a variable: `trainer.history`.
    pub name: String,
    /// The function whose local variable begins the expression; null for a variable of a module.
    pub function: Option<String>,
    /// `list`, `dict`, `set`, `deque`, or `attribute` for another object; of a variable with a tensor
    /// `local`, `global`, `closure` or `attribute`, or `graph` where the tensor's graph keeps most of it.
    pub kind: String,
    /// How many tensors the object keeps. Tensors that share their memory count once.
    pub tensors: u64,
    /// How many of these the graphs of others keep for backward.
    pub of_graphs: u64,
    /// The bytes of the tensors.
    pub bytes: Bytes,
    /// How many of the iterations after the first two added to it.
    pub iterations: u64,
    /// How many tensors are from these iterations.
    pub growth_tensors: u64,
    /// The bytes of the tensors that are from these iterations.
    pub growth: Bytes,
    /// The lines that made most of these tensors, at most three; empty where no line is known.
    pub made_at: Vec<ProgramLine>,
    /// The lines that can have put tensors into the object, by the program's text; empty where none is found,
    /// or more than three.
    pub put_at: Vec<PutLine>,
}

/// A line that puts tensors into an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PutLine {
    /// The file of the line.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// `appends`, `adds` or `assigns`; `adds up` for a sum or another value that is made of the value before.
    pub action: String,
}

/// A step of the program on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunStep {
    /// The step, counted from 1.
    pub number: u32,
    /// The index of the device.
    pub device: u64,
    /// The most bytes allocated at a time in the step.
    pub peak_allocated: Bytes,
    /// The most bytes reserved at a time in the step.
    pub peak_reserved: Bytes,
    /// The bytes allocated at the step's end.
    pub allocated: Bytes,
}

/// Whether the program fits on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunGpu {
    /// The name of the GPU.
    pub name: String,
    /// The short name of the GPU.
    pub id: String,
    /// All bytes of the GPU.
    pub total: Bytes,
    /// Whether the program fits; null where the run ended too early to say.
    pub fits: Option<bool>,
    /// Where the program exceeds the GPU, or null.
    pub at: Option<ProgramLine>,
}

/// An assumption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunEstimateNote {
    /// `read` for a value that a kernel would have computed, `function` for a function of which only the name
    /// is known, or `estimate`.
    pub kind: String,
    /// The assumption, in a sentence.
    pub text: String,
    /// The file of the program; empty where it is not known.
    pub file: String,
    /// The line, counted from 1; 0 where it is not known.
    pub line: u32,
}

/// A process that the program started, on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunChild {
    /// The number of the process.
    pub process: u32,
    /// The index of the device.
    pub device: u64,
    /// The most bytes that the process took.
    pub bytes: Bytes,
    /// The most bytes allocated at a time; null where the process ended before it was counted.
    pub peak_allocated: Option<Bytes>,
    /// The most bytes reserved at a time; null where the process ended before it was counted.
    pub peak_reserved: Option<Bytes>,
}

/// What the requests of a run give under other orders of addresses, replayed by an allocator that follows
/// PyTorch's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunAddresses {
    /// How many orders were tried beside that of the run; 0 where nothing was replayed.
    pub orders: u64,
    /// Whether all numbers were equal at each moment; null where nothing was replayed.
    pub equal: Option<bool>,
    /// The peaks of each device.
    pub peaks: Vec<DeviceRange>,
    /// Why nothing was replayed, or null.
    pub why_not: Option<String>,
}

/// Runs under several orders of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRunOrders {
    /// The names of the orders.
    pub orders: Vec<String>,
    /// Whether all numbers and lines are equal.
    pub equal: bool,
    /// The peaks of each device.
    pub peaks: Vec<DeviceRange>,
    /// The lines whose text depends on the order, counted from 0 in `lines`.
    pub lines: Vec<u64>,
    /// The orders under which the program ended otherwise.
    pub ended_otherwise: Vec<String>,
}

/// The peaks of a device over several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceRange {
    /// The index of the device.
    pub device: u64,
    /// The most bytes allocated at a time.
    pub allocated: BytesRange,
    /// The most bytes reserved at a time.
    pub reserved: BytesRange,
    /// The bytes allocated at the end.
    pub allocated_at_end: BytesRange,
}

impl DeviceRange {
    /// The numbers with their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, BytesRange); 3] {
        [
            ("peak allocated", self.allocated),
            ("peak reserved", self.reserved),
            ("allocated at the end", self.allocated_at_end),
        ]
    }
}

/// Bytes that depend on the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BytesRange {
    /// The least of all runs.
    pub least: Bytes,
    /// The most of all runs.
    pub most: Bytes,
}

impl BytesRange {
    /// Whether all orders gave the same bytes.
    #[must_use]
    pub fn is_one(self) -> bool {
        self.least == self.most
    }
}
