//! Elementwise operators of two and three tensors.

use crate::autocast::Cast;
use crate::autograd::{Context, Early, Grads, Save, record, record_after, save_early};
use crate::error::runtime;
use crate::iterator::{broadcast, common_device, output_strides, result_type};
use crate::registry::{Entry, op};
use crate::schema::Args;
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy::{self, empty_strided};
use super::creation::{self, wrapped, zeros_like};
use super::exact::{self, Function};
use super::unary;
use super::views::first;

/// A new result of an elementwise kernel.
pub(crate) fn elementwise(inputs: &[&Tensor], dtype: Dtype, function: Option<Function>) -> Result<Tensor> {
    let device = common_device(inputs)?;
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape()).collect();
    let shape = broadcast(&shapes.iter().map(|shape| &**shape).collect::<Vec<_>>())?;
    let output = empty_strided(&shape, &output_strides(inputs, &shape), dtype, device)?;
    exact::apply(function, inputs, &output);
    Ok(output)
}

/// Operators of zeros without memory look at the shapes first, for which the zeros are made as one number of the GPU.
fn look_at_zeros(inputs: &[&Tensor]) -> Result<()> {
    for input in inputs.iter().filter(|input| input.is_without_memory()) {
        drop(creation::zeros(&[], input.dtype(), input.device())?);
    }
    Ok(())
}

/// Whether the tensor may be changed, and that it was.
pub(crate) fn change_in_place(tensor: &Tensor) -> Result<()> {
    tensor.check_in_place()?;
    tensor.bump_version();
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
    change_in_place(output)?;
    exact::apply(function, inputs, output);
    Ok(())
}

/// What type an operator gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Promoted,
    /// Integers become the default floating type.
    Float,
    Bool,
}

pub(crate) fn dtype_by(rule: Rule, inputs: &[&Tensor]) -> Dtype {
    let dtype = result_type(inputs);
    match rule {
        Rule::Promoted => dtype,
        Rule::Float if dtype.is_integral() => crate::session().default_dtype(),
        Rule::Float => dtype,
        Rule::Bool => Dtype::Bool,
    }
}

/// What an operator of two tensors saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saves {
    Nothing,
    /// Each one if the other requires a gradient.
    Crosswise,
    /// `other` always, `self` if `other` requires a gradient.
    Division,
    Both,
    BothAndResult,
    /// Both, if `other` requires a gradient.
    BothForOther,
    /// Each one if it requires a gradient itself, and the result.
    EachForItselfAndResult,
    /// `self` if it requires a gradient, and the result.
    OwnForItselfAndResult,
}

/// An operator of two tensors.
pub(super) struct Binary {
    pub(super) node: &'static str,
    pub(super) rule: Rule,
    pub(super) saves: Saves,
    pub(super) function: Option<Function>,
    /// From the gradient: other saved at 0, self at 1, result at 2; without what is never saved.
    pub(super) backward: fn(&Context<'_>, &Tensor) -> Result<Grads>,
}

/// What an operator that changes a tensor in place keeps of it: a copy, if its gradient needs the values before. The copy has a
/// history (`CloneBackward0`), through which a second derivative flows.
pub(super) fn kept_for_gradient(tensor: &Tensor) -> Result<Option<Tensor>> {
    if !crate::autograd::GradMode::is_enabled() || !tensor.requires_grad() {
        return Ok(None);
    }
    copy_before(tensor).map(Some)
}

fn copy_before(tensor: &Tensor) -> Result<Tensor> {
    copy::clone(tensor, MemoryFormat::Preserve)
}

impl Binary {
    pub(super) fn call(&'static self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let early = save_early(&[a, b], &self.saves(a, b, a))?;
        let dtype = dtype_by(self.rule, &[a, b]);
        let is_product = self.node == MUL.node || self.node == DIV.node;
        let output = if is_product && (a.is_without_memory() || b.is_without_memory()) {
            // `mul_zerotensor`: zeros without memory stay so.
            look_at_zeros(&[a, b])?;
            Tensor::zeros_without_memory(
                &broadcast(&[&a.shape(), &b.shape()])?,
                dtype,
                common_device(&[a, b])?,
            )?
        } else {
            elementwise(&[a, b], dtype, self.function)?
        };
        self.record(early, a, b, &output, None)?;
        Ok(output)
    }

    pub(super) fn call_in_place(&'static self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let keeps_self = match self.saves {
            Saves::Crosswise | Saves::Division | Saves::BothForOther => b.requires_grad(),
            Saves::Both | Saves::BothAndResult => a.requires_grad() || b.requires_grad(),
            Saves::EachForItselfAndResult | Saves::OwnForItselfAndResult => a.requires_grad(),
            Saves::Nothing => false,
        };
        let original =
            if keeps_self && crate::autograd::GradMode::is_enabled() { Some(copy_before(a)?) } else { None };
        let dtype = match self.rule {
            Rule::Bool => a.dtype(),
            rule => dtype_by(rule, &[a, b]),
        };
        elementwise_in_place(&[a, b], dtype, self.function)?;
        self.record(Early::default(), a, b, a, original.as_ref())?;
        Ok(a.clone())
    }

    fn saves<'a>(&self, a: &Tensor, b: &'a Tensor, before: &'a Tensor) -> Vec<Save<'a>> {
        let (needs_a, needs_b) = (a.requires_grad(), b.requires_grad());
        match self.saves {
            Saves::Nothing => vec![],
            Saves::Crosswise => vec![Save::InputIf(needs_a, b), Save::InputIf(needs_b, before)],
            Saves::Division => vec![Save::Input(Some(b)), Save::InputIf(needs_b, before)],
            Saves::Both => vec![Save::Input(Some(b)), Save::Input(Some(before))],
            Saves::BothAndResult => vec![Save::Input(Some(b)), Save::Input(Some(before)), Save::Output(0)],
            Saves::BothForOther => vec![Save::InputIf(needs_b, b), Save::InputIf(needs_b, before)],
            Saves::EachForItselfAndResult => {
                vec![Save::InputIf(needs_b, b), Save::InputIf(needs_a, before), Save::Output(0)]
            }
            Saves::OwnForItselfAndResult => vec![Save::InputIf(needs_a, before), Save::Output(0)],
        }
    }

    fn record(
        &'static self,
        early: Early,
        a: &Tensor,
        b: &Tensor,
        output: &Tensor,
        original: Option<&Tensor>,
    ) -> Result<()> {
        let saved = self.saves(a, b, original.unwrap_or(a));
        if self.rule == Rule::Bool {
            return Ok(());
        }
        record_after(early, self.node, &[a, b], &[output], &saved, move |ctx, grads| {
            (self.backward)(ctx, first(grads)?)
        })
    }
}

fn no_gradient(_: &Context<'_>, _: &Tensor) -> Result<Grads> {
    Ok(vec![None, None])
}

static MUL: Binary = Binary {
    node: "MulBackward0",
    rule: Rule::Promoted,
    saves: Saves::Crosswise,
    function: Some(exact::mul),
    backward: |ctx, grad| {
        let other = if ctx.wants(1) { Some(mul(grad, &ctx.saved(1)?)?) } else { None };
        let own = if ctx.wants(0) { Some(mul(grad, &ctx.saved(0)?)?) } else { None };
        Ok(vec![own, other])
    },
};

static DIV: Binary = Binary {
    node: "DivBackward0",
    rule: Rule::Float,
    saves: Saves::Division,
    function: Some(exact::div),
    backward: |ctx, grad| {
        let divisor = ctx.saved(0)?;
        let other = if ctx.wants(1) {
            let dividend = ctx.saved(1)?;
            // C++ evaluates the right factor first, and temporaries last to the end of the expression.
            let quotient = div(&dividend, &divisor)?;
            let quotient = (div(&quotient, &divisor)?, quotient);
            let negative = unary::neg(grad)?;
            let result = mul(&negative, &quotient.0)?;
            drop(negative);
            Some(result)
        } else {
            None
        };
        let own = if ctx.wants(0) { Some(div(grad, &divisor)?) } else { None };
        Ok(vec![own, other])
    },
};

/// `grad` where the inputs are equal is shared: `grad.masked_fill(...)` of both.
fn extremum(ctx: &Context<'_>, grad: &Tensor, loses: &'static Binary) -> Result<Grads> {
    let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
    let half = |wants: bool, a: &Tensor, b: &Tensor| -> Result<Option<Tensor>> {
        if !wants {
            return Ok(None);
        }
        // at::where(a == b, grad / 2, grad).masked_fill_(a lost to b, 0)
        // C++ evaluates the arguments last to first, and all temporaries live until the statement ends.
        let halved = div(grad, &wrapped(Scalar::Int(2)))?;
        let equal = EQ.call(a, b)?;
        let result = where_(&equal, &halved, grad)?;
        let lost = loses.call(a, b)?;
        masked_fill_in_place(&result, &lost, &wrapped(Scalar::Int(0)))?;
        drop(lost);
        drop(equal);
        drop(halved);
        Ok(Some(result))
    };
    let to_other = half(ctx.wants(1), &other, &own)?;
    let to_own = half(ctx.wants(0), &own, &other)?;
    Ok(vec![to_own, to_other])
}

static MAXIMUM: Binary = Binary {
    node: "MaximumBackward0",
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: Some(exact::maximum),
    backward: |ctx, grad| extremum(ctx, grad, &LT),
};

static MINIMUM: Binary = Binary {
    node: "MinimumBackward0",
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: Some(exact::minimum),
    backward: |ctx, grad| extremum(ctx, grad, &GT),
};

static POW: Binary = Binary {
    node: "PowBackward1",
    rule: Rule::Promoted,
    saves: Saves::BothAndResult,
    function: None,
    backward: |ctx, grad| {
        let (exponent, base) = (ctx.saved(0)?, ctx.saved(1)?);
        let to_exponent = if ctx.wants(1) {
            // grad * (result * self.log()), with zeros where the base is 0 and the exponent is not negative.
            let result = ctx.saved(2)?;
            let condition = {
                let is_positive = GE.call(&exponent, &wrapped(Scalar::Int(0)))?;
                let is_zero = EQ.call(&base, &wrapped(Scalar::Int(0)))?;
                LOGICAL_AND.call(&is_zero, &is_positive)?
            };
            let logarithm = unary::log(&base)?;
            let product = mul(&result, &logarithm)?;
            let zero = creation::zeros(&[], grad.dtype(), grad.device())?;
            let chosen = where_(&condition, &zero, &product)?;
            Some(mul(grad, &chosen)?)
        } else {
            None
        };
        let to_base = if ctx.wants(0) {
            // C++ evaluates the last argument of `where` first.
            let less = sub(&exponent, &wrapped(Scalar::Int(1)))?;
            let power = POW.call(&base, &less)?;
            let product = mul(&exponent, &power)?;
            let slope = mul(grad, &product)?;
            let zeros = creation::zeros(&[], grad.dtype(), grad.device())?;
            let is_zero = EQ.call(&exponent, &wrapped(Scalar::Int(0)))?;
            Some(where_(&is_zero, &zeros, &slope)?)
        } else {
            None
        };
        Ok(vec![to_base, to_exponent])
    },
};

static ATAN2: Binary = Binary {
    node: "Atan2Backward0",
    rule: Rule::Float,
    saves: Saves::Both,
    function: None,
    backward: |ctx, grad| {
        let (other, own) = (ctx.saved(0)?, ctx.saved(1)?);
        let squares = {
            let right = mul(&other, &other)?;
            let left = mul(&own, &own)?;
            add(&left, &right)?
        };
        // squares.reciprocal().masked_fill(squares == 0, 0), once for both
        let reciprocal = {
            let reciprocal = unary::reciprocal(&squares)?;
            let is_zero = EQ.call(&squares, &wrapped(Scalar::Int(0)))?;
            masked_fill(&reciprocal, &is_zero, &wrapped(Scalar::Int(0)))?
        };
        let to_own = if ctx.wants(0) {
            let product = mul(grad, &other)?;
            Some(mul(&product, &reciprocal)?)
        } else {
            None
        };
        let to_other = if ctx.wants(1) {
            let negative = unary::neg(&own)?;
            let product = mul(grad, &negative)?;
            Some(mul(&product, &reciprocal)?)
        } else {
            None
        };
        Ok(vec![to_own, to_other])
    },
};

static FLOOR_DIVIDE: Binary = Binary {
    node: "NotImplemented",
    rule: Rule::Promoted,
    saves: Saves::Nothing,
    function: Some(exact::floor_div),
    backward: |_, _| runtime("derivative for aten::floor_divide is not implemented"),
};

fn flat(ctx: &Context<'_>, grad: &Tensor) -> Result<Grads> {
    let to_other = if ctx.wants(1) { Some(zeros_like(grad)?) } else { None };
    let to_own = if ctx.wants(0) { Some(zeros_like(grad)?) } else { None };
    Ok(vec![to_own, to_other])
}

/// `div` with a rounding mode: nothing of a gradient comes through.
const ROUNDED: Binary = Binary {
    node: "DivBackward2",
    rule: Rule::Promoted,
    saves: Saves::Division,
    function: Some(exact::floor_div),
    backward: flat,
};

static DIV_ROUNDED: Binary = ROUNDED;
static DIV_ROUNDED_BY_NUMBER: Binary = Binary { node: "DivBackward3", saves: Saves::Nothing, ..ROUNDED };

/// `-grad * self.div(other, rounding_mode)`.
fn remainder_backward(ctx: &Context<'_>, grad: &Tensor) -> Result<Grads> {
    let to_other = if ctx.wants(1) {
        let quotient = DIV_ROUNDED.call(&ctx.saved(1)?, &ctx.saved(0)?)?;
        let negative = unary::neg(grad)?;
        Some(mul(&negative, &quotient)?)
    } else {
        None
    };
    Ok(vec![ctx.wants(0).then(|| grad.clone()), to_other])
}

const REMAINDER: Binary = Binary {
    node: "RemainderBackward1",
    rule: Rule::Promoted,
    saves: Saves::BothForOther,
    function: Some(exact::remainder),
    backward: remainder_backward,
};

static REMAINDER_OF_TENSORS: Binary = REMAINDER;
static REMAINDER_BY_NUMBER: Binary =
    Binary { node: "RemainderBackward0", saves: Saves::Nothing, backward: pass_on, ..REMAINDER };
static FMOD_OF_TENSORS: Binary = Binary { node: "FmodBackward1", ..REMAINDER };
static FMOD_BY_NUMBER: Binary =
    Binary { node: "FmodBackward0", saves: Saves::Nothing, backward: pass_on, ..REMAINDER };

fn pass_on(ctx: &Context<'_>, grad: &Tensor) -> Result<Grads> {
    Ok(vec![ctx.wants(0).then(|| grad.clone()), None])
}

macro_rules! comparisons {
    ($($constant:ident $function:expr;)*) => {
        $(static $constant: Binary = Binary {
            node: "",
            rule: Rule::Bool,
            saves: Saves::Nothing,
            function: $function,
            backward: no_gradient,
        };)*
    };
}

comparisons! {
    EQ Some(exact::eq);
    NE Some(exact::ne);
    LT Some(exact::lt);
    LE Some(exact::le);
    GT Some(exact::gt);
    GE Some(exact::ge);
    LOGICAL_AND Some(exact::logical_and);
    LOGICAL_OR Some(exact::logical_or);
    LOGICAL_XOR None;
}

/// Bitwise operators: types as given.
static BITWISE: Binary =
    Binary { node: "", rule: Rule::Promoted, saves: Saves::Nothing, function: None, backward: no_gradient };

pub(crate) fn mul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    MUL.call(a, b)
}

pub(crate) fn mul_in_place(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    MUL.call_in_place(a, b)
}

pub(crate) fn div(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    DIV.call(a, b)
}

pub(crate) fn div_in_place(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    DIV.call_in_place(a, b)
}

pub(crate) fn eq(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    EQ.call(a, b)
}

pub(crate) fn ne(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    NE.call(a, b)
}

pub(crate) fn ge(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    GE.call(a, b)
}

pub(crate) fn gt(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    GT.call(a, b)
}

pub(crate) fn lt(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    LT.call(a, b)
}

pub(crate) fn le(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    LE.call(a, b)
}

pub(crate) fn logical_or(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    LOGICAL_OR.call(a, b)
}

pub(crate) fn logical_and(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    LOGICAL_AND.call(a, b)
}

/// `maybe_multiply`: nothing to do for a factor of 1.
pub(crate) fn maybe_multiply(tensor: &Tensor, factor: Scalar) -> Result<Tensor> {
    if factor.to_f64() == Some(1.0) { Ok(tensor.clone()) } else { mul(tensor, &wrapped(factor)) }
}

/// A tensor times a number.
pub(crate) fn scale(tensor: &Tensor, factor: f64) -> Result<Tensor> {
    mul(tensor, &wrapped(Scalar::Float(factor)))
}

pub(crate) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    add_scaled(a, b, Scalar::Int(1))
}

pub(crate) fn add_scaled(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(exact::add);
    look_at_zeros(&[a, b])?;
    let output = elementwise(&[a, b], result_type(&[a, b]), function)?;
    record_add("AddBackward0", a, b, &output, alpha)?;
    Ok(output)
}

fn record_add(node: &'static str, a: &Tensor, b: &Tensor, output: &Tensor, alpha: Scalar) -> Result<()> {
    record(node, &[a, b], &[output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let other = if ctx.wants(1) { Some(maybe_multiply(grad, alpha)?) } else { None };
        let own = ctx.wants(0).then(|| grad.clone());
        Ok(vec![own, other])
    })
}

pub(crate) fn add_in_place(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    add_scaled_in_place(a, b, Scalar::Int(1))
}

pub(crate) fn add_scaled_in_place(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(exact::add);
    elementwise_in_place(&[a, b], result_type(&[a, b]), function)?;
    record_add("AddBackward0", a, b, a, alpha)?;
    Ok(a.clone())
}

pub(crate) fn sub(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    sub_scaled(a, b, Scalar::Int(1))
}

fn sub_scaled(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    if a.dtype() == Dtype::Bool && b.dtype() == Dtype::Bool {
        return runtime(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
             operator instead.",
        );
    }
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(exact::sub);
    let output = elementwise(&[a, b], result_type(&[a, b]), function)?;
    record_sub(a, b, &output, alpha)?;
    Ok(output)
}

fn record_sub(a: &Tensor, b: &Tensor, output: &Tensor, alpha: Scalar) -> Result<()> {
    record("SubBackward0", &[a, b], &[output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let other = if ctx.wants(1) { Some(maybe_multiply(&unary::neg(grad)?, alpha)?) } else { None };
        let own = ctx.wants(0).then(|| grad.clone());
        Ok(vec![own, other])
    })
}

pub(crate) fn sub_in_place(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let function: Option<Function> = (alpha == Scalar::Int(1)).then_some(exact::sub);
    elementwise_in_place(&[a, b], result_type(&[a, b]), function)?;
    record_sub(a, b, a, alpha)?;
    Ok(a.clone())
}

/// `rsub`: `other - self`.
fn rsub(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let output = elementwise(
        &[a, b],
        result_type(&[a, b]),
        Some(|v: &[Scalar]| exact::sub(&[*v.get(1)?, *v.first()?])),
    )?;
    record("RsubBackward1", &[a, b], &[&output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let other = ctx.wants(1).then(|| grad.clone());
        let own = if ctx.wants(0) { Some(maybe_multiply(&unary::neg(grad)?, alpha)?) } else { None };
        Ok(vec![own, other])
    })?;
    Ok(output)
}

/// `torch.where`.
pub(crate) fn where_(condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = result_type(&[a, b]);
    let output = {
        let (a, b) = (&in_type(a, dtype)?, &in_type(b, dtype)?);
        elementwise(&[condition, a, b], dtype, Some(exact::select))?
    };
    record("WhereBackward0", &[a, b], &[&output], &[Save::Input(Some(condition))], |ctx, grads| {
        let grad = first(grads)?;
        let condition = ctx.saved(0)?;
        // The number becomes a tensor on the GPU, for each of the two.
        let zero = || super::creation::zeros(&[], grad.dtype(), grad.device());
        let other = if ctx.wants(1) { Some(where_(&condition, &zero()?, grad)?) } else { None };
        let own = if ctx.wants(0) { Some(where_(&condition, grad, &zero()?)?) } else { None };
        Ok(vec![own, other])
    })?;
    Ok(output)
}

/// `masked_fill`: a clone, filled in place.
pub(crate) fn masked_fill(tensor: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    if mask.dtype() != Dtype::Bool {
        return runtime(format!(
            "masked_fill only supports boolean masks, but got mask with dtype {}",
            mask.dtype()
        ));
    }
    let shape = broadcast(&[&tensor.shape(), &mask.shape()])?;
    let expanded = super::views::expand_quietly(tensor, &shape).unwrap_or_else(|| tensor.clone());
    let result = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        copy::clone(&expanded, MemoryFormat::Contiguous)?
    };
    record_masked_fill(tensor, mask, &result, value)?;
    Ok(result)
}

fn record_masked_fill(tensor: &Tensor, mask: &Tensor, output: &Tensor, value: &Tensor) -> Result<()> {
    let has_gradient = value.requires_grad();
    record(
        "MaskedFillBackward0",
        &[tensor, value],
        &[output],
        &[Save::Input(Some(mask))],
        move |ctx, grads| {
            let grad = first(grads)?;
            let mask = ctx.saved(0)?;
            let own =
                if ctx.wants(0) { Some(masked_fill(grad, &mask, &wrapped(Scalar::Int(0)))?) } else { None };
            let other = if has_gradient {
                let zero = wrapped(Scalar::Int(0));
                Some(super::reduce::sum_all(&where_(&mask, grad, &zero)?)?)
            } else {
                None
            };
            Ok(vec![own, other])
        },
    )
}

pub(crate) fn masked_fill_in_place(tensor: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    change_in_place(tensor)?;
    tensor.set_values(None);
    record_masked_fill(tensor, mask, tensor, value)?;
    Ok(tensor.clone())
}

/// A copy in the result's type, for operators that convert their input before the kernel runs.
fn in_type(tensor: &Tensor, dtype: Dtype) -> Result<Tensor> {
    let _below = crate::autograd::GradModeGuard::new(false);
    copy::to_dtype(tensor, dtype)
}

/// `pow` with a number as the exponent.
pub(crate) fn pow_scalar(tensor: &Tensor, exponent: Scalar) -> Result<Tensor> {
    let cast = Cast::full(tensor.device());
    let tensor = &cast.apply(tensor)?;
    let dtype = result_type(&[tensor, &wrapped(exponent)]);
    let output = elementwise(&[&in_type(tensor, dtype)?], dtype, None)?;
    record("PowBackward0", &[tensor], &[&output], &[Save::Input(Some(tensor))], move |ctx, grads| {
        let exponent = exponent.to_f64().unwrap_or(f64::NAN);
        Ok(vec![Some(pow_backward(first(grads)?, &ctx.saved(0)?, exponent)?)])
    })?;
    Ok(output)
}

/// `pow_backward`: `grad * (exponent * self.pow(exponent - 1))`.
pub(crate) fn pow_backward(grad: &Tensor, own: &Tensor, exponent: f64) -> Result<Tensor> {
    if exponent == 0.0 {
        return zeros_like(own);
    }
    mul(grad, &scale(&pow_scalar(own, Scalar::Float(exponent - 1.0))?, exponent)?)
}

/// `pow` of two tensors.
pub(super) fn power(base: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    POW.call(base, exponent)
}

fn pow(args: &Args) -> Result<Value> {
    match args.value(1)? {
        Value::Scalar(exponent) => Ok(pow_scalar(&args.operand(0)?, *exponent)?.into()),
        _ => {
            let (base, exponent) = (args.operand(0)?, args.t(1)?);
            let cast = Cast::full(exponent.device());
            if base.is_wrapped_number() {
                return Ok(pow_of_number(&base, &cast.apply(&exponent)?)?.into());
            }
            Ok(POW.call(&cast.apply(&base)?, &cast.apply(&exponent)?)?.into())
        }
    }
}

/// `pow` of a number: its derivative is the result times a logarithm.
pub(super) fn pow_of_number(base: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    let output = elementwise(&[base, exponent], dtype_by(POW.rule, &[base, exponent]), None)?;
    if exponent.device().is_cuda() {
        // pow_out takes the number as a tensor of the GPU, in int64 or float64.
        drop(super::sort::temporary(exponent.device(), 8)?);
    }
    let logarithm = crate::schema::known_or_unknown(base).to_f64().map_or(f64::NAN, f64::ln);
    let saved = [Save::Input(Some(exponent)), Save::Output(0)];
    record("PowBackward2", &[exponent], &[&output], &saved, move |ctx, grads| {
        if logarithm == f64::NEG_INFINITY {
            crate::session().mark_estimated("PowBackward2", "a base of 0 was not recorded");
        }
        let product = scale(&ctx.saved(1)?, logarithm)?;
        Ok(vec![Some(mul(first(grads)?, &product)?)])
    })?;
    Ok(output)
}

/// `clamp` with numbers, or `None`, as bounds.
pub(crate) fn clamp(tensor: &Tensor, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
    let bounds: Vec<Tensor> = [low, high].into_iter().flatten().map(wrapped).collect();
    let mut inputs = vec![tensor];
    inputs.extend(&bounds);
    let dtype = result_type(&inputs);
    let output = elementwise(&[&in_type(tensor, dtype)?], dtype, None)?;
    record_clamp(tensor, &output, tensor, low, high)?;
    Ok(output)
}

fn record_clamp(
    tensor: &Tensor,
    output: &Tensor,
    saved: &Tensor,
    low: Option<Scalar>,
    high: Option<Scalar>,
) -> Result<()> {
    record("ClampBackward1", &[tensor], &[output], &[Save::Input(Some(saved))], move |ctx, grads| {
        let (grad, own) = (first(grads)?, ctx.saved(0)?);
        Ok(vec![Some(clamp_backward(grad, &own, low, high)?)])
    })
}

/// `clamp_backward`: `where(self within bounds, grad, 0)`.
fn clamp_backward(grad: &Tensor, own: &Tensor, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
    crate::autograd::again::variant(match (low, high) {
        (Some(_), Some(_)) => "both bounds",
        (Some(_), None) => "lower bound",
        (None, Some(_)) => "upper bound",
        (None, None) => "no bound",
    });
    let zero = creation::zeros(&[], grad.dtype(), grad.device())?;
    match (low, high) {
        (Some(low), Some(high)) => {
            // (self >= low).logical_and_(self <= high): both masks live to the end of the expression.
            let below = le(own, &wrapped(high))?;
            let within = ge(own, &wrapped(low))?;
            logical_and_in_place(&within, &below)?;
            where_(&within, grad, &zero)
        }
        (Some(low), None) => where_(&ge(own, &wrapped(low))?, grad, &zero),
        (None, Some(high)) => where_(&le(own, &wrapped(high))?, grad, &zero),
        (None, None) => Ok(grad.clone()),
    }
}

fn logical_and_in_place(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    elementwise_in_place(&[a, b], Dtype::Bool, Some(exact::logical_and))?;
    Ok(a.clone())
}

fn clamp_in_place(tensor: &Tensor, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
    let original = kept_for_gradient(tensor)?;
    elementwise_in_place(&[tensor], tensor.dtype(), None)?;
    record_clamp(tensor, tensor, original.as_ref().unwrap_or(tensor), low, high)?;
    Ok(tensor.clone())
}

fn clamp_call(args: &Args) -> Result<Value> {
    Ok(clamp(&args.t(0)?, args.scalar_opt(1)?, args.scalar_opt(2)?)?.into())
}

/// `addcmul` and `addcdiv`.
fn addc(args: &Args, divides: bool, in_place: bool) -> Result<Value> {
    let (own, a, b, value) = (args.t(0)?, args.t(1)?, args.t(2)?, args.scalar(3)?);
    let cast = Cast::widest(&[&own, &a, &b]);
    let (own, a, b) =
        if in_place { (own, a, b) } else { (cast.apply(&own)?, cast.apply(&a)?, cast.apply(&b)?) };
    let dtype = result_type(&[&own, &a, &b]);
    let output = if in_place {
        elementwise_in_place(&[&own, &a, &b], dtype, None)?;
        own.clone()
    } else {
        elementwise(&[&own, &a, &b], dtype, None)?
    };
    let node = if divides { "AddcdivBackward0" } else { "AddcmulBackward0" };
    let (needs_a, needs_b) = (a.requires_grad(), b.requires_grad());
    let saved = [Save::InputIf(needs_b, &a), Save::InputIf(needs_a || (divides && needs_b), &b)];
    record(node, &[&own, &a, &b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let to_own = ctx.wants(0).then(|| grad.clone());
        let to_a = if ctx.wants(1) {
            let b = ctx.saved(1)?;
            // `value / tensor2`: a filled tensor, divided in place.
            let factor = if divides { super::kernels::one_over(&b)? } else { mul(&b, &wrapped(value))? };
            Some(mul(grad, &factor)?)
        } else {
            None
        };
        let to_b = if ctx.wants(2) {
            let a = ctx.saved(0)?;
            let factor = wrapped(value);
            Some(if divides {
                let b = ctx.saved(1)?;
                // C++ evaluates the right operand first.
                let square = mul(&b, &b)?;
                let scaled = mul(&a, &factor)?;
                let ratio = div(&scaled, &square)?;
                let negative = unary::neg(grad)?;
                mul(&negative, &ratio)?
            } else {
                mul(grad, &mul(&a, &factor)?)?
            })
        } else {
            None
        };
        Ok(vec![to_own, to_a, to_b])
    })?;
    Ok(output.into())
}

fn lerp(args: &Args, in_place: bool) -> Result<Value> {
    let (own, end) = (args.t(0)?, args.t(1)?);
    let weight = args.operand(2)?;
    let is_number = weight.is_wrapped_number();
    let inputs: Vec<&Tensor> = if is_number { vec![&own, &end] } else { vec![&own, &end, &weight] };
    let output = if in_place {
        elementwise_in_place(&inputs, own.dtype(), None)?;
        own.clone()
    } else {
        elementwise(&inputs, result_type(&inputs), None)?
    };
    let saved = if is_number { vec![Save::Input(None)] } else { vec![Save::Input(Some(&weight))] };
    let number = crate::schema::known_or_unknown(&weight);
    record("LerpBackward0", &[&own, &end], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let weight = ctx.saved_optional(0)?.unwrap_or_else(|| wrapped(number));
        let to_end = if ctx.wants(1) { Some(mul(grad, &weight)?) } else { None };
        let to_own = if ctx.wants(0) {
            Some(mul(grad, &rsub(&weight, &wrapped(Scalar::Int(1)), Scalar::Int(1))?)?)
        } else {
            None
        };
        Ok(vec![to_own, to_end])
    })?;
    Ok(output.into())
}

fn both(args: &Args) -> Result<(Tensor, Tensor)> {
    Ok((args.operand(0)?, args.operand(1)?))
}

macro_rules! binary {
    ($($name:literal $kind:ident),* $(,)?) => {
        &[$(
            op(concat!($name, "(Operand self, Operand other)"), |a| {
                let (x, y) = both(a)?;
                Ok($kind.call(&x, &y)?.into())
            }),
            op(concat!($name, "_(Tensor self, Operand other)"), |a| {
                let (x, y) = both(a)?;
                Ok($kind.call_in_place(&x, &y)?.into())
            }),
        )*]
    };
}

pub(crate) const BINARY: &[Entry] = binary! {
    "mul" MUL, "multiply" MUL, "maximum" MAXIMUM, "minimum" MINIMUM, "atan2" ATAN2, "floor_divide" FLOOR_DIVIDE,
    "eq" EQ, "ne" NE, "lt" LT, "le" LE, "gt" GT, "ge" GE, "greater" GT, "less" LT,
    "logical_and" LOGICAL_AND, "logical_or" LOGICAL_OR, "logical_xor" LOGICAL_XOR, "bitwise_and" BITWISE,
    "bitwise_or" BITWISE, "bitwise_xor" BITWISE, "__and__" BITWISE, "__or__" BITWISE, "__xor__" BITWISE,
    "__lshift__" BITWISE, "__rshift__" BITWISE, "fmax" MAXIMUM, "fmin" MINIMUM,
};

fn div_call(args: &Args, in_place: bool) -> Result<Value> {
    let (a, b) = both(args)?;
    let kind = match args.value(2)? {
        Value::Str(mode) if &**mode == "floor" || &**mode == "trunc" => {
            if b.is_wrapped_number() {
                &DIV_ROUNDED_BY_NUMBER
            } else {
                &DIV_ROUNDED
            }
        }
        _ => &DIV,
    };
    Ok(if in_place { kind.call_in_place(&a, &b)? } else { kind.call(&a, &b)? }.into())
}

/// `remainder` and `fmod`: by a number nothing is saved.
fn modulo(args: &Args, kinds: [&'static Binary; 2], in_place: bool) -> Result<Value> {
    let (a, b) = both(args)?;
    let kind = kinds[usize::from(b.is_wrapped_number())];
    Ok(if in_place { kind.call_in_place(&a, &b)? } else { kind.call(&a, &b)? }.into())
}

const REMAINDERS: [&Binary; 2] = [&REMAINDER_OF_TENSORS, &REMAINDER_BY_NUMBER];
const FMODS: [&Binary; 2] = [&FMOD_OF_TENSORS, &FMOD_BY_NUMBER];

pub(crate) const TABLE: &[Entry] = &[
    op("remainder(Operand self, Operand other)", |a| modulo(a, REMAINDERS, false)),
    op("remainder_(Tensor self, Operand other)", |a| modulo(a, REMAINDERS, true)),
    op("fmod(Operand self, Operand other)", |a| modulo(a, FMODS, false)),
    op("fmod_(Tensor self, Operand other)", |a| modulo(a, FMODS, true)),
    op("add(Operand self, Operand other, *, Scalar alpha=1)", |a| {
        let (x, y) = both(a)?;
        Ok(add_scaled(&x, &y, a.scalar(2)?)?.into())
    }),
    op("add_(Tensor self, Operand other, *, Scalar alpha=1)", |a| {
        let (x, y) = both(a)?;
        Ok(add_scaled_in_place(&x, &y, a.scalar(2)?)?.into())
    }),
    op("sub(Operand self, Operand other, *, Scalar alpha=1)", |a| {
        let (x, y) = both(a)?;
        Ok(sub_scaled(&x, &y, a.scalar(2)?)?.into())
    }),
    op("sub_(Tensor self, Operand other, *, Scalar alpha=1)", |a| {
        let (x, y) = both(a)?;
        Ok(sub_in_place(&x, &y, a.scalar(2)?)?.into())
    }),
    op("rsub(Tensor self, Operand other, *, Scalar alpha=1)", |a| {
        let (x, y) = both(a)?;
        Ok(rsub(&x, &y, a.scalar(2)?)?.into())
    }),
    op("div(Operand self, Operand other, *, str? rounding_mode=None)", |a| div_call(a, false)),
    op("div_(Tensor self, Operand other, *, str? rounding_mode=None)", |a| div_call(a, true)),
    op("divide(Operand self, Operand other, *, str? rounding_mode=None)", |a| div_call(a, false)),
    op("true_divide(Operand self, Operand other, *, str? rounding_mode=None)", |a| div_call(a, false)),
    op("pow(Operand self, Operand exponent)", pow),
    op("pow_(Tensor self, Scalar exponent)", |a| {
        let tensor = a.t(0)?;
        super::vector_norm::pow_in_place(&tensor, a.scalar(1)?.to_f64().unwrap_or(f64::NAN))?;
        Ok(tensor.into())
    }),
    op("where(Tensor condition, Operand input, Operand other)", |a| {
        Ok(where_(&a.t(0)?, &a.operand(1)?, &a.operand(2)?)?.into())
    }),
    op("masked_fill(Tensor self, Tensor mask, Operand value)", |a| {
        Ok(masked_fill(&a.t(0)?, &a.t(1)?, &a.operand(2)?)?.into())
    }),
    op("masked_fill_(Tensor self, Tensor mask, Operand value)", |a| {
        Ok(masked_fill_in_place(&a.t(0)?, &a.t(1)?, &a.operand(2)?)?.into())
    }),
    op("clamp(Tensor self, Scalar? min=None, Scalar? max=None)", clamp_call),
    op("clip(Tensor self, Scalar? min=None, Scalar? max=None)", clamp_call),
    op("clamp_min(Tensor self, Scalar min)", |a| Ok(clamp(&a.t(0)?, Some(a.scalar(1)?), None)?.into())),
    op("clamp_max(Tensor self, Scalar max)", |a| Ok(clamp(&a.t(0)?, None, Some(a.scalar(1)?))?.into())),
    op("clamp_(Tensor self, Scalar? min=None, Scalar? max=None)", |a| {
        Ok(clamp_in_place(&a.t(0)?, a.scalar_opt(1)?, a.scalar_opt(2)?)?.into())
    }),
    op("clamp_min_(Tensor self, Scalar min)", |a| {
        Ok(clamp_in_place(&a.t(0)?, Some(a.scalar(1)?), None)?.into())
    }),
    op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", |a| addc(a, false, false)),
    op("addcmul_(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", |a| addc(a, false, true)),
    op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", |a| addc(a, true, false)),
    op("addcdiv_(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", |a| addc(a, true, true)),
    op("lerp(Tensor self, Tensor end, Operand weight)", |a| lerp(a, false)),
    op("lerp_(Tensor self, Tensor end, Operand weight)", |a| lerp(a, true)),
];
