//! What the engine checks of gradients.

use crate::autograd::nodes;
use std::rc::Rc;

use crate::error::runtime;
use crate::ops::{copy, reduce};
use crate::{Result, Tensor, TorchError};

use super::super::node::{Body, Gradients, Node};

/// Backward functions that give zeros for any gradient: no history of the incoming gradient can be lost.
const CONSTANT: &[&str] = &[
    nodes::BernoulliBackward0,
    nodes::CeilBackward0,
    "CopyBackwards",
    nodes::CopysignBackward0,
    nodes::DivBackward2,
    nodes::DivBackward3,
    nodes::FillBackward2,
    nodes::FloorBackward0,
    nodes::PowBackward0,
    nodes::RoundBackward0,
    nodes::RoundBackward1,
    nodes::SignBackward0,
    nodes::TruncBackward0,
    nodes::ZeroBackward0,
];

/// Refuses a second derivative that would silently stop. With `create_graph` a gradient has a history where
/// the tensors that it was computed from have one, saved tensors too. A backward function that is a separate
/// kernel gives no history here.
pub(super) fn refuse_lost_history(node: &Node, inputs: &Gradients, outputs: &Gradients) -> Result<()> {
    let depends = inputs.iter().flatten().any(Tensor::requires_grad) || node.saves_history();
    let is_lost = |output: &Tensor| output.dtype().is_differentiable() && !output.requires_grad();
    if depends
        && !CONSTANT.contains(&node.name())
        && matches!(node.body, Body::Function { .. })
        && outputs.iter().flatten().any(is_lost)
    {
        return crate::error::not_implemented(format!(
            "second derivatives through {} are not modeled (create_graph=True)",
            node.name()
        ));
    }
    Ok(())
}

/// Brings a gradient to the shape and type that the node expects, or returns PyTorch's error
/// (`validate_outputs`).
pub(super) fn validate(node: &Rc<Node>, input: usize, grad: &mut Tensor) -> Result<()> {
    let Some(expected) = node.inputs.borrow().get(input).cloned() else { return Ok(()) };
    if grad.shape() != expected.shape {
        if !is_expandable(&expected.shape, &grad.shape()) {
            return runtime(format!(
                "Function {} returned an invalid gradient at index {input} - got {:?} but expected shape compatible \
                 with {:?}",
                node.name(),
                grad.shape(),
                expected.shape
            ));
        }
        *grad = reduce::sum_to(grad, &expected.shape)?;
    }
    if grad.dtype() != expected.dtype && grad.dtype().is_differentiable() {
        *grad = copy::to_dtype(grad, expected.dtype)?;
    }
    if grad.device() != expected.device {
        if grad.dim() != 0 {
            return Err(TorchError::Runtime(format!(
                "Function {} returned an invalid gradient at index {input} - expected device {} but got {}",
                node.name(),
                expected.device,
                grad.device()
            )));
        }
        *grad = copy::to_device(grad, expected.device, false)?;
    }
    Ok(())
}

fn is_expandable(from: &[i64], to: &[i64]) -> bool {
    from.len() <= to.len()
        && from.iter().rev().zip(to.iter().rev()).all(|(size, target)| *size == 1 || size == target)
}
