//! A change of the program's code, a part of the answer of `blockyard verdict`.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::RestOfIteration;

/// A change of the program's code that lowers the peak of allocated bytes. All numbers are estimates: the
/// recorded requests, with other sizes and lifetimes, go through the allocator. `blockyard dry-run` of the
/// changed program is the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeFix {
    /// What the change is.
    pub kind: CodeFixKind,
    /// The change and what it takes, in a sentence without a full stop.
    pub sentence: String,
    /// The lines of the program that the change is about; empty where it is about the whole program.
    pub lines: Vec<String>,
    /// The bytes that the change takes from the peak of allocated bytes.
    pub bytes: Bytes,
    /// The peak of allocated bytes with the change. In a run that failed, the peak up to the request that
    /// failed, with that request, or up to the last request of `rest`.
    pub peak_allocated: Bytes,
    /// The peak of reserved bytes with the change, as `peak_allocated`.
    pub peak_reserved: Bytes,
    /// Whether a replay with the change serves the request that failed; null where no request failed.
    pub passes: Option<bool>,
    /// What becomes of the iteration that failed with the change; null where the request fails all the same, and
    /// where nothing shows what comes after it.
    #[serde(default)]
    pub rest: Option<RestOfIteration>,
}

/// What a change of the code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CodeFixKind {
    /// Layers are checkpointed: each keeps its input alone, and runs again in the backward pass.
    Checkpoint,
    /// A smaller batch: half of it or, for a run that failed, the largest of its eighths with which the iteration
    /// finishes or, where its rest is not known, the request passes.
    SmallerBatch,
    /// The forward pass under `torch.autocast` with bfloat16.
    Autocast,
    /// The loss in chunks, each of which makes its logits again in the backward pass.
    ChunkedLoss,
    /// SGD with momentum in place of Adam.
    Momentum,
    /// States of 8 bits in place of Adam's states.
    EightBitStates,
    /// `foreach=False` in the optimizer.
    NoForeach,
    /// The optimizer's states and its step on the CPU.
    OffloadedStates,
    /// Gradients that are freed after the step: `zero_grad(set_to_none=True)` before the next forward pass.
    FreedGradients,
    /// What the line makes that holds most at a failure in pieces, each of which is made again in the backward
    /// pass.
    InPieces,
}
