//! Covariances, and rows scaled down to a norm.

use crate::arguments::Operand;
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Scalar, Tensor, Value};

use super::copy::to_dtype;
use super::creation::{empty, full, wrapped};
use super::kernels::number;
use super::matmul::mm;
use super::pointwise::{
    self, add, div, elementwise_in_place, ge, gt, kept_for_gradient, le, mul, scale, sub, where_,
};
use super::reduce::{extremum_all, sum, sum_all, vector_norm};
use super::unary;
use super::views::{first, squeeze, t, unsqueeze, view, wrap};

/// `is_scalar_tensor_true`: a comparison with a separate tensor, read on the host.
fn check_is_true(flag: &Tensor) -> Result<()> {
    let ones = full(&[], Scalar::Int(1), Dtype::Bool, flag.device())?;
    let same = pointwise::eq(flag, &ones)?;
    drop(crate::call("all", &[(&same).into()], &[])?);
    Ok(())
}

fn has_one_dimension(name: &str, weights: &Tensor, observations: i64) -> Result<()> {
    if weights.dim() > 1 {
        return runtime(format!(
            "cov(): expected {name} to have one or fewer dimensions but got {name} with {} dimensions",
            weights.dim()
        ));
    }
    if weights.numel() != observations {
        return runtime(format!(
            "cov(): expected {name} to have the same numel as there are observations in the input but got {} != \
             {observations}",
            weights.numel()
        ));
    }
    // The smallest is read, to see that none is negative.
    check_is_true(&ge(&extremum_all(weights, nodes::MinBackward1)?, &wrapped(Scalar::Int(0)))?)?;
    Ok(())
}

/// `cov`, composed of operators.
fn cov(own: &Tensor, correction: i64, counts: Option<&Tensor>, weights: Option<&Tensor>) -> Result<Tensor> {
    if own.dim() > 2 {
        return runtime(format!(
            "cov(): expected input to have two or fewer dimensions but got an input with {} dimensions",
            own.dim()
        ));
    }
    if own.dtype() == Dtype::Bool {
        return runtime("cov(): bool dtype is not supported for input");
    }
    if crate::autocast::dtype().is_some() && own.device().is_cuda() {
        crate::session().note_estimate("cov", "which of its operators autocast casts was not looked at");
    }
    let mut input = if own.dim() < 2 { view(own, &[1, -1])? } else { own.clone() };
    let observations = input.size(1);
    let mut factor = None;
    if let Some(counts) = counts {
        has_one_dimension("fweights", counts, observations)?;
        factor = Some(counts.clone());
    }
    if let Some(weights) = weights {
        has_one_dimension("aweights", weights, observations)?;
        factor = Some(match factor {
            Some(counts) => mul(&counts, weights)?,
            None => weights.clone(),
        });
    }
    let total = match &factor {
        Some(factor) => sum_all(factor)?,
        None => full(&[], Scalar::Int(observations), Dtype::I64, input.device())?,
    };
    if factor.is_some() {
        check_is_true(&pointwise::ne(&total, &wrapped(Scalar::Int(0)))?)?;
    }
    let weighted = |input: &Tensor| match &factor {
        Some(factor) => mul(input, factor),
        None => Ok(input.clone()),
    };
    let average = div(&sum(&weighted(&input)?, Some(&[1]), false, None)?, &total)?;
    let degrees = match (&factor, weights) {
        (Some(factor), Some(weights)) if correction != 0 => {
            let product = &mul(factor, weights)?;
            let taken = &mul(&sum_all(product)?, &wrapped(Scalar::Int(correction)))?;
            sub(&total, &div(taken, &total)?)?
        }
        _ => sub(&total, &wrapped(Scalar::Int(correction)))?,
    };
    // Whether any degree of freedom is left is read on the host.
    check_is_true(&le(&degrees, &wrapped(Scalar::Int(0)))?)?;
    input = sub(&input, &unsqueeze(&average, 1)?)?;
    let products = mm(&input, &t(&weighted(&input)?)?)?;
    let result = squeeze(&div(&products, &degrees)?, None)?;
    drop(products);
    drop(degrees);
    drop(average);
    drop(total);
    drop(factor);
    Ok(result)
}

/// `corrcoef`: covariances over the products of the deviations.
fn corrcoef(input: &Tensor) -> Result<Tensor> {
    if input.dim() > 2 {
        return runtime(format!(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions",
            input.dim()
        ));
    }
    let mut covariances = cov(input, 1, None, None)?;
    if covariances.dim() == 0 {
        return div(&covariances, &covariances);
    }
    let variances = crate::call("diagonal", &[(&covariances).into()], &[])?.tensor()?;
    let deviations = crate::call("sqrt", &[(&variances).into()], &[])?.tensor()?;
    for shape in [[-1, 1], [1, -1]] {
        covariances = div(&covariances, &view(&deviations, &shape)?)?;
    }
    let result = pointwise::clamp(&covariances, Some(Scalar::Int(-1)), Some(Scalar::Int(1)))?;
    drop(deviations);
    drop(variances);
    drop(covariances);
    Ok(result)
}

/// The numbers of all dimensions but one.
fn others(count: usize, dim: usize) -> Vec<i64> {
    (0..count).filter(|other| *other != dim).map(|other| other as i64).collect()
}

/// `renorm_backward`.
fn renorm_backward(grad: &Tensor, input: &Tensor, p: f64, dim: usize, most: f64) -> Result<Tensor> {
    let dims = others(input.dim(), dim);
    let wide = input.dtype().accumulate();
    let norm = vector_norm(input, p, Some(&dims), true, Some(wide))?;
    let slope = {
        let product = mul(input, grad)?;
        let summed = sum(&product, Some(&dims), true, Some(wide))?;
        drop(product);
        super::vector_norm::backward(&summed, input, &norm, p, &dims)?
    };
    let inverse = unary::reciprocal(&add(&norm, &number(1e-7))?)?;
    let scaled = {
        let shift = mul(&inverse, &slope)?;
        let right = sub(grad, &shift)?;
        let left = scale(&inverse, most)?;
        mul(&left, &right)?
    };
    let in_type = to_dtype(&scaled, grad.dtype())?;
    let result = where_(&gt(&norm, &number(most))?, &in_type, grad);
    drop(in_type);
    drop(scaled);
    drop(inverse);
    drop(slope);
    drop(norm);
    result
}

/// `renorm`: rows whose norm is above a limit are scaled down to the limit.
fn renorm(input: &Tensor, p: f64, dim: i64, most: f64, in_place: bool) -> Result<Value> {
    if p <= 0.0 {
        return runtime("renorm: non-positive-norm not supported");
    }
    if most < 0.0 {
        return runtime(format!("renorm: expected maxnorm to be >= 0 but got {most}"));
    }
    if input.dim() < 2 {
        return runtime(format!("renorm: input needs at least 2 dimensions, got {} dimensions", input.dim()));
    }
    let input = if in_place { input } else { &Cast::full(input.device()).apply(input)? };
    let at = wrap(dim, input.dim())?;
    let before = if in_place { kept_for_gradient(input)? } else { None };
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output =
            if in_place { input.clone() } else { empty(&input.shape(), input.dtype(), input.device())? };
        let wide = input.dtype().accumulate();
        let norm = vector_norm(input, p, Some(&others(input.dim(), at)), true, Some(wide))?;
        let factor = if wide == input.dtype() {
            norm.clone()
        } else {
            empty(&norm.shape(), input.dtype(), input.device())?
        };
        if in_place {
            elementwise_in_place(&[input, &factor], input.dtype(), None)?;
        }
        drop(factor);
        drop(norm);
        output
    };
    let kept = before.as_ref().unwrap_or(input);
    record(nodes::RenormBackward0, &[input], &[&output], &[Save::Input(Some(kept))], move |ctx, grads| {
        Ok(vec![Some(renorm_backward(first(grads)?, &ctx.saved(0)?, p, at, most)?)])
    })?;
    Ok(output.into())
}

/// `float_power`: `pow` in double precision.
fn float_power(base: Operand<'_>, exponent: Operand<'_>) -> Result<Value> {
    let wide = |operand: Operand<'_>| -> Result<Value> {
        Ok(match operand {
            Operand::Number(number) => Value::Scalar(Scalar::Float(number.to_f64().unwrap_or(f64::NAN))),
            Operand::Tensor(tensor) => to_dtype(tensor, Dtype::F64)?.into(),
        })
    };
    let exponent = wide(exponent)?;
    let base = wide(base)?;
    crate::call("pow", &[base, exponent], &[])
}

/// `histc`: if both bounds are equal, the least and the greatest element take their place, each copied to the
/// host.
fn histc(tensor: &Tensor, bins: i64, low: f64, high: f64) -> Result<Value> {
    if bins <= 0 {
        return runtime("bins must be > 0");
    }
    if tensor.device().is_cuda() && tensor.dtype() == Dtype::F16 {
        return runtime("HalfTensor is not supported");
    }
    let _no_grad = GradModeGuard::new(false);
    let output = empty(&[bins], tensor.dtype(), tensor.device())?;
    if (low - high).abs() < f64::EPSILON && tensor.numel() > 0 {
        drop(extremum_all(tensor, nodes::MinBackward1)?);
        drop(extremum_all(tensor, nodes::MaxBackward1)?);
    }
    Ok(output.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)", cov),
    op!("corrcoef(Tensor self)", corrcoef),
    op!(
        "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm)",
        |own: &Tensor, p: f64, dim: i64, most: f64| renorm(own, p, dim, most, false)
    ),
    op!(
        "renorm_(Tensor self, Scalar p, int dim, Scalar maxnorm)",
        |own: &Tensor, p: f64, dim: i64, most: f64| renorm(own, p, dim, most, true)
    ),
    op!("float_power(Operand self, Operand exponent)", float_power),
    op!("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0)", histc),
];
