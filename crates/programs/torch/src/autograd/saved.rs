//! Saved tensors, with the hooks that may pack them.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use super::{GradModeGuard, Node, saved_tensor_hooks};
use crate::error::runtime;
use crate::memory::Category;
use crate::{Result, Tensor};

/// A pair of `pack` and `unpack` (`torch.autograd.graph.saved_tensors_hooks`).
pub trait SavedTensorHooks {
    /// Called when an operator saves a tensor; the node keeps the returned value in the tensor's place.
    ///
    /// # Errors
    ///
    /// Whatever the callback fails with.
    fn pack(&self, tensor: &Tensor) -> Result<Rc<dyn Any>>;
    /// Called when the backward pass needs the tensor.
    ///
    /// # Errors
    ///
    /// Whatever the callback fails with.
    fn unpack(&self, packed: &Rc<dyn Any>) -> Result<Tensor>;
}

/// A tensor that a node keeps for the backward pass.
pub(crate) enum SavedVariable {
    /// The operator had no tensor to save here.
    Nothing,
    Kept {
        tensor: Tensor,
        version: u32,
        /// An output holds its node, so only its memory is kept.
        output: Option<usize>,
    },
    Packed {
        packed: Rc<dyn Any>,
        hooks: Rc<dyn SavedTensorHooks>,
        requires_grad: bool,
        output: Option<usize>,
        /// The graph that leads to an input: the packed value need not keep it alive.
        history: Option<(Rc<Node>, usize)>,
    },
    /// The tensor was released. The accumulator of a leaf that hooks packed lives as long as the node.
    Released(Option<Rc<Node>>),
}

impl fmt::Debug for SavedVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Kept { tensor, .. } => write!(f, "Kept({tensor:?})"),
            Self::Packed { .. } => f.write_str("Packed"),
            Self::Released(_) => f.write_str("Released"),
        }
    }
}

/// PyTorch's text where a released tensor is asked for.
pub const GRAPH_RELEASED: &str = "Trying to backward through the graph a second time (or directly access saved tensors after they \
     have already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
     autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need \
     to access saved tensors after calling backward.";

/// What PyTorch's operators save, as `scripts/derivatives.py` writes it.
pub(crate) const DERIVATIVES: &str = include_str!("derivatives.txt");

/// The members of a node that keep saved tensors, in their order; none for nodes that are not in PyTorch's
/// list, or save another number.
pub(crate) fn members(node: &str, count: usize) -> Vec<&'static str> {
    let mut lines = DERIVATIVES.lines().map(|line| line.split(' '));
    let found = lines.find_map(|mut words| (words.next() == Some(node)).then(|| words.collect::<Vec<_>>()));
    found.filter(|members| members.len() == count).unwrap_or_default()
}

impl SavedVariable {
    /// The variable after its tensor was released (`reset_data`).
    pub(crate) fn released(&self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Packed { history: Some((node, _)), .. } if node.is_accumulator() => {
                Self::Released(Some(Rc::clone(node)))
            }
            Self::Released(kept) => Self::Released(kept.clone()),
            _ => Self::Released(None),
        }
    }

    /// Saves a tensor: packed where the program has set `saved_tensors_hooks`, unless the tensor is a wrapped
    /// number. `output` is the tensor's number among the node's outputs; `None` for an input.
    pub(crate) fn new(tensor: &Tensor, output: Option<usize>) -> Result<Self> {
        if tensor.is_inference() {
            return runtime(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in \
                 computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use \
                 it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
            );
        }
        if let Some(hooks) = saved_tensor_hooks().filter(|_| !tensor.is_wrapped_number()) {
            let _no_grad = GradModeGuard::new(false);
            let packed = hooks.pack(tensor)?;
            let history = match output {
                Some(_) => None,
                None => tensor.gradient_edge().map(|edge| (edge.node, edge.input)),
            };
            return Ok(Self::Packed {
                packed,
                hooks,
                requires_grad: tensor.requires_grad(),
                output,
                history,
            });
        }
        let storage = tensor.storage();
        if storage.category() == Category::Temporary {
            storage.set_category(Category::Activation);
        }
        let kept = if output.is_some() { tensor.shallow_copy() } else { tensor.clone() };
        Ok(Self::Kept { tensor: kept, version: tensor.version(), output })
    }

    /// Whether the tensor has a history, or would need a gradient.
    pub(crate) fn has_history(&self) -> bool {
        match self {
            Self::Nothing | Self::Released(_) => false,
            Self::Kept { tensor, output, .. } => output.is_some() || tensor.requires_grad(),
            Self::Packed { requires_grad, output, .. } => output.is_some() || *requires_grad,
        }
    }

    /// The tensor; `None` where the operator had no tensor to save.
    pub(crate) fn unpack(&self, node: &Rc<Node>) -> Result<Option<Tensor>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Released(_) => runtime(GRAPH_RELEASED),
            Self::Kept { tensor, version, output } => {
                if tensor.version() != *version {
                    return runtime(changed_in_place(tensor, *version, node.name()));
                }
                let Some(number) = output else { return Ok(Some(tensor.clone())) };
                let copy = tensor.shallow_copy();
                copy.set_history(node, *number);
                Ok(Some(copy))
            }
            Self::Packed { packed, hooks, requires_grad, output, history } => {
                let tensor = hooks.unpack(packed)?;
                let copy = tensor.shallow_copy();
                match (output, history) {
                    (Some(number), _) => copy.set_history(node, *number),
                    (None, Some((node, number))) if !node.is_accumulator() => copy.set_history(node, *number),
                    // The gradient flows to the leaf that was saved.
                    (None, Some((accumulator, _))) => {
                        copy.set_requires_grad(true)?;
                        copy.autograd().borrow_mut().accumulator = Rc::downgrade(accumulator);
                    }
                    _ if *requires_grad => copy.set_requires_grad(true)?,
                    _ => {}
                }
                Ok(Some(copy))
            }
        }
    }
}

fn changed_in_place(tensor: &Tensor, version: u32, node: &str) -> String {
    let kind = if tensor.device().is_cuda() { "torch.cuda." } else { "torch." };
    let shape: Vec<String> = tensor.shape().iter().map(ToString::to_string).collect();
    let grad_fn = tensor.grad_fn().map_or_else(
        || format!(", which is output 0 of {node},"),
        |function| format!(", which is output {} of {},", tensor.output_number(), function.name()),
    );
    format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [{kind}{}Tensor [{}]]{grad_fn} is at version {}; expected version {version} instead. Hint: enable anomaly \
         detection to find the operation that failed to compute its gradient, with \
         torch.autograd.set_detect_anomaly(True, check_nan=False).",
        tensor.dtype().scalar_name(),
        shape.join(", "),
        tensor.version(),
    )
}
