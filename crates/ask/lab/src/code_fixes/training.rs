//! A run as steps of a training: which block was made in which part of a step.

use std::collections::{HashMap, HashSet};

use blockyard_record::{Bytes, StackCategory, StackHolder, StreamId};
use blockyard_workload::{Request, TensorId};

use crate::Run;
use crate::lifetimes::lifetimes;

/// Where in a training a block was made, as its stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The model is built.
    Building,
    /// In the forward pass of a module.
    Forward,
    /// In a backward pass.
    Backward,
    /// In the optimizer.
    Step,
    /// What a library keeps to work in.
    Workspace,
    /// Elsewhere in the program: its data, its loss.
    Other,
}

/// One block of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) tensor: TensorId,
    /// The index of the request that makes the block.
    pub(super) request: usize,
    /// The index of the request that frees the block; at least the end of the run if none does.
    pub(super) freed: usize,
    /// The requested bytes.
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
    /// The stack, as an index.
    pub(super) stack: usize,
    pub(super) phase: Phase,
    /// The pass whose backward frees the block, as an index, if the block is kept for it: an activation.
    pub(super) kept_for: Option<usize>,
}

/// A forward pass and its backward pass, as indices of requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// The end of the backward pass before.
    pub(super) forward: usize,
    /// The first request of the backward pass; the end of the run if it fails before.
    pub(super) backward: usize,
    /// The first allocation after the backward pass, or the end of the run.
    pub(super) end: usize,
}

/// A run of a training program.
pub(super) struct Training<'a> {
    pub(super) run: &'a Run,
    /// How many requests count: all, or those up to the one that failed.
    pub(super) end: usize,
    /// The request that failed, among them.
    pub(super) failed: Option<usize>,
    /// Whether these requests end in the middle of an iteration.
    pub(super) is_cut: bool,
    /// By ascending requests.
    pub(super) blocks: Vec<Block>,
    /// The frames of Python of the blocks' stacks, innermost first; the first stack is empty.
    pub(super) stacks: Vec<Vec<String>>,
    /// The last one may have no backward pass, where the run fails before.
    pub(super) passes: Vec<Pass>,
    /// The sizes of parameters and gradients.
    pub(super) parameters: HashSet<Bytes>,
}

/// With more short stretches of allocations without a stack than this, they are not backward passes.
const MAX_OTHER_STRETCHES: usize = 1000;

impl<'a> Training<'a> {
    /// The run up to the request that fails; `None` if it has no backward pass and does not fail in a forward pass.
    pub(super) fn of(run: &'a Run, failed: Option<usize>) -> Option<Self> {
        let end = failed.map_or(run.requests().len(), |failed| failed.saturating_add(1));
        Self::until(run, end, failed, failed.is_some())
    }

    /// The first `end` requests of a run; `is_cut` where they end in the middle of an iteration.
    pub(super) fn until(run: &'a Run, end: usize, failed: Option<usize>, is_cut: bool) -> Option<Self> {
        let mut training = Self {
            run,
            end,
            failed,
            is_cut,
            blocks: Vec::new(),
            stacks: vec![Vec::new()],
            passes: Vec::new(),
            parameters: HashSet::new(),
        };
        training.read_blocks();
        training.find_passes()?;
        training.find_activations();
        training.find_parameters();
        Some(training)
    }

    fn read_blocks(&mut self) {
        let mut phases = vec![Phase::Backward];
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        let mut lives: HashMap<usize, usize> =
            lifetimes(self.run).into_iter().map(|life| (life.request, life.freed)).collect();
        if let Some(failed) = self.failed {
            lives.entry(failed).or_insert(self.end);
        }
        for (request, asked) in self.run.requests().iter().take(self.end).enumerate() {
            let Request::Allocate { tensor, size, stream } = *asked else { continue };
            let Some(freed) = lives.get(&request).map(|freed| (*freed).min(self.end)) else { continue };
            let stack = match self.run.stack_number(request) {
                None => 0,
                Some(number) => *numbers.entry(number).or_insert_with(|| {
                    let mut frames = self.run.stack(request);
                    phases.push(phase(&frames));
                    frames.retain(|frame| is_python(frame));
                    self.stacks.push(frames);
                    self.stacks.len().saturating_sub(1)
                }),
            };
            let is_before = request < self.run.requests_from_before();
            let phase = phases.get(stack).copied().filter(|_| !is_before).unwrap_or(Phase::Building);
            self.blocks.push(Block { tensor, request, freed, size, stream, stack, phase, kept_for: None });
        }
    }

    /// The backward passes: stretches of allocations that free what forward passes made.
    fn find_passes(&mut self) -> Option<()> {
        let mut stretches = Vec::new();
        let mut first = None;
        for block in &self.blocks {
            if block.phase == Phase::Backward {
                first.get_or_insert(block.request);
            } else if let Some(first) = first.take() {
                stretches.push((first, block.request));
            }
        }
        stretches.extend(first.map(|first| (first, self.end)));
        let (mut forward, mut others) = (0, 0_usize);
        for (backward, end) in stretches {
            let place = self.place(forward);
            let made = self.blocks.get(place..self.place(backward)).unwrap_or_default();
            let made = made.iter().filter(|block| block.phase == Phase::Forward && block.freed >= backward);
            let (mut live, mut freed) = (Bytes::ZERO, Bytes::ZERO);
            for block in made {
                live = live.saturating_add(block.size);
                if block.freed < end {
                    freed = freed.saturating_add(block.size);
                }
            }
            let is_last = self.is_cut && end == self.end;
            if live > Bytes::ZERO && (is_last || freed.get().saturating_mul(4) >= live.get()) {
                self.passes.push(Pass { forward, backward, end });
                forward = end;
            } else {
                others = others.saturating_add(1);
            }
            if others > MAX_OTHER_STRETCHES {
                return None;
            }
        }
        if self.is_cut && forward < self.end {
            self.passes.push(Pass { forward, backward: self.end, end: self.end });
        }
        (!self.passes.is_empty()).then_some(())
    }

    /// The number of blocks that are made before a request.
    pub(super) fn place(&self, request: usize) -> usize {
        self.blocks.partition_point(|block| block.request < request)
    }

    fn find_activations(&mut self) {
        for (number, pass) in self.passes.iter().enumerate() {
            let places = self.place(pass.forward)..self.place(pass.backward);
            for block in self.blocks.get_mut(places).into_iter().flatten() {
                let is_forward = block.phase == Phase::Forward;
                let is_freed = block.freed >= pass.backward && block.freed < pass.end;
                let is_open = self.is_cut && pass.end == self.end && block.freed >= self.end;
                let is_kept =
                    (is_forward || block.phase == Phase::Other) && is_freed || is_forward && is_open;
                block.kept_for = is_kept.then_some(number);
            }
        }
    }

    /// Whether a backward pass was seen.
    pub(super) fn has_backward(&self) -> bool {
        self.passes.iter().any(|pass| pass.backward < self.end)
    }

    /// The blocks that are made in the forward and the backward part of a pass.
    pub(super) fn of_pass(&self, pass: &Pass) -> &[Block] {
        self.blocks.get(self.place(pass.forward)..self.place(pass.end)).unwrap_or_default()
    }

    pub(super) fn frames(&self, block: &Block) -> &[String] {
        self.stacks.get(block.stack).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a block is a gradient: it lives on after the pass that made it. Where the run fails in that pass, a
    /// gradient has the size of a parameter.
    pub(super) fn is_gradient(&self, block: &Block, pass: &Pass) -> bool {
        lives_on(block, pass) && (!self.is_open(pass) || self.parameters.contains(&block.size))
    }

    /// Whether the run fails in a pass.
    fn is_open(&self, pass: &Pass) -> bool {
        self.is_cut && pass.end == self.end
    }

    fn find_parameters(&mut self) {
        let built = self.blocks.iter().filter(|block| block.phase == Phase::Building);
        let mut sizes: HashSet<Bytes> = built.map(|block| block.size).collect();
        for pass in self.passes.iter().filter(|pass| !self.is_open(pass)) {
            let gradients = self.of_pass(pass).iter().filter(|block| lives_on(block, pass));
            sizes.extend(gradients.map(|block| block.size));
        }
        self.parameters = sizes;
    }
}

/// Whether a block that a backward pass makes lives on after it.
fn lives_on(block: &Block, pass: &Pass) -> bool {
    block.phase == Phase::Backward && block.freed >= pass.end
}

/// The function of a frame, `forward` of `forward (net.py:12)`.
pub(super) fn function(frame: &str) -> &str {
    frame.split(' ').next().unwrap_or_default()
}

/// Whether a frame is one of Python. PyTorch records those of C++ between them.
fn is_python(frame: &str) -> bool {
    frame.contains(".py:") || frame.contains("<frozen ") || frame.contains("(<")
}

fn phase(frames: &[String]) -> Phase {
    if StackHolder::from_texts(frames) == StackHolder::Workspace {
        return Phase::Workspace;
    }
    match StackCategory::from_texts(frames) {
        StackCategory::Optimizer => Phase::Step,
        StackCategory::Gradients | StackCategory::Unknown => Phase::Backward,
        // A thread of autograd begins in PyTorch's code: a hook, or layers that run again.
        _ if frames.iter().rfind(|frame| is_python(frame)).is_some_and(|frame| frame.contains("torch/")) => {
            Phase::Backward
        }
        StackCategory::Parameters => Phase::Building,
        StackCategory::Activations => Phase::Forward,
        StackCategory::Other => Phase::Other,
    }
}
