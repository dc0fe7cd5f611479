//! Operators of two tensors that differ in their types, in what they save and in their gradients.

use crate::autograd::{Context, EarlyInputs, Gradients, Save, nodes, record_after, save_early};
use crate::error::runtime;
use crate::iterator::{broadcast, common_device};
use crate::registry::{Entry, op};
use crate::{Result, Scalar, Tensor};

use super::super::creation::{self, wrapped, zeros_like};
use super::super::host_values::{self, Function};
use super::super::unary;
use super::super::views::first;
use super::{
    Rule, add, copy_before, dtype_by, elementwise, elementwise_in_place, look_at_zeros, masked_fill,
    masked_fill_in_place, sub, where_,
};

/// What an operator of two tensors saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Saves {
    Nothing,
    /// Each operand if the other one requires a gradient.
    Crosswise,
    /// `other` always, `self` if `other` requires a gradient.
    Division,
    Both,
    BothAndResult,
    /// Both, if `other` requires a gradient.
    BothForOther,
    /// Each operand that requires a gradient, and the result.
    EachForItselfAndResult,
    /// `self` if it requires a gradient, and the result.
    OwnForItselfAndResult,
}

/// An operator of two tensors.
pub(in crate::ops) struct Binary {
    pub(in crate::ops) node: &'static str,
    pub(in crate::ops) rule: Rule,
    pub(in crate::ops) saves: Saves,
    pub(in crate::ops) function: Option<Function>,
    /// The gradients of both operands from that of the result. The saved tensors are `other` at 0, `self` at
    /// 1 and the result at 2; a tensor that the operator never saves takes no number.
    pub(in crate::ops) backward: fn(&Context<'_>, &Tensor) -> Result<Gradients>,
}

impl Binary {
    pub(in crate::ops) fn call(&'static self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
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

    pub(in crate::ops) fn call_in_place(&'static self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
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
        self.record(EarlyInputs::default(), a, b, a, original.as_ref())?;
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
        early: EarlyInputs,
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

#[expect(clippy::unnecessary_wraps, reason = "the form of a backward function")]
fn no_gradient(_: &Context<'_>, _: &Tensor) -> Result<Gradients> {
    Ok(vec![None, None])
}

static MUL: Binary = Binary {
    node: nodes::MulBackward0,
    rule: Rule::Promoted,
    saves: Saves::Crosswise,
    function: Some(host_values::mul),
    backward: |ctx, grad| {
        let other = ctx.gradient(1, || mul(grad, &ctx.saved(1)?))?;
        let own = ctx.gradient(0, || mul(grad, &ctx.saved(0)?))?;
        Ok(vec![own, other])
    },
};

static DIV: Binary = Binary {
    node: nodes::DivBackward0,
    rule: Rule::Float,
    saves: Saves::Division,
    function: Some(host_values::div),
    backward: |ctx, grad| {
        let divisor = ctx.saved(0)?;
        let other = if ctx.wants(1) {
            let dividend = ctx.saved(1)?;
            // C++ evaluates the right factor first, and temporaries live to the end of the expression.
            let quotient = div(&dividend, &divisor)?;
            let quotient = (div(&quotient, &divisor)?, quotient);
            let negative = unary::neg(grad)?;
            let result = mul(&negative, &quotient.0)?;
            drop(negative);
            Some(result)
        } else {
            None
        };
        let own = ctx.gradient(0, || div(grad, &divisor))?;
        Ok(vec![own, other])
    },
};

/// The backward function of `maximum` and `minimum`: where the inputs are equal, each gets half of the
/// gradient.
fn extremum(ctx: &Context<'_>, grad: &Tensor, loses: &'static Binary) -> Result<Gradients> {
    let (other, input) = (ctx.saved(0)?, ctx.saved(1)?);
    let half = |wants: bool, a: &Tensor, b: &Tensor| -> Result<Option<Tensor>> {
        if !wants {
            return Ok(None);
        }
        // at::where(a == b, grad / 2, grad).masked_fill_(a lost to b, 0)
        // C++ evaluates the arguments last to first, and all temporaries live until the statement ends.
        let halved = div(grad, &wrapped(Scalar::Int(2)))?;
        let equal = EQ.call(&input, &other)?;
        let result = where_(&equal, &halved, grad)?;
        let lost = loses.call(a, b)?;
        masked_fill_in_place(&result, &lost, &wrapped(Scalar::Int(0)))?;
        drop(lost);
        drop(equal);
        drop(halved);
        Ok(Some(result))
    };
    let to_other = half(ctx.wants(1), &other, &input)?;
    let grad_input = half(ctx.wants(0), &input, &other)?;
    Ok(vec![grad_input, to_other])
}

static MAXIMUM: Binary = Binary {
    node: nodes::MaximumBackward0,
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: Some(host_values::maximum),
    backward: |ctx, grad| extremum(ctx, grad, &LT),
};

static MINIMUM: Binary = Binary {
    node: nodes::MinimumBackward0,
    rule: Rule::Promoted,
    saves: Saves::Both,
    function: Some(host_values::minimum),
    backward: |ctx, grad| extremum(ctx, grad, &GT),
};

/// `pow` of two tensors.
pub(super) static POW: Binary = Binary {
    node: nodes::PowBackward1,
    rule: Rule::Promoted,
    saves: Saves::BothAndResult,
    function: None,
    backward: |ctx, grad| {
        let (exponent, base) = (ctx.saved(0)?, ctx.saved(1)?);
        let to_exponent = ctx.gradient(1, || {
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
            mul(grad, &chosen)
        })?;
        let to_base = ctx.gradient(0, || {
            // C++ evaluates the last argument of `where` first.
            let less = sub(&exponent, &wrapped(Scalar::Int(1)))?;
            let power = POW.call(&base, &less)?;
            let product = mul(&exponent, &power)?;
            let slope = mul(grad, &product)?;
            let zeros = creation::zeros(&[], grad.dtype(), grad.device())?;
            let is_zero = EQ.call(&exponent, &wrapped(Scalar::Int(0)))?;
            where_(&is_zero, &zeros, &slope)
        })?;
        Ok(vec![to_base, to_exponent])
    },
};

static ATAN2: Binary = Binary {
    node: nodes::Atan2Backward0,
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
            if crate::autograd::GradMode::is_enabled() {
                masked_fill(&reciprocal, &is_zero, &wrapped(Scalar::Int(0)))?
            } else {
                let zero = wrapped(Scalar::Int(0));
                let arguments = [reciprocal.into(), (&is_zero).into(), zero.into()];
                crate::call("masked_fill_", &arguments, &[])?.tensor()?
            }
        };
        // One statement of C++ makes both gradients: its temporaries live to the end of the statement.
        let (mut on_the_way, mut to_own, mut to_other) = (Vec::new(), None, None);
        if ctx.wants(0) {
            let product = mul(grad, &other)?;
            to_own = Some(mul(&product, &reciprocal)?);
            on_the_way.push(product);
        }
        if ctx.wants(1) {
            let negative = unary::neg(&own)?;
            let product = mul(grad, &negative)?;
            to_other = Some(mul(&product, &reciprocal)?);
            on_the_way.extend([negative, product]);
        }
        while on_the_way.pop().is_some() {}
        Ok(vec![to_own, to_other])
    },
};

static FLOOR_DIVIDE: Binary = Binary {
    node: "NotImplemented",
    rule: Rule::Promoted,
    saves: Saves::Nothing,
    function: Some(host_values::floor_div),
    backward: |_, _| runtime("derivative for aten::floor_divide is not implemented"),
};

fn flat(ctx: &Context<'_>, grad: &Tensor) -> Result<Gradients> {
    let to_other = ctx.gradient(1, || zeros_like(grad))?;
    let grad_input = ctx.gradient(0, || zeros_like(grad))?;
    Ok(vec![grad_input, to_other])
}

/// `div` with a rounding mode: both gradients are zeros.
const ROUNDED: Binary = Binary {
    node: nodes::DivBackward2,
    rule: Rule::Promoted,
    saves: Saves::Division,
    function: Some(host_values::floor_div),
    backward: flat,
};

static DIV_ROUNDED: Binary = ROUNDED;
static DIV_ROUNDED_BY_NUMBER: Binary = Binary { node: nodes::DivBackward3, saves: Saves::Nothing, ..ROUNDED };

/// `-grad * self.div(other, rounding_mode)`.
fn remainder_backward(ctx: &Context<'_>, grad: &Tensor) -> Result<Gradients> {
    let to_other = ctx.gradient(1, || {
        let quotient = DIV_ROUNDED.call(&ctx.saved(1)?, &ctx.saved(0)?)?;
        let negative = unary::neg(grad)?;
        mul(&negative, &quotient)
    })?;
    Ok(vec![ctx.wants(0).then(|| grad.clone()), to_other])
}

const REMAINDER: Binary = Binary {
    node: nodes::RemainderBackward1,
    rule: Rule::Promoted,
    saves: Saves::BothForOther,
    function: Some(host_values::remainder),
    backward: remainder_backward,
};

const FMOD: Binary = Binary { function: Some(host_values::fmod), ..REMAINDER };
static REMAINDER_OF_TENSORS: Binary = REMAINDER;
static REMAINDER_BY_NUMBER: Binary =
    Binary { node: nodes::RemainderBackward0, saves: Saves::Nothing, backward: pass_on, ..REMAINDER };
static FMOD_OF_TENSORS: Binary = Binary { node: nodes::FmodBackward1, ..FMOD };
static FMOD_BY_NUMBER: Binary =
    Binary { node: nodes::FmodBackward0, saves: Saves::Nothing, backward: pass_on, ..FMOD };

#[expect(clippy::unnecessary_wraps, reason = "the form of a backward function")]
fn pass_on(ctx: &Context<'_>, grad: &Tensor) -> Result<Gradients> {
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
    EQ Some(host_values::eq);
    NE Some(host_values::ne);
    LT Some(host_values::lt);
    LE Some(host_values::le);
    GT Some(host_values::gt);
    GE Some(host_values::ge);
    LOGICAL_AND Some(host_values::logical_and);
    LOGICAL_OR Some(host_values::logical_or);
    LOGICAL_XOR None;
}

/// Bitwise operators: the result has the promoted type, and no gradient exists.
static BITWISE: Binary =
    Binary { node: "", rule: Rule::Promoted, saves: Saves::Nothing, function: None, backward: no_gradient };
static BITWISE_AND: Binary = Binary { function: Some(host_values::bitwise_and), ..BITWISE };
static BITWISE_OR: Binary = Binary { function: Some(host_values::bitwise_or), ..BITWISE };
static BITWISE_XOR: Binary = Binary { function: Some(host_values::bitwise_xor), ..BITWISE };

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

macro_rules! binary {
    ($($name:literal $kind:ident $($attribute:ident $node:ident)?),* $(,)?) => {
        &[$(
            op!(concat!($name, "(Operand self, Operand other)"), |own: &Tensor, other: &Tensor| {
                $kind.call(own, other)
            })$(.$attribute(&[nodes::$node]))?,
            op!(concat!($name, "_(Tensor self, Operand other)"), |own: &Tensor, other: &Tensor| {
                $kind.call_in_place(own, other)
            }),
        )*]
    };
}

/// The operators of two operands that have no other arguments, each with its variant in place.
pub(crate) const BINARY: &[Entry] = binary! {
    "mul" MUL composed MulBackward0,
    "multiply" MUL, "maximum" MAXIMUM, "minimum" MINIMUM, "atan2" ATAN2, "floor_divide" FLOOR_DIVIDE,
    "eq" EQ, "ne" NE, "lt" LT, "le" LE, "gt" GT, "ge" GE, "greater" GT, "less" LT,
    "logical_and" LOGICAL_AND, "logical_or" LOGICAL_OR, "logical_xor" LOGICAL_XOR, "bitwise_and" BITWISE_AND,
    "bitwise_or" BITWISE_OR, "bitwise_xor" BITWISE_XOR, "__and__" BITWISE_AND, "__or__" BITWISE_OR,
    "__xor__" BITWISE_XOR,
    "__lshift__" BITWISE, "__rshift__" BITWISE, "bitwise_left_shift" BITWISE, "bitwise_right_shift" BITWISE,
};

/// The kind of division: rounded ones have no gradient.
fn division(divisor: &Tensor, rounding: Option<&str>) -> &'static Binary {
    match rounding {
        Some("floor" | "trunc") if divisor.is_wrapped_number() => &DIV_ROUNDED_BY_NUMBER,
        Some("floor" | "trunc") => &DIV_ROUNDED,
        _ => &DIV,
    }
}

/// `div(rounding_mode)`.
pub(super) fn div_rounded(input: &Tensor, other: &Tensor, rounding: Option<&str>) -> Result<Tensor> {
    division(other, rounding).call(input, other)
}

/// `div_(rounding_mode)`.
pub(super) fn div_rounded_in_place(input: &Tensor, other: &Tensor, rounding: Option<&str>) -> Result<Tensor> {
    division(other, rounding).call_in_place(input, other)
}

/// `remainder` and `fmod`: by a number nothing is saved.
pub(super) fn modulo(
    input: &Tensor,
    other: &Tensor,
    kinds: [&'static Binary; 2],
    in_place: bool,
) -> Result<Tensor> {
    let kind = kinds[usize::from(other.is_wrapped_number())];
    if in_place { kind.call_in_place(input, other) } else { kind.call(input, other) }
}

/// `remainder` by a tensor, and by a number.
pub(super) const REMAINDERS: [&Binary; 2] = [&REMAINDER_OF_TENSORS, &REMAINDER_BY_NUMBER];
/// `fmod` by a tensor, and by a number.
pub(super) const FMODS: [&Binary; 2] = [&FMOD_OF_TENSORS, &FMOD_BY_NUMBER];
