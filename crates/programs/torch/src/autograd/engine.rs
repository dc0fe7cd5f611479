//! The engine: which node runs when, and how long gradients live.

mod checks;

use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

use crate::error::runtime;
use crate::memory::Phase;
use crate::ops::{creation, pointwise, sparse};
use crate::session::{ActiveCall, Thread};
use crate::{Result, Scalar, Tensor, session};

use super::node::{Body, Context, Edge, Gradients, Node};
use super::ready::ReadyQueue;
use super::{GradMode, GradModeGuard, accumulate, double_backward};
use checks::{refuse_lost_history, validate};

/// A node by its address: nodes stay alive for the whole backward pass.
type Key = *const Node;

/// A node that is ready, with the gradients of its outputs (`NodeTask`).
struct Task {
    node: Rc<Node>,
    inputs: Gradients,
}

/// A gradient that `torch.autograd.grad` wants: the one that flows into this input of a node.
struct Capture {
    node: Rc<Node>,
    input: usize,
    result: Option<Tensor>,
}

/// One backward pass (`GraphTask`).
struct GraphTask {
    /// Whether nodes keep their saved tensors (`retain_graph`).
    keeps_graph: bool,
    /// How many gradients each node still waits for.
    dependencies: FxHashMap<Key, usize>,
    /// The gradients of nodes that still wait for others (`not_ready_`).
    waiting: FxHashMap<Key, Gradients>,
    ready: ReadyQueue<Task>,
    captures: Vec<Capture>,
    /// With captures: the nodes from which a captured node can be reached; see [`needed_nodes`].
    needed: Option<FxHashMap<Key, bool>>,
}

/// `Tensor.backward` and `torch.autograd.backward`.
///
/// # Errors
///
/// PyTorch's for tensors without history or gradients of another shape, and what a node fails with.
pub fn backward(
    tensors: &[Tensor],
    grads: &[Option<Tensor>],
    retain_graph: bool,
    create_graph: bool,
    inputs: &[Tensor],
) -> Result<()> {
    let grads = root_gradients(tensors, grads)?;
    let roots = roots(tensors)?;
    let grads: Vec<Tensor> = grads.into_iter().flatten().collect();
    if inputs.is_empty() {
        run(&roots, &grads, retain_graph, create_graph, &[])?;
        return Ok(());
    }
    // Only the given leaves get a gradient.
    let results = run_to(inputs, &roots, &grads, retain_graph, create_graph)?;
    for (input, grad) in inputs.iter().zip(results) {
        if let Some(grad) = grad {
            accumulate::accumulate(input, grad)?;
        }
    }
    Ok(())
}

/// `torch.autograd.grad`.
///
/// # Errors
///
/// The errors of [`backward`], and an error for inputs that the outputs do not depend on unless
/// `allow_unused` is set.
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    grads: &[Option<Tensor>],
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> Result<Gradients> {
    let grads = root_gradients(outputs, grads)?;
    let roots = roots(outputs)?;
    let grads: Vec<Tensor> = grads.into_iter().flatten().collect();
    let results = run_to(inputs, &roots, &grads, retain_graph, create_graph)?;
    if !allow_unused && results.iter().any(Option::is_none) {
        return runtime(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this \
             is the desired behavior.",
        );
    }
    Ok(results)
}

/// The gradients that a backward pass begins with: the given gradient of each tensor, ones where none is
/// given (`_make_grads`). `None` for a tensor that requires no gradient, which ends the pass with an error.
///
/// # Errors
///
/// PyTorch's for gradients of another shape and for results of several numbers.
pub fn root_gradients(tensors: &[Tensor], grads: &[Option<Tensor>]) -> Result<Gradients> {
    let mut made = Vec::with_capacity(tensors.len());
    for (index, tensor) in tensors.iter().enumerate() {
        if let Some(grad) = grads.get(index).and_then(Option::as_ref) {
            if grad.shape() != tensor.shape() {
                return runtime(format!(
                    "Mismatch in shape: grad_output[{index}] has a shape of torch.Size({:?}) and output[{index}] has a \
                     shape of torch.Size({:?}).",
                    grad.shape(),
                    tensor.shape()
                ));
            }
            made.push(Some(grad.clone()));
            continue;
        }
        if !tensor.requires_grad() {
            made.push(None);
            continue;
        }
        if tensor.numel() != 1 {
            return runtime("grad can be implicitly created only for scalar outputs");
        }
        made.push(Some(creation::ones_like(tensor)?));
    }
    Ok(made)
}

fn roots(tensors: &[Tensor]) -> Result<Vec<Edge>> {
    let mut edges = Vec::with_capacity(tensors.len());
    for (index, tensor) in tensors.iter().enumerate() {
        match tensor.gradient_edge() {
            Some(edge) => edges.push(edge),
            None => {
                return runtime(format!(
                    "element {index} of tensors does not require grad and does not have a grad_fn"
                ));
            }
        }
    }
    Ok(edges)
}

/// Runs the pass and gives the gradient of each input; `None` for one that the roots do not depend on.
///
/// A view that was made under `no_grad` requires a gradient because its base does, and no gradient flows to
/// the view.
fn run_to(
    inputs: &[Tensor],
    roots: &[Edge],
    grads: &[Tensor],
    retain_graph: bool,
    create_graph: bool,
) -> Result<Gradients> {
    let edges: Vec<Option<Edge>> = inputs.iter().map(Tensor::gradient_edge).collect();
    if inputs.iter().zip(&edges).any(|(input, edge)| edge.is_none() && !input.requires_grad()) {
        return runtime("One of the differentiated Tensors does not require grad");
    }
    let reached: Vec<Edge> = edges.iter().flatten().cloned().collect();
    if reached.is_empty() {
        return Ok(vec![None; edges.len()]);
    }
    let mut found = run(roots, grads, retain_graph, create_graph, &reached)?.into_iter();
    Ok(edges.into_iter().map(|edge| edge.and_then(|_| found.next().flatten())).collect())
}

fn run(
    roots: &[Edge],
    grads: &[Tensor],
    retain_graph: bool,
    create_graph: bool,
    captures: &[Edge],
) -> Result<Gradients> {
    let session = session();
    let before_thread = session.thread();
    let before_phase = session.set_phase(Phase::Backward);
    let before = session.current_origin.running.get();
    let mode = GradModeGuard::new(create_graph);
    let (before_task, number) = session.modes.graph_task.get();
    session.modes.graph_task.set((Some(number), number + 1));
    let was_valid = session.modes.is_checkpoint_valid.get();
    session.modes.is_checkpoint_valid.set(was_valid && captures.is_empty());
    let mut task = GraphTask::new(roots, retain_graph || create_graph, captures);
    let result = task.start(roots, grads).and_then(|()| task.work(captures.is_empty()));
    // What is left after a failure dies as PyTorch's graph task does.
    drop(mode);
    session.modes.is_checkpoint_valid.set(was_valid);
    session.modes.graph_task.set((before_task, session.modes.graph_task.get().1));
    session.current_origin.running.set(before);
    session.set_phase(before_phase);
    session.set_thread(before_thread);
    result?;
    Ok(task.captures.into_iter().map(|capture| capture.result).collect())
}

impl GraphTask {
    fn new(roots: &[Edge], keeps_graph: bool, captures: &[Edge]) -> Self {
        let mut dependencies: FxHashMap<Key, usize> = FxHashMap::default();
        let mut seen: FxHashSet<Key> = FxHashSet::default();
        let mut stack: Vec<Rc<Node>> = Vec::new();
        let mut order: Vec<Rc<Node>> = Vec::new();
        for root in roots {
            if seen.insert(Rc::as_ptr(&root.node)) {
                stack.push(Rc::clone(&root.node));
            }
        }
        while let Some(node) = stack.pop() {
            node.with_edges(|edges| {
                for edge in edges.iter().flatten() {
                    let key = Rc::as_ptr(&edge.node);
                    *dependencies.entry(key).or_default() += 1;
                    if seen.insert(key) {
                        stack.push(Rc::clone(&edge.node));
                    }
                }
            });
            order.push(node);
        }
        let needed = (!captures.is_empty()).then(|| needed_nodes(&mut order, captures));
        drop(order);
        Self {
            keeps_graph,
            dependencies,
            waiting: FxHashMap::default(),
            ready: ReadyQueue::default(),
            captures: captures
                .iter()
                .map(|edge| Capture { node: Rc::clone(&edge.node), input: edge.input, result: None })
                .collect(),
            needed,
        }
    }

    fn start(&mut self, roots: &[Edge], grads: &[Tensor]) -> Result<()> {
        // The roots are the outputs of a node before all others (`GraphRoot`), so each root is one
        // dependency.
        for root in roots {
            *self.dependencies.entry(Rc::as_ptr(&root.node)).or_default() += 1;
        }
        for (root, grad) in roots.iter().zip(grads) {
            let mut grad = grad.clone();
            validate(&root.node, root.input, &mut grad)?;
            self.deliver(root, grad)?;
        }
        Ok(())
    }

    /// Gives a gradient to a node; the node is ready once it has all of them.
    fn deliver(&mut self, edge: &Edge, grad: Tensor) -> Result<()> {
        self.add(edge, Some(grad)).map(drop)
    }

    /// Delivers a gradient. Returns the gradient if its values were added to an older gradient of the same
    /// input.
    fn add(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<Option<Tensor>> {
        let key = Rc::as_ptr(&edge.node);
        let left = self.dependencies.get_mut(&key).map_or(0, |left| {
            *left = left.saturating_sub(1);
            *left
        });
        let count = edge.node.inputs.borrow().len();
        let mut inputs = self.waiting.remove(&key).unwrap_or_else(|| vec![None; count]);
        let mut added = None;
        if let (Some(grad), Some(slot)) = (grad, inputs.get_mut(edge.input)) {
            match slot.take() {
                None => *slot = Some(grad),
                Some(old) => {
                    *slot = Some(add_up(old, &grad)?);
                    added = Some(grad);
                }
            }
        }
        if left == 0 {
            self.ready.push(&edge.node, Task { node: Rc::clone(&edge.node), inputs });
        } else {
            self.waiting.insert(key, inputs);
        }
        Ok(added)
    }

    fn work(&mut self, accumulates: bool) -> Result<()> {
        while let Some(task) = self.ready.pop() {
            self.evaluate(task, accumulates)?;
        }
        Ok(())
    }

    fn evaluate(&mut self, task: Task, accumulates: bool) -> Result<()> {
        let Task { node, mut inputs, .. } = task;
        let session = session();
        session.current_origin.running.set(ActiveCall { name: node.name(), copies_or_fills: false });
        let stream = node.stream();
        let mut before_stream = None;
        if let Some((index, stream)) = stream {
            session.set_thread(Thread::Backward(index));
            let device = session.device(index)?;
            before_stream = Some((index, device.set_current_stream(stream)));
        }
        let result = self.evaluate_on_stream(&node, &mut inputs, accumulates);
        if let Some((index, stream)) = before_stream {
            session.device(index)?.set_current_stream(stream);
        }
        let Some(outputs) = result? else { return Ok(()) };
        if !self.keeps_graph {
            node.release_variables();
        }
        let edges = node.edges();
        // A gradient that was added to an older one lives until all outputs are delivered.
        let mut added = Vec::new();
        for (edge, output) in edges.into_iter().zip(outputs) {
            let Some(edge) = edge else { continue };
            if self.needed.as_ref().is_some_and(|needed| !needed.contains_key(&Rc::as_ptr(&edge.node))) {
                continue;
            }
            use_on_stream_of(&edge.node, stream, output.as_ref())?;
            added.extend(self.add(&edge, output)?);
        }
        drop(added);
        Ok(())
    }

    /// The node's outputs; `None` for a node that no gradient flows on from.
    fn evaluate_on_stream(
        &mut self,
        node: &Rc<Node>,
        inputs: &mut Gradients,
        accumulates: bool,
    ) -> Result<Option<Gradients>> {
        for (input, hook) in node.tensor_hooks() {
            let Some(slot) = inputs.get_mut(input) else { continue };
            let grad = slot.clone();
            if let Some(replaced) = hook.call(grad.as_ref())? {
                *slot = Some(replaced);
            }
        }
        let mut is_captured = false;
        for capture in self.captures.iter_mut().filter(|capture| Rc::ptr_eq(&capture.node, node)) {
            capture.result = inputs.get(capture.input).cloned().flatten();
            is_captured = true;
        }
        if let Some(needed) = &self.needed
            && is_captured
            && needed.get(&Rc::as_ptr(node)) != Some(&true)
        {
            return Ok(None);
        }
        if let Body::Accumulate(variable) = &node.body {
            if let Some(grad) = inputs.get_mut(0).and_then(Option::take)
                && accumulates
            {
                accumulate::accumulate(variable, grad)?;
            }
            return Ok(None);
        }
        let outputs = self.call(node, std::mem::take(inputs))?;
        Ok(Some(outputs))
    }

    /// `call_function`: the gradients live until the outputs were validated.
    fn call(&self, node: &Rc<Node>, inputs: Gradients) -> Result<Gradients> {
        let wanted: Vec<bool> = node.with_edges(|edges| {
            edges
                .iter()
                .map(|edge| match (edge, &self.needed) {
                    (None, _) => false,
                    (Some(edge), Some(needed)) => needed.contains_key(&Rc::as_ptr(&edge.node)),
                    (Some(_), None) => true,
                })
                .collect()
        });
        let mut outputs = match &node.body {
            Body::Function { .. } if inputs.iter().all(Option::is_none) => {
                // What is saved is still unpacked.
                let context = Context::new(node, &wanted)?;
                context.unpack_all()?;
                drop(context);
                vec![None; wanted.len()]
            }
            Body::Function { backward, .. } => {
                let signature = double_backward::begin(node, &inputs, &wanted);
                let context = Context::new(node, &wanted)?;
                let modes = &session().modes;
                let is_nested = modes.is_in_formula.replace(true);
                let outputs = backward(&context, &inputs);
                modes.is_in_formula.set(is_nested);
                let mut outputs = outputs?;
                double_backward::finish(node, signature);
                for (output, _) in outputs.iter_mut().zip(&wanted).filter(|(_, wanted)| !**wanted) {
                    *output = None;
                }
                outputs
            }
            Body::Custom { callback, .. } => callback.backward(node, &inputs)?,
            Body::Accumulate(_) => Vec::new(),
        };
        outputs.resize(wanted.len(), None);
        if GradMode::is_enabled() {
            refuse_lost_history(node, &inputs, &outputs)?;
        }
        let edges = node.edges();
        for (edge, output) in edges.iter().zip(&mut outputs) {
            match (edge, output) {
                (Some(edge), Some(output)) => validate(&edge.node, edge.input, output)?,
                (None, output) => *output = None,
                _ => {}
            }
        }
        drop(edges);
        drop(inputs);
        Ok(outputs)
    }
}

/// Nodes from which a captured one can be reached; `true` for those that have to run.
fn needed_nodes(order: &mut [Rc<Node>], captures: &[Edge]) -> FxHashMap<Key, bool> {
    let mut needed: FxHashMap<Key, bool> = FxHashMap::default();
    for edge in captures {
        needed.insert(Rc::as_ptr(&edge.node), false);
    }
    // An edge always leads to an older node, so the oldest come first.
    order.sort_by_key(|node| if node.is_accumulator() { 0 } else { node.number() + 1 });
    for node in order.iter() {
        let leads_there = node.with_edges(|edges| {
            edges.iter().flatten().any(|edge| needed.contains_key(&Rc::as_ptr(&edge.node)))
        });
        if leads_there {
            needed.insert(Rc::as_ptr(node), true);
        }
    }
    needed
}

/// `InputBuffer::accumulate`: in place if this is the last reference to the older gradient and its memory.
fn add_up(old: Tensor, grad: &Tensor) -> Result<Tensor> {
    let can_reuse = |tensor: &Tensor| {
        !tensor.is_sparse()
            && !tensor.is_without_memory()
            && tensor.is_non_overlapping_and_dense()
            && tensor.is_stealable(1)
            && Rc::strong_count(&tensor.storage()) == 2
    };
    if old.is_sparse() || grad.is_sparse() {
        return add_up_sparse(&old, grad, can_reuse);
    }
    if !GradMode::is_enabled() && can_reuse(&old) {
        pointwise::add_in_place(&old, grad)?;
        return Ok(old);
    }
    let sum = pointwise::add(&old, grad)?;
    // The sum takes the older one's place in the buffer.
    drop(old);
    Ok(sum)
}

/// [`add_up`] for two gradients of which one or both are sparse: the dense gradient is the first operand. The
/// older gradient is never changed; the newer one is changed if it alone is dense.
fn add_up_sparse(old: &Tensor, grad: &Tensor, can_reuse: impl Fn(&Tensor) -> bool) -> Result<Tensor> {
    let one = Scalar::Int(1);
    if !old.is_sparse() || GradMode::is_enabled() {
        return sparse::add(old, grad, one);
    }
    if can_reuse(grad) {
        sparse::add_in_place(grad, old, one)?;
        return Ok(grad.clone());
    }
    sparse::add(grad, old, one)
}

/// A gradient that is used on another stream than it was made on must not be allocated again too early.
fn use_on_stream_of(
    consumer: &Rc<Node>,
    producer: Option<(u8, blockyard_record::StreamId)>,
    grad: Option<&Tensor>,
) -> Result<()> {
    let (Some(grad), Some((index, from)), Some((other, to))) = (grad, producer, consumer.stream()) else {
        return Ok(());
    };
    if index == other && from != to {
        return grad.storage().with_block(|block| block.record_stream(to)).unwrap_or(Ok(()));
    }
    Ok(())
}
