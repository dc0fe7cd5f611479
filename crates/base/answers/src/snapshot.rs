//! The lines of `blockyard snapshot`.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, StreamId};
use serde::{Deserialize, Serialize};

use crate::{CertificateAnswer, ErrorLine};

/// One line of `blockyard snapshot --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SnapshotLine {
    /// A snapshot was opened.
    Opened(Box<SnapshotAnswer>),
    /// A file was not opened.
    Failed(ErrorLine),
}

/// One snapshot file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotAnswer {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The file as the command line names it.
    pub file: String,
    /// The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them.
    pub conf: String,
    /// Each setting that the snapshot has, as text; -1 means no limit.
    pub settings: BTreeMap<String, String>,
    /// How many beginnings and ends of time spans that the program named the snapshot has.
    pub annotations: u64,
    /// The devices that have segments or a trace, by ascending index.
    pub devices: Vec<DeviceAnswer>,
    /// Host (pinned) memory with the fields of a device; null where the snapshot has none of it.
    pub host: Option<DeviceAnswer>,
    /// What was passed over, in sentences.
    pub notes: Vec<String>,
}

/// One device of a snapshot, or host memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceAnswer {
    /// The index of the device; 0 for host memory.
    pub index: u32,
    /// The entries of the trace.
    pub events: u64,
    /// The entries that hand out memory.
    pub allocations: u64,
    /// Different streams in the trace.
    pub streams: u64,
    /// Microseconds from the first entry to the last.
    pub elapsed_us: u64,
    /// The most bytes allocated at a time.
    pub peak_allocated: Bytes,
    /// After how many events most bytes were allocated for the first time.
    pub peak_allocated_event: u64,
    /// The request after which these bytes were allocated, counted from 1; 0 before the first one.
    pub peak_allocated_request: u64,
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// After how many events most bytes were reserved for the first time.
    pub peak_reserved_event: u64,
    /// The request after which these bytes were reserved, counted from 1; 0 before the first one.
    pub peak_reserved_request: u64,
    /// Whether the sizes of all blocks are certain; if not, `peak_allocated` is the least that it can have
    /// been.
    pub peaks_are_exact: bool,
    /// Segments when the snapshot was taken.
    pub segments: u64,
    /// Bytes reserved when the snapshot was taken.
    pub reserved: Bytes,
    /// Bytes allocated when the snapshot was taken.
    pub allocated: Bytes,
    /// Requests that ran out of memory.
    pub ooms: u64,
    /// Each request that ran out of memory; null where the device's trace cannot be read.
    pub oom_events: Option<Vec<OutOfMemoryEvent>>,
    /// The moment that the question asks about; without one, the peak of allocated memory.
    pub at: MomentAnswer,
    /// What our allocator decides; null where that was not asked for.
    pub certificate: Option<CertificateAnswer>,
    /// How many blocks have a size that the snapshot does not imply.
    pub open_sizes: u64,
    /// What is open and what did not fit, in sentences.
    pub notes: Vec<String>,
}

/// A request of a trace that ran out of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutOfMemoryEvent {
    /// The entry of the trace, counted from 0.
    pub event: u64,
    /// The bytes that the request asked for.
    pub size: Bytes,
    /// The stream of the request.
    pub stream: StreamId,
    /// The free bytes of the device then.
    pub device_free: Bytes,
    /// The stack, innermost frame first.
    pub frames: Vec<StackFrame>,
}

/// The memory of a device after some events of its trace, in bytes.
///
/// `allocated` is `requested` and `rounding`; `reserved` is `allocated`, `pending` and `cached`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MomentAnswer {
    /// The moment in words.
    pub name: String,
    /// After this many events of the trace.
    pub event: u64,
    /// After this request, counted from 1 as in the other answers; 0 before the first one.
    pub request: u64,
    /// Bytes of allocated blocks.
    pub allocated: Bytes,
    /// Bytes of all segments.
    pub reserved: Bytes,
    /// Bytes that callers asked for.
    pub requested: Bytes,
    /// Allocated minus requested bytes.
    pub rounding: Bytes,
    /// Bytes that were freed while another stream used them.
    pub pending: Bytes,
    /// Bytes that are cached.
    pub cached: Bytes,
    /// The stacks that hold most bytes, most first.
    pub top: Vec<HolderAnswer>,
}

/// The live bytes of one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderAnswer {
    /// The live bytes of the stack.
    pub bytes: Bytes,
    /// How many blocks have these bytes.
    pub blocks: u64,
    /// The first texts that the program gave to its tensors with `torch.cuda.memory._annotate_tensor`.
    pub names: Vec<String>,
    /// The stack, innermost frame first.
    pub frames: Vec<StackFrame>,
}

/// One frame of a stack, as PyTorch writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackFrame {
    /// The name of the function.
    pub name: String,
    /// The path of the file, as Python names it.
    pub filename: String,
    /// The line, counted from 1; 0 where it is not known.
    pub line: u32,
}
