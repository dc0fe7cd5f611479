//! PyTorch's files and texts: snapshots and recorded runs in and out, `memory_stats` and `memory_summary`.
//!
//! [`MemoryFile`] opens a file of any kind. [`RecordedRun::read`] reads a recording of the real allocator (one
//! JSON value a line, plain or gzip).
//! [`memory_stats`] and [`memory_summary`] show [`Stats`](blockyard_record::Stats) as PyTorch's functions of
//! these names do. [`log`] writes runs in the format that this crate reads.
//!
//! [`snapshot`] reads and writes the snapshots of `torch.cuda.memory._dump_snapshot`, with the help of
//! `pickle`. `gzip` is the container of packed files, `host_stats` the statistics of pinned memory.
//!
//! [`PastedText`] has the numbers of texts about memory other than snapshots, [`timeline_workload`] the
//! requests of a profiler's memory timeline.
//!
//! This crate knows file formats and no allocator. [`trace`] has the facts that a trace implies.
//!
//! # Example
//!
//! ```
//! use blockyard_pytorch::{RecordedRun, memory_stats, memory_summary};
//! use blockyard_record::Stats;
//!
//! let stats = Stats::default();
//! assert_eq!(memory_stats(&stats).len(), 122);
//! assert!(memory_summary(&stats, 0, false).contains("PyTorch CUDA memory summary"));
//!
//! let error = RecordedRun::read(b"not a recording").unwrap_err();
//! assert!(!error.to_string().is_empty());
//! ```
//!
//! # Decisions
//!
//! - **A pickle is data.** [`snapshot`] reads a pickle with a stack machine that has the opcodes of plain
//!   data and stops at all others, so that no code of a file ever runs.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod error;
mod gzip;
mod host_stats;
pub mod log;
mod memory_file;
mod pasted;
mod pickle;
mod read;
mod recorded;
pub mod snapshot;
mod stats;
mod summary;
pub mod trace;

pub use error::{GzipError, LineError, ReadError};
pub use host_stats::host_memory_stats;
pub use memory_file::{MemoryFile, OpenError};
pub use pasted::{PastedText, timeline_workload};
pub use read::unpack;
pub use recorded::{
    AllocationResult, Meta, OperationKind, RecordedBlock, RecordedOperation, RecordedRun, RecordedSegment,
    StatChange,
};
pub use stats::{STAT_COUNT, memory_stat, memory_stats, memory_stats_in, stat_index, stat_keys, stat_values};
pub use summary::memory_summary;
