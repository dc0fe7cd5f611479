//! What is noted about each allocation.

use blockyard_record::{AllocationId, Bytes};
use serde::{Deserialize, Serialize};

/// What a block is for, as memory profilers say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Category {
    /// None of the other categories: a tensor that is freed soon.
    #[default]
    Temporary,
    /// A tensor that the program made itself: inputs, targets, buffers.
    Input,
    /// `nn.Parameter`, or a leaf that requires a gradient.
    Parameter,
    /// A leaf's `.grad`.
    Gradient,
    /// The state of an optimizer: momenta, running means.
    OptimizerState,
    /// Kept for the backward pass.
    Activation,
    /// Memory of a library: cuBLAS, cuDNN, CUB.
    Workspace,
}

/// The part of an iteration of training that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Everything that is neither the backward pass nor an optimizer's step.
    #[default]
    Forward,
    /// The autograd engine.
    Backward,
    /// An optimizer's step.
    Optimizer,
}

/// Where an allocation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The recording's id of the allocation.
    pub allocation: Option<AllocationId>,
    /// Bytes as requested.
    pub requested: Bytes,
    /// The source line that ran, 0 where none did.
    pub line: u32,
    /// The operator, or the autograd node.
    pub operator: &'static str,
    /// The part of an iteration that ran.
    pub phase: Phase,
    /// The purpose of the block, as far as it is known so far.
    pub category: Category,
}

/// One request of the log ([`SimulatedGpu::start_log`](super::SimulatedGpu::start_log)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEntry {
    /// An allocation: its number (an index into [`SimulatedGpu::origins`](super::SimulatedGpu::origins)) and
    /// the bytes requested.
    Allocate(u32, u64),
    /// The free of that allocation.
    Free(u32),
    /// This many of the next frees have an order that PyTorch leaves to a hash table.
    Unordered(u32),
}
