//! How operators make nodes: what they save, before their kernel or after it, and where their results' histories
//! begin.

use std::cell::RefCell;
use std::rc::Rc;

use super::node::{BackwardCallback, Body, Context, Gradients, Node};
use super::saved::SavedVariable;
use super::variable::ViewCreation;
use super::{GradMode, next_number, next_sequence, saved_tensor_hooks, view};
use crate::{Device, Dtype, Result, Tensor, session};

/// A tensor that an operator saves. A list of these has the order in which the node releases them.
pub(crate) enum Save<'a> {
    /// An input, or nothing where the input was left out.
    Input(Option<&'a Tensor>),
    /// An input, only if the condition holds.
    InputIf(bool, &'a Tensor),
    /// Output number `.0`.
    Output(usize),
}

/// Whether an operator with these inputs gets a node: gradients are enabled, and an input requires one.
pub(crate) fn needs_history(inputs: &[&Tensor]) -> bool {
    GradMode::is_enabled() && inputs.iter().any(|input| input.requires_grad())
}

/// Inputs that were saved before the kernel ran, as PyTorch saves them: a hook that fails stops the operator
/// before its kernel.
#[derive(Default)]
pub(crate) struct EarlyInputs(Vec<Option<SavedVariable>>);

/// Saves inputs before the kernel runs. Without hooks for saved tensors the order makes no difference, and
/// nothing is saved yet.
pub(crate) fn save_early(inputs: &[&Tensor], saved: &[Save<'_>]) -> Result<EarlyInputs> {
    if saved_tensor_hooks().is_none() || !needs_history(inputs) {
        return Ok(EarlyInputs::default());
    }
    let early = saved.iter().map(|save| match save {
        Save::Input(Some(tensor)) | Save::InputIf(true, tensor) => SavedVariable::new(tensor, None).map(Some),
        _ => Ok(None),
    });
    Ok(EarlyInputs(early.collect::<Result<_>>()?))
}

/// Notes an operator for the backward pass, if one of its inputs requires a gradient.
///
/// `backward` gives a gradient for each of `inputs`. For an operator that works in place, `outputs` are the
/// changed tensors.
pub(crate) fn record(
    name: &'static str,
    inputs: &[&Tensor],
    outputs: &[&Tensor],
    saved: &[Save<'_>],
    backward: impl Fn(&Context<'_>, &[Option<Tensor>]) -> Result<Gradients> + 'static,
) -> Result<()> {
    record_after(EarlyInputs::default(), name, inputs, outputs, saved, backward)
}

/// [`record`] for an operator that saved inputs before its kernel ran.
pub(crate) fn record_after(
    early: EarlyInputs,
    name: &'static str,
    inputs: &[&Tensor],
    outputs: &[&Tensor],
    saved: &[Save<'_>],
    backward: impl Fn(&Context<'_>, &[Option<Tensor>]) -> Result<Gradients> + 'static,
) -> Result<()> {
    if !needs_history(inputs) {
        return Ok(());
    }
    let mut early = early.0.into_iter();
    let mut kept = Vec::with_capacity(saved.len());
    // A hook gets an output that has its history.
    let mut late = Vec::new();
    let has_hooks = saved_tensor_hooks().is_some();
    for (place, save) in saved.iter().enumerate() {
        if let Some(variable) = early.next().flatten() {
            kept.push(variable);
            continue;
        }
        kept.push(match save {
            Save::Input(Some(tensor)) | Save::InputIf(true, tensor) => {
                // A tensor that was just changed in place is an output, too.
                let output = outputs.iter().position(|output| output.is_same(tensor));
                match output {
                    Some(number) if has_hooks => {
                        late.push((place, number, *tensor));
                        SavedVariable::Nothing
                    }
                    _ => SavedVariable::new(tensor, output).inspect_err(|_stopped| {
                        session().note_estimate(
                            name,
                            "a hook stops this operator before its kernel in PyTorch, and after it here",
                        );
                    })?,
                }
            }
            Save::Input(None) | Save::InputIf(false, _) => SavedVariable::Nothing,
            Save::Output(number) => match outputs.get(*number) {
                Some(tensor) if has_hooks => {
                    late.push((place, *number, *tensor));
                    SavedVariable::Nothing
                }
                Some(tensor) => SavedVariable::new(tensor, Some(*number))?,
                None => SavedVariable::Nothing,
            },
        });
    }
    if let (Some(changed), [output]) = (inputs.first(), outputs)
        && changed.is_same(output)
        && let Some(base) = output.base()
    {
        // The operator's own function takes a number, too: it runs as a part of that of the base.
        next_number();
        next_sequence();
        let body = Body::function(kept, view::copy_slices(&base, output, backward));
        let inputs: Vec<&Tensor> = std::iter::once(&base).chain(inputs.iter().skip(1).copied()).collect();
        let node = Node::new("CopySlices", &inputs, &[&base], body);
        view::rebase(&base, output, &node);
        return node.save_late(late);
    }
    let node = Node::new(name, inputs, outputs, Body::function(kept, backward));
    for (number, output) in outputs.iter().enumerate() {
        if output.dtype().is_differentiable() {
            output.set_history(&node, number);
        }
    }
    node.save_late(late)
}

/// Notes a `torch.autograd.Function`: those of the `outputs` that are differentiable get `callback` as their
/// backward function, which gets a gradient of each output. The node keeps what the function saved.
///
/// # Errors
///
/// Whatever a hook that packs a saved tensor fails with.
pub fn apply_custom(
    name: &'static str,
    inputs: &[&Tensor],
    outputs: &[(Option<&Tensor>, bool)],
    saved: &[Option<Tensor>],
    callback: Rc<dyn BackwardCallback>,
) -> Result<Option<Rc<Node>>> {
    if !needs_history(inputs) {
        return Ok(None);
    }
    // An output that is not a tensor has the place of a tensor that no gradient reaches.
    let nothing = Tensor::zeros_without_memory(&[0], Dtype::F32, Device::Cpu)?;
    let tensors: Vec<&Tensor> = outputs.iter().map(|(output, _)| output.unwrap_or(&nothing)).collect();
    let node = Node::new(name, inputs, &tensors, Body::Custom { saved: RefCell::default(), callback });
    for (number, (output, is_differentiable)) in outputs.iter().enumerate() {
        if let Some(output) = output.filter(|output| *is_differentiable && output.dtype().is_differentiable())
        {
            output.set_history(&node, number);
            if output.is_view() {
                output.autograd().borrow_mut().creation = ViewCreation::CustomFunction;
            }
        }
    }
    // A hook may run operators and look at the node.
    for tensor in saved {
        let variable = match tensor {
            Some(tensor) => {
                let is_output = tensor.grad_fn().is_some_and(|function| Rc::ptr_eq(&function, &node));
                SavedVariable::new(tensor, is_output.then(|| tensor.output_number()))?
            }
            None => SavedVariable::Nothing,
        };
        if let Body::Custom { saved, .. } = &node.body {
            saved.borrow_mut().push(variable);
        }
    }
    Ok(Some(node))
}
