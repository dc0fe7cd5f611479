//! Kernels of backward passes, and the derivatives of these kernels.
//!
//! With `create_graph=True` a backward function is differentiated again. Where PyTorch composes the function
//! of operators, these operators record their nodes as in the forward pass. Where the function is one kernel,
//! the kernel's derivative has a separate formula: this module has the formulas of elementwise kernels. C++
//! evaluates the right operand first, temporaries live to the end of the expression, and named values to the
//! end of the function.

use crate::autograd::{GradMode, Gradients, Save, double_backward, nodes, record};
use crate::{Result, Scalar, Tensor};

use super::copy::to_dtype;
use super::creation::{empty_like, wrapped, zeros_like};
use super::pointwise::{add, div, div_in_place, elementwise, lt, mul, pow_scalar, scale, sub, sub_in_place};
use super::unary;
use super::views::first;

/// A kernel of the gradient and of what the operator saved: `tanh_backward` and its like.
pub(crate) fn run_kernel(grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    elementwise(&[grad, saved], crate::iterator::result_type(&[grad, saved]), None)
}

/// A Python number as a tensor.
pub(crate) fn number(value: f64) -> Tensor {
    wrapped(Scalar::Float(value))
}

/// `1 - tensor`, as C++ writes it: a new tensor of ones, from which the other is subtracted in place.
pub(crate) fn one_minus(tensor: &Tensor) -> Result<Tensor> {
    let ones = empty_like(tensor)?;
    sub_in_place(&ones, tensor, Scalar::Int(1))
}

/// `1 / tensor`, as C++ writes it: a new tensor of ones, which is divided in place.
pub(super) fn one_over(tensor: &Tensor) -> Result<Tensor> {
    let ones = empty_like(tensor)?;
    div_in_place(&ones, tensor)
}

type KernelFunction = fn(&Tensor, &Tensor) -> Result<Tensor>;
/// A derivative by the saved tensor, from the gradient of the kernel's result, the gradient that went into
/// the kernel, and the saved tensor.
type Formula = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

/// Runs a kernel and records its node: the derivative by the gradient is the same kernel, and the derivative
/// by the saved tensor is the formula.
fn kernel_with(
    node: &'static str,
    grad: &Tensor,
    saved: &Tensor,
    kernel: KernelFunction,
    formula: Formula,
) -> Result<Tensor> {
    kernel_into(node, run_kernel(grad, saved)?, grad, saved, kernel, formula)
}

/// [`kernel_with`] for a kernel whose result is allocated before the kernel is called.
fn kernel_into(
    node: &'static str,
    output: Tensor,
    grad: &Tensor,
    saved: &Tensor,
    kernel: KernelFunction,
    formula: Formula,
) -> Result<Tensor> {
    let saves = [Save::Input(Some(grad)), Save::Input(Some(saved))];
    record(node, &[grad, saved], &[&output], &saves, move |ctx, grads| -> Result<Gradients> {
        let (grad_grad, grad, saved) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let to_grad = ctx.gradient(0, || kernel(grad_grad, &saved))?;
        let to_saved = ctx.gradient(1, || formula(grad_grad, &grad, &saved))?;
        Ok(vec![to_grad, to_saved])
    })?;
    Ok(output)
}

/// `threshold_backward`, `leaky_relu_backward` and all others that let a gradient pass or not: the derivative
/// of what was saved is zeros.
pub(crate) fn gate(grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    gate_named(nodes::ThresholdBackwardBackward0, Order::SavedFirst, grad, saved)
}

/// The gates of `hardshrink` and `softshrink`.
pub(crate) fn gate_of_shrink(grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    gate_named(nodes::ThresholdBackwardBackward0, Order::GradFirst, grad, saved)
}

/// `leaky_relu_backward`.
pub(crate) fn gate_of_leaky_relu(grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    gate_named(nodes::LeakyReluBackwardBackward0, Order::SavedFirst, grad, saved)
}

/// `hardtanh_backward`.
pub(crate) fn gate_of_hardtanh(grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    gate_named(nodes::HardtanhBackwardBackward0, Order::GradFirst, grad, saved)
}

/// Which of its two operands a kernel's iterator has first: the result has the strides of this operand.
#[derive(Clone, Copy)]
enum Order {
    GradFirst,
    SavedFirst,
}

fn gate_named(node: &'static str, order: Order, grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    let output = match order {
        Order::GradFirst => run_kernel(grad, saved)?,
        Order::SavedFirst => run_kernel(saved, grad)?,
    };
    let saves = [Save::Input(Some(saved))];
    record(node, &[grad, saved], &[&output], &saves, move |ctx, grads| {
        let (grad_grad, saved) = (first(grads)?, ctx.saved(0)?);
        let to_grad = ctx.gradient(0, || gate_named(node, order, grad_grad, &saved))?;
        let to_saved = ctx.gradient(1, || zeros_like(grad_grad))?;
        Ok(vec![to_grad, to_saved])
    })?;
    Ok(output)
}

/// `hardsigmoid_backward`, which PyTorch does not differentiate.
pub(crate) fn hardsigmoid(grad: &Tensor, saved: &Tensor) -> Result<Tensor> {
    let output = run_kernel(grad, saved)?;
    record("NotImplemented", &[grad, saved], &[&output], &[], |_, _| {
        crate::error::not_implemented("derivative for aten::hardsigmoid_backward is not implemented")
    })?;
    Ok(output)
}

/// `tanh_backward`: `grad * (-2 * output * grad_output)`.
pub(crate) fn tanh(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::TanhBackwardBackward0, grad, result, tanh, |grad_grad, grad, result| {
        let doubled = scale(result, -2.0)?;
        let product = mul(&doubled, grad)?;
        mul(grad_grad, &product)
    })
}

/// `sigmoid_backward`: `grad * grad_output * (-2 * output + 1)`.
pub(crate) fn sigmoid(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::SigmoidBackwardBackward0, grad, result, sigmoid, |grad_grad, grad, result| {
        let doubled = scale(result, -2.0)?;
        let right = add(&doubled, &number(1.0))?;
        let left = mul(grad_grad, grad)?;
        mul(&left, &right)
    })
}

/// `softplus_backward`: `sigmoid_backward(grad, x.sigmoid()) * (x < threshold).type_as(grad) * beta`, with
/// `x = input * beta`.
pub(crate) fn softplus(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::SoftplusBackwardBackward0, grad, input, softplus, |grad_grad, grad, input| {
        let product = mul(grad_grad, grad)?;
        let x = scale(input, 1.0)?;
        let mask = lt(&x, &number(20.0))?;
        let right = to_dtype(&mask, product.dtype())?;
        let squashed = unary::sigmoid(&x)?;
        let left = sigmoid(&product, &squashed)?;
        let both = mul(&left, &right)?;
        scale(&both, 1.0)
    })
}

/// `log_sigmoid_backward`: `grad * (z - 1) * z`, with `z = input.sigmoid()`. Its result is like the gradient,
/// whatever the order of the input.
pub(crate) fn log_sigmoid(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    let node = nodes::LogSigmoidBackwardBackward0;
    kernel_into(node, empty_like(grad)?, grad, input, log_sigmoid, |grad_grad, grad, input| {
        let product = mul(grad_grad, grad)?;
        let z = unary::sigmoid(input)?;
        let less = sub(&z, &number(1.0))?;
        let left = mul(&product, &less)?;
        mul(&left, &z)
    })
}

/// `elu_backward` from the input: itself of `grad * grad_output * input_scale`, where the input is negative.
pub(crate) fn elu(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::EluBackwardBackward0, grad, input, elu, |grad_grad, grad, input| {
        let mask = lt(input, &number(0.0))?;
        let right = to_dtype(&mask, grad_grad.dtype())?;
        let product = mul(grad_grad, grad)?;
        let scaled = scale(&product, 1.0)?;
        let left = elu(&scaled, input)?;
        mul(&left, &right)
    })
}

/// `elu_backward` from the result, as the operator in place has it.
pub(crate) fn elu_of_result(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::EluBackwardBackward0, grad, result, elu_of_result, |grad_grad, grad, result| {
        let mask = lt(result, &number(0.0))?;
        let right = to_dtype(&mask, grad_grad.dtype())?;
        let product = mul(grad_grad, grad)?;
        let left = scale(&product, 1.0)?;
        mul(&left, &right)
    })
}

/// `hardswish_backward`: `where(-3 < self and self < 3, grad * grad_output / 3, 0)`.
pub(crate) fn hardswish(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::HardswishBackwardBackward0, grad, input, hardswish, |grad_grad, grad, input| {
        let zero = super::creation::zeros(&[], input.dtype(), input.device())?;
        let product = mul(grad_grad, grad)?;
        let third = div(&product, &number(3.0))?;
        let below = lt(input, &number(3.0))?;
        let above = super::pointwise::gt(input, &number(-3.0))?;
        let within = super::pointwise::logical_and(&above, &below)?;
        super::pointwise::where_(&within, &third, &zero)
    })
}

/// `gelu_backward`: the exact one, by the normal distribution.
pub(crate) fn gelu(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    kernel_with(nodes::GeluBackwardBackward0, grad, input, gelu, |grad_grad, grad, input| {
        let squared = mul(input, input)?;
        let density = {
            let exponent = scale(&squared, -0.5)?;
            let power = unary::exp(&exponent)?;
            scale(&power, 0.4)?
        };
        let slope = {
            let right = mul(&squared, &density)?;
            let left = scale(&density, 2.0)?;
            sub(&left, &right)?
        };
        let left = mul(grad_grad, grad)?;
        mul(&left, &slope)
    })
}

/// `gelu_backward` with `approximate="tanh"`.
pub(crate) fn gelu_tanh(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    double_backward::set_variant("tanh");
    kernel_with(nodes::GeluBackwardBackward0, grad, input, gelu_tanh, |further, grad, input| {
        double_backward::set_variant("tanh");
        let factor = 0.8;
        let inner = {
            let cube = pow_scalar(input, Scalar::Int(3))?;
            let scaled = scale(&cube, factor)?;
            let sum = add(input, &scaled)?;
            scale(&sum, factor)?
        };
        let tanh_inner = unary::tanh(&inner)?;
        let sech_inner = {
            let cosh = unary::cosh(&inner)?;
            one_over(&cosh)?
        };
        let f = scale(input, 0.5)?;
        let g = {
            let squared = mul(&tanh_inner, &tanh_inner)?;
            one_minus(&squared)?
        };
        let h = {
            let scaled = scale(input, factor)?;
            let squared = mul(&scaled, input)?;
            let sum = add(&squared, &number(1.0))?;
            scale(&sum, factor)?
        };
        let f_prime_gh = {
            let half = scale(&g, 0.5)?;
            mul(&half, &h)?
        };
        let g_prime = {
            let negative = unary::neg(&sech_inner)?;
            let right = mul(&negative, &tanh_inner)?;
            let left = scale(&sech_inner, 2.0)?;
            let both = mul(&left, &right)?;
            mul(&both, &h)?
        };
        let g_prime_fh = {
            let both = mul(&f, &h)?;
            mul(&both, &g_prime)?
        };
        let h_prime = {
            let scaled = scale(input, factor)?;
            scale(&scaled, factor)?
        };
        let h_prime_fg = {
            let both = mul(&f, &g)?;
            mul(&both, &h_prime)?
        };
        let doubled = scale(&f_prime_gh, 2.0)?;
        let two = add(&doubled, &g_prime_fh)?;
        let right = add(&two, &h_prime_fg)?;
        let left = mul(further, grad)?;
        mul(&left, &right)
    })
}

/// `silu_backward`, or where it is differentiated again `grad * sigmoid * (1 + input * (1 - sigmoid))`.
pub(crate) fn silu(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    if !GradMode::is_enabled() {
        return run_kernel(grad, input);
    }
    let sigmoid = unary::sigmoid(input)?;
    let rest = one_minus(&sigmoid)?;
    let product = mul(input, &rest)?;
    let right = add(&product, &number(1.0))?;
    let left = mul(grad, &sigmoid)?;
    mul(&left, &right)
}

/// `mish_backward`, or where it is differentiated again
/// `grad * (tanh_softplus + input * sigmoid * (1 - tanh_softplus * tanh_softplus))`.
pub(crate) fn mish(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    if !GradMode::is_enabled() {
        return run_kernel(grad, input);
    }
    let sigmoid = unary::sigmoid(input)?;
    let softplus = {
        let power = unary::exp(input)?;
        unary::log1p(&power)?
    };
    let squashed = unary::tanh(&softplus)?;
    let squared = mul(&squashed, &squashed)?;
    let rest = one_minus(&squared)?;
    let left = mul(input, &sigmoid)?;
    let product = mul(&left, &rest)?;
    let sum = add(&squashed, &product)?;
    mul(grad, &sum)
}

/// `sgn_backward` of real numbers: zeros without memory (`_efficientzerotensor`).
pub(crate) fn no_slope(grad: &Tensor, _: &Tensor) -> Result<Tensor> {
    Tensor::zeros_without_memory(&grad.shape(), grad.dtype(), grad.device())
}

/// Notes that `result` was made of `grad` by a kernel that is linear in it, such as one that adds rows up by
/// their indices: the derivative is the operator of the forward pass. `own` is an input of that operator on
/// whose values nothing depends, and whose derivative is zeros.
pub(crate) fn record_linear(
    node: &'static str,
    grad: &Tensor,
    input: Option<&Tensor>,
    saved: &[&Tensor],
    result: &Tensor,
    forward: impl Fn(&Tensor, &[Tensor]) -> Result<Tensor> + 'static,
) -> Result<()> {
    let mut inputs = vec![grad];
    inputs.extend(input);
    let count = saved.len();
    let saves: Vec<Save<'_>> = saved.iter().map(|tensor| Save::Input(Some(tensor))).collect();
    record(node, &inputs, &[result], &saves, move |ctx, grads| -> Result<Gradients> {
        let grad_grad = first(grads)?;
        let saved = (0..count).map(|index| ctx.saved(index)).collect::<Result<Vec<_>>>()?;
        let to_grad = ctx.gradient(0, || forward(grad_grad, &saved))?;
        // The gradient of the result has the shape of that input.
        let grad_input = ctx.gradient(1, || zeros_like(grad_grad))?;
        Ok(vec![to_grad, grad_input])
    })
}
