//! The backward function of vector norms of any order (`norm_backward`).

use crate::autograd::{Save, double_backward, nodes, record};
use crate::{Result, Scalar, Tensor};

use super::creation::{wrapped, zeros_like};
use super::pointwise::{
    div, elementwise_in_place, eq, masked_fill_in_place, mul, ne, pow_backward, pow_scalar,
};
use super::reduce::sum;
use super::unary;
use super::views::first;

fn zero() -> Tensor {
    wrapped(Scalar::Int(0))
}

/// `pow_`: the base is copied first where its gradient needs it.
pub(super) fn pow_in_place(tensor: &Tensor, exponent: f64) -> Result<()> {
    let original = super::pointwise::kept_for_gradient(tensor)?;
    elementwise_in_place(&[tensor], tensor.dtype(), None)?;
    let saved = [Save::Input(Some(original.as_ref().unwrap_or(tensor)))];
    record(nodes::PowBackward0, &[tensor], &[tensor], &saved, move |ctx, grads| {
        Ok(vec![Some(pow_backward(first(grads)?, &ctx.saved(0)?, exponent)?)])
    })
}

fn fill_where_zero(tensor: &Tensor, tested: &Tensor) -> Result<()> {
    let is_zero = eq(tested, &zero())?;
    masked_fill_in_place(tensor, &is_zero, &zero())?;
    Ok(())
}

/// The gradient of the input. `grad` and `norm` have all dimensions of the input.
///
/// Each order has its statements in PyTorch; C++ evaluates the right operand first, temporaries live to the
/// end of a statement.
pub(super) fn backward(
    grad: &Tensor,
    input: &Tensor,
    norm: &Tensor,
    order: f64,
    dims: &[i64],
) -> Result<Tensor> {
    double_backward::set_variant(match order {
        0.0 => "order 0",
        1.0 => "order 1",
        2.0 => "order 2",
        order if order.is_infinite() => "order inf",
        order if order < 1.0 => "order below 1",
        order if order < 2.0 => "order below 2",
        _ => "order above 2",
    });
    if order == 0.0 {
        return zeros_like(input);
    }
    if (order - 1.0).abs() < f64::EPSILON {
        return mul(&unary::sgn(input)?, grad);
    }
    if (order - 2.0).abs() < f64::EPSILON {
        // grad * (self / norm).masked_fill_(norm == 0, 0): the mask is a temporary of the product's
        // expression.
        let ratio = div(input, norm)?;
        let mask = eq(norm, &zero())?;
        masked_fill_in_place(&ratio, &mask, &zero())?;
        return mul(grad, &ratio);
    }
    if order.is_infinite() {
        return of_the_greatest(grad, input, norm, dims);
    }
    if order < 1.0 {
        let scaled = {
            let power = unary::abs(input)?;
            pow_in_place(&power, order - 1.0)?;
            let is_zero = eq(input, &zero())?;
            masked_fill_in_place(&power, &is_zero, &zero())?;
            let sign = unary::sgn(input)?;
            mul(&sign, &power)?
        };
        let right = pow_scalar(norm, Scalar::Float(1.0 - order))?;
        let left = mul(&scaled, grad)?;
        return mul(&left, &right);
    }
    let scaled = if order < 2.0 {
        let power = unary::abs(input)?;
        pow_in_place(&power, order - 1.0)?;
        let sign = unary::sgn(input)?;
        mul(&sign, &power)?
    } else {
        let power = unary::abs(input)?;
        pow_in_place(&power, order - 2.0)?;
        mul(input, &power)?
    };
    let share = {
        let power = pow_scalar(norm, Scalar::Float(order - 1.0))?;
        div(grad, &power)?
    };
    fill_where_zero(&share, norm)?;
    mul(&scaled, &share)
}

/// `self.sgn() * ((grad / mask.sum(dim, true)) * mask)`, where the mask has the greatest elements.
fn of_the_greatest(grad: &Tensor, input: &Tensor, norm: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let absolute = unary::abs(input)?;
    let mask = {
        let is_greatest = eq(&absolute, norm)?;
        let is_nan = ne(&absolute, &absolute)?;
        super::pointwise::logical_or(&is_greatest, &is_nan)?
    };
    let count = sum(&mask, Some(dims), true, None)?;
    let share = div(grad, &count)?;
    let right = mul(&share, &mask)?;
    let sign = unary::sgn(input)?;
    mul(&sign, &right)
}
