//! Elementwise functions of two tensors beyond arithmetic: `hypot`, `xlogy`, `copysign` and their like.

use crate::autograd::{Context, GradModeGuard, Gradients, Save, double_backward, nodes, record};
use crate::error::{not_implemented, runtime};
use crate::registry::{Entry, op};
use crate::schema::known_or_unknown;
use crate::{Dtype, Result, Scalar, Tensor, Value};

use super::copy::to_dtype;
use super::creation::{self, wrapped};
use super::kernels::number;
use super::pointwise::{
    self, Binary, Rule, Saves, add, change_in_place, div, eq, gt, le, logical_and, masked_fill,
    masked_fill_in_place, mul, scale, sub, where_,
};
use super::unary;
use super::views::first;

/// The wanted gradients of both operands, the second before the first: C++ evaluates from the right.
fn operand_gradients(
    ctx: &Context<'_>,
    grad_input: impl FnOnce() -> Result<Tensor>,
    to_other: impl FnOnce() -> Result<Tensor>,
) -> Result<Gradients> {
    let to_other = ctx.gradient(1, to_other)?;
    let grad_input = ctx.gradient(0, grad_input)?;
    Ok(vec![grad_input, to_other])
}

static HYPOT: Binary = Binary {
    node: nodes::HypotBackward0,
    rule: Rule::Promoted,
    saves: Saves::EachForItselfAndResult,
    function: None,
    backward: |ctx, grad| {
        let result = ctx.saved(2)?;
        let half = |at: usize| div(&mul(grad, &ctx.saved(at)?)?, &result);
        operand_gradients(ctx, || half(1), || half(0))
    },
};

static LOGADDEXP: Binary = Binary {
    node: nodes::LogaddexpBackward0,
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| {
        let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
        // grad / (1 + exp(a - b))
        let half = |a: &Tensor, b: &Tensor| -> Result<Tensor> {
            div(grad, &add(&unary::exp(&sub(a, b)?)?, &wrapped(Scalar::Int(1)))?)
        };
        operand_gradients(ctx, || half(&other, &own), || half(&own, &other))
    },
};

static LOGADDEXP2: Binary = Binary {
    node: nodes::Logaddexp2Backward0,
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| {
        let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
        let half = |a: &Tensor, b: &Tensor| -> Result<Tensor> {
            let difference = sub(a, b)?;
            let power = pointwise::pow_of_number(&wrapped(Scalar::Int(2)), &difference)?;
            div(grad, &add(&power, &wrapped(Scalar::Int(1)))?)
        };
        operand_gradients(ctx, || half(&other, &own), || half(&own, &other))
    },
};

/// `copysign_tensor_self_backward`.
fn copysign_backward(grad: &Tensor, input: &Tensor, result: &Tensor) -> Result<Tensor> {
    let ratio = div(result, input)?;
    masked_fill_in_place(&ratio, &eq(input, &wrapped(Scalar::Int(0)))?, &wrapped(Scalar::Int(0)))?;
    mul(grad, &ratio)
}

static COPYSIGN: Binary = Binary {
    node: nodes::CopysignBackward0,
    rule: Rule::Float,
    saves: Saves::OwnForItselfAndResult,
    function: None,
    backward: |ctx, grad| {
        // `zeros_like(other)`: its shape is known without keeping it.
        let zeros = || {
            let shape = ctx.input_shape(1).unwrap_or_else(|| grad.shape());
            creation::zeros(&shape, grad.dtype(), grad.device())
        };
        operand_gradients(ctx, || copysign_backward(grad, &ctx.saved(0)?, &ctx.saved(1)?), zeros)
    },
};

/// `product.masked_fill((self == 0) & (other <= least), 0)`: where the first operand is 0, the product is 0
/// for any logarithm.
fn without_zeros(product: &Tensor, input: &Tensor, other: &Tensor, least: f64) -> Result<Tensor> {
    let right = le(other, &number(least))?;
    let left = eq(input, &number(0.0))?;
    let is_zero = logical_and(&left, &right)?;
    masked_fill(product, &is_zero, &wrapped(Scalar::Int(0)))
}

static XLOGY: Binary = Binary {
    node: nodes::XlogyBackward0,
    rule: Rule::Float,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| {
        let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
        let to_own = || without_zeros(&XLOGY.call(grad, &other)?, &own, &other, 0.0);
        operand_gradients(ctx, to_own, || div(&mul(grad, &own)?, &other))
    },
};

static XLOG1PY: Binary = Binary {
    node: nodes::SpecialXlog1PyBackward0,
    rule: Rule::Float,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| {
        let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
        let to_own = || without_zeros(&XLOG1PY.call(grad, &other)?, &own, &other, -1.0);
        let to_other = || {
            let right = add(&other, &wrapped(Scalar::Int(1)))?;
            div(&mul(grad, &own)?, &right)
        };
        operand_gradients(ctx, to_own, to_other)
    },
};

/// An operator that PyTorch does not differentiate: its node exists, and fails when it is reached.
macro_rules! without_derivative {
    ($($constant:ident $error:ident $message:literal;)*) => {
        $(static $constant: Binary = Binary {
            node: "NotImplemented",
            rule: Rule::Promoted,
            saves: Saves::Nothing,
            function: None,
            backward: |_, _| -> Result<Gradients> { $error($message) },
        };)*
    };
}

without_derivative! {
    HEAVISIDE runtime "derivative for aten::heaviside is not implemented";
    NEXTAFTER not_implemented "the derivative for 'nextafter' is not implemented.";
}

/// `xlogy` and `special_xlog1py`; a number in the place of one of the two has a separate node.
fn xlog(
    input: &Tensor,
    other: &Tensor,
    kind: &'static Binary,
    least: f64,
    nodes: [&'static str; 2],
) -> Result<Value> {
    if input.is_wrapped_number() {
        let output =
            pointwise::elementwise(&[input, other], pointwise::dtype_by(kind.rule, &[input, other]), None)?;
        let own = input.clone();
        record(nodes[0], &[other], &[&output], &[Save::Input(Some(other))], move |ctx, grads| {
            let other = ctx.saved(0)?;
            let divisor = if least < 0.0 { add(&other, &wrapped(Scalar::Int(1)))? } else { other };
            Ok(vec![Some(div(&mul(first(grads)?, &own)?, &divisor)?)])
        })?;
        return Ok(output.into());
    }
    if other.is_wrapped_number() {
        let output =
            pointwise::elementwise(&[input, other], pointwise::dtype_by(kind.rule, &[input, other]), None)?;
        let other = other.clone();
        record(nodes[1], &[input], &[&output], &[Save::Input(Some(input))], move |ctx, grads| {
            let is_above = known_or_unknown(&other).to_f64().is_some_and(|other| other > least);
            double_backward::set_variant(if is_above { "above" } else { "not above" });
            let product = kind.call(first(grads)?, &other)?;
            if is_above {
                return Ok(vec![Some(product)]);
            }
            let is_zero = eq(&ctx.saved(0)?, &number(0.0))?;
            Ok(vec![Some(masked_fill(&product, &is_zero, &wrapped(Scalar::Int(0)))?)])
        })?;
        return Ok(output.into());
    }
    Ok(kind.call(input, other)?.into())
}

/// `copysign`; a number in the place of the second operand gets no gradient.
fn copysign(input: &Tensor, other: &Tensor) -> Result<Value> {
    if !other.is_wrapped_number() {
        return Ok(COPYSIGN.call(input, other)?.into());
    }
    let output =
        pointwise::elementwise(&[input, other], pointwise::dtype_by(Rule::Float, &[input, other]), None)?;
    let saved = [Save::Input(Some(input)), Save::Output(0)];
    record(nodes::CopysignBackward1, &[input], &[&output], &saved, |ctx, grads| {
        Ok(vec![Some(copysign_backward(first(grads)?, &ctx.saved(0)?, &ctx.saved(1)?)?)])
    })?;
    Ok(output.into())
}

/// `dist`: a norm of the difference, with one node for both.
fn dist(input: &Tensor, other: &Tensor, order: f64) -> Result<Value> {
    let cast = crate::autocast::Cast::full(input.device());
    // C++ evaluates arguments from the last to the first.
    let other = cast.apply(other)?;
    let input = cast.apply(input)?;
    let output = {
        let _no_grad = GradModeGuard::new(false);
        super::reduce::vector_norm(&sub(&input, &other)?, order, None, false, None)?
    };
    let saved = [Save::Input(Some(&other)), Save::Input(Some(&input)), Save::Output(0)];
    record(nodes::DistBackward0, &[&input, &other], &[&output], &saved, move |ctx, grads| {
        let (grad, other, input, norm) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
        let half = |negates: bool| -> Result<Option<Tensor>> {
            if order == 0.0 {
                // The derivative is undefined, which `neg` refuses.
                return if negates {
                    runtime(
                        "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #0 'self'",
                    )
                } else {
                    Ok(None)
                };
            }
            let difference = sub(&input, &other)?;
            let dims: Vec<i64> = (0..difference.dim() as i64).collect();
            let half = super::vector_norm::backward(grad, &difference, &norm, order, &dims)?;
            let half = if negates { unary::neg(&half)? } else { half };
            Ok(Some(half))
        };
        let to_other = if ctx.wants(1) { half(true)? } else { None };
        let grad_input = if ctx.wants(0) { half(false)? } else { None };
        Ok(vec![grad_input, to_other])
    })?;
    Ok(output.into())
}

/// `__iand__` and `__ior__` of masks: they need no memory.
fn combine_in_place(mask: &Tensor) -> Result<()> {
    change_in_place(mask)?;
    mask.set_values(None);
    Ok(())
}

/// `isclose`, composed of operators.
fn isclose(input: &Tensor, other: &Tensor, relative: f64, absolute: f64, equal_nan: bool) -> Result<Tensor> {
    if input.dtype() != other.dtype() {
        return runtime(format!(
            "{} did not match {}",
            input.dtype().scalar_name(),
            other.dtype().scalar_name()
        ));
    }
    for (name, tolerance) in [("rtol", relative), ("atol", absolute)] {
        if tolerance < 0.0 {
            return runtime(format!("{name} must be greater than or equal to zero, but got {tolerance}"));
        }
    }
    let close = eq(input, other)?;
    if equal_nan && input.dtype().is_floating() {
        let is_nan = pointwise::ne(input, input)?;
        let is_other_nan = pointwise::ne(other, other)?;
        combine_in_place(&is_nan)?;
        drop(is_other_nan);
        combine_in_place(&close)?;
    }
    if relative == 0.0 && absolute == 0.0 {
        return Ok(close);
    }
    let default = crate::session().default_dtype();
    let cast_input = if input.dtype() == Dtype::Bool { to_dtype(input, default)? } else { input.clone() };
    let cast_other = if other.dtype().is_integral() { to_dtype(other, default)? } else { other.clone() };
    let allowed = add(&unary::abs(&scale(&cast_other, relative)?)?, &number(absolute))?;
    let actual = unary::abs(&sub(&cast_input, &cast_other)?)?;
    {
        let is_finite = unary::isfinite(&actual)?;
        let _is_within = le(&actual, &allowed)?;
        combine_in_place(&is_finite)?;
        combine_in_place(&close)?;
    }
    drop(actual);
    drop(allowed);
    drop(cast_other);
    drop(cast_input);
    Ok(close)
}

/// Whether all elements are close: a number, which is read from the GPU.
fn allclose(input: &Tensor, other: &Tensor, relative: f64, absolute: f64, equal_nan: bool) -> Result<Value> {
    let close = isclose(input, other, relative, absolute, equal_nan)?;
    let all = crate::call("all", &[close.into()], &[])?;
    crate::call("item", &[all], &[])
}

/// `polygamma`: the derivative of that order of `digamma`.
pub(crate) fn polygamma(order: i64, input: &Tensor) -> Result<Tensor> {
    if order < 0 {
        return runtime("polygamma(n, x) does not support negative n.");
    }
    let output = pointwise::elementwise(&[input], pointwise::dtype_by(Rule::Float, &[input]), None)?;
    record(
        nodes::PolygammaBackward0,
        &[input],
        &[&output],
        &[Save::Input(Some(input))],
        move |ctx, grads| {
            Ok(vec![Some(mul(first(grads)?, &polygamma(order.saturating_add(1), &ctx.saved(0)?)?)?)])
        },
    )?;
    Ok(output)
}

/// `special_i1`, which is the derivative of `i0`.
fn i1(input: &Tensor) -> Result<Tensor> {
    let output = pointwise::elementwise(&[input], pointwise::dtype_by(Rule::Float, &[input]), None)?;
    let saved = [Save::Input(Some(input)), Save::Output(0)];
    record(nodes::SpecialI1Backward0, &[input], &[&output], &saved, |ctx, grads| {
        let (input, result) = (ctx.saved(0)?, ctx.saved(1)?);
        // The formula divides by the input, so that near 0 the derivative is a half.
        let is_not_tiny = gt(&unary::abs(&input)?, &number(f64::EPSILON))?;
        let safe = {
            let tiny = creation::full(&[], Scalar::Float(f64::EPSILON), input.dtype(), input.device())?;
            where_(&is_not_tiny, &input, &tiny)?
        };
        let slope = {
            let reciprocal = unary::reciprocal(&safe)?;
            let right = mul(&result, &reciprocal)?;
            let left = crate::call("i0", &[(&safe).into()], &[])?.tensor()?;
            sub(&left, &right)?
        };
        let half = creation::full(&[], Scalar::Float(0.5), input.dtype(), input.device())?;
        let chosen = where_(&is_not_tiny, &slope, &half)?;
        Ok(vec![Some(mul(first(grads)?, &chosen)?)])
    })?;
    Ok(output)
}

/// `angle` of real numbers: 0 or pi, whose derivative is zeros.
fn angle(input: &Tensor) -> Result<Tensor> {
    let output = pointwise::elementwise(&[input], pointwise::dtype_by(Rule::Float, &[input]), None)?;
    record(nodes::AngleBackward0, &[input], &[&output], &[Save::Input(Some(input))], |ctx, _| {
        Ok(vec![Some(creation::zeros_like(&ctx.saved(0)?)?)])
    })?;
    Ok(output)
}

/// `frexp`: mantissas, and exponents of 32 bits.
fn frexp(input: &Tensor) -> Result<Value> {
    let mantissa = creation::empty_like(input)?;
    let exponent = creation::empty_like_as(input, Dtype::I32, crate::MemoryFormat::Preserve)?;
    let saved = [Save::Input(Some(&exponent))];
    record(nodes::FrexpBackward0, &[input], &[&mantissa, &exponent], &saved, |ctx, grads| {
        let power = crate::call("exp2", &[ctx.saved(0)?.into()], &[])?.tensor()?;
        Ok(vec![Some(div(first(grads)?, &power)?)])
    })?;
    Ok((mantissa, exponent).into())
}

/// `gcd` and `lcm`: kernels over integers.
fn of_integers(input: &Tensor, other: &Tensor, in_place: bool) -> Result<Value> {
    let dtype = pointwise::dtype_by(Rule::Promoted, &[input, other]);
    if !dtype.is_integral() {
        return runtime(format!("\"gcd_cuda\" not implemented for '{}'", dtype.scalar_name()));
    }
    if in_place {
        pointwise::elementwise_in_place(&[input, other], dtype, None)?;
        return Ok(input.into());
    }
    Ok(pointwise::elementwise(&[input, other], dtype, None)?.into())
}

/// The gradients of `fmax` and `fmin`: each element's gradient goes to the operand that was chosen.
fn chosen(
    ctx: &Context<'_>,
    grad: &Tensor,
    compare: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Gradients> {
    let (other, input) = (ctx.saved(0)?, ctx.saved(1)?);
    // Both masks live to the end of the statement.
    let masks = || -> Result<(Tensor, Tensor)> {
        let chosen = compare(&input, &other)?;
        let is_nan = crate::call("isnan", &[(&other).into()], &[])?.tensor()?;
        Ok((crate::call("logical_or_", &[chosen.into(), (&is_nan).into()], &[])?.tensor()?, is_nan))
    };
    let zero = wrapped(Scalar::Int(0));
    operand_gradients(
        ctx,
        || {
            let (mask, is_nan) = masks()?;
            let mask = crate::call("logical_not_", &[mask.into()], &[])?.tensor()?;
            let result = masked_fill(grad, &mask, &zero)?;
            drop(is_nan);
            drop(mask);
            Ok(result)
        },
        || {
            let (mask, _is_nan) = masks()?;
            masked_fill(grad, &mask, &zero)
        },
    )
}

static FMAX: Binary = Binary {
    node: nodes::FmaxBackward0,
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| chosen(ctx, grad, pointwise::ge),
};

static FMIN: Binary = Binary {
    node: nodes::FminBackward0,
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| chosen(ctx, grad, le),
};

/// `logit_backward`, which is composed of operators where it may be differentiated again.
fn logit_backward(grad: &Tensor, input: &Tensor, eps: Option<f64>) -> Result<Tensor> {
    if !crate::autograd::GradMode::is_enabled() {
        return super::kernels::run_kernel(grad, input);
    }
    double_backward::set_variant(if eps.is_some() { "eps" } else { "no eps" });
    let low = eps.unwrap_or(0.0);
    let outside = creation::zeros(&[], input.dtype(), input.device())?;
    let slope = {
        let product = mul(input, &super::kernels::one_minus(input)?)?;
        div(grad, &product)?
    };
    let is_within = {
        let below = le(input, &number(1.0 - low))?;
        let above = pointwise::ge(input, &number(low))?;
        logical_and(&above, &below)?
    };
    pointwise::where_(&is_within, &slope, &outside)
}

fn logit(input: &Tensor, eps: Option<f64>, in_place: bool) -> Result<Value> {
    let (output, saved) = if in_place {
        let saved = pointwise::kept_for_gradient(input)?;
        pointwise::elementwise_in_place(&[input], input.dtype(), None)?;
        (input.clone(), saved)
    } else {
        (pointwise::elementwise(&[input], pointwise::dtype_by(Rule::Float, &[input]), None)?, None)
    };
    let kept = saved.as_ref().unwrap_or(input);
    record(nodes::LogitBackward0, &[input], &[&output], &[Save::Input(Some(kept))], move |ctx, grads| {
        Ok(vec![Some(logit_backward(first(grads)?, &ctx.saved(0)?, eps)?)])
    })?;
    Ok(output.into())
}

macro_rules! two_tensors {
    ($($name:literal $kind:ident $($attribute:ident $node:ident)?),* $(,)?) => {
        &[$(
            op!(concat!($name, "(Tensor self, Tensor other)"), |own: &Tensor, other: &Tensor| {
                $kind.call(own, other)
            })$(.$attribute(&[nodes::$node]))?,
            op!(concat!($name, "_(Tensor self, Tensor other)"), |own: &Tensor, other: &Tensor| {
                $kind.call_in_place(own, other)
            }),
        )*]
    };
}

/// The special functions of two tensors, each with its variant in place.
pub(crate) const OF_TWO: &[Entry] = two_tensors! {
    "hypot" HYPOT composed HypotBackward0, "logaddexp" LOGADDEXP composed LogaddexpBackward0,
    "logaddexp2" LOGADDEXP2, "heaviside" HEAVISIDE, "nextafter" NEXTAFTER,
};

pub(crate) const TABLE: &[Entry] = &[
    op!("polygamma(int n, Tensor self)", polygamma),
    op!("special_i1(Tensor self)", i1),
    op!("angle(Tensor self)", angle),
    op!("frexp(Tensor self)", frexp),
    op!("gcd(Tensor self, Operand other)", |own: &Tensor, other: &Tensor| of_integers(own, other, false)),
    op!("lcm(Tensor self, Operand other)", |own: &Tensor, other: &Tensor| of_integers(own, other, false)),
    op!("gcd_(Tensor self, Operand other)", |own: &Tensor, other: &Tensor| of_integers(own, other, true)),
    op!("lcm_(Tensor self, Operand other)", |own: &Tensor, other: &Tensor| of_integers(own, other, true)),
    op!("isneginf(Tensor self)", |tensor: &Tensor| pointwise::elementwise(&[tensor], Dtype::Bool, None)),
    op!("isposinf(Tensor self)", |tensor: &Tensor| pointwise::elementwise(&[tensor], Dtype::Bool, None)),
    op!("fmax(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| FMAX.call(tensor, other)),
    op!("fmin(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| FMIN.call(tensor, other)),
    op!("xlogy(Operand self, Operand other)", |own: &Tensor, other: &Tensor| {
        xlog(own, other, &XLOGY, 0.0, [nodes::XlogyBackward1, nodes::XlogyBackward2])
    }),
    op!("xlogy_(Tensor self, Operand other)", |tensor: &Tensor, other: &Tensor| {
        XLOGY.call_in_place(tensor, other)
    }),
    op!("special_xlog1py(Operand self, Operand other)", |own: &Tensor, other: &Tensor| {
        xlog(own, other, &XLOG1PY, -1.0, [nodes::SpecialXlog1PyBackward1, nodes::SpecialXlog1PyBackward2])
    }),
    op!("copysign(Tensor self, Operand other)", copysign),
    op!("copysign_(Tensor self, Operand other)", |tensor: &Tensor, other: &Tensor| {
        COPYSIGN.call_in_place(tensor, other)
    }),
    op!("ldexp(Tensor self, Operand other)", pointwise::ldexp),
    op!("dist(Tensor self, Tensor other, Scalar p=2)", dist),
    op!(
        "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)",
        isclose
    ),
    op!(
        "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)",
        allclose,
    ),
    op!("logit(Tensor self, float? eps=None)", |own: &Tensor, eps: Option<f64>| logit(own, eps, false)),
    op!("logit_(Tensor self, float? eps=None)", |own: &Tensor, eps: Option<f64>| logit(own, eps, true)),
    op!("signbit(Tensor self)", |tensor: &Tensor| pointwise::elementwise(&[tensor], Dtype::Bool, None)),
];
