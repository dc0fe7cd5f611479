//! The loss in chunks.

use std::collections::BTreeSet;

use blockyard_record::{Bytes, frame_text, own_line};

use super::activations::is_product;
use super::changed_requests::ChangedRequests;
use super::training::{Block, Pass, Phase, Training, function};
use super::{MIN_SHARE, Proposal};
use crate::CodeFixKind;

/// Into so many chunks the loss is cut.
const CHUNKS: u64 = 8;

/// Functions of PyTorch that make blocks as large as the logits.
const LOSSES: [&str; 4] = ["cross_entropy", "nll_loss", "log_softmax", "linear_cross_entropy"];

/// So many blocks before the loss can be the logits.
const BEFORE_LOSS: usize = 6;

/// So many blocks of a backward pass can be gradients of the logits.
const AFTER_LOSS: usize = 16;

/// The loss in chunks, each of which makes its logits again in the backward pass: the logits, what the loss
/// makes of them, and their gradients, become as small as those of one chunk.
pub(super) fn chunked(training: &Training<'_>, peak: Bytes) -> Option<Proposal> {
    let is_loss =
        |block: &Block| block.size.get().saturating_mul(MIN_SHARE) >= peak.get() && is_loss(training, block);
    let mut changed = ChangedRequests::of(training);
    let mut lines: BTreeSet<String> = BTreeSet::new();
    for pass in &training.passes {
        let blocks = training.of_pass(pass);
        let Some(first) = blocks.iter().position(is_loss) else { continue };
        let Some(size) = blocks.iter().filter(|block| is_loss(block)).map(|block| block.size).max() else {
            continue;
        };
        let backward = blocks.partition_point(|block| block.request < pass.backward);
        for (place, block) in blocks.iter().enumerate() {
            let is_logits = place < first && place.saturating_add(BEFORE_LOSS) >= first;
            let is_later = place >= first && place < backward;
            let is_gradient_of_logits = block.phase == Phase::Backward
                && !training.is_gradient(block, pass)
                && place < backward.saturating_add(AFTER_LOSS);
            if (is_logits || is_later || is_gradient_of_logits) && is_like(block.size, size) {
                changed.divide(block, CHUNKS);
            }
        }
        // Each chunk makes a gradient of the last layer, which is added to that of the chunks before.
        let later = blocks.get(backward..).unwrap_or_default().iter().take(AFTER_LOSS);
        let gradient = later.filter(|block| training.is_gradient(block, pass)).max_by_key(|block| block.size);
        if let Some(block) = gradient {
            changed.add((pass.backward, block.request.saturating_add(1)), block.size, block.stream);
        }
        let of_loss = blocks.iter().filter(|block| is_loss(block));
        lines.extend(of_loss.filter_map(|block| own_line(training.frames(block)).map(frame_text)));
    }
    if changed.is_unchanged() {
        return None;
    }
    let lines: Vec<String> = lines.into_iter().collect();
    let at = lines.first().map_or_else(String::new, |line| format!(" at `{line}`"));
    let name =
        format!("the loss{at} in {CHUNKS} chunks, each of which makes its logits again in the backward pass");
    Some(Proposal { kind: CodeFixKind::ChunkedLoss, name, lines, run: changed.finish() })
}

fn is_loss(training: &Training<'_>, block: &Block) -> bool {
    matches!(block.phase, Phase::Forward | Phase::Other)
        && training.frames(block).iter().any(|frame| LOSSES.contains(&function(frame)))
}

/// The gradient of the logits that a matrix product makes. It comes after the gradient of their logarithms and
/// has the type of the logits.
pub(super) fn gradient_of_logits<'a>(training: &'a Training<'_>, pass: &Pass) -> Option<&'a Block> {
    let blocks = training.of_pass(pass);
    let first = blocks.iter().position(|block| is_loss(training, block))?;
    let size = blocks.get(first)?.size;
    let before = blocks.get(first.saturating_sub(BEFORE_LOSS)..first)?;
    let backward = blocks.partition_point(|block| block.request < pass.backward);
    let is_logits = |block: &Block| block.size == size && is_product(training.frames(block));
    let is_gradient = |block: &&Block| {
        block.phase == Phase::Backward && block.size == size && !training.is_gradient(block, pass)
    };
    let mut gradients = blocks.get(backward..)?.iter().take(AFTER_LOSS).filter(is_gradient);
    before.iter().any(is_logits).then(|| gradients.nth(1)).flatten()
}

/// Whether a block has as many elements as one of `size` bytes, but for a few: of as many bytes each, or of half
/// as many.
fn is_like(block: Bytes, size: Bytes) -> bool {
    let is_near = |wanted: u64| block.get().abs_diff(wanted) <= wanted / 32;
    is_near(size.get()) || is_near(size.get() / 2)
}
