//! What autograd keeps of a tensor: gradient, hooks, place in the graph.

use std::any::Any;
use std::fmt;
use std::rc::{Rc, Weak};

use super::GradMode;
use super::node::{Edge, Node};
use crate::error::runtime;
use crate::memory::Category;
use crate::{MemoryFormat, Result, Tensor};

/// A hook of a tensor. A function that takes the gradient is a hook, which is not called without one.
pub trait HookCallback {
    /// `Tensor.register_hook`: gets the gradient and may return another one in its place. As in PyTorch
    /// (`PyFunctionTensorPreHook`) it is also called where no gradient arrived, with `None`.
    /// `Tensor.register_post_accumulate_grad_hook`: gets the leaf; what is returned does not count.
    ///
    /// # Errors
    ///
    /// Whatever the hook fails with.
    fn call(&self, tensor: Option<&Tensor>) -> Result<Option<Tensor>>;
    /// The hook as the caller's own type, which the caller finds again in a tensor; `None` where nobody looks
    /// for the type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

impl<F: Fn(&Tensor) -> Result<Option<Tensor>>> HookCallback for F {
    fn call(&self, tensor: Option<&Tensor>) -> Result<Option<Tensor>> {
        tensor.map_or(Ok(None), self)
    }
}

/// A hook that a tensor or a node keeps.
pub type TensorHook = Rc<dyn HookCallback>;

/// A tensor's part in the graph. Fields are dropped in order, which is that of PyTorch: members of a C++ object
/// are destroyed last to first.
#[derive(Default)]
pub struct AutogradMeta {
    /// The tensor that a view is a view of.
    pub(crate) base: Option<Tensor>,
    pub(crate) post_hooks: Vec<TensorHook>,
    pub(crate) hooks: Vec<TensorHook>,
    /// The `AccumulateGrad` of a leaf, which lives as long as a graph leads to it.
    pub(crate) accumulator: Weak<Node>,
    /// The gradient function; `None` for a leaf.
    pub(crate) grad_fn: Option<Rc<Node>>,
    pub(crate) grad: Option<Tensor>,
    pub(crate) requires_grad: bool,
    /// Which output of the gradient function the tensor is.
    pub(crate) output_number: usize,
    pub(crate) retains_grad: bool,
    /// The version of the memory for which a view's history holds.
    pub(crate) view_version: u32,
    pub(crate) creation: ViewCreation,
}

/// How a view was made (`CreationMeta`), which decides whether it may be changed in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ViewCreation {
    #[default]
    Plain,
    /// Without gradients.
    NoGrad,
    /// By a `torch.autograd.Function`.
    CustomFunction,
}

impl fmt::Debug for AutogradMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutogradMeta").field("requires_grad", &self.requires_grad).finish_non_exhaustive()
    }
}

impl Tensor {
    /// Whether operators on the tensor get nodes for the backward pass (`requires_grad`). A view requires a
    /// gradient as its base does, also a view that was made without gradients and has no history.
    pub fn requires_grad(&self) -> bool {
        let meta = self.autograd().borrow();
        meta.requires_grad || meta.grad_fn.is_some() || meta.base.as_ref().is_some_and(Self::requires_grad)
    }

    /// Whether the tensor has no gradient function: no operator of the graph made the tensor.
    pub fn is_leaf(&self) -> bool {
        self.autograd().borrow().grad_fn.is_none()
    }

    /// Whether the tensor is a view of another tensor.
    pub fn is_view(&self) -> bool {
        self.autograd().borrow().base.is_some()
    }

    /// The tensor that this one is a view of (`_base`); `None` for a tensor that is not a view.
    pub fn base(&self) -> Option<Tensor> {
        self.autograd().borrow().base.clone()
    }

    /// Makes the tensor a view of `base`.
    pub(crate) fn set_base(&self, base: &Tensor) {
        let base = base.base().unwrap_or_else(|| base.clone());
        let mut meta = self.autograd().borrow_mut();
        meta.base = Some(base);
        meta.view_version = self.version();
        meta.creation = if GradMode::is_enabled() { ViewCreation::Plain } else { ViewCreation::NoGrad };
    }

    /// Which output of its gradient function the tensor is, counted from 0.
    pub fn output_number(&self) -> usize {
        self.autograd().borrow().output_number
    }

    /// `requires_grad_`.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) for types without gradients, and for a tensor that
    /// is not a leaf.
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        if requires_grad && !self.dtype().is_differentiable() {
            return runtime("only Tensors of floating point dtype can require gradients");
        }
        if requires_grad && self.is_inference() && !GradMode::is_inference() {
            return runtime(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
            );
        }
        if !self.is_leaf() {
            if requires_grad {
                return Ok(());
            }
            return runtime(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
                 subgraph that doesn't require differentiation use var_no_grad = var.detach().",
            );
        }
        self.autograd().borrow_mut().requires_grad = requires_grad;
        Ok(())
    }

    /// `.grad`.
    pub fn grad(&self) -> Option<Tensor> {
        self.autograd().borrow().grad.clone()
    }

    /// Sets `.grad`. The gradient before is dropped here, which frees its memory if it has no other owner.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        if let Some(grad) = &grad {
            grad.storage().set_category(Category::Gradient);
        }
        let old = std::mem::replace(&mut self.autograd().borrow_mut().grad, grad);
        drop(old);
    }

    /// `retain_grad`: keeps the gradient of a tensor that is not a leaf.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) for a tensor that requires no gradient.
    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            return runtime("can't retain_grad on Tensor that has requires_grad=False");
        }
        let Some(node) = self.grad_fn() else { return Ok(()) };
        if std::mem::replace(&mut self.autograd().borrow_mut().retains_grad, true) {
            return Ok(());
        }
        let weak = self.downgrade();
        let hook: TensorHook = Rc::new(move |grad: &Self| {
            let Some(tensor) = Self::upgrade(&weak) else { return Ok(None) };
            let kept = match tensor.grad() {
                None => crate::ops::copy::clone(grad, MemoryFormat::Contiguous)?,
                Some(before) => crate::ops::pointwise::add(&before, grad)?,
            };
            tensor.set_grad(Some(kept));
            Ok(None)
        });
        node.add_hook(self.output_number(), hook);
        Ok(())
    }

    /// `register_hook`.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) for a tensor that requires no gradient.
    pub fn register_hook(&self, hook: TensorHook) -> Result<()> {
        if !self.requires_grad() {
            return runtime("cannot register a hook on a tensor that doesn't require gradient");
        }
        match self.grad_fn() {
            Some(node) => node.add_hook(self.output_number(), hook),
            None => self.autograd().borrow_mut().hooks.push(hook),
        }
        Ok(())
    }

    /// `register_post_accumulate_grad_hook`.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) for a tensor that is not a leaf, or requires no
    /// gradient.
    pub fn register_post_accumulate_grad_hook(&self, hook: TensorHook) -> Result<()> {
        if !self.requires_grad() {
            return runtime("cannot register a hook on a tensor that doesn't require gradient");
        }
        if !self.is_leaf() {
            return runtime("post accumulate grad hooks cannot be registered on non-leaf tensors");
        }
        self.autograd().borrow_mut().post_hooks.push(hook);
        Ok(())
    }

    /// The hooks of a leaf, which the tensor itself keeps. The hooks of another tensor are its node's. Without
    /// those that get the leaf after its gradient was added up.
    pub fn kept_hooks(&self) -> Vec<TensorHook> {
        self.autograd().borrow().hooks.clone()
    }

    /// `detach`: the same memory without history.
    #[must_use]
    pub fn detach(&self) -> Tensor {
        self.shallow_copy()
    }

    /// `detach_`.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) for a view.
    pub fn detach_in_place(&self) -> Result<()> {
        if self.is_view() {
            return runtime(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for \
                 training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence \
                 detach_() cannot be called on these gradients. To fix this error, please refer to the \
                 Optimizer.zero_grad() function in torch/optim/optimizer.py as a reference.",
            );
        }
        let mut meta = self.autograd().borrow_mut();
        meta.requires_grad = false;
        meta.output_number = 0;
        let node = meta.grad_fn.take();
        drop(meta);
        drop(node);
        Ok(())
    }

    /// Gives the tensor a gradient function, of which the tensor is output number `output`.
    pub(crate) fn set_history(&self, node: &Rc<Node>, output: usize) {
        let mut meta = self.autograd().borrow_mut();
        meta.output_number = output;
        let old = meta.grad_fn.replace(Rc::clone(node));
        drop(meta);
        drop(old);
    }

    /// Where the tensor's gradient flows to: its gradient function, or the accumulator of a leaf. `None` for
    /// a tensor that requires no gradient.
    pub fn gradient_edge(&self) -> Option<Edge> {
        if let Some(node) = self.grad_fn() {
            return Some(Edge { node, input: self.output_number() });
        }
        // A view may require no gradient although its base does.
        if !self.autograd().borrow().requires_grad {
            return None;
        }
        let existing = self.autograd().borrow().accumulator.upgrade();
        let node = existing.unwrap_or_else(|| {
            let node = Node::accumulator(self);
            self.autograd().borrow_mut().accumulator = Rc::downgrade(&node);
            node
        });
        Some(Edge { node, input: 0 })
    }

    /// Refuses a change of a view whose history cannot be written again (`handle_view_on_rebase`).
    fn refuse_rebase(&self) -> Result<()> {
        let creation = self.autograd().borrow().creation;
        let subject = match self.grad_fn_as_it_stands() {
            Some(node) => format!(
                "Output {} of {} is a view and is being modified inplace.",
                self.output_number(),
                node.name()
            ),
            None => {
                "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
                    .to_owned()
            }
        };
        match creation {
            ViewCreation::Plain => Ok(()),
            ViewCreation::NoGrad => runtime(format!(
                "{subject} Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code \
                 by moving both the view and the inplace either both inside the no_grad block (if you don't want the inplace \
                 to be tracked) or both outside (if you want the inplace to be tracked)."
            )),
            ViewCreation::CustomFunction => runtime(format!(
                "{subject} This view was created inside a custom Function (or because an input was returned as-is) and the \
                 autograd logic to handle view+inplace would override the custom backward associated with the custom \
                 Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output \
                 of the custom Function."
            )),
        }
    }

    /// Refuses what PyTorch refuses before it changes a tensor in place (`check_inplace`).
    pub(crate) fn check_in_place(&self) -> Result<()> {
        if !GradMode::is_enabled() || !self.requires_grad() {
            return Ok(());
        }
        self.refuse_rebase()?;
        if self.is_leaf() {
            if let Some(base) = self.base() {
                if base.requires_grad() && base.is_leaf() {
                    return runtime(
                        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
                    );
                }
                return Ok(());
            }
            return runtime("a leaf Variable that requires grad is being used in an in-place operation.");
        }
        if let Some(base) = self.base().filter(Tensor::requires_grad).filter(Tensor::is_leaf) {
            let _ = base;
            return runtime(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            );
        }
        Ok(())
    }
}
