//! Our allocator compared with PyTorch's own library, operation by operation.
//!
//! PyTorch's wheel contains `libc10_cuda.so`, the library with its allocator. It needs a CUDA runtime, of
//! which it calls 45 functions: our runtime (`native/cudart.cpp`) has addresses without memory, the same
//! addresses as [`VirtualDevice`](blockyard_device::VirtualDevice), and streams whose work is done when a
//! test says so. A [`Library`] runs a [`Sequence`] of operations in PyTorch's library, each sequence in a
//! fresh process (`native/driver.cpp`), and [`answer`] runs the sequence on our allocator. The returned
//! values, all statistics after each operation, PyTorch's trace and the final blocks with their stale
//! requested sizes must be the same to the byte. [`fuzz`] compares random sequences ([`generate`]) within the
//! limits that [`Rules`] set, and shrinks a sequence that differs. [`Fixture`] keeps a sequence as text with
//! PyTorch's answer, so that a test without the library can repeat it.
//!
//! [`wheel`] and [`build_cudart`] are for other programs that run PyTorch's allocator.

mod answer;
mod fuzz;
pub mod generate;
mod library;
mod native;
mod ours;
mod rules;
mod sequence;
mod shrink;
pub mod stats;
mod text;
mod wheel;
mod wire;

pub use answer::{
    AnswerDifference, FinalBlock, OperationReply, Paths, ReturnValue, Segment, SequenceResult, StatsAfter,
    entry_text, first_difference, segment_text,
};
pub use fuzz::{Bounds, FailedSequence, FuzzSummary, compare, fuzz, sequence_seed};
pub use library::{Library, PendingAnswer};
pub use native::{build_cudart, compile};
pub use ours::{InnerCounts, answer};
pub use rules::{Rules, restricted};
pub use sequence::{Operation, Sequence};
pub use shrink::shrink;
pub use text::Fixture;
pub use wheel::{WheelPaths, find_wheel, version, wheel};
