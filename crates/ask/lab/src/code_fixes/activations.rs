//! Smaller activations: a smaller batch, and bfloat16.

use std::collections::HashSet;

use blockyard_record::Bytes;

use super::Proposal;
use super::changed_requests::ChangedRequests;
use super::loss::gradient_of_logits;
use super::training::{Block, Phase, Training, function};
use crate::CodeFixKind;

/// The batch is scaled by whole parts of this many.
pub(super) const PARTS: u64 = 8;

/// The blocks that grow with the batch: those that live for one iteration, but for temporaries of the backward
/// pass that have the size of a parameter.
pub(super) struct Batch<'a> {
    training: &'a Training<'a>,
    blocks: Vec<&'a Block>,
}

impl<'a> Batch<'a> {
    /// `None` where no block grows with the batch, and for a run that shows no training.
    pub(super) fn of(training: &'a Training<'a>) -> Option<Self> {
        if !training.has_backward() && !training.is_cut {
            return None;
        }
        let mut blocks = Vec::new();
        // The stacks of data that earlier iterations made and freed.
        let mut data: HashSet<usize> = HashSet::new();
        for (number, pass) in training.passes.iter().enumerate() {
            // A program frees its data when the next iteration has made new data.
            let next =
                training.passes.get(number.saturating_add(1)).map_or(training.end, |next| next.backward);
            for block in training.of_pass(pass) {
                let is_freed = block.freed < next;
                let is_scaled = match block.phase {
                    Phase::Forward | Phase::Other if block.kept_for.is_some() => true,
                    Phase::Forward => is_freed || block.freed >= training.end,
                    Phase::Other if is_freed => {
                        data.insert(block.stack);
                        true
                    }
                    Phase::Other => data.contains(&block.stack),
                    Phase::Backward => {
                        !training.is_gradient(block, pass) && !training.parameters.contains(&block.size)
                    }
                    _ => false,
                };
                if is_scaled {
                    blocks.push(block);
                }
            }
        }
        // Without a forward pass of a module nothing says that the run has a batch.
        let has_forward = blocks.iter().any(|block| block.phase == Phase::Forward);
        has_forward.then_some(Self { training, blocks })
    }

    /// The run with so many of the [`PARTS`] of the batch.
    pub(super) fn with_parts(&self, parts: u64) -> Proposal {
        let mut changed = ChangedRequests::of(self.training);
        for block in &self.blocks {
            changed.scale(block, (parts, PARTS));
        }
        let name = if parts.saturating_mul(2) == PARTS {
            "half the batch, with all else as it is".to_owned()
        } else {
            format!("{parts}/{PARTS} of the batch, with all else as it is")
        };
        Proposal { kind: CodeFixKind::SmallerBatch, name, lines: Vec::new(), run: changed.finish() }
    }
}

/// Modules whose output `torch.autocast` makes in 16 bits.
const MATRIX_FILES: [&str; 2] = ["linear.py", "conv.py"];

/// Functions of PyTorch whose output has the type of their input, or is read by a matrix product alone, which
/// keeps a copy of 16 bits.
const FOLLOWING: [&str; 11] = [
    "relu",
    "gelu",
    "silu",
    "leaky_relu",
    "elu",
    "dropout",
    "batch_norm",
    "layer_norm",
    "max_pool2d",
    "_max_pool2d",
    "multi_head_attention_forward",
];

/// The least bytes of a parameter or an activation of which a copy in another type is looked for.
const MIN_COPIED: Bytes = Bytes::kib(64);

/// The forward pass under `torch.autocast` with bfloat16: half of what matrix products and the functions
/// after them keep, and a copy of each parameter. Nothing, if the run shows 16 bits already, or if no
/// parameter shows that it does not.
pub(super) fn autocast(training: &Training<'_>, outputs: &HashSet<Bytes>) -> Option<Proposal> {
    let is_large = |block: &&Block| block.phase == Phase::Building && block.size >= MIN_COPIED;
    let parameters: Vec<&Block> = training.blocks.iter().filter(is_large).collect();
    if parameters.is_empty() || !training.has_backward() || shows_16_bits(training, &parameters) {
        return None;
    }
    let mut changed = ChangedRequests::of(training);
    let has = |name: &str| training.stacks.iter().flatten().any(|frame| function(frame) == name);
    // Layers add to the output of an embedding, and layer norms keep what was added, in 32 bits.
    let adds_32_bits = has("embedding") || has("layer_norm");
    let is_halved: Vec<Option<bool>> = training.stacks.iter().map(|stack| is_halved(stack)).collect();
    // Group norms keep their inputs and outputs in 32 bits: less is saved than could be said.
    if has("group_norm") || !training.stacks.iter().any(|stack| is_product(stack)) {
        return None;
    }
    for block in training.blocks.iter().filter(|block| block.kept_for.is_some()) {
        let is_halved = is_halved.get(block.stack).copied().flatten();
        let is_own = !adds_32_bits || (!outputs.is_empty() && !outputs.contains(&block.size));
        if block.phase == Phase::Forward && block.size >= MIN_COPIED && is_halved.unwrap_or(is_own) {
            changed.divide(block, 2);
        }
    }
    if changed.is_unchanged() {
        return None;
    }
    for pass in &training.passes {
        if let Some(gradient) = gradient_of_logits(training, pass) {
            changed.divide(gradient, 2);
        }
        let first = training.of_pass(pass).iter().find(|block| block.phase == Phase::Forward);
        let Some(first) = first else { continue };
        for parameter in &parameters {
            if parameter.request < first.request && parameter.freed >= pass.end {
                let size = Bytes::new(parameter.size.get().div_ceil(2));
                changed.add((first.request, pass.end), size, parameter.stream);
            }
        }
    }
    let name =
        "the forward pass under `torch.autocast(\"cuda\", torch.bfloat16)`, if its activations are float32";
    Some(Proposal {
        kind: CodeFixKind::Autocast,
        name: name.to_owned(),
        lines: Vec::new(),
        run: changed.finish(),
    })
}

/// Whether autocast halves what a stack keeps; `None` for a line of the program itself.
fn is_halved(stack: &[String]) -> Option<bool> {
    let innermost = stack.first()?;
    if is_product(stack) || FOLLOWING.contains(&function(innermost)) {
        return Some(true);
    }
    (innermost.contains("torch/") || innermost.contains("functional.py")).then_some(false)
}

/// Whether a module that multiplies matrices makes the block of a stack.
pub(super) fn is_product(stack: &[String]) -> bool {
    stack.first().is_some_and(|frame| MATRIX_FILES.iter().any(|file| frame.contains(file)))
}

/// Whether a scaler or autocast is in a stack, or matrix products copy parameters into 16 bits.
fn shows_16_bits(training: &Training<'_>, parameters: &[&Block]) -> bool {
    let is_named = |frame: &String| {
        ["autocast_mode.py", "grad_scaler.py", "fp16", "bitsandbytes"].iter().any(|part| frame.contains(part))
    };
    if training.stacks.iter().flatten().any(is_named) {
        return true;
    }
    let halves: HashSet<Bytes> = parameters.iter().map(|block| Bytes::new(block.size.get() / 2)).collect();
    // In 32 bits a product makes its output alone, but for a workspace.
    let is_product = |block: &Block| block.phase == Phase::Forward && is_product(training.frames(block));
    let mut copied: HashSet<Bytes> = HashSet::new();
    for pair in training.blocks.windows(2) {
        let [one, next] = pair else { continue };
        if one.stack == next.stack && is_product(one) && halves.contains(&one.size) {
            copied.insert(one.size);
        }
    }
    copied.len().saturating_mul(2) >= halves.len()
}
