//! Losses.

use crate::arguments::{Argument, FromArgument, Unread, integer};
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, double_backward, nodes, record};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, op};
use crate::schema::ArgumentKind;
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy::{contiguous, to_dtype};
use super::creation::{empty, empty_like, wrapped, zeros_like};
use super::pointwise::{self, add, div, elementwise, mul, scale, sub};
use super::reduce::{self, mean, sum, sum_all, sum_cast};
use super::softmax::softmax;
use super::unary;
use super::views::{expand, first};

/// How the elements of a loss become one number (`reduction=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    None,
    Mean,
    Sum,
}

/// The argument is a text, or the number of the reduction in PyTorch's C++ (`at::Reduction`).
impl<'a> FromArgument<'a> for Reduction {
    const KINDS: &'static [ArgumentKind] = &[ArgumentKind::Any, ArgumentKind::Int];

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match argument.value() {
            Value::Str(text) => match &**text {
                "none" => Ok(Self::None),
                "mean" => Ok(Self::Mean),
                "sum" => Ok(Self::Sum),
                other => Err(crate::TorchError::Value(format!("{other} is not a valid value for reduction"))),
            },
            value => Ok(match integer(value)? {
                0 => Self::None,
                1 => Self::Mean,
                _ => Self::Sum,
            }),
        }
    }
}

impl Reduction {
    /// Notes the reduction as what a backward function branches on.
    pub(crate) fn note(self) {
        double_backward::set_variant(match self {
            Self::None => "none",
            Self::Mean => "mean",
            Self::Sum => "sum",
        });
    }
}

/// `apply_loss_reduction`.
pub(crate) fn reduced(loss: Tensor, reduction: Reduction) -> Result<Tensor> {
    match reduction {
        Reduction::None => Ok(loss),
        Reduction::Mean => mean(&loss, None, false, None),
        Reduction::Sum => sum_all(&loss),
    }
}

/// What PyTorch asks of the classes that a loss is given, in its order.
fn check_target(input: &Tensor, target: &Tensor) -> Result<()> {
    let batch = if input.dim() == 1 { 1 } else { input.size(0) };
    if target.dim() > 0 && target.size(0) != batch {
        return Err(crate::TorchError::Value(format!(
            "Expected input batch_size ({batch}) to match target batch_size ({}).",
            target.size(0)
        )));
    }
    let is_image = input.dim() > 2;
    iterator::same_device(
        &[(input, "self"), (target, "target")],
        if is_image { "nll_loss2d_forward" } else { "nll_loss_forward" },
    )?;
    if is_image {
        let mut expected = input.shape().to_vec();
        expected.remove(1);
        let (from, to) = (input.shape(), target.shape());
        if input.dim() != 4 && *to != *expected {
            return runtime(format!("Expected target size {expected:?}, got {to:?}"));
        }
        if target.dim() != input.dim() - 1 {
            return runtime(format!(
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
                target.dim()
            ));
        }
        if *to != *expected {
            return runtime(format!("size mismatch (got input: {from:?} , target: {to:?}"));
        }
    } else if target.dim() > 1 {
        return runtime("0D or 1D target tensor expected, multi-target not supported");
    }
    if !matches!(target.dtype(), Dtype::I64 | Dtype::U8) {
        let name = target.dtype().scalar_name();
        return runtime(match (target.device().is_cuda(), is_image) {
            (true, false) => {
                format!("\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for '{name}'")
            }
            _ => format!("expected scalar type Long but found {name}"),
        });
    }
    Ok(())
}

/// A class of the host whose value is known has to be one of the input's classes.
fn check_classes(input: &Tensor, target: &Tensor, ignored: i64) -> Result<()> {
    let classes = input.size(i64::from(input.dim() > 1));
    let mut known = target.values().into_iter().flatten().filter_map(Scalar::to_i64);
    match known.find(|class| *class != ignored && !(0..classes).contains(class)) {
        Some(class) => Err(crate::TorchError::Index(format!("Target {class} is out of bounds."))),
        None => Ok(()),
    }
}

/// `nll_loss` of one or two dimensions; `nll_loss2d` of more.
fn nll_loss(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    let cast = Cast::full(input.device());
    // The last argument is cast first.
    let weight = &cast.apply_optional(weight)?;
    let input = &cast.apply(input)?;
    if input.dim() == 0 {
        return runtime(format!("Expected 1 or more dimensions, got {}", input.dim()));
    }
    check_target(input, target)?;
    let no_grad = GradModeGuard::new(false);
    let output = if reduction == Reduction::None {
        empty(&target.shape(), input.dtype(), input.device())?
    } else {
        empty(&[], input.dtype(), input.device())?
    };
    let total_weight = empty(&[], input.dtype(), input.device())?;
    drop(no_grad);
    let saved = [
        Save::Input(Some(input)),
        Save::Input(Some(target)),
        Save::Input(weight.as_ref()),
        Save::Input(Some(&total_weight)),
    ];
    let is_image = input.dim() > 2;
    record(
        if is_image { nodes::NllLoss2DBackward0 } else { nodes::NllLossBackward0 },
        &[input],
        &[&output],
        &saved,
        move |ctx, grads| {
            let (input, grad, target, weight) =
                (ctx.saved(0)?, first(grads)?, ctx.saved(1)?, ctx.saved_optional(2)?);
            reduction.note();
            let no_grad = GradModeGuard::new(false);
            let result = zeros_like(&input)?;
            // Without a reduction the kernel reads a gradient for each row.
            let read =
                if reduction == Reduction::None && input.dim() == 2 { Some(contiguous(grad)?) } else { None };
            drop(read);
            drop(no_grad);
            let node =
                if is_image { nodes::NllLoss2DBackwardBackward0 } else { nodes::NllLossBackwardBackward0 };
            let saves = [Save::Input(Some(&target)), Save::Input(weight.as_ref())];
            record(node, &[grad, &input], &[&result], &saves, move |ctx, grads| {
                let grad_grad = first(grads)?;
                let (target, weight) = (ctx.saved(0)?, ctx.saved_optional(1)?);
                let to_grad = ctx.gradient(0, || nll_loss(grad_grad, &target, weight.as_ref(), reduction))?;
                let grad_input = ctx.gradient(1, || zeros_like(grad_grad))?;
                Ok(vec![to_grad, grad_input])
            })?;
            Ok(vec![Some(result)])
        },
    )?;
    drop(total_weight);
    Ok(output)
}

/// `cross_entropy_loss`.
fn cross_entropy(
    own: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
    ignored: i64,
    smoothing: f64,
) -> Result<Value> {
    let class_dim = i64::from(own.dim() > 1);
    if own.shape() == target.shape() && target.dtype().is_floating() {
        return cross_entropy_of_probabilities(own, target, weight, reduction, smoothing);
    }
    // The type is named, so that autocast leaves it.
    let input = softmax(own, class_dim, Some(own.dtype()), true)?;
    if smoothing > 0.0 {
        return label_smoothing(&input, target, weight, reduction, class_dim, smoothing);
    }
    let loss = nll_loss(&input, target, weight, reduction)?;
    check_classes(&input, target, ignored)?;
    Ok(loss.into())
}

fn sum_cast_all(tensor: &Tensor) -> Result<Tensor> {
    sum_cast(tensor, None, false, None)
}

fn label_smoothing(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
    class_dim: i64,
    smoothing: f64,
) -> Result<Value> {
    let classes = input.size(class_dim) as f64;
    let loss = nll_loss(input, target, weight, reduction)?;
    if weight.is_some() {
        crate::session().note_estimate("cross_entropy_loss", "label smoothing with weights was not recorded");
    }
    let smooth = unary::neg(&sum_cast(input, Some(&[class_dim]), false, None)?)?;
    let ignored = pointwise::eq(target, &wrapped(Scalar::Int(-100)))?;
    crate::call("masked_fill_", &[(&smooth).into(), (&ignored).into(), 0.0.into()], &[])?;
    let result = match reduction {
        Reduction::None => smooth.clone(),
        Reduction::Sum => sum_cast_all(&smooth)?,
        Reduction::Mean => {
            let kept = crate::call("bitwise_not", &[(&ignored).into()], &[])?.tensor()?;
            let count = sum_cast_all(&kept)?;
            let total = sum_cast_all(&smooth)?;
            div(&total, &count)?
        }
    };
    let right = scale(&result, smoothing / classes)?;
    let left = scale(&loss, 1.0 - smoothing)?;
    Ok(add(&left, &right)?.into())
}

fn cross_entropy_of_probabilities(
    own: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
    smoothing: f64,
) -> Result<Value> {
    let class_dim = i64::from(own.dim() > 1);
    let classes = own.size(class_dim) as f64;
    let input = softmax(own, class_dim, Some(own.dtype()), true)?;
    let target = &if smoothing > 0.0 {
        let scaled = scale(target, 1.0 - smoothing)?;
        add(&scaled, &wrapped(Scalar::Float(smoothing / classes)))?
    } else {
        target.clone()
    };
    if weight.is_some() {
        crate::session().note_estimate("cross_entropy_loss", "probabilities with weights were not recorded");
    }
    Ok(match reduction {
        Reduction::None => unary::neg(&sum_cast(&mul(&input, target)?, Some(&[class_dim]), false, None)?)?,
        Reduction::Sum => unary::neg(&sum_cast_all(&mul(&input, target)?)?)?,
        Reduction::Mean => {
            let count = input.numel() as f64 / classes;
            let product = mul(&input, target)?;
            let total = sum_cast_all(&product)?;
            let negative = unary::neg(&total)?;
            div(&negative, &wrapped(Scalar::Float(count)))?
        }
    }
    .into())
}

/// `mse_loss` and `smooth_l1_loss`: the result keeps the memory of all elements.
fn elementwise_loss(
    input: &Tensor,
    target: &Tensor,
    reduction: Reduction,
    node: &'static str,
) -> Result<Value> {
    let cast = Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let no_grad = GradModeGuard::new(false);
    let dtype = iterator::result_type(&[input, target]);
    let output = elementwise(&[input, target], dtype, None)?;
    if reduction != Reduction::None {
        let loss = empty_like(&output)?;
        let mask = vec![true; loss.dim()];
        output.set_geometry(&[], &[], 0);
        reduce::run(&loss, &mask, reduce::ReductionKernel::of(dtype.accumulate().size()))?;
        drop(loss);
    }
    drop(no_grad);
    let difference = if node == nodes::MseLossBackward0 { Difference::Squared } else { Difference::Smooth };
    record_difference(node, input, target, &output, difference, reduction)?;
    Ok(output.into())
}

/// Losses of the difference of two tensors, whose backward functions are one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    Squared,
    Smooth,
    Huber,
}

fn record_difference(
    node: &'static str,
    input: &Tensor,
    target: &Tensor,
    output: &Tensor,
    difference: Difference,
    reduction: Reduction,
) -> Result<()> {
    let saved = [Save::Input(Some(input)), Save::Input(Some(target))];
    record(node, &[input, target], &[output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let (input, target) = (ctx.saved(0)?, ctx.saved(1)?);
        let backward = |a, b| difference.backward(grad, a, b, reduction);
        let grad_input = ctx.gradient(0, || backward(&input, &target))?;
        let to_target = ctx.gradient(1, || backward(&target, &input))?;
        Ok(vec![grad_input, to_target])
    })
}

impl Difference {
    /// `mse_loss_backward`, `smooth_l1_loss_backward`, `huber_loss_backward`.
    fn backward(
        self,
        grad: &Tensor,
        input: &Tensor,
        target: &Tensor,
        reduction: Reduction,
    ) -> Result<Tensor> {
        reduction.note();
        let result = zeros_of(input, target)?;
        let saved = [Save::Input(Some(grad)), Save::Input(Some(input)), Save::Input(Some(target))];
        let node = match self {
            Self::Squared => nodes::MseLossBackwardBackward0,
            Self::Smooth => nodes::SmoothL1LossBackwardBackward0,
            Self::Huber => nodes::HuberLossBackwardBackward0,
        };
        record(node, &[grad, input, target], &[&result], &saved, move |ctx, grads| {
            let (grad, input, target) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
            let grad_grad = first(grads)?;
            reduction.note();
            let to_grad = match (ctx.wants(0), self, reduction) {
                (false, _, _) => None,
                (true, Self::Huber, Reduction::Mean | Reduction::Sum) => {
                    let ones = super::creation::ones_like(&grad)?;
                    let slope = self.backward(&ones, &input, &target, reduction)?;
                    drop(ones);
                    let product = mul(&slope, grad_grad)?;
                    Some(sum_all(&product)?)
                }
                (true, _, _) => Some(self.backward(grad_grad, &input, &target, reduction)?),
            };
            let grad_input = ctx.gradient(1, || {
                let product = mul(grad_grad, &grad)?;
                self.double_backward(&product, &input, &target, reduction)
            })?;
            let to_target = ctx.gradient(2, || {
                let product = mul(grad_grad, &grad)?;
                let slope = self.double_backward(&product, &input, &target, reduction)?;
                unary::neg(&slope)
            })?;
            Ok(vec![to_grad, grad_input, to_target])
        })?;
        Ok(result)
    }

    fn double_backward(
        self,
        product: &Tensor,
        input: &Tensor,
        target: &Tensor,
        reduction: Reduction,
    ) -> Result<Tensor> {
        let result = if self == Self::Squared {
            scale(product, 2.0)?
        } else {
            let distance = {
                let difference = sub(input, target)?;
                unary::abs(&difference)?
            };
            let is_near = pointwise::lt(&distance, &wrapped(Scalar::Float(1.0)))?;
            if self == Self::Huber {
                mul(product, &is_near)?
            } else {
                let mask = to_dtype(&is_near, product.dtype())?;
                let near = mul(product, &mask)?;
                div(&near, &wrapped(Scalar::Float(1.0)))?
            }
        };
        if reduction == Reduction::Mean {
            pointwise::div_in_place(&result, &wrapped(Scalar::Int(input.numel())))?;
        }
        Ok(result)
    }
}

fn zeros_of(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    // The result has the plain order and no gaps, for inputs of any order.
    let shape = iterator::broadcast(&[&input.shape(), &other.shape()])?;
    empty(&shape, input.dtype(), input.device())
}

fn l1_loss(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Value> {
    let cast = Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let difference = sub(input, target)?;
    let loss = unary::abs(&difference)?;
    let result = reduced(loss, reduction)?;
    Ok(result.into())
}

fn huber_loss(input: &Tensor, target: &Tensor, reduction: Reduction, _: Unread) -> Result<Value> {
    let cast = Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let output = {
        let _no_grad = GradModeGuard::new(false);
        // at::empty_like(input)
        let loss = elementwise(&[input, target], input.dtype(), None)?;
        reduced(loss, reduction)?
    };
    record_difference(nodes::HuberLossBackward0, input, target, &output, Difference::Huber, reduction)?;
    Ok(output.into())
}

/// `kl_div`: `xlogy(target, target) - target * input`.
fn kl_div(input: &Tensor, target: &Tensor, reduction: Reduction, log_target: bool) -> Result<Value> {
    let cast = Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let loss = if log_target {
        let difference = sub(target, input)?;
        let weight = unary::exp(target)?;
        mul(&weight, &difference)?
    } else {
        let product = mul(target, input)?;
        let own = elementwise(&[target, target], target.dtype(), None)?;
        if target.requires_grad() {
            crate::session().note_estimate("kl_div", "a target that requires a gradient was not recorded");
        }
        sub(&own, &product)?
    };
    Ok(reduced(loss, reduction)?.into())
}

/// `cosine_similarity`.
fn cosine_similarity(x1: &Tensor, x2: &Tensor, dim: i64, eps: f64) -> Result<Value> {
    let cast = Cast::full(x1.device());
    let x2 = cast.apply(x2)?;
    let x1 = cast.apply(x1)?;
    let shape = iterator::broadcast(&[&x1.shape(), &x2.shape()])?;
    let (x1, x2) = (same(&x1, &shape)?, same(&x2, &shape)?);
    let input = cloned_norm(&x1, dim)?;
    let other = cloned_norm(&x2, dim)?;
    // The bound lies on the GPU, in `float32` at least; both norms are raised to it in place, without
    // history.
    let wide = if x1.dtype() == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
    let bound = empty(&[], wide, x1.device())?;
    let _ = eps;
    let right = div(&x2, &other)?;
    let left = div(&x1, &input)?;
    let product = mul(&left, &right)?;
    let result = sum(&product, Some(&[dim]), false, None)?;
    drop(product);
    drop(left);
    drop(right);
    drop(bound);
    drop(other);
    drop(input);
    Ok(result.into())
}

fn same(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    if *tensor.shape() == *shape { Ok(tensor.clone()) } else { expand(tensor, shape) }
}

fn cloned_norm(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    let norm = reduce::vector_norm(tensor, 2.0, Some(&[dim]), true, None)?;
    super::copy::clone(&norm, MemoryFormat::Preserve)
}

macro_rules! loss_schema {
    ($name:literal) => {
        concat!($name, "(Tensor self, Tensor target, Any reduction=1")
    };
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, Any reduction=1, int ignore_index=-100, \
         float label_smoothing=0.0)",
        cross_entropy,
    ),
    op!(
        "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, Any reduction=1, int ignore_index=-100)",
        |tensor: &Tensor, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction, ignored: i64| {
            let loss = nll_loss(tensor, target, weight, reduction)?;
            check_classes(tensor, target, ignored)?;
            Ok(loss)
        }
    ),
    op!(concat!(loss_schema!("mse_loss"), ")"), |own: &Tensor, target: &Tensor, reduction: Reduction| {
        elementwise_loss(own, target, reduction, nodes::MseLossBackward0)
    }),
    op!(
        concat!(loss_schema!("smooth_l1_loss"), ", float beta=1.0)"),
        |own: &Tensor, target: &Tensor, reduction: Reduction, _: Unread| {
            elementwise_loss(own, target, reduction, nodes::SmoothL1LossBackward0)
        }
    ),
    op!(concat!(loss_schema!("huber_loss"), ", float delta=1.0)"), huber_loss),
    op!(concat!(loss_schema!("l1_loss"), ")"), l1_loss),
    op!(concat!(loss_schema!("kl_div"), ", bool log_target=False)"), kl_div),
    op!(
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, Any reduction=1)",
        super::bce::binary_cross_entropy,
    ),
    op!(
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, Any \
         reduction=1)",
        super::bce::bce_with_logits,
    ),
    op!("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)", cosine_similarity),
];
