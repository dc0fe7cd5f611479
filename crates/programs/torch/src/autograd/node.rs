//! Nodes of the backward graph: their edges, and what they save.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use blockyard_record::StreamId;

use super::saved::SavedVariable;
use super::variable::TensorHook;
use super::{next_number, next_sequence};
use crate::{Device, Dtype, Result, Tensor, session};

/// The gradients of the inputs or outputs of a node or of a backward pass, in their order; `None` for one
/// without a gradient.
pub type Gradients = Vec<Option<Tensor>>;

type Backward = dyn Fn(&Context<'_>, &[Option<Tensor>]) -> Result<Gradients>;

/// Where a gradient flows to: an input of a node.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The node that the gradient flows to.
    pub node: Rc<Node>,
    /// Which of the node's inputs, counted from 0.
    pub input: usize,
}

/// A backward function from outside: `torch.autograd.Function`.
pub trait BackwardCallback {
    /// Gradients of the inputs of the node from those of its outputs.
    ///
    /// # Errors
    ///
    /// Whatever the callback fails with.
    fn backward(&self, node: &Node, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
    /// The callback as the caller's own type, which the caller finds again in a node; `None` where nobody
    /// looks for the type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// A value that a node keeps until its backward function has run.
pub enum SavedValue {
    /// A tensor.
    Tensor(Tensor),
    /// What a hook made of a tensor (`torch.autograd.graph.saved_tensors_hooks`).
    Packed(Rc<dyn Any>),
}

impl fmt::Debug for SavedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(tensor) => write!(f, "Tensor({tensor:?})"),
            Self::Packed(_) => f.write_str("Packed"),
        }
    }
}

/// The function of a node, with the tensors that the node keeps for it.
pub(crate) enum Body {
    /// The backward function of an operator.
    Function { saved: RefCell<Vec<SavedVariable>>, backward: Box<Backward> },
    /// The backward function of a `torch.autograd.Function`.
    Custom { saved: RefCell<Vec<SavedVariable>>, callback: Rc<dyn BackwardCallback> },
    /// `AccumulateGrad`: the leaf whose gradient is added up.
    Accumulate(Tensor),
}

/// The shape, type and device that the gradient of an output must have (`InputMetadata`).
#[derive(Clone, Debug)]
pub(crate) struct InputMetadata {
    pub(crate) shape: Rc<[i64]>,
    pub(crate) dtype: Dtype,
    pub(crate) device: Device,
}

/// A function of the backward graph.
pub struct Node {
    name: &'static str,
    sequence: u64,
    number: u64,
    /// Where the results flow to, by input of the forward function.
    edges: RefCell<Vec<Option<Edge>>>,
    /// What the gradient of each output of the forward function must look like.
    pub(crate) inputs: RefCell<Vec<InputMetadata>>,
    pub(crate) body: Body,
    /// Hooks of tensors, each with the input of the node whose gradient it gets.
    hooks: RefCell<Vec<(usize, TensorHook)>>,
    /// The device and the stream of the forward function; `None` on the host.
    stream: Cell<Option<(u8, StreamId)>>,
    /// Whether a backward function made the node.
    is_of_backward: bool,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(sequence {})", self.name, self.sequence)
    }
}

/// What a backward function sees: its saved tensors and which gradients are wanted.
pub(crate) struct Context<'a> {
    pub(crate) node: &'a Rc<Node>,
    pub(crate) wanted: &'a [bool],
    /// What hooks packed is unpacked once, before the function begins, and lives until the function ends.
    unpacked: Vec<Option<Tensor>>,
}

/// Locals die in the reverse order.
impl Drop for Context<'_> {
    fn drop(&mut self) {
        while let Some(tensor) = self.unpacked.pop() {
            drop(tensor);
        }
    }
}

impl<'a> Context<'a> {
    /// Unpacks the tensors that hooks packed; an error where a hook raises.
    pub(crate) fn new(node: &'a Rc<Node>, wanted: &'a [bool]) -> Result<Self> {
        let mut unpacked = Vec::new();
        if let Body::Function { saved, .. } = &node.body {
            let is_packed = |variable: &SavedVariable| matches!(variable, SavedVariable::Packed { .. });
            if saved.borrow().iter().any(is_packed) {
                for variable in saved.borrow().iter() {
                    unpacked.push(if is_packed(variable) { variable.unpack(node)? } else { None });
                }
            }
        }
        Ok(Self { node, wanted, unpacked })
    }

    /// Saved tensor number `index`; an error where none was saved, or where it was released.
    pub(crate) fn saved(&self, index: usize) -> Result<Tensor> {
        self.saved_optional(index)?
            .ok_or_else(|| crate::TorchError::Runtime(format!("{} saved no tensor {index}", self.node.name)))
    }

    /// Saved tensor number `index`, where one was saved.
    pub(crate) fn saved_optional(&self, index: usize) -> Result<Option<Tensor>> {
        if let Some(Some(tensor)) = self.unpacked.get(index) {
            return Ok(Some(tensor.clone()));
        }
        match &self.node.body {
            Body::Function { saved, .. } => match saved.borrow().get(index) {
                Some(saved) => saved.unpack(self.node),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Unpacks what hooks did not pack, for the errors of released and changed tensors.
    pub(crate) fn unpack_all(&self) -> Result<()> {
        let Body::Function { saved, .. } = &self.node.body else { return Ok(()) };
        for variable in saved.borrow().iter() {
            if !matches!(variable, SavedVariable::Packed { .. }) {
                drop(variable.unpack(self.node)?);
            }
        }
        Ok(())
    }

    /// The shape of input `index`, where it takes a gradient.
    pub(crate) fn input_shape(&self, index: usize) -> Option<Rc<[i64]>> {
        self.node.with_edges(|edges| {
            let edge = edges.get(index)?.as_ref()?;
            edge.node.inputs.borrow().get(edge.input).map(|input| Rc::clone(&input.shape))
        })
    }

    /// Whether the gradient of input `index` is wanted.
    pub(crate) fn wants(&self, index: usize) -> bool {
        self.wanted.get(index).copied().unwrap_or(false)
    }

    /// The gradient of input `index`, which is computed only where it is wanted.
    pub(crate) fn gradient(
        &self,
        index: usize,
        computed: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        if self.wants(index) { computed().map(Some) } else { Ok(None) }
    }
}

impl Body {
    /// A backward function with what it keeps.
    pub(super) fn function(
        saved: Vec<SavedVariable>,
        backward: impl Fn(&Context<'_>, &[Option<Tensor>]) -> Result<Gradients> + 'static,
    ) -> Self {
        Self::Function { saved: RefCell::new(saved), backward: Box::new(backward) }
    }
}

impl Node {
    /// Whether a saved tensor has a history.
    pub(crate) fn saves_history(&self) -> bool {
        match &self.body {
            Body::Function { saved, .. } => saved.borrow().iter().any(SavedVariable::has_history),
            Body::Custom { .. } | Body::Accumulate(_) => false,
        }
    }

    /// How many tensors the node saved, released ones included; 0 for a `torch.autograd.Function`.
    #[cfg(test)]
    pub(crate) fn saved_count(&self) -> usize {
        match &self.body {
            Body::Function { saved, .. } => {
                saved.borrow().iter().filter(|saved| !matches!(saved, SavedVariable::Nothing)).count()
            }
            Body::Custom { .. } | Body::Accumulate(_) => 0,
        }
    }

    /// A new `AccumulateGrad` for a leaf.
    pub(crate) fn accumulator(variable: &Tensor) -> Rc<Self> {
        Rc::new(Self {
            name: "AccumulateGrad",
            sequence: u64::MAX,
            number: 0,
            edges: RefCell::default(),
            inputs: RefCell::new(vec![metadata(variable)]),
            stream: Cell::new(stream_of(variable.device())),
            body: Body::Accumulate(variable.clone()),
            hooks: RefCell::default(),
            is_of_backward: session().modes.is_in_formula.get(),
        })
    }

    /// A node of the calling operator: its edges lead to the inputs' nodes, and its stream is the current one
    /// of the first output's device.
    pub(super) fn new(name: &'static str, inputs: &[&Tensor], outputs: &[&Tensor], body: Body) -> Rc<Self> {
        let device = outputs.first().map(|output| output.device());
        Rc::new(Self {
            name: super::nodes::listed(name),
            sequence: next_sequence(),
            number: next_number(),
            edges: RefCell::new(inputs.iter().map(|input| input.gradient_edge()).collect()),
            inputs: RefCell::new(outputs.iter().map(|output| metadata(output)).collect()),
            stream: Cell::new(device.and_then(stream_of)),
            body,
            hooks: RefCell::default(),
            is_of_backward: session().modes.is_in_formula.get(),
        })
    }

    /// The name that Python shows: `AddmmBackward0`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The order in which one thread made the nodes; a later node runs earlier.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The node's place among all nodes, in the order in which they were made; accumulators come first.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Where the node's results flow to, by input of the forward function (`next_functions`).
    pub fn edges(&self) -> Vec<Option<Edge>> {
        self.edges.borrow().clone()
    }

    /// Looks at the edges without a copy.
    pub(crate) fn with_edges<T>(&self, look: impl FnOnce(&[Option<Edge>]) -> T) -> T {
        look(&self.edges.borrow())
    }

    /// The values that the node keeps for its backward function now, each with the name of the member that
    /// keeps the value where PyTorch's list has one.
    pub fn saved_values(&self) -> Vec<(Option<&'static str>, SavedValue)> {
        // A node that runs at this moment may be releasing its saved tensors, which are borrowed then.
        let (Body::Function { saved, .. } | Body::Custom { saved, .. }) = &self.body else {
            return Vec::new();
        };
        let Ok(saved) = saved.try_borrow() else { return Vec::new() };
        let members = super::saved::members(self.name, saved.len());
        let kept = saved.iter().enumerate().filter_map(|(index, variable)| {
            let kept = match variable {
                SavedVariable::Kept { tensor, .. } => SavedValue::Tensor(tensor.clone()),
                SavedVariable::Packed { packed, .. } => SavedValue::Packed(Rc::clone(packed)),
                SavedVariable::Nothing | SavedVariable::Released(_) => return None,
            };
            Some((members.get(index).copied(), kept))
        });
        kept.collect()
    }

    /// The saved tensor of a member (`_saved_self`), by the member's name in PyTorch; `None` where the node
    /// has no such member.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) after the graph was freed, or after the tensor was
    /// changed in place.
    pub fn saved_member(self: &Rc<Self>, member: &str) -> Option<Result<Option<Tensor>>> {
        let Body::Function { saved, .. } = &self.body else { return None };
        let saved = saved.try_borrow().ok()?;
        let index = super::saved::members(self.name, saved.len()).iter().position(|name| *name == member)?;
        saved.get(index).map(|variable| variable.unpack(self))
    }

    /// The leaf whose gradient the node adds up; `None` for a node that is not an accumulator.
    pub fn leaf(&self) -> Option<&Tensor> {
        match &self.body {
            Body::Accumulate(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// Zeros in the place of the gradient of output `number` (`VariableInfo::zeros`).
    ///
    /// # Errors
    ///
    /// Out of memory.
    pub fn zeros_like_output(&self, number: usize) -> Result<Option<Tensor>> {
        let output = self.inputs.borrow().get(number).cloned();
        output
            .map(|output| crate::ops::creation::zeros(&output.shape, output.dtype, output.device))
            .transpose()
    }

    /// The function from outside that the node calls; `None` for an operator's node.
    pub fn callback(&self) -> Option<&Rc<dyn BackwardCallback>> {
        match &self.body {
            Body::Custom { callback, .. } => Some(callback),
            _ => None,
        }
    }

    /// What a `torch.autograd.Function` saved (`ctx.saved_tensors`); hooks unpack each time.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) after the graph was freed, or after a tensor was
    /// changed in place; whatever a hook fails with.
    pub fn saved_tensors(self: &Rc<Self>) -> Result<Vec<Option<Tensor>>> {
        let Body::Custom { saved, .. } = &self.body else { return Ok(Vec::new()) };
        saved.borrow().iter().map(|variable| variable.unpack(self)).collect()
    }

    /// Whether the node adds up a leaf's gradient (`AccumulateGrad`).
    pub fn is_accumulator(&self) -> bool {
        matches!(self.body, Body::Accumulate(_))
    }

    /// Whether a backward function made the node: the node is a part of a second derivative.
    pub(crate) fn is_of_backward(&self) -> bool {
        self.is_of_backward
    }

    /// The device and the stream that the node runs on, those of its forward function; `None` on the host.
    pub(crate) fn stream(&self) -> Option<(u8, StreamId)> {
        self.stream.get()
    }

    /// Adds a hook of a tensor, which gets the gradient of this input of the node.
    pub(crate) fn add_hook(&self, input: usize, hook: TensorHook) {
        self.hooks.borrow_mut().push((input, hook));
    }

    /// The hooks in the order in which they were added, each with its input.
    pub fn hooks(&self) -> Vec<(usize, TensorHook)> {
        self.hooks.borrow().clone()
    }

    /// The hooks that get the gradients of the node's inputs (`tensor_pre_hooks`): for an accumulator the hooks of
    /// its leaf.
    pub(crate) fn tensor_hooks(&self) -> Vec<(usize, TensorHook)> {
        match &self.body {
            Body::Accumulate(leaf) => leaf.kept_hooks().into_iter().map(|hook| (0, hook)).collect(),
            _ => self.hooks(),
        }
    }

    /// Saves outputs in their places, each with its number.
    pub(super) fn save_late(&self, outputs: Vec<(usize, usize, &Tensor)>) -> Result<()> {
        for (place, number, tensor) in outputs {
            let variable = SavedVariable::new(tensor, Some(number))?;
            if let Body::Function { saved, .. } = &self.body
                && let Some(saved) = saved.borrow_mut().get_mut(place)
            {
                *saved = variable;
            }
        }
        Ok(())
    }

    /// Releases the saved tensors, in the order of the members (`release_variables`).
    pub(crate) fn release_variables(&self) {
        match &self.body {
            Body::Function { saved, .. } => {
                let count = saved.borrow().len();
                for index in 0..count {
                    let released = saved.borrow_mut().get_mut(index).map(|saved| {
                        let next = saved.released();
                        std::mem::replace(saved, next)
                    });
                    drop(released);
                }
            }
            // The vector of a function's saved variables is cleared.
            Body::Custom { saved, .. } => {
                let count = saved.borrow().len();
                for index in 0..count {
                    let released = saved
                        .borrow_mut()
                        .get_mut(index)
                        .map(|saved| std::mem::replace(saved, SavedVariable::Released(None)));
                    drop(released);
                }
            }
            Body::Accumulate(_) => {}
        }
    }
}

/// A function that nobody calls any more.
struct NoCallback;

impl BackwardCallback for NoCallback {
    fn backward(&self, _node: &Node, _grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(Vec::new())
    }
}

/// `deleteNode`: a long graph dies without recursion, and in PyTorch's order. The function and the hooks of the
/// node itself die before the nodes that only this one led to.
impl Drop for Node {
    fn drop(&mut self) {
        let mut stack = Vec::new();
        gather(self, &mut stack);
        if let Body::Custom { callback, .. } = &mut self.body {
            drop(std::mem::replace(callback, Rc::new(NoCallback)));
        }
        drop(self.hooks.take());
        while let Some(node) = stack.pop() {
            gather(&node, &mut stack);
        }
    }
}

fn gather(node: &Node, stack: &mut Vec<Rc<Node>>) {
    node.release_variables();
    for edge in node.edges.take().into_iter().flatten() {
        if Rc::strong_count(&edge.node) == 1 {
            stack.push(edge.node);
        }
    }
    // The members of a C++ object are destroyed last to first.
    if let Body::Function { saved, .. } = &node.body {
        loop {
            let last = saved.borrow_mut().pop();
            if last.is_none() {
                break;
            }
        }
    }
}

fn metadata(tensor: &Tensor) -> InputMetadata {
    InputMetadata { shape: tensor.shape(), dtype: tensor.dtype(), device: tensor.device() }
}

fn stream_of(device: Device) -> Option<(u8, StreamId)> {
    let Device::Cuda(index) = device else { return None };
    session().device(index).ok().map(|device| (index, device.current_stream()))
}
