//! Checkpoints of layers: a layer keeps its input alone and runs again in the backward pass.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use blockyard_record::{Bytes, frame_text, joined, own_line};

use super::Proposal;
use super::changed_requests::ChangedRequests;
use super::training::{Block, Pass, Phase, Training, function};
use crate::CodeFixKind;

/// So many lines that call layers are tried, each with another number of layers: those whose layers keep most.
const MAX_LINES: usize = 3;

/// Where a run has no backward pass, so many different stacks of a layer have to keep blocks. What keeps keys
/// and values without a backward pass has fewer.
const MIN_STACKS: usize = 3;

/// One line of a stack that calls a module, as numbers of texts.
#[derive(Clone, Copy)]
struct Call {
    line: usize,
    /// The frames inside of the call.
    inner: usize,
    /// The line and the frames outside of it.
    outer: usize,
    /// How many frames are inside of the call.
    depth: usize,
}

/// A line that calls layers.
struct Candidate {
    line: usize,
    /// How many frames are inside of the call.
    depth: usize,
    /// The bytes that a checkpoint frees, and how many layers there are, in the pass with most of them.
    saved: Bytes,
    count: usize,
    of_passes: Vec<Vec<Layer>>,
}

/// A call of a module in one forward pass.
struct Layer {
    /// The blocks between the first and the last one of the layer, as indices.
    blocks: Range<usize>,
    /// The first request of something else.
    end: usize,
    /// The block that the next layer gets, as an index.
    output: Option<usize>,
}

/// The checkpoints of the layers that each line calls, and the sizes of the layers' outputs.
pub(super) fn proposals(training: &Training<'_>) -> (Vec<Proposal>, HashSet<Bytes>) {
    let mut texts = Texts::default();
    let calls: Vec<Vec<Call>> = training.stacks.iter().map(|stack| calls(stack, &mut texts)).collect();
    let lines: BTreeSet<usize> = calls.iter().flatten().map(|call| call.line).collect();
    let mut found: Vec<Candidate> = Vec::new();
    for line in lines {
        let call_of = |block: &Block| {
            let calls = calls.get(block.stack).filter(|_| block.phase == Phase::Forward)?;
            calls.iter().find(|call| call.line == line).copied()
        };
        let of_pass = |pass: &Pass| layers(training, pass, &call_of);
        let of_passes: Vec<Vec<Layer>> = training.passes.iter().map(of_pass).collect();
        let saved = of_passes.iter().enumerate().map(|(pass, layers)| saved(training, pass, layers));
        let Some((saved, largest)) = saved.zip(&of_passes).max_by_key(|(saved, _)| *saved) else { continue };
        if saved > Bytes::ZERO && (training.has_backward() || keep_for_backward(training, largest)) {
            let depths = calls.iter().flatten().filter(|call| call.line == line).map(|call| call.depth);
            let (depth, count) = (depths.min().unwrap_or_default(), largest.len());
            found.push(Candidate { line, depth, saved, count, of_passes });
        }
    }
    let found = innermost(found);
    let outputs = found.first().map(|found| {
        let outputs = found.of_passes.iter().flatten().filter_map(|layer| training.blocks.get(layer.output?));
        outputs.map(|block| block.size).collect()
    });
    let proposals = found.into_iter().take(MAX_LINES);
    let proposals =
        proposals.filter_map(|found| proposal(training, texts.of.get(found.line)?, &found.of_passes));
    (proposals.collect(), outputs.unwrap_or_default())
}

/// One line of each number of layers, the one whose layers keep most first. The lines outside of a loop see the
/// same repetition as the line in the loop, which is the innermost of those that see nearly all of it.
fn innermost(mut found: Vec<Candidate>) -> Vec<Candidate> {
    let mut most: BTreeMap<usize, Bytes> = BTreeMap::new();
    for candidate in &found {
        let most = most.entry(candidate.count).or_default();
        *most = candidate.saved.max(*most);
    }
    found.retain(|candidate| {
        let most = most.get(&candidate.count).copied().unwrap_or_default();
        candidate.saved.get().saturating_mul(10) >= most.get().saturating_mul(9)
    });
    found.sort_by_key(|candidate| (candidate.count, candidate.depth, candidate.line));
    found.dedup_by_key(|candidate| candidate.count);
    found.sort_by_key(|candidate| (std::cmp::Reverse(candidate.saved), candidate.line));
    found
}

#[derive(Default)]
struct Texts {
    of: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: String) -> usize {
        *self.numbers.entry(text).or_insert_with_key(|text| {
            self.of.push(text.clone());
            self.of.len().saturating_sub(1)
        })
    }
}

/// Whether a frame is the code with which PyTorch calls a module.
fn is_module_call(frame: &str) -> bool {
    matches!(function(frame), "_call_impl" | "_wrapped_call_impl")
}

/// The lines of a stack that call a module; of a line that it has twice the outer one.
fn calls(stack: &[String], texts: &mut Texts) -> Vec<Call> {
    let mut found: BTreeMap<usize, Call> = BTreeMap::new();
    for (place, pair) in stack.windows(2).enumerate() {
        let [inside, frame] = pair else { continue };
        if !is_module_call(inside) || is_module_call(frame) {
            continue;
        }
        let at = place.saturating_add(1);
        let (inner, outer) = stack.split_at(at);
        let line = texts.number(frame.clone());
        let (inner, outer) = (texts.number(inner.join("\n")), texts.number(outer.join("\n")));
        found.insert(line, Call { line, inner, outer, depth: at });
    }
    found.into_values().collect()
}

/// The layers that a line calls in a forward pass. A layer begins where the stack of the first block of the
/// layer before comes again.
fn layers(training: &Training<'_>, pass: &Pass, call_of: &dyn Fn(&Block) -> Option<Call>) -> Vec<Layer> {
    let (from, to) = (training.place(pass.forward), training.place(pass.backward));
    let mut ranges: Vec<Range<usize>> = Vec::new();
    // The first call of the layer, and the stack of the block before.
    let mut first: Option<Call> = None;
    let mut before = None;
    for place in from..to {
        let Some(block) = training.blocks.get(place) else { break };
        let Some(call) = call_of(block) else {
            before = None;
            continue;
        };
        let is_next = first.is_none_or(|first| {
            call.outer != first.outer || (call.inner == first.inner && before != Some(call.inner))
        });
        if is_next {
            first = Some(call);
            ranges.push(place..place);
        }
        if let Some(range) = ranges.last_mut() {
            range.end = place.saturating_add(1);
        }
        before = Some(call.inner);
    }
    ranges.into_iter().map(|blocks| layer(training, pass, blocks)).collect()
}

fn layer(training: &Training<'_>, pass: &Pass, blocks: Range<usize>) -> Layer {
    let next = training.blocks.get(blocks.end).map_or(pass.backward, |block| block.request);
    let end = next.min(pass.backward);
    let all = training.blocks.get(blocks.clone()).unwrap_or_default();
    let last = all.last().map(|block| block.stack);
    let of_last = all.iter().enumerate().rev().take_while(|(_, block)| Some(block.stack) == last);
    let live = of_last.filter(|(_, block)| block.freed >= end);
    let output =
        live.max_by_key(|(_, block)| block.size).map(|(place, _)| blocks.start.saturating_add(place));
    Layer { blocks, end, output }
}

/// The blocks that a layer keeps for the backward pass, without its output, with their indices.
fn kept<'a>(
    training: &'a Training<'_>,
    pass: usize,
    layer: &'a Layer,
) -> impl Iterator<Item = (usize, &'a Block)> {
    let blocks = training.blocks.get(layer.blocks.clone()).unwrap_or_default();
    let blocks = layer.blocks.clone().zip(blocks);
    blocks.filter(move |(place, block)| block.kept_for == Some(pass) && Some(*place) != layer.output)
}

/// The bytes that the layers of a pass keep and that a checkpoint frees: those of all layers but the largest.
fn saved(training: &Training<'_>, pass: usize, layers: &[Layer]) -> Bytes {
    let sizes = layers.iter().map(|layer| kept(training, pass, layer).map(|(_, block)| block.size).sum());
    let (sum, most) = sizes.fold((Bytes::ZERO, Bytes::ZERO), |(sum, most): (Bytes, Bytes), size: Bytes| {
        (sum.saturating_add(size), most.max(size))
    });
    sum.saturating_sub(most)
}

/// Whether layers of a run without a backward pass keep as much as only a backward pass needs.
fn keep_for_backward(training: &Training<'_>, layers: &[Layer]) -> bool {
    let stacks = |layer: &Layer| {
        let blocks = training.blocks.get(layer.blocks.clone()).unwrap_or_default();
        let kept = blocks.iter().filter(|block| block.kept_for.is_some());
        kept.map(|block| block.stack).collect::<HashSet<_>>().len()
    };
    layers.iter().filter(|layer| stacks(layer) >= MIN_STACKS).count() > 2
}

fn proposal(training: &Training<'_>, line: &str, of_passes: &[Vec<Layer>]) -> Option<Proposal> {
    let mut changed = ChangedRequests::of(training);
    for (number, (pass, layers)) in training.passes.iter().zip(of_passes).enumerate() {
        for (place, layer) in layers.iter().enumerate() {
            let next = layers.get(place.saturating_add(1));
            checkpoint(training, &mut changed, (number, pass), layer, next);
        }
    }
    if changed.is_unchanged() {
        return None;
    }
    let most = of_passes.iter().enumerate().max_by_key(|(pass, layers)| saved(training, *pass, layers))?;
    let (pass, layers) = most;
    let sizes = layers.iter().flat_map(|layer| kept(training, pass, layer)).map(|(_, block)| block.size);
    let bytes: Bytes = sizes.sum();
    let lines = own_lines(training, line, layers);
    let at: Vec<String> = lines.iter().map(|line| format!("`{line}`")).collect();
    let name = format!(
        "checkpointing each of the {} layers that {} calls, which keep {bytes} for the backward pass besides their outputs",
        layers.len(),
        joined(&at)
    );
    Some(Proposal { kind: CodeFixKind::Checkpoint, name, lines, run: changed.finish() })
}

/// The lines of the program that call layers: the line itself, or where it is a library's, the program's lines
/// outside of it.
fn own_lines(training: &Training<'_>, line: &str, layers: &[Layer]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for layer in layers {
        let Some(block) = training.blocks.get(layer.blocks.start) else { continue };
        let frames = training.frames(block);
        let outer = frames.iter().rposition(|frame| frame == line).and_then(|place| frames.get(place..));
        let own = outer.and_then(own_line).map_or_else(|| frame_text(line), frame_text);
        if !lines.contains(&own) {
            lines.push(own);
        }
    }
    lines
}

/// Checkpoints a layer: what it keeps is freed at the layer's end, and made again before the layer's turn in
/// the backward pass.
fn checkpoint(
    training: &Training<'_>,
    changed: &mut ChangedRequests<'_>,
    (number, pass): (usize, &Pass),
    layer: &Layer,
    next: Option<&Layer>,
) {
    let inner: Vec<(usize, &Block)> = kept(training, number, layer).collect();
    let turn = inner.iter().map(|(_, block)| block.freed).filter(|freed| *freed < training.end).min();
    for (_, block) in &inner {
        changed.live(block, &[(block.request, layer.end)]);
    }
    let output = layer.output.and_then(|place| training.blocks.get(place));
    if let (Some(output), Some(next)) = (output, next) {
        // The input of the next layer lives until that layer has run again.
        let until = kept(training, number, next).map(|(_, block)| block.freed).max();
        if let Some(until) = until.filter(|until| *until > output.freed) {
            changed.live(output, &[(output.request, until)]);
        }
    }
    if let Some(turn) = turn {
        let following =
            training.blocks.get(layer.blocks.end..training.place(pass.backward)).unwrap_or_default();
        let freed = following.iter().filter(|block| block.kept_for == Some(number)).map(|block| block.freed);
        let before = freed.filter(|freed| *freed < turn).max();
        let at = before.map_or(pass.backward, |freed| freed.saturating_add(1));
        run_again(training, changed, layer, &inner, at);
    }
}

/// Runs a layer again before a request, up to the last block that it keeps.
fn run_again(
    training: &Training<'_>,
    changed: &mut ChangedRequests<'_>,
    layer: &Layer,
    inner: &[(usize, &Block)],
    at: usize,
) {
    let Some((last, last_block)) = inner.last() else { return };
    let mut steps = Vec::new();
    for place in layer.blocks.start..=*last {
        let Some(block) = training.blocks.get(place) else { break };
        let is_inner = inner.iter().any(|(inner, _)| *inner == place);
        let is_temporary = block.phase == Phase::Forward && block.freed < layer.end;
        if is_inner || is_temporary {
            steps.push((block.request, block, true));
        }
        if is_temporary && !is_inner {
            steps.push((block.freed.min(last_block.request.saturating_add(1)), block, false));
        }
    }
    steps.sort_by_key(|(request, _, _)| *request);
    let mut tensors = HashMap::new();
    for (_, block, is_made) in steps {
        if is_made {
            let tensor = changed.allocate(at, block.size, block.stream);
            if block.kept_for.is_some() {
                changed.free(block.freed, tensor);
            } else {
                tensors.insert(block.tensor, tensor);
            }
        } else if let Some(tensor) = tensors.remove(&block.tensor) {
            changed.free(at, tensor);
        }
    }
}
