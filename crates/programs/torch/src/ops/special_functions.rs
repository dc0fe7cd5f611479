//! `torch.special`: functions of Bessel, polynomials, incomplete gammas and their like, each one kernel over
//! the elements.

use std::f64::consts::PI;

use crate::autograd::{Context, Save, nodes, record};
use crate::error::{not_implemented, runtime};
use crate::registry::{Entry, in_place, op};
use crate::{Dtype, Result, Scalar, Tensor, Value};

use super::creation::{self, wrapped};
use super::kernels::number;
use super::pointwise::{self, Binary, Rule, Saves, add, div, gt, mul, scale, sub, where_};
use super::unary;
use super::views::first;

/// A new result of floating type.
fn float_kernel(inputs: &[&Tensor]) -> Result<Tensor> {
    pointwise::elementwise(inputs, pointwise::dtype_by(Rule::Float, inputs), None)
}

/// A function that saves its input and its result.
struct OfBoth {
    node: &'static str,
    keeps_input: bool,
    /// The gradient of the input, from the gradient of the result, the input and the result.
    backward: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
}

impl OfBoth {
    fn call(&'static self, input: &Tensor) -> Result<Tensor> {
        let output = float_kernel(&[input])?;
        let saved = [Save::Input(Some(input)), Save::Output(0)];
        let saved = saved.get(usize::from(!self.keeps_input)..).unwrap_or_default();
        record(self.node, &[input], &[&output], saved, move |ctx, grads| {
            let input = ctx.saved(0)?;
            let result = if self.keeps_input { ctx.saved(1)? } else { input.clone() };
            Ok(vec![Some((self.backward)(first(grads)?, &input, &result)?)])
        })?;
        Ok(output)
    }
}

static ERFCX: OfBoth = OfBoth {
    node: nodes::SpecialErfcxBackward0,
    keeps_input: true,
    backward: |grad, own, result| {
        // As in C++, the temporaries of a statement live to the end of the statement.
        let doubled = scale(own, 2.0)?;
        let product = mul(&doubled, result)?;
        let slope = sub(&product, &number(2.0 / PI.sqrt()))?;
        mul(&slope, grad)
    },
};

static I0E: OfBoth = OfBoth {
    node: nodes::SpecialI0EBackward0,
    keeps_input: true,
    backward: |grad, own, result| {
        let sign = unary::sgn(own)?;
        let right = mul(&sign, result)?;
        let left = I1E.call(own)?;
        let slope = sub(&left, &right)?;
        mul(grad, &slope)
    },
};

/// Near 0 the formulas of `i1` and `i1e` divide by 0, so both take a half there.
fn half_near_zero(
    grad: &Tensor,
    input: &Tensor,
    slope: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let is_not_tiny = gt(&unary::abs(input)?, &number(f64::EPSILON))?;
    let safe = {
        let tiny = creation::full(&[], Scalar::Float(f64::EPSILON), input.dtype(), input.device())?;
        where_(&is_not_tiny, input, &tiny)?
    };
    let slope = slope(&safe)?;
    let half = creation::full(&[], Scalar::Float(0.5), input.dtype(), input.device())?;
    let chosen = where_(&is_not_tiny, &slope, &half)?;
    mul(grad, &chosen)
}

static I1: OfBoth = OfBoth {
    node: nodes::SpecialI1Backward0,
    keeps_input: true,
    backward: |grad, own, result| {
        half_near_zero(grad, own, |safe| {
            let reciprocal = unary::reciprocal(safe)?;
            let right = mul(result, &reciprocal)?;
            let left = crate::call("i0", &[safe.into()], &[])?.tensor()?;
            sub(&left, &right)
        })
    },
};

static I1E: OfBoth = OfBoth {
    node: nodes::SpecialI1EBackward0,
    keeps_input: true,
    backward: |grad, own, result| {
        half_near_zero(grad, own, |safe| {
            let reciprocal = unary::reciprocal(safe)?;
            let sign = unary::sgn(safe)?;
            let sum = add(&sign, &reciprocal)?;
            let right = mul(result, &sum)?;
            let left = I0E.call(safe)?;
            sub(&left, &right)
        })
    },
};

static NDTRI: OfBoth = OfBoth {
    node: nodes::SpecialNdtriBackward0,
    keeps_input: false,
    backward: |grad, _, result| {
        let square = pointwise::pow_scalar(result, Scalar::Int(2))?;
        let half = div(&square, &wrapped(Scalar::Int(2)))?;
        let right = unary::exp(&half)?;
        let left = scale(grad, (2.0 * PI).sqrt())?;
        mul(&left, &right)
    },
};

static LOG_NDTR: OfBoth = OfBoth {
    node: nodes::SpecialLogNdtrBackward0,
    keeps_input: true,
    backward: |grad, own, result| {
        let square = pointwise::pow_scalar(own, Scalar::Int(2))?;
        let half = div(&square, &wrapped(Scalar::Int(2)))?;
        let sum = add(result, &half)?;
        let negative = unary::neg(&sum)?;
        let right = unary::exp(&negative)?;
        let left = div(grad, &number((2.0 * PI).sqrt()))?;
        mul(&left, &right)
    },
};

/// `grad * exp((self - 1) * log(other) - other - lgamma(self))` of the second operand of `igamma`.
fn incomplete(
    ctx: &Context<'_>,
    grad: &Tensor,
    name: &str,
    negates: bool,
) -> Result<crate::autograd::Gradients> {
    if ctx.wants(0) {
        return not_implemented(format!("the derivative for '{name}: input' is not implemented."));
    }
    let (other, input) = (ctx.saved(0)?, ctx.saved(1)?);
    let gamma = crate::call("lgamma", &[(&input).into()], &[])?.tensor()?;
    let logarithm = unary::log(&other)?;
    let less = sub(&input, &wrapped(Scalar::Int(1)))?;
    let product = mul(&less, &logarithm)?;
    let difference = sub(&product, &other)?;
    let exponent = sub(&difference, &gamma)?;
    let power = unary::exp(&exponent)?;
    let negative = if negates { Some(unary::neg(grad)?) } else { None };
    Ok(vec![None, Some(mul(negative.as_ref().unwrap_or(grad), &power)?)])
}

static IGAMMA: Binary = Binary {
    node: nodes::IgammaBackward0,
    rule: Rule::Float,
    saves: Saves::BothForOther,
    function: None,
    backward: |ctx, grad| incomplete(ctx, grad, "igamma", false),
};

static IGAMMAC: Binary = Binary {
    node: nodes::IgammacBackward0,
    backward: |ctx, grad| incomplete(ctx, grad, "igammac", true),
    ..IGAMMA
};

static ZETA: Binary = Binary {
    node: nodes::SpecialZetaBackward0,
    backward: |ctx, grad| {
        if ctx.wants(0) {
            return not_implemented("the derivative for 'zeta' is not implemented.");
        }
        let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
        let next = add(&own, &number(1.0))?;
        let right = ZETA.call(&next, &other)?;
        let negative = unary::neg(&own)?;
        let left = mul(grad, &negative)?;
        Ok(vec![None, Some(mul(&left, &right)?)])
    },
    ..IGAMMA
};

/// The arguments of `mvlgamma`'s sum, one for each dimension:
/// `arange((1 - p) / 2, 0.5, 0.5) + self.unsqueeze(-1)`.
fn multivariate(input: &Tensor, p: i64, dtype: Dtype) -> Result<Tensor> {
    let halves: [Value; 3] =
        [Scalar::Float((1 - p) as f64 / 2.0).into(), Scalar::Float(0.5).into(), Scalar::Float(0.5).into()];
    let steps =
        crate::call("arange", &halves, &[("dtype", dtype.into()), ("device", input.device().into())])?;
    add(&steps.tensor()?, &super::views::unsqueeze(input, -1)?)
}

/// `mvlgamma`.
fn mvlgamma(input: &Tensor, p: i64) -> Result<Tensor> {
    if p < 1 {
        return runtime("mvlgamma: p has to be greater than or equal to 1");
    }
    let dtype = pointwise::dtype_by(Rule::Float, &[input]);
    let output = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let terms = multivariate(input, p, dtype)?;
        crate::call("lgamma_", &[(&terms).into()], &[])?;
        let sum = super::reduce::sum(&terms, Some(&[-1]), false, None)?;
        pointwise::add_in_place(&sum, &number((p * (p - 1)) as f64 * PI.ln() * 0.25))?
    };
    record(
        nodes::MvlgammaBackward0,
        &[input],
        &[&output],
        &[Save::Input(Some(input))],
        move |ctx, grads| {
            let input = ctx.saved(0)?;
            let terms = multivariate(&input, p, input.dtype())?;
            let slopes = crate::call("digamma_", &[(&terms).into()], &[])?.tensor()?;
            let sum = super::reduce::sum(&slopes, Some(&[-1]), false, None)?;
            Ok(vec![Some(mul(first(grads)?, &sum)?)])
        },
    )?;
    Ok(output)
}

/// `angle` of real numbers: 0 or pi, whose derivative is zeros.
fn angle(input: &Tensor) -> Result<Tensor> {
    let output = float_kernel(&[input])?;
    record(nodes::AngleBackward0, &[input], &[&output], &[Save::Input(Some(input))], |ctx, _| {
        Ok(vec![Some(creation::zeros_like(&ctx.saved(0)?)?)])
    })?;
    Ok(output)
}

/// `special_ndtr`: `(1 + erf(self / sqrt(2))) * 0.5`.
fn ndtr(input: &Tensor) -> Result<Tensor> {
    let scaled = scale(input, std::f64::consts::FRAC_1_SQRT_2)?;
    let error = crate::call("erf", &[(&scaled).into()], &[])?.tensor()?;
    let sum = add(&error, &wrapped(Scalar::Int(1)))?;
    scale(&sum, 0.5)
}

macro_rules! without_gradient {
    ($unary:ident [$($one:literal)*] $polynomials:ident [$($two:literal)*]) => {
        /// Kernels of one tensor that PyTorch does not differentiate: their results need no gradient.
        pub(crate) const $unary: &[Entry] = &[$(
            op!(concat!("special_", $one, "(Tensor self)"), |tensor: &Tensor| float_kernel(&[tensor])),
        )*];

        /// Polynomials of a degree, which may be a tensor.
        pub(crate) const $polynomials: &[Entry] = &[$(
            op!(concat!("special_", $two, "(Operand x, Operand n)"), polynomial),
        )*];
    };
}

fn polynomial(x: &Tensor, n: &Tensor) -> Result<Value> {
    Ok(float_kernel(&[x, n])?.into())
}

without_gradient! {
    UNARY [
        "airy_ai" "bessel_j0" "bessel_j1" "bessel_y0" "bessel_y1" "modified_bessel_i0" "modified_bessel_i1" "modified_bessel_k0"
        "modified_bessel_k1" "scaled_modified_bessel_k0" "scaled_modified_bessel_k1" "spherical_bessel_j0"
    ]
    POLYNOMIALS [
        "chebyshev_polynomial_t" "chebyshev_polynomial_u" "chebyshev_polynomial_v" "chebyshev_polynomial_w"
        "shifted_chebyshev_polynomial_t" "shifted_chebyshev_polynomial_u" "shifted_chebyshev_polynomial_v"
        "shifted_chebyshev_polynomial_w" "hermite_polynomial_h" "hermite_polynomial_he" "laguerre_polynomial_l"
        "legendre_polynomial_p"
    ]
}

pub(crate) const TABLE: &[Entry] = &[
    op!("special_erfcx(Tensor self)", |tensor: &Tensor| ERFCX.call(tensor)),
    op!("special_i0e(Tensor self)", |tensor: &Tensor| I0E.call(tensor)),
    op!("special_i1(Tensor self)", |tensor: &Tensor| I1.call(tensor)),
    op!("special_i1e(Tensor self)", |tensor: &Tensor| I1E.call(tensor)),
    op!("special_ndtri(Tensor self)", |tensor: &Tensor| NDTRI.call(tensor)),
    op!("special_log_ndtr(Tensor self)", |tensor: &Tensor| LOG_NDTR.call(tensor)),
    op!("special_ndtr(Tensor self)", ndtr),
    op!("special_zeta(Operand self, Operand other)", |tensor: &Tensor, other: &Tensor| {
        ZETA.call(tensor, other)
    }),
    op!("igamma(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| IGAMMA.call(tensor, other)),
    op!("igamma_(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| {
        IGAMMA.call_in_place(tensor, other)
    }),
    op!("igammac(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| IGAMMAC.call(tensor, other)),
    op!("igammac_(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| {
        IGAMMAC.call_in_place(tensor, other)
    }),
    op!("mvlgamma(Tensor self, int p)", mvlgamma),
    op!("mvlgamma_(Tensor self, int p)", |tensor: &Tensor, p: i64| {
        let result = mvlgamma(tensor, p)?;
        crate::call("copy_", &[tensor.into(), result.into()], &[])
    }),
    in_place!("polygamma_(Tensor self, int n)", |tensor: &Tensor, n: i64| {
        if tensor.requires_grad() {
            return not_implemented("the gradient of polygamma_ is not modeled; use polygamma");
        }
        if n < 0 {
            return runtime("polygamma(n, x) does not support negative n.");
        }
        pointwise::elementwise_in_place(&[tensor], tensor.dtype(), None)?;
        Ok(())
    }),
    op!("angle(Tensor self)", angle),
];
