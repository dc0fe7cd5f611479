//! Elementwise operators of two and three tensors.

mod binary;
mod clamp;
mod masked;
mod power;
mod ternary;

use crate::autograd::{nodes, record};
use crate::error::runtime;
use crate::iterator::{broadcast, common_device, output_strides, result_type};
use crate::registry::{Entry, in_place, op, pairs};
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor};

use super::copy::{self, empty_strided};
use super::creation::{self, wrapped};
use super::host_values::{self, Function};
use super::unary;
use super::views::first;

pub(crate) use binary::{
    BINARY, div, div_in_place, eq, ge, gt, le, logical_and, logical_or, lt, mul, mul_in_place, ne,
};
pub(super) use binary::{Binary, Saves};
use binary::{FMODS, REMAINDERS, div_rounded, div_rounded_in_place, modulo};
pub(crate) use clamp::clamp;
use clamp::{clamp_in_place, clamp_operands};
pub(crate) use masked::{masked_fill, masked_fill_in_place, set_masked, where_};
use power::pow;
pub(super) use power::{ldexp, pow_of_number};
pub(crate) use power::{pow_backward, pow_scalar};
use ternary::{addc, lerp};

/// A new result of an elementwise kernel.
pub(crate) fn elementwise(inputs: &[&Tensor], dtype: Dtype, function: Option<Function>) -> Result<Tensor> {
    let device = common_device(inputs)?;
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape()).collect();
    let shape = broadcast(&shapes.iter().map(|shape| &**shape).collect::<Vec<_>>())?;
    let strides = output_strides(inputs, &shape);
    let output = match super::out::take(&shape, &strides, dtype)? {
        Some(out) => out,
        None => empty_strided(&shape, &strides, dtype, device)?,
    };
    host_values::apply(function, inputs, &output);
    Ok(output)
}

/// Allocates and frees one number for zeros without memory: operators look at the shapes of these first, by
/// such a number.
fn look_at_zeros(inputs: &[&Tensor]) -> Result<()> {
    for input in inputs.iter().filter(|input| input.is_without_memory()) {
        drop(creation::zeros(&[], input.dtype(), input.device())?);
    }
    Ok(())
}

/// Refuses a tensor that must not be changed in place; notes the change otherwise.
pub(crate) fn change_in_place(tensor: &Tensor) -> Result<()> {
    tensor.check_in_place()?;
    tensor.bump_version();
    Ok(())
}

/// `assert_no_internal_overlap`: several elements of the changed tensor may not have one place.
fn refuse_internal_overlap(tensor: &Tensor) -> Result<()> {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    if shape.iter().zip(strides.iter()).any(|(size, stride)| *size > 1 && *stride == 0) {
        return runtime(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
             Please clone() the tensor before performing the operation.",
        );
    }
    Ok(())
}

/// An elementwise kernel that writes into its first input.
pub(crate) fn elementwise_in_place(
    inputs: &[&Tensor],
    dtype: Dtype,
    function: Option<Function>,
) -> Result<()> {
    let Some(output) = inputs.first() else { return Ok(()) };
    common_device(inputs)?;
    refuse_internal_overlap(output)?;
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape()).collect();
    let shape = broadcast(&shapes.iter().map(|shape| &**shape).collect::<Vec<_>>())?;
    if shape != *output.shape() {
        return runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {shape:?}",
            output.shape()
        ));
    }
    let to = output.dtype();
    let loses = (dtype.is_floating() && to.is_integral())
        || (dtype.is_complex() && !to.is_complex())
        || (to == Dtype::Bool && dtype != Dtype::Bool);
    if loses {
        return runtime(format!(
            "result type {} can't be cast to the desired output type {}",
            dtype.scalar_name(),
            to.scalar_name()
        ));
    }
    let values = host_values::compute(function, inputs, output);
    change_in_place(output)?;
    if values.is_some() {
        output.set_values(values.as_deref());
    }
    Ok(())
}

/// The copy that an operator keeps of a tensor before it changes the tensor in place; `None` if the tensor
/// requires no gradient. The copy has a history (`CloneBackward0`), through which a second derivative flows.
pub(in crate::ops) fn kept_for_gradient(tensor: &Tensor) -> Result<Option<Tensor>> {
    if !crate::autograd::GradMode::is_enabled() || !tensor.requires_grad() {
        return Ok(None);
    }
    copy_before(tensor).map(Some)
}

fn copy_before(tensor: &Tensor) -> Result<Tensor> {
    copy::clone(tensor, MemoryFormat::Preserve)
}

/// Which type the result of an operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Promoted,
    /// The promoted type; the default floating-point type where this is an integer.
    Float,
    Bool,
}

/// The type of the result of an operator with this rule.
pub(crate) fn dtype_by(rule: Rule, inputs: &[&Tensor]) -> Dtype {
    let dtype = result_type(inputs);
    match rule {
        Rule::Float if dtype.is_integral() => crate::session().default_dtype(),
        Rule::Promoted | Rule::Float => dtype,
        Rule::Bool => Dtype::Bool,
    }
}

/// `maybe_multiply`: nothing to do for a factor of 1.
pub(crate) fn maybe_multiply(tensor: &Tensor, factor: Scalar) -> Result<Tensor> {
    if factor.to_f64() == Some(1.0) { Ok(tensor.clone()) } else { mul(tensor, &wrapped(factor)) }
}

/// A tensor times a number.
pub(crate) fn scale(tensor: &Tensor, factor: f64) -> Result<Tensor> {
    mul(tensor, &wrapped(Scalar::Float(factor)))
}

/// `add`.
pub(crate) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    add_scaled(a, b, Scalar::Int(1))
}

/// `add(alpha)`: `a + alpha * b`.
pub(crate) fn add_scaled(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(host_values::add);
    look_at_zeros(&[a, b])?;
    let output = elementwise(&[a, b], result_type(&[a, b]), function)?;
    record_add(nodes::AddBackward0, a, b, &output, alpha)?;
    Ok(output)
}

fn record_add(node: &'static str, a: &Tensor, b: &Tensor, output: &Tensor, alpha: Scalar) -> Result<()> {
    record(node, &[a, b], &[output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let other = ctx.gradient(1, || maybe_multiply(grad, alpha))?;
        let input = ctx.wants(0).then(|| grad.clone());
        Ok(vec![input, other])
    })
}

/// `add_`.
pub(crate) fn add_in_place(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    add_scaled_in_place(a, b, Scalar::Int(1))
}

/// `add_(alpha)`.
pub(crate) fn add_scaled_in_place(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(host_values::add);
    // Zeros without memory are read as one number that is repeated (`ZeroTensorFallback`).
    let zero = b.is_without_memory().then(|| creation::zeros(&[], b.dtype(), b.device())).transpose()?;
    elementwise_in_place(&[a, b], result_type(&[a, b]), function)?;
    drop(zero);
    record_add(nodes::AddBackward0, a, b, a, alpha)?;
    Ok(a.clone())
}

/// `sub`.
pub(crate) fn sub(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    sub_scaled(a, b, Scalar::Int(1))
}

fn sub_scaled(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    check_subtraction(a, b)?;
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(host_values::sub);
    let output = elementwise(&[a, b], result_type(&[a, b]), function)?;
    record_sub(a, b, &output, alpha)?;
    Ok(output)
}

fn record_sub(a: &Tensor, b: &Tensor, output: &Tensor, alpha: Scalar) -> Result<()> {
    record(nodes::SubBackward0, &[a, b], &[output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let other = ctx.gradient(1, || maybe_multiply(&unary::neg(grad)?, alpha))?;
        let input = ctx.wants(0).then(|| grad.clone());
        Ok(vec![input, other])
    })
}

/// `sub_check`: masks cannot be subtracted.
fn check_subtraction(a: &Tensor, b: &Tensor) -> Result<()> {
    match (a.dtype(), b.dtype()) {
        (Dtype::Bool, Dtype::Bool) => runtime(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
             operator instead.",
        ),
        (Dtype::Bool, _) | (_, Dtype::Bool) => runtime(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use \
             the `~` or `logical_not()` operator instead.",
        ),
        _ => Ok(()),
    }
}

/// `sub_(alpha)`: `a - alpha * b`.
pub(crate) fn sub_in_place(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    check_subtraction(a, b)?;
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(host_values::sub);
    elementwise_in_place(&[a, b], result_type(&[a, b]), function)?;
    record_sub(a, b, a, alpha)?;
    Ok(a.clone())
}

/// `rsub`: `other - self`.
fn rsub(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    check_subtraction(a, b)?;
    let output = elementwise(
        &[a, b],
        result_type(&[a, b]),
        Some(|v: &[Scalar]| host_values::sub(&[*v.get(1)?, *v.first()?])),
    )?;
    record(nodes::RsubBackward1, &[a, b], &[&output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let other = ctx.wants(1).then(|| grad.clone());
        let input = ctx.gradient(0, || maybe_multiply(&unary::neg(grad)?, alpha))?;
        Ok(vec![input, other])
    })?;
    Ok(output)
}

/// A copy in the result's type, for operators that convert their input before the kernel runs.
fn in_type(tensor: &Tensor, dtype: Dtype) -> Result<Tensor> {
    let _no_grad = crate::autograd::GradModeGuard::new(false);
    copy::to_dtype(tensor, dtype)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("remainder(Operand self, Operand other)", |own: &Tensor, other: &Tensor| {
        modulo(own, other, REMAINDERS, false)
    }),
    op!("remainder_(Tensor self, Operand other)", |own: &Tensor, other: &Tensor| {
        modulo(own, other, REMAINDERS, true)
    }),
    op!("fmod(Operand self, Operand other)", |own: &Tensor, other: &Tensor| modulo(own, other, FMODS, false)),
    op!("fmod_(Tensor self, Operand other)", |own: &Tensor, other: &Tensor| modulo(own, other, FMODS, true)),
    op!("add(Operand self, Operand other, *, Scalar alpha=1)", add_scaled).composed(&[nodes::AddBackward0]),
    op!("add_(Tensor self, Operand other, *, Scalar alpha=1)", add_scaled_in_place),
    op!("sub(Operand self, Operand other, *, Scalar alpha=1)", sub_scaled).composed(&[nodes::SubBackward0]),
    op!("sub_(Tensor self, Operand other, *, Scalar alpha=1)", sub_in_place),
    op!("rsub(Tensor self, Operand other, *, Scalar alpha=1)", rsub),
    op!("div(Operand self, Operand other, *, str? rounding_mode=None)", div_rounded)
        .composed(&[nodes::DivBackward0]),
    op!("div_(Tensor self, Operand other, *, str? rounding_mode=None)", div_rounded_in_place),
    op!("divide(Operand self, Operand other, *, str? rounding_mode=None)", div_rounded),
    op!("true_divide(Operand self, Operand other, *, str? rounding_mode=None)", div_rounded),
    op!("pow(Operand self, Operand exponent)", pow).composed(&[nodes::PowBackward0]),
    in_place!("pow_(Tensor self, Scalar exponent)", super::vector_norm::pow_in_place),
    op!("where(Tensor condition, Operand input, Operand other)", where_).composed(&[nodes::WhereBackward0]),
    op!("masked_fill(Tensor self, Tensor mask, Operand value)", masked_fill),
    op!("masked_fill_(Tensor self, Tensor mask, Operand value)", masked_fill_in_place),
    op!("clamp(Tensor self, Operand? min=None, Operand? max=None)", clamp_operands),
    op!("clip(Tensor self, Operand? min=None, Operand? max=None)", clamp_operands),
    op!("clamp_min(Tensor self, Scalar min)", |tensor: &Tensor, min: Scalar| clamp(tensor, Some(min), None)),
    op!("clamp_max(Tensor self, Scalar max)", |tensor: &Tensor, max: Scalar| clamp(tensor, None, Some(max))),
    op!("clamp_(Tensor self, Scalar? min=None, Scalar? max=None)", clamp_in_place),
    op!("clamp_min_(Tensor self, Scalar min)", |tensor: &Tensor, min: Scalar| {
        clamp_in_place(tensor, Some(min), None)
    }),
    op!("clamp_max_(Tensor self, Scalar max)", |tensor: &Tensor, max: Scalar| {
        clamp_in_place(tensor, None, Some(max))
    }),
];

pub(crate) const PAIRS: &[Entry] = pairs! {
    "addcmul" "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1"
        |own: &Tensor, a: &Tensor, b: &Tensor, value: Scalar| addc(own, a, b, value, false);
    "addcdiv" "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1"
        |own: &Tensor, a: &Tensor, b: &Tensor, value: Scalar| addc(own, a, b, value, true);
    "lerp" "Tensor self, Tensor end, Operand weight"
        |own: &Tensor, end: &Tensor, weight: &Tensor| lerp(own, end, weight);
};
