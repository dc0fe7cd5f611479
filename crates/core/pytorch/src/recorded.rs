//! A recorded run as plain data.

use blockyard_record::{Backend, Bytes, PoolId, PoolKind, StreamId, TraceEntry};
use blockyard_rules::Release;
use blockyard_workload::Request;

/// A run of PyTorch's own allocator, as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// The program and the machine.
    pub meta: Meta,
    /// The operations in order; empty if the recording has only a trace.
    pub operations: Vec<RecordedOperation>,
    /// PyTorch's trace in order; `None` if it was not recorded.
    pub trace: Option<Vec<TraceEntry>>,
    /// The memory pool of each entry of the trace; empty where the trace does not name pools, as before
    /// PyTorch 2.12.
    pub trace_pools: Vec<PoolId>,
    /// The final segments by ascending address; `None` if they were not recorded.
    pub segments: Option<Vec<RecordedSegment>>,
    /// `memory_summary()` at the end.
    pub memory_summary: Option<String>,
    /// The checkpoints: a label, the number of trace entries so far, and the statistics of the moment.
    pub checkpoints: Vec<(String, usize, Vec<StatChange>)>,
    /// Statistics at the end of a program.
    pub final_stats: Option<Vec<StatChange>>,
    /// The objects of the program that kept blocks, as JSON that the crate `lab` reads; empty where nothing
    /// grew, or nothing was searched.
    pub keepers: String,
}

/// The first line of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The recording's name.
    pub name: String,
    /// The version of PyTorch, as `torch.__version__` prints it.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    pub conf: String,
    /// All bytes of the device.
    pub total_memory: Bytes,
    /// The device's name, or empty.
    pub device: String,
    /// The kind of operations in the recording, or empty. In the kind `streams`, the recorder synchronizes
    /// the device after each free.
    pub profile: String,
    /// The handles of the streams that operations name by index; empty if they name none.
    pub streams: Vec<StreamId>,
}

impl Meta {
    /// The release of PyTorch whose rules are taken for the run.
    #[must_use]
    pub fn release(&self) -> Release {
        Release::nearest(&self.torch)
    }

    /// The allocator that the run used, as far as its settings name it.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let settings: String = self.conf.split_whitespace().collect();
        let is_async = settings.split(',').any(|setting| setting == "backend:cudaMallocAsync");
        if is_async { Backend::CudaMallocAsync } else { Backend::Native }
    }
}

/// The value of a statistic after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatChange {
    /// The statistic, as an index into [`stat_keys`](crate::stat_keys).
    pub key: usize,
    /// The new value of the statistic.
    pub value: i64,
}

/// One operation, and the result in PyTorch.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedOperation {
    /// The line of the file that has the operation, counted from 1.
    pub line: usize,
    /// The operation.
    pub kind: OperationKind,
    /// Every statistic that changed.
    pub stats: Vec<StatChange>,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationKind {
    /// The moment before the first request; its statistics are complete.
    Start,
    /// Asks for memory.
    Allocate {
        /// The number that names the allocation in the recording.
        id: u64,
        /// The requested bytes.
        size: Bytes,
        /// The index of the stream.
        stream: u64,
        /// The index of the `MemPool` that the request goes to, if any.
        pool: Option<u32>,
        /// The result in PyTorch, if it was recorded.
        result: Option<AllocationResult>,
    },
    /// Gives memory back.
    Free {
        /// The number that names the allocation in the recording.
        id: u64,
    },
    /// Says that another stream uses an allocation.
    RecordStream {
        /// The number that names the allocation in the recording.
        id: u64,
        /// The index of the stream.
        stream: u64,
    },
    /// Releases the cache, after waiting for the device.
    EmptyCache,
    /// Sets peaks to current values.
    ResetPeak,
    /// Sets accumulated counts to zero.
    ResetAccumulated,
    /// Limits reserved memory to a share of the device.
    SetFraction {
        /// The share.
        fraction: f64,
    },
    /// The moment after the last request.
    End,
}

impl OperationKind {
    /// The operation of a request, without its result; `None` for a request that a recording has no operation
    /// for.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        Some(match *request {
            Request::Allocate { tensor, size, stream } => Self::Allocate {
                id: u64::from(tensor.get()),
                size,
                stream: stream.get(),
                pool: None,
                result: None,
            },
            Request::Free { tensor } => Self::Free { id: u64::from(tensor.get()) },
            Request::RecordStream { tensor, stream } => {
                Self::RecordStream { id: u64::from(tensor.get()), stream: stream.get() }
            }
            Request::EmptyCache => Self::EmptyCache,
            Request::ResetPeak => Self::ResetPeak,
            Request::ResetAccumulated => Self::ResetAccumulated,
            Request::SetFraction { fraction } => Self::SetFraction { fraction },
            _ => return None,
        })
    }
}

/// Where an allocation was placed, or that it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationResult {
    /// Memory at this address.
    At(u64),
    /// An out-of-memory error with this text.
    OutOfMemory(String),
}

/// A segment at the end of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSegment {
    /// The address of the first byte.
    pub addr: u64,
    /// The size of the segment in bytes.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// The block pool in the memory pool: small or large.
    pub pool: PoolKind,
    /// Whether its memory is mapped page by page.
    pub is_expandable: bool,
    /// The sums that PyTorch reported: allocated, active and requested bytes.
    pub sums: [Bytes; 3],
    /// The blocks of the segment by ascending address.
    pub blocks: Vec<RecordedBlock>,
}

/// A block of a [`RecordedSegment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBlock {
    /// The address of the first byte.
    pub addr: u64,
    /// The size of the block in bytes.
    pub size: Bytes,
    /// The size of the last request for the block.
    pub requested: Bytes,
    /// PyTorch's word for the state of the block.
    pub state: String,
}
