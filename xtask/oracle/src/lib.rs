//! Our allocator compared with PyTorch's own library, operation by operation.
//!
//! PyTorch's wheel contains `libc10_cuda.so`, the library with its allocator. It needs a CUDA runtime, and
//! any library with 45 functions of that name will do: ours (`native/cudart.cpp`) has memory that is numbers,
//! with the same addresses as [`VirtualDevice`](blockyard_device::VirtualDevice), and streams whose work is
//! done when a test says so. A [`Library`] runs a [`Sequence`] of operations in it, a fresh process each
//! (`native/driver.cpp`), [`answer`] runs it on our allocator; what they return, all statistics after each
//! operation, PyTorch's trace and the final blocks with their stale requested sizes must be the same to the
//! byte. [`fuzz`] does this with random sequences ([`generate`]) within the limits that [`Rules`] set,
//! shrinks what differs, and [`Fixture`] keeps it as text with PyTorch's answer, so that a test without the
//! library can repeat it.
//!
//! [`wheel`] and [`build_cudart`] serve others who want to run PyTorch's allocator.

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
    entry_words, first_difference, segment_words,
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
