//! Automatic differentiation: nodes, what they save, and the engine that runs them backward.

mod accumulate;
pub(crate) mod double_backward;
mod engine;
mod node;
pub(crate) mod nodes;
mod ready;
mod record;
mod saved;
mod variable;
pub(crate) mod view;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

pub use engine::{backward, grad, root_gradients};
pub use node::{BackwardCallback, Edge, Gradients, Node, SavedValue};
pub use nodes::missing_nodes;
pub use record::apply_custom;
pub use saved::{GRAPH_RELEASED, SavedTensorHooks};
pub use variable::{AutogradMeta, HookCallback, TensorHook};

pub(crate) use node::Context;
pub(crate) use record::{EarlyInputs, Save, needs_history, record, record_after, save_early};
#[cfg(test)]
pub(crate) use saved::DERIVATIVES;

use crate::session;
use crate::session::Thread;

/// Flags that decide what operators note for the backward pass.
pub struct Modes {
    is_grad_enabled: Cell<bool>,
    is_inference: Cell<bool>,
    next_number: Cell<u64>,
    /// The next sequence number of each thread. PyTorch counts in each thread separately, so a node that the
    /// backward pass makes may have a lower number than an older node of the forward pass.
    next_sequences: RefCell<Vec<(Thread, u64)>>,
    saved_hooks: RefCell<Vec<Rc<dyn SavedTensorHooks>>>,
    /// The number of the backward pass that runs, and that of the next one.
    graph_task: Cell<(Option<u64>, u64)>,
    /// Whether no backward pass that runs is for the gradients of given tensors alone.
    is_checkpoint_valid: Cell<bool>,
    /// Whether a backward function of PyTorch runs: the nodes that operators make then belong to a second
    /// derivative.
    is_in_formula: Cell<bool>,
    /// The branch that the running backward function took, as [`double_backward::variant`] names it.
    variant: RefCell<String>,
    /// The signatures of all second derivatives so far.
    second_derivatives: RefCell<BTreeSet<String>>,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            is_grad_enabled: Cell::new(true),
            is_inference: Cell::new(false),
            next_number: Cell::new(0),
            next_sequences: RefCell::default(),
            saved_hooks: RefCell::default(),
            graph_task: Cell::default(),
            is_checkpoint_valid: Cell::new(true),
            is_in_formula: Cell::new(false),
            variant: RefCell::default(),
            second_derivatives: RefCell::default(),
        }
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modes").field("is_grad_enabled", &self.is_grad_enabled).finish_non_exhaustive()
    }
}

/// The gradient mode: `torch.is_grad_enabled`, and `torch.set_grad_enabled`.
#[derive(Clone, Copy, Debug)]
pub struct GradMode;

impl GradMode {
    /// Whether operators note what the backward pass needs.
    pub fn is_enabled() -> bool {
        session().modes.is_grad_enabled.get()
    }

    /// Switches the gradient mode; returns the mode before.
    #[expect(clippy::must_use_candidate, reason = "a setter gives back what was before")]
    pub fn set(is_enabled: bool) -> bool {
        session().modes.is_grad_enabled.replace(is_enabled)
    }

    /// Whether `torch.inference_mode` is on.
    pub fn is_inference() -> bool {
        session().modes.is_inference.get()
    }

    /// Switches inference mode; returns whether the mode was on before. The caller also switches the gradient
    /// mode.
    #[expect(clippy::must_use_candidate, reason = "a setter gives back what was before")]
    pub fn set_inference(is_inference: bool) -> bool {
        session().modes.is_inference.replace(is_inference)
    }
}

/// Sets the gradient mode until the guard is dropped, which sets the mode before again.
#[derive(Debug)]
pub struct GradModeGuard {
    before: bool,
}

impl GradModeGuard {
    /// Sets the gradient mode, until the guard is dropped.
    #[must_use]
    pub fn new(is_enabled: bool) -> Self {
        Self { before: GradMode::set(is_enabled) }
    }
}

impl Drop for GradModeGuard {
    fn drop(&mut self) {
        GradMode::set(self.before);
    }
}

/// The number of the backward pass that runs (`_current_graph_task_id`); `None` outside of one.
pub fn current_graph_task() -> Option<u64> {
    session().modes.graph_task.get().0
}

/// Whether the reentrant checkpoint may run backward (`_is_checkpoint_valid`): no backward pass that runs is for
/// the gradients of given tensors alone.
pub fn is_checkpoint_valid() -> bool {
    session().modes.is_checkpoint_valid.get()
}

/// Does the work without gradients.
pub(crate) fn without_grad<T>(work: impl FnOnce() -> T) -> T {
    let _no_grad = GradModeGuard::new(false);
    work()
}

/// Whether a backward function of PyTorch runs now.
pub(crate) fn is_in_formula() -> bool {
    session().modes.is_in_formula.get()
}

/// The signatures of the backward functions that took part in a second derivative, in alphabetical order.
pub fn second_derivatives() -> Vec<String> {
    session().modes.second_derivatives.borrow().iter().cloned().collect()
}

/// `torch.autograd.graph.saved_tensors_hooks.__enter__`.
pub fn push_saved_tensor_hooks(hooks: Rc<dyn SavedTensorHooks>) {
    session().modes.saved_hooks.borrow_mut().push(hooks);
}

/// `torch.autograd.graph.saved_tensors_hooks.__exit__`.
#[expect(clippy::must_use_candidate, reason = "a setter gives back what was before")]
pub fn pop_saved_tensor_hooks() -> Option<Rc<dyn SavedTensorHooks>> {
    session().modes.saved_hooks.borrow_mut().pop()
}

/// The number of a new node among all nodes, in the order in which nodes are made.
pub(crate) fn next_number() -> u64 {
    let session = session();
    session.modes.next_number.replace(session.modes.next_number.get() + 1)
}

/// The number of a new node among the nodes that the same thread makes (`sequence_nr`).
pub(crate) fn next_sequence() -> u64 {
    let session = session();
    let thread = session.thread();
    let mut sequences = session.modes.next_sequences.borrow_mut();
    if let Some((_, next)) = sequences.iter_mut().find(|(other, _)| *other == thread) {
        *next += 1;
        return *next - 1;
    }
    sequences.push((thread, 1));
    0
}

/// The innermost hooks for saved tensors; `None` without hooks.
pub(crate) fn saved_tensor_hooks() -> Option<Rc<dyn SavedTensorHooks>> {
    session().modes.saved_hooks.borrow().last().cloned()
}
