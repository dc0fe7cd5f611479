//! Elementwise operators of one tensor, and activations.

use crate::arguments::{Rest, Unread};
use crate::autocast::Cast;
use crate::autograd::{EarlyInputs, Save, nodes, record, record_after, save_early};
use crate::registry::{Entry, in_place, op};
use crate::{Dtype, Result, Scalar, Tensor};

use super::creation::{wrapped, zeros_like};
use super::host_values::{self, Function};
use super::kernels::{self, no_slope, number, run_kernel};
use super::pointwise::{
    Rule, add, div, dtype_by, elementwise, elementwise_in_place, kept_for_gradient, mul, pow_scalar, scale,
    sub,
};
use super::views::first;

/// What an operator of one tensor saves for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saves {
    Nothing,
    Input,
    Output,
    InputAndOutput,
    /// No gradient flows at all.
    NoGradient,
}

/// An elementwise operator of one tensor.
struct Unary {
    node: &'static str,
    rule: Rule,
    saves: Saves,
    /// Whether the operator in place saves the result instead of the input, so that no copy of the input is
    /// needed.
    keeps_result_in_place: bool,
    /// Whether the operator runs in `float32` under autocast.
    is_full: bool,
    /// The function of small tensors of the host, whose values stay known; `None` where results are not
    /// computed.
    function: Option<Function>,
    /// The gradient of the input, from the gradient of the result and the saved tensor.
    backward: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

impl Unary {
    fn call(&'static self, tensor: &Tensor) -> Result<Tensor> {
        let cast = if self.is_full { Some(Cast::full(tensor.device())) } else { None };
        let tensor = &match &cast {
            Some(cast) => cast.apply(tensor)?,
            None => tensor.clone(),
        };
        let early = if self.saves == Saves::Input {
            save_early(&[tensor], &[Save::Input(Some(tensor))])?
        } else {
            EarlyInputs::default()
        };
        let output = elementwise(&[tensor], dtype_by(self.rule, &[tensor]), self.function)?;
        self.record(early, tensor, &output, tensor)?;
        Ok(output)
    }

    fn call_in_place(&'static self, tensor: &Tensor) -> Result<Tensor> {
        let keeps = matches!(self.saves, Saves::Input | Saves::InputAndOutput) && !self.keeps_result_in_place;
        let original = if keeps { kept_for_gradient(tensor)? } else { None };
        elementwise_in_place(&[tensor], tensor.dtype(), self.function)?;
        self.record(EarlyInputs::default(), tensor, tensor, original.as_ref().unwrap_or(tensor))?;
        Ok(tensor.clone())
    }

    fn record(
        &'static self,
        early: EarlyInputs,
        tensor: &Tensor,
        output: &Tensor,
        saved: &Tensor,
    ) -> Result<()> {
        let saves: &[Save<'_>] = match self.saves {
            Saves::NoGradient => return Ok(()),
            Saves::Nothing => &[],
            Saves::Input => &[Save::Input(Some(saved))],
            Saves::Output => &[Save::Output(0)],
            Saves::InputAndOutput => &[Save::Input(Some(saved)), Save::Output(0)],
        };
        let is_in_place = output.is_same(tensor) && !crate::autograd::is_in_formula();
        record_after(early, self.node, &[tensor], &[output], saves, move |ctx, grads| {
            if is_in_place {
                crate::autograd::double_backward::set_variant(crate::autograd::double_backward::IN_PLACE);
            }
            let grad = first(grads)?;
            let saved = ctx.saved_optional(0)?;
            Ok(vec![Some((self.backward)(grad, saved.as_ref().unwrap_or(grad))?)])
        })
    }
}

fn zero(grad: &Tensor, _: &Tensor) -> Result<Tensor> {
    zeros_like(grad)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a backward function")]
fn unchanged(grad: &Tensor, _: &Tensor) -> Result<Tensor> {
    Ok(grad.clone())
}

macro_rules! unary {
    ($(
        $($attribute:ident)? $name:literal $(| $alias:literal)? $constant:ident $node:ident:
        dtype $rule:ident, saves $saves:ident, float32 $full:literal, values $function:expr => $backward:expr;
    )*) => {
        $(static $constant: Unary = Unary {
            node: nodes::$node,
            rule: Rule::$rule,
            saves: Saves::$saves,
            keeps_result_in_place: false,
            is_full: $full,
            function: $function,
            backward: $backward,
        };)*

        pub(crate) const TABLE: &[Entry] = &[$(
            op!(concat!($name, "(Tensor self)"), |tensor: &Tensor| $constant.call(tensor))$(.$attribute(&[nodes::$node]))?,
            op!(concat!($name, "_(Tensor self)"), |tensor: &Tensor| $constant.call_in_place(tensor)),
            $(
                op!(concat!($alias, "(Tensor self)"), |tensor: &Tensor| $constant.call(tensor)),
                op!(concat!($alias, "_(Tensor self)"), |tensor: &Tensor| $constant.call_in_place(tensor)),
            )?
        )*];
    };
}

unary! {
    composed "neg" | "negative" NEG NegBackward0: dtype Promoted, saves Nothing, float32 false, values Some(host_values::neg) => |grad, _| neg(grad);
    composed "abs" | "absolute" ABS AbsBackward0: dtype Promoted, saves Input, float32 false, values Some(host_values::abs) => |grad, own| mul(grad, &SGN.call(own)?);
    "sgn" SGN SgnBackward0: dtype Promoted, saves InputAndOutput, float32 false, values None => no_slope;
    "sign" SIGN SignBackward0: dtype Promoted, saves Nothing, float32 false, values Some(host_values::sign) => zero;
    "ceil" CEIL CeilBackward0: dtype Promoted, saves Nothing, float32 false, values Some(host_values::ceil) => zero;
    "floor" FLOOR FloorBackward0: dtype Promoted, saves Nothing, float32 false, values Some(host_values::floor) => zero;
    "trunc" TRUNC TruncBackward0: dtype Promoted, saves Nothing, float32 false, values Some(host_values::trunc) => zero;
    "frac" FRAC FracBackward0: dtype Promoted, saves Nothing, float32 false, values None => unchanged;
    composed "exp" EXP ExpBackward0: dtype Float, saves Output, float32 true, values None => mul;
    "exp2" EXP2 Exp2Backward0: dtype Float, saves Output, float32 false, values None => |grad, result| scale(&mul(grad, result)?, std::f64::consts::LN_2);
    "expm1" EXPM1 Expm1Backward0: dtype Float, saves Output, float32 true, values None => |grad, result| mul(grad, &add(result, &number(1.0))?);
    composed "log" LOG LogBackward0: dtype Float, saves Input, float32 true, values None => div;
    "log2" LOG2 Log2Backward0: dtype Float, saves Input, float32 true, values None => |grad, own| div(grad, &scale(own, std::f64::consts::LN_2)?);
    "log10" LOG10 Log10Backward0: dtype Float, saves Input, float32 true, values None => |grad, own| div(grad, &scale(own, std::f64::consts::LN_10)?);
    "log1p" LOG1P Log1PBackward0: dtype Float, saves Input, float32 true, values None => |grad, own| div(grad, &add(own, &number(1.0))?);
    composed "sqrt" SQRT SqrtBackward0: dtype Float, saves Output, float32 false, values Some(host_values::sqrt) => |grad, result| div(grad, &scale(result, 2.0)?);
    composed "rsqrt" RSQRT RsqrtBackward0: dtype Float, saves Output, float32 true, values None => |grad, result| {
        mul(&scale(grad, -0.5)?, &pow_scalar(result, Scalar::Int(3))?)
    };
    composed "reciprocal" RECIPROCAL ReciprocalBackward0: dtype Float, saves Output, float32 true, values Some(host_values::reciprocal) => |grad, result| {
        mul(&neg(grad)?, &mul(result, result)?)
    };
    composed "sin" SIN SinBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| mul(grad, &COS.call(own)?);
    composed "cos" COS CosBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| mul(grad, &neg(&SIN.call(own)?)?);
    "tan" TAN TanBackward0: dtype Float, saves Output, float32 true, values None => |grad, result| {
        mul(grad, &add(&pow_scalar(result, Scalar::Int(2))?, &number(1.0))?)
    };
    "asin" ASIN AsinBackward0: dtype Float, saves Input, float32 true, values None => |grad, own| {
        mul(grad, &RSQRT.call(&add(&mul(&neg(own)?, own)?, &number(1.0))?)?)
    };
    "acos" ACOS AcosBackward0: dtype Float, saves Input, float32 true, values None => |grad, own| {
        mul(grad, &neg(&RSQRT.call(&add(&mul(&neg(own)?, own)?, &number(1.0))?)?)?)
    };
    "atan" ATAN AtanBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| div(grad, &add(&mul(own, own)?, &number(1.0))?);
    "sinh" SINH SinhBackward0: dtype Float, saves Input, float32 true, values None => |grad, own| mul(grad, &COSH.call(own)?);
    "cosh" COSH CoshBackward0: dtype Float, saves Input, float32 true, values None => |grad, own| mul(grad, &SINH.call(own)?);
    "erf" ERF ErfBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        mul(&scale(&EXP.call(&neg(&pow_scalar(own, Scalar::Int(2))?)?)?, std::f64::consts::FRAC_2_SQRT_PI)?, grad)
    };
    "erfc" ERFC ErfcBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        mul(&scale(&EXP.call(&neg(&pow_scalar(own, Scalar::Int(2))?)?)?, -std::f64::consts::FRAC_2_SQRT_PI)?, grad)
    };
    "asinh" ASINH AsinhBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        mul(grad, &RSQRT.call(&add(&pow_scalar(own, Scalar::Int(2))?, &number(1.0))?)?)
    };
    "acosh" ACOSH AcoshBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        mul(grad, &RSQRT.call(&sub(&mul(own, own)?, &number(1.0))?)?)
    };
    "atanh" ATANH AtanhBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        // In C++ the temporaries of a statement live to the end of the statement.
        let square = pow_scalar(own, Scalar::Int(2))?;
        let right = kernels::one_minus(&square)?;
        div(&scale(grad, 1.0)?, &right)
    };
    "lgamma" LGAMMA LgammaBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| mul(grad, &DIGAMMA.call(own)?);
    "digamma" DIGAMMA DigammaBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| mul(grad, &super::special::polygamma(1, own)?);
    "erfinv" ERFINV ErfinvBackward0: dtype Float, saves Input, float32 true, values None => |grad, own| {
        let inverse = ERFINV.call(own)?;
        let square = pow_scalar(&inverse, Scalar::Int(2))?;
        let power = EXP.call(&square)?;
        let scaled = scale(&power, 0.5)?;
        mul(&scaled, grad)
    };
    "sinc" SINC SincBackward0: dtype Float, saves Input, float32 false, values None => sinc_backward;
    "deg2rad" DEG2RAD Deg2RadBackward0: dtype Float, saves Nothing, float32 false, values None => |grad, _| scale(grad, std::f64::consts::PI / 180.0);
    "rad2deg" RAD2DEG Rad2DegBackward0: dtype Float, saves Nothing, float32 false, values None => |grad, _| scale(grad, 180.0 / std::f64::consts::PI);
    "special_entr" ENTR SpecialEntrBackward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        mul(grad, &neg(&add(&LOG.call(own)?, &number(1.0))?)?)
    };
    "i0" I0 I0Backward0: dtype Float, saves Input, float32 false, values None => |grad, own| {
        mul(grad, &crate::call("special_i1", &[own.into()], &[])?.tensor()?)
    };
    "logical_not" LOGICAL_NOT NoNode: dtype Bool, saves NoGradient, float32 false, values Some(host_values::logical_not) => zero;
    "bitwise_not" BITWISE_NOT NoNode: dtype Promoted, saves NoGradient, float32 false, values Some(host_values::bitwise_not) => zero;
    "isnan" ISNAN NoNode: dtype Bool, saves NoGradient, float32 false, values Some(host_values::isnan) => zero;
    composed "tanh" TANH TanhBackward0: dtype Float, saves Output, float32 false, values None => kernels::tanh;
    composed "sigmoid" SIGMOID SigmoidBackward0: dtype Float, saves Output, float32 false, values None => kernels::sigmoid;
    composed "relu" RELU ReluBackward0: dtype Promoted, saves Output, float32 false, values Some(host_values::relu) => kernels::gate;
    composed "silu" SILU SiluBackward0: dtype Promoted, saves Input, float32 false, values None => kernels::silu;
    "mish" MISH MishBackward0: dtype Promoted, saves Input, float32 false, values None => kernels::mish;
    "hardswish" HARDSWISH HardswishBackward0: dtype Promoted, saves Input, float32 false, values None => kernels::hardswish;
    "hardsigmoid" HARDSIGMOID HardsigmoidBackward0: dtype Promoted, saves Input, float32 false, values None => kernels::hardsigmoid;
    "relu6" RELU6 HardtanhBackward0: dtype Promoted, saves Input, float32 false, values None => kernels::gate_of_hardtanh;
}

/// `sinc_backward`.
fn sinc_backward(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    let by_pi = scale(input, std::f64::consts::PI)?;
    let squared_by_pi = scale(&mul(input, input)?, std::f64::consts::PI)?;
    let slope = {
        let sine = SIN.call(&by_pi)?;
        let cosine = COS.call(&by_pi)?;
        let product = mul(&by_pi, &cosine)?;
        let difference = sub(&product, &sine)?;
        let ratio = div(&difference, &squared_by_pi)?;
        mul(grad, &ratio)?
    };
    let zero = super::creation::zeros(&[], grad.dtype(), grad.device())?;
    let is_zero = super::pointwise::eq(&squared_by_pi, &number(0.0))?;
    let result = super::pointwise::where_(&is_zero, &zero, &slope);
    drop(is_zero);
    drop(zero);
    drop(slope);
    drop(squared_by_pi);
    drop(by_pi);
    result
}

macro_rules! parametrized {
    ($($($attribute:ident)? $schema:literal $count:literal $constant:ident $node:ident $in_place:literal $backward:expr;)*) => {
        $(static $constant: Unary = Unary {
            node: nodes::$node,
            backward: $backward,
            ..PARAMETRIZED
        };)*

        pub(crate) const ACTIVATIONS: &[Entry] = &[$(
            op!($schema, |tensor: &Tensor, _: Rest<$count>| {
                if $in_place { $constant.call_in_place(tensor) } else { $constant.call(tensor) }
            })$(.$attribute(&[nodes::$node]))?,
        )*];
    };
}

const PARAMETRIZED: Unary = Unary {
    node: "",
    rule: Rule::Promoted,
    saves: Saves::Input,
    keeps_result_in_place: true,
    is_full: false,
    function: None,
    backward: run_kernel,
};

parametrized! {
    composed "leaky_relu(Tensor self, Scalar negative_slope=0.01)" 1 LEAKY_RELU LeakyReluBackward0 false kernels::gate_of_leaky_relu;
    "leaky_relu_(Tensor self, Scalar negative_slope=0.01)" 1 LEAKY_RELU_IN_PLACE LeakyReluBackward1 true kernels::gate_of_leaky_relu;
    "elu_(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)" 3 ELU_IN_PLACE EluBackward1 true kernels::elu_of_result;
    "celu_(Tensor self, Scalar alpha=1)" 1 CELU_IN_PLACE CeluBackward1 true kernels::elu_of_result;
    "selu(Tensor self)" 0 SELU EluBackward0 false kernels::elu;
    "selu_(Tensor self)" 0 SELU_IN_PLACE EluBackward0 true kernels::elu;
    composed "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)" 3 ELU EluBackward0 false kernels::elu;
    composed "celu(Tensor self, Scalar alpha=1)" 1 CELU CeluBackward0 false kernels::elu;
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)" 2 HARDTANH HardtanhBackward0 false kernels::gate_of_hardtanh;
    "threshold(Tensor self, Scalar threshold, Scalar value)" 2 THRESHOLD ThresholdBackward0 false kernels::gate;
    "threshold_(Tensor self, Scalar threshold, Scalar value)" 2 THRESHOLD_IN_PLACE ThresholdBackward1 true kernels::gate;
    "hardshrink(Tensor self, Scalar lambd=0.5)" 1 HARDSHRINK HardshrinkBackward0 false kernels::gate_of_shrink;
    "softshrink(Tensor self, Scalar lambd=0.5)" 1 SOFTSHRINK SoftshrinkBackward0 false kernels::gate_of_shrink;
}

static SOFTPLUS: Unary =
    Unary { node: nodes::SoftplusBackward0, backward: kernels::softplus, is_full: true, ..PARAMETRIZED };
/// `hardtanh_` has no separate derivative, so the input is kept.
static HARDTANH_IN_PLACE: Unary = Unary { keeps_result_in_place: false, ..HARDTANH };
static GELU: Unary = Unary { node: nodes::GeluBackward0, backward: kernels::gelu, ..PARAMETRIZED };
static GELU_TANH: Unary = Unary { node: nodes::GeluBackward0, backward: kernels::gelu_tanh, ..PARAMETRIZED };

fn gelu(tensor: &Tensor, approximate: &str) -> Result<crate::Value> {
    let gelu = if approximate == "tanh" { &GELU_TANH } else { &GELU };
    Ok(gelu.call(tensor)?.into())
}

pub(crate) fn neg(tensor: &Tensor) -> Result<Tensor> {
    NEG.call(tensor)
}

pub(crate) fn log(tensor: &Tensor) -> Result<Tensor> {
    LOG.call(tensor)
}

pub(crate) fn exp(tensor: &Tensor) -> Result<Tensor> {
    EXP.call(tensor)
}

pub(crate) fn abs(tensor: &Tensor) -> Result<Tensor> {
    ABS.call(tensor)
}

pub(crate) fn sgn(tensor: &Tensor) -> Result<Tensor> {
    SGN.call(tensor)
}

pub(crate) fn reciprocal(tensor: &Tensor) -> Result<Tensor> {
    RECIPROCAL.call(tensor)
}

pub(crate) fn reciprocal_in_place(tensor: &Tensor) -> Result<Tensor> {
    RECIPROCAL.call_in_place(tensor)
}

pub(crate) fn tanh(tensor: &Tensor) -> Result<Tensor> {
    TANH.call(tensor)
}

pub(crate) fn sigmoid(tensor: &Tensor) -> Result<Tensor> {
    SIGMOID.call(tensor)
}

pub(crate) fn log1p(tensor: &Tensor) -> Result<Tensor> {
    LOG1P.call(tensor)
}

pub(crate) fn rsqrt(tensor: &Tensor) -> Result<Tensor> {
    RSQRT.call(tensor)
}

pub(crate) fn cosh(tensor: &Tensor) -> Result<Tensor> {
    COSH.call(tensor)
}

pub(crate) fn relu(tensor: &Tensor) -> Result<Tensor> {
    RELU.call(tensor)
}

pub(crate) fn logical_not(tensor: &Tensor) -> Result<Tensor> {
    LOGICAL_NOT.call(tensor)
}

/// `isinf`: `self.abs() == inf`.
fn isinf(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dtype().is_integral() {
        return super::creation::full(&tensor.shape(), Scalar::Bool(false), Dtype::Bool, tensor.device());
    }
    super::pointwise::eq(&abs(tensor)?, &number(f64::INFINITY))
}

/// `isfinite`: `(self == self) * (self.abs() != inf)`.
pub(super) fn isfinite(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dtype().is_integral() {
        return super::creation::ones(&tensor.shape(), Dtype::Bool, tensor.device());
    }
    // C++ evaluates the right factor first, and temporaries live to the end of the statement.
    let absolute = abs(tensor)?;
    let right = super::pointwise::ne(&absolute, &number(f64::INFINITY))?;
    let left = super::pointwise::eq(tensor, tensor)?;
    let result = mul(&left, &right);
    drop(left);
    drop(right);
    drop(absolute);
    result
}

/// `log_sigmoid`: the buffer of the forward pass is empty on a GPU.
fn log_sigmoid(tensor: &Tensor) -> Result<Tensor> {
    let output = elementwise(&[tensor], tensor.dtype(), None)?;
    record(nodes::LogSigmoidBackward0, &[tensor], &[&output], &[Save::Input(Some(tensor))], |ctx, grads| {
        Ok(vec![Some(kernels::log_sigmoid(first(grads)?, &ctx.saved(0)?)?)])
    })?;
    Ok(output)
}

static ROUND: Unary = Unary {
    node: nodes::RoundBackward0,
    saves: Saves::Nothing,
    function: Some(host_values::round_to_even),
    backward: zero,
    ..PARAMETRIZED
};

/// `round` to a number of decimals.
static ROUND_TO_DECIMALS: Unary =
    Unary { node: nodes::RoundBackward1, saves: Saves::Nothing, backward: zero, ..PARAMETRIZED };

fn rounding(decimals: i64) -> &'static Unary {
    if decimals == 0 { &ROUND } else { &ROUND_TO_DECIMALS }
}

/// `nan_to_num`: `grad * at::isfinite(self)`.
fn nan_to_num(tensor: &Tensor, in_place: bool) -> Result<Tensor> {
    let original = if in_place { kept_for_gradient(tensor)? } else { None };
    let output = if in_place {
        elementwise_in_place(&[tensor], tensor.dtype(), None)?;
        tensor.clone()
    } else {
        elementwise(&[tensor], tensor.dtype(), None)?
    };
    let saved = [Save::Input(Some(original.as_ref().unwrap_or(tensor)))];
    record(nodes::NanToNumBackward0, &[tensor], &[&output], &saved, |ctx, grads| {
        Ok(vec![Some(mul(first(grads)?, &isfinite(&ctx.saved(0)?)?)?)])
    })?;
    Ok(output)
}

/// The operators whose functions are written out here.
pub(crate) const OTHERS: &[Entry] = &[
    op!("hardtanh_(Tensor self, Scalar min_val=-1, Scalar max_val=1)", |tensor: &Tensor, _: Rest<2>| {
        HARDTANH_IN_PLACE.call_in_place(tensor)
    }),
    op!("round(Tensor self, *, int decimals=0)", |tensor: &Tensor, decimals: i64| {
        rounding(decimals).call(tensor)
    }),
    op!("round_(Tensor self, *, int decimals=0)", |tensor: &Tensor, decimals: i64| {
        rounding(decimals).call_in_place(tensor)
    }),
    op!("gelu(Tensor self, *, str approximate=none)", gelu),
    op!("isinf(Tensor self)", isinf),
    op!("isfinite(Tensor self)", isfinite),
    op!(
        "softplus(Tensor self, Scalar beta=1, Scalar threshold=20)",
        |tensor: &Tensor, _: Unread, _: Unread| SOFTPLUS.call(tensor)
    )
    .composed(&[nodes::SoftplusBackward0]),
    op!("square(Tensor self)", |tensor: &Tensor| pow_scalar(tensor, Scalar::Int(2))),
    in_place!("square_(Tensor self)", |tensor: &Tensor| super::vector_norm::pow_in_place(tensor, 2.0)),
    op!("log_sigmoid(Tensor self)", log_sigmoid),
    op!("logsigmoid(Tensor self)", log_sigmoid),
    op!("prelu(Tensor self, Tensor weight)", super::gated::prelu),
    op!("glu(Tensor self, int dim=-1)", super::gated::glu),
    op!("tanhshrink(Tensor self)", |tensor: &Tensor| sub(tensor, &tanh(tensor)?)),
    op!("softsign(Tensor self)", |tensor: &Tensor| {
        div(tensor, &add(&abs(tensor)?, &wrapped(Scalar::Int(1)))?)
    }),
    op!(
        "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)",
        |tensor: &Tensor, _: Unread, _: Unread, _: Unread| nan_to_num(tensor, false)
    ),
    op!(
        "nan_to_num_(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)",
        |tensor: &Tensor, _: Unread, _: Unread, _: Unread| nan_to_num(tensor, true)
    ),
];
