//! The line that holds most at a failure, in pieces.

use std::collections::{BTreeMap, HashSet};

use blockyard_record::{Bytes, counted, frame_text, own_line};

use super::Proposal;
use super::changed_requests::ChangedRequests;
use super::training::{Block, Phase, Training};
use crate::CodeFixKind;

/// Into so many pieces the line is cut.
const PIECES: u64 = 8;

/// A line that holds less than one in so many bytes of the peak is not worth a change.
const MIN_SHARE: u64 = 10;

/// What the line makes that holds most of a forward pass when the run fails, in pieces, each of which is made again
/// in the backward pass. It is a bound: what a later line needs as a whole stays whole.
pub(super) fn largest_line(training: &Training<'_>, peak: Bytes) -> Option<Proposal> {
    let failed = training.failed?;
    let is_held =
        |block: &&Block| block.phase == Phase::Forward && block.request <= failed && block.freed > failed;
    let mut lines: BTreeMap<&str, (Bytes, usize, HashSet<usize>)> = BTreeMap::new();
    for block in training.blocks.iter().filter(is_held) {
        let Some(line) = own_line(training.frames(block)) else { continue };
        let (bytes, blocks, stacks) = lines.entry(line).or_default();
        *bytes = bytes.saturating_add(block.size);
        *blocks = blocks.saturating_add(1);
        stacks.insert(block.stack);
    }
    let (line, (bytes, blocks, stacks)) = lines.into_iter().max_by_key(|(_, (bytes, ..))| *bytes)?;
    if bytes.get().saturating_mul(MIN_SHARE) < peak.get() {
        return None;
    }
    let mut changed = ChangedRequests::of(training);
    for block in training.blocks.iter().filter(|block| stacks.contains(&block.stack)) {
        changed.divide(block, PIECES);
    }
    let line = frame_text(line);
    let name = format!(
        "what `{line}` makes in {PIECES} parts one after the other, each made again in the backward pass (`torch.utils.checkpoint`); the line holds {bytes} in {} at the failure",
        counted(blocks, "block")
    );
    Some(Proposal { kind: CodeFixKind::InPieces, name, lines: vec![line], run: changed.finish() })
}
