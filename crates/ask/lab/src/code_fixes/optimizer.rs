//! Optimizers with fewer states and smaller temporaries, and gradients that are freed earlier.

use std::collections::{BTreeMap, HashMap, HashSet};

use blockyard_record::{Bytes, frame_text, own_line};
use blockyard_workload::TensorId;

use super::Proposal;
use super::changed_requests::ChangedRequests;
use super::training::{Block, Pass, Phase, Training, function};
use crate::CodeFixKind;

pub(super) fn proposals(training: &Training<'_>) -> Vec<Proposal> {
    let steps = Steps::of(training);
    let all =
        [momentum(training), eight_bits(training), offloaded(training, &steps), no_foreach(training, &steps)];
    let mut proposals: Vec<Proposal> = all.into_iter().flatten().collect();
    proposals.extend(freed_gradients(training, &steps));
    proposals
}

/// How the names of the functions begin that update all parameters at once.
const FOREACH: &str = "_multi_tensor_";

/// How the markers begin that PyTorch sets around the steps of its optimizers.
const STEP_MARKER: &str = "Optimizer.step#";

/// The steps of the optimizer: after each pass, the first allocation after the step; `None` where no step was
/// seen. A step that makes no block is seen by its marker.
struct Steps {
    after: Vec<Option<usize>>,
}

impl Steps {
    fn of(training: &Training<'_>) -> Self {
        let after = |(number, pass): (usize, &Pass)| {
            let next =
                training.passes.get(number.saturating_add(1)).map_or(training.end, |next| next.backward);
            let places = training.place(pass.end)..training.place(next);
            let blocks = training.blocks.get(places.clone())?;
            let Some(last) = blocks.iter().rposition(|block| block.phase == Phase::Step) else {
                let labels = training.run.workload().labels().iter();
                let markers = labels.filter(|(_, label)| label.starts_with(STEP_MARKER));
                let places = markers.map(|(at, _)| *at as usize);
                return places.filter(|at| (pass.end..=next).contains(at)).max();
            };
            let next = places.start.saturating_add(last).saturating_add(1);
            Some(training.blocks.get(next).map_or(training.end, |block| block.request))
        };
        Self { after: training.passes.iter().enumerate().map(after).collect() }
    }

    /// The end of the step in which a block was made.
    fn end(&self, block: &Block) -> Option<usize> {
        self.after.iter().flatten().find(|after| **after > block.request).copied()
    }
}

/// The blocks of Adam's states, by the line of PyTorch that makes them.
fn adam_states<'a>(training: &'a Training<'_>) -> BTreeMap<&'a str, Vec<&'a Block>> {
    let mut states: BTreeMap<&str, Vec<&Block>> = BTreeMap::new();
    for block in training.blocks.iter().filter(|block| block.phase == Phase::Step) {
        let made = training.frames(block).iter().find(|frame| function(frame) == "_init_group");
        if let Some(line) = made.filter(|line| line.contains("adam")) {
            states.entry(line).or_default().push(block);
        }
    }
    states
}

fn momentum(training: &Training<'_>) -> Option<Proposal> {
    let states = adam_states(training);
    let kept: HashSet<TensorId> = states.values().next()?.iter().map(|block| block.tensor).collect();
    let mut changed = ChangedRequests::of(training);
    // What Adam makes in a step besides its states, SGD does in place.
    for block in training.blocks.iter().filter(|block| block.phase == Phase::Step) {
        if !kept.contains(&block.tensor) {
            changed.drop(block);
        }
    }
    let name =
        "SGD with momentum in place of Adam, which has one state for each parameter and not two".to_owned();
    proposal(training, CodeFixKind::Momentum, name, changed)
}

fn eight_bits(training: &Training<'_>) -> Option<Proposal> {
    let mut changed = ChangedRequests::of(training);
    for block in adam_states(training).values().flatten() {
        changed.divide(block, 4);
    }
    let name = "an Adam with states of 8 bits, if its states are float32".to_owned();
    proposal(training, CodeFixKind::EightBitStates, name, changed)
}

fn offloaded(training: &Training<'_>, steps: &Steps) -> Option<Proposal> {
    let mut changed = ChangedRequests::of(training);
    let mut has_states = false;
    for block in training.blocks.iter().filter(|block| block.phase == Phase::Step) {
        has_states |= steps.end(block).is_some_and(|end| block.freed > end);
        changed.drop(block);
    }
    let name = "the states and the step of the optimizer on the CPU".to_owned();
    has_states.then(|| proposal(training, CodeFixKind::OffloadedStates, name, changed)).flatten()
}

fn no_foreach(training: &Training<'_>, steps: &Steps) -> Option<Proposal> {
    let is_temporary = |block: &&Block| {
        block.phase == Phase::Step
            && steps.end(block).is_some_and(|end| block.freed <= end)
            && training.frames(block).iter().any(|frame| function(frame).starts_with(FOREACH))
    };
    let temporaries: Vec<&Block> = training.blocks.iter().filter(is_temporary).collect();
    let mut changed = ChangedRequests::of(training);
    for (place, block) in temporaries.iter().enumerate() {
        // One parameter after the other: at most the temporaries of one are live.
        let next = temporaries.get(place.saturating_add(1)).map_or(block.freed, |next| next.request);
        changed.live(block, &[(block.request, next.min(block.freed))]);
    }
    let name =
        "`foreach=False` in the optimizer, which then updates one parameter after the other".to_owned();
    proposal(training, CodeFixKind::NoForeach, name, changed)
}

/// Gradients that are freed after the step and made again in the next backward pass; only those that a step
/// has used and that live into the next forward pass.
fn freed_gradients(training: &Training<'_>, steps: &Steps) -> Option<Proposal> {
    let mut changed = ChangedRequests::of(training);
    let mut temporaries = Temporaries::default();
    for pass in &training.passes {
        for block in training.of_pass(pass).iter().filter(|block| training.is_gradient(block, pass)) {
            let mut lives = Vec::new();
            let mut from = block.request;
            let later = training.passes.iter().skip(1).zip(&steps.after);
            for (next, step) in later {
                // The step between the two, and whether the gradient lives over it into the next forward pass.
                let Some(step) = step.filter(|step| *step > from && *step < block.freed) else { continue };
                let first = training.of_pass(next).iter().find(|block| block.phase == Phase::Forward);
                if first.is_none_or(|first| first.request > block.freed || first.request < step) {
                    continue;
                }
                lives.push((from, step));
                from = if block.freed > next.backward {
                    temporaries.take(training, next, block.size, &mut changed)
                } else {
                    block.freed
                };
            }
            if !lives.is_empty() {
                if from < block.freed {
                    lives.push((from, block.freed));
                }
                changed.live(block, &lives);
            }
        }
    }
    let name = "gradients freed after the step (`zero_grad(set_to_none=True)` before the next forward pass), which now live through the forward pass".to_owned();
    proposal(training, CodeFixKind::FreedGradients, name, changed)
}

/// Temporaries of backward passes that are added to gradients. Without the old gradient such a temporary is the
/// gradient.
#[derive(Default)]
struct Temporaries {
    /// How many of one pass and size are taken.
    taken: HashMap<(usize, Bytes), usize>,
}

impl Temporaries {
    /// The request from which a new gradient of this size is live. The temporary is left out.
    fn take(
        &mut self,
        training: &Training<'_>,
        pass: &Pass,
        size: Bytes,
        changed: &mut ChangedRequests<'_>,
    ) -> usize {
        let taken = self.taken.entry((pass.backward, size)).or_default();
        let is_temporary = |block: &&Block| {
            block.phase == Phase::Backward && block.size == size && !training.is_gradient(block, pass)
        };
        let found = training.of_pass(pass).iter().filter(is_temporary).nth(*taken);
        *taken = taken.saturating_add(1);
        match found {
            Some(block) => {
                changed.drop(block);
                block.request
            }
            None => pass.backward,
        }
    }
}

/// A change of the optimizer, with the lines that call its step.
fn proposal(
    training: &Training<'_>,
    kind: CodeFixKind,
    name: String,
    changed: ChangedRequests<'_>,
) -> Option<Proposal> {
    if changed.is_unchanged() {
        return None;
    }
    let mut lines: Vec<String> = Vec::new();
    for block in training.blocks.iter().filter(|block| block.phase == Phase::Step) {
        let line = own_line(training.frames(block)).map(frame_text);
        if let Some(line) = line.filter(|line| !lines.contains(line)) {
            lines.push(line);
        }
    }
    Some(Proposal { kind, name, lines, run: changed.finish() })
}
