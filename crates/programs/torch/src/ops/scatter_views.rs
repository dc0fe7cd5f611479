//! Copies of a tensor in which a part was replaced, and sums over diagonals.

use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Gradients, Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op, pairs};
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy::{clone, copy_in_place};
use super::creation::{empty, zeros};
use super::matmul::mv;
use super::pointwise::{elementwise, maybe_multiply};
use super::views::{diagonal, first, select, slice, t, view, wrap};

/// Which part of a tensor is replaced.
#[derive(Clone, Copy, Debug)]
enum Part {
    Select(i64, i64),
    Slice(i64, Option<i64>, Option<i64>, i64),
    Diagonal(i64, i64, i64),
}

impl Part {
    fn of(self, tensor: &Tensor) -> Result<Tensor> {
        match self {
            Self::Select(dim, index) => select(tensor, dim, index),
            Self::Slice(dim, start, stop, step) => slice(tensor, dim, start, stop, step),
            Self::Diagonal(offset, dim1, dim2) => diagonal(tensor, offset, dim1, dim2),
        }
    }

    fn node(self) -> &'static str {
        match self {
            Self::Select(..) => nodes::SelectScatterBackward0,
            Self::Slice(..) => nodes::SliceScatterBackward0,
            Self::Diagonal(..) => nodes::DiagonalScatterBackward0,
        }
    }

    /// `select_scatter`, `slice_scatter` and `diagonal_scatter`.
    fn scatter(self, input: &Tensor, source: &Tensor) -> Result<Tensor> {
        let output = {
            let _no_grad = GradModeGuard::new(false);
            let output = with_its_storage(input)?;
            let place = self.of(&output)?;
            if place.shape() != source.shape() {
                return runtime(format!(
                    "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
                    source.shape(),
                    place.shape()
                ));
            }
            copy_in_place(&place, source)?;
            output
        };
        let (shape, dtype, device) = (source.shape(), source.dtype(), source.device());
        record(self.node(), &[input, source], &[&output], &[], move |ctx, grads| -> Result<Gradients> {
            let grad = first(grads)?;
            let grad_input = ctx.gradient(0, || self.scatter(grad, &zeros(&shape, dtype, device)?))?;
            let to_source = ctx.gradient(1, || self.of(grad))?;
            Ok(vec![grad_input, to_source])
        })?;
        Ok(output)
    }
}

/// `clone_preserve_strides`: a copy of all memory between a tensor's first and last element, unless elements
/// share places.
fn with_its_storage(input: &Tensor) -> Result<Tensor> {
    let shares =
        input.shape().iter().zip(input.strides().iter()).any(|(size, stride)| *size > 1 && *stride == 0);
    let count = (input.storage().bytes() / input.dtype().size()) as i64;
    if shares || count == input.numel() {
        return clone(input, MemoryFormat::Preserve);
    }
    let whole = empty(&[count], input.dtype(), input.device())?;
    Ok(Tensor::over(whole.storage(), &input.shape(), &input.strides(), input.offset(), input.dtype()))
}

/// `diag_embed`: zeros with the values on a diagonal of two new dimensions.
fn diag_embed(input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Value> {
    let count = input.dim() + 1;
    let (dim1, dim2) = (wrap(dim1, count)?, wrap(dim2, count)?);
    if dim1 == dim2 {
        return runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}"));
    }
    let length = input.size(-1).saturating_add(offset.saturating_abs());
    let shape = input.shape();
    let mut rest = shape.iter().take(shape.len().saturating_sub(1)).copied();
    let sizes: Vec<i64> = (0..count)
        .filter_map(|dim| if dim == dim1 || dim == dim2 { Some(length) } else { rest.next() })
        .collect();
    let (dim1, dim2) = (dim1 as i64, dim2 as i64);
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output = zeros(&sizes, input.dtype(), input.device())?;
        copy_in_place(&diagonal(&output, offset, dim1, dim2)?, input)?;
        output
    };
    record(nodes::DiagEmbedBackward0, &[input], &[&output], &[], move |_, grads| {
        Ok(vec![Some(diagonal(first(grads)?, offset, dim1, dim2)?)])
    })?;
    Ok(output.into())
}

/// `trace`: its gradient is filled into zeros at the places of the diagonal.
fn trace(input: &Tensor) -> Result<Tensor> {
    if input.dim() != 2 {
        return runtime("trace: expected a matrix");
    }
    let output = {
        let _no_grad = GradModeGuard::new(false);
        super::reduce::sum_all(&diagonal(input, 0, 0, 1)?)?
    };
    let shape = input.shape();
    record(nodes::TraceBackward0, &[input], &[&output], &[], move |_, grads| {
        let grad = first(grads)?;
        let count = crate::numel(&shape);
        let step = shape.last().copied().unwrap_or(1).saturating_add(1);
        let full = zeros(&[count], grad.dtype(), grad.device())?;
        let indices = empty(&[(count + step - 1) / step], Dtype::I64, grad.device())?;
        let arguments = [(&full).into(), 0.into(), (&indices).into(), grad.into()];
        // Where no second derivative is asked for, the zeros themselves are filled.
        let name = if crate::autograd::GradMode::is_enabled() { "index_fill" } else { "index_fill_" };
        let filled = crate::call(name, &arguments, &[])?.tensor()?;
        drop(indices);
        drop(full);
        Ok(vec![Some(view(&filled, &shape)?)])
    })?;
    Ok(output)
}

/// `addr`: `beta * self + alpha * outer(vec1, vec2)` in one kernel.
fn addr(
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
    in_place: bool,
) -> Result<Value> {
    let cast = if in_place { Cast::off() } else { Cast::lower(input.device()) };
    let [input, a, b] = &cast.apply_all([input, a, b])?;
    if a.dim() != 1 || b.dim() != 1 {
        return runtime(format!(
            "addr: Expected 1-D argument vec1 and vec2, but got {}-D and {}-D",
            a.dim(),
            b.dim()
        ));
    }
    let column = {
        let _no_grad = GradModeGuard::new(false);
        view(a, &[-1, 1])?
    };
    let dtype = crate::iterator::result_type(&[input, a, b]);
    let output = if in_place {
        super::pointwise::elementwise_in_place(&[input, &column, b], dtype, None)?;
        input.clone()
    } else {
        elementwise(&[input, &column, b], dtype, None)?
    };
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    record(nodes::AddrBackward0, &[input, a, b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let grad_input = ctx.gradient(0, || maybe_multiply(grad, beta))?;
        let to_a = ctx.gradient(1, || maybe_multiply(&mv(grad, &ctx.saved(1)?)?, alpha))?;
        let to_b = ctx.gradient(2, || maybe_multiply(&mv(&t(grad)?, &ctx.saved(0)?)?, alpha))?;
        Ok(vec![grad_input, to_a, to_b])
    })?;
    Ok(output.into())
}

/// `linalg_cross`: one kernel over rows of three.
fn cross(a: &Tensor, b: &Tensor, dim: i64) -> Result<Tensor> {
    let at = wrap(dim, a.dim())? as i64;
    if a.dim() != b.dim() {
        return runtime("linalg.cross: inputs must have the same number of dimensions.");
    }
    if a.size(at) != 3 || b.size(at) != 3 {
        return runtime(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
            a.size(at),
            b.size(at)
        ));
    }
    let shape = crate::iterator::broadcast(&[&a.shape(), &b.shape()])?;
    let output =
        empty(&shape, crate::iterator::result_type(&[a, b]), crate::iterator::common_device(&[a, b])?)?;
    let saved = [Save::Input(Some(b)), Save::Input(Some(a))];
    record(nodes::LinalgCrossBackward0, &[a, b], &[&output], &saved, move |ctx, grads| {
        let (grad, b, a) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let to_b = ctx.gradient(1, || cross(grad, &a, at))?;
        let to_a = ctx.gradient(0, || cross(&b, grad, at))?;
        Ok(vec![to_a, to_b])
    })?;
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "select_scatter(Tensor self, Tensor src, int dim, int index)",
        |tensor: &Tensor, src: &Tensor, dim: i64, index: i64| Part::Select(dim, index).scatter(tensor, src)
    ),
    op!(
        "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)",
        |tensor: &Tensor, src: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64| {
            Part::Slice(dim, start, end, step).scatter(tensor, src)
        }
    ),
    op!(
        "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)",
        |tensor: &Tensor, src: &Tensor, offset: i64, dim1: i64, dim2: i64| {
            Part::Diagonal(offset, dim1, dim2).scatter(tensor, src)
        }
    ),
    op!("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)", diag_embed),
    op!("trace(Tensor self)", trace),
    op!("linalg_cross(Tensor self, Tensor other, *, int dim=-1)", cross),
];

pub(crate) const PAIRS: &[Entry] = pairs! {
    "addr" "Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1"
        |own: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar| addr(own, a, b, beta, alpha);
};
