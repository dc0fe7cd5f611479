//! Matrix products, and the workspaces that cuBLAS takes for them.

mod any_shape;
mod batched;
mod vector;

use crate::autocast::Cast;
use crate::autograd::{Save, nodes, record_after, save_early, without_grad};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, op};
use crate::session::Library;
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Tensor, session};

use super::copy;
use super::creation::empty;
use super::pointwise::{add_in_place, maybe_multiply, mul};
use super::views::{expand, first, reshape, t, view};
pub(crate) use any_shape::matmul;
pub(crate) use batched::bmm;
use batched::{addbmm, baddbmm};
pub(crate) use vector::mv;
use vector::{addmv, dot, outer, vdot};

const ONE: Scalar = Scalar::Int(1);

fn shape2(tensor: &Tensor) -> (i64, i64) {
    (tensor.size(0), tensor.size(1))
}

fn stride(tensor: &Tensor, dim: usize) -> i64 {
    tensor.strides().get(dim).copied().unwrap_or(1)
}

/// Takes the workspace for a call of the library, and frees it in the releases of PyTorch that free it after
/// each call.
fn take_workspace(library: Library, device: Device) -> Result<()> {
    if let Device::Cuda(index) = device {
        let session = session();
        drop(session.take_workspace(library, session.device(index)?)?);
    }
    Ok(())
}

/// Whether cuBLAS reads the matrix as it lies: its rows or its columns have no gaps.
fn is_readable(matrix: &Tensor) -> bool {
    let (rows, columns) = shape2(matrix);
    let (row_stride, column_stride) = (stride(matrix, 0), stride(matrix, 1));
    (row_stride == 1 && column_stride >= rows.max(1)) || (column_stride == 1 && row_stride >= columns.max(1))
}

/// `prepare_matrix_for_cublas`: a copy where rows and columns both have gaps.
fn prepare(matrix: &Tensor) -> Result<Tensor> {
    if matrix.is_non_overlapping_and_dense() || is_readable(matrix) {
        Ok(matrix.clone())
    } else {
        without_grad(|| copy::clone(matrix, MemoryFormat::Contiguous))
    }
}

/// Refuses two devices and two types, in the words of the operator `method`.
fn check_dtypes(a: &Tensor, b: &Tensor, method: &str) -> Result<()> {
    let names = match method {
        "addmm" => ["mat1", "mat2"],
        "mm" | "bmm" => ["self", "mat2"],
        "dot" => ["self", "tensor"],
        "baddbmm" => ["batch1", "batch2"],
        _ => ["self", "vec"],
    };
    iterator::same_device(&[(a, names[0]), (b, names[1])], method)?;
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    let (of_a, of_b) = (a.dtype().scalar_name(), b.dtype().scalar_name());
    match method {
        "addmm" => runtime(format!("mat1 and mat2 must have the same dtype, but got {of_a} and {of_b}")),
        "mm" => {
            let name = |dtype: Dtype| match dtype {
                Dtype::F32 => "float".to_owned(),
                Dtype::F64 => "double".to_owned(),
                Dtype::I64 => "long int".to_owned(),
                Dtype::I32 => "int".to_owned(),
                other => format!("c10::{}", other.scalar_name()),
            };
            runtime(format!(
                "expected m1 and m2 to have the same dtype, but got: {} != {}",
                name(a.dtype()),
                name(b.dtype())
            ))
        }
        "dot" => {
            runtime(format!("dot : expected both vectors to have same dtype, but found {of_a} and {of_b}"))
        }
        _ => runtime(format!("expected scalar type {of_a} but found {of_b}")),
    }
}

fn check_shapes(a: &Tensor, b: &Tensor, method: &str) -> Result<()> {
    check_dtypes(a, b, method)?;
    let ((m, k), (k2, n)) = (shape2(a), shape2(b));
    if k != k2 {
        return runtime(format!("mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})"));
    }
    Ok(())
}

/// A kernel over two matrices.
fn gemm(a: &Tensor, b: &Tensor, library: Library) -> Result<()> {
    if !a.device().is_cuda() || a.size(0) == 0 || b.size(1) == 0 || a.numel() == 0 {
        return Ok(());
    }
    // A result of rows is the transposed product of the transposed matrices, so that the second matrix is
    // prepared first.
    let is_number = a.size(0) == 1 && b.size(1) == 1;
    let early = if is_number { None } else { Some(prepare(b)?) };
    let first = prepare(a)?;
    let second = early.map_or_else(|| prepare(b), Ok)?;
    take_workspace(library, a.device())?;
    if is_number {
        drop(second);
        drop(first);
    } else {
        drop(first);
        drop(second);
    }
    Ok(())
}

/// `mm`.
pub(crate) fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = Cast::lower(a.device());
    let [a, b] = &cast.apply_all([a, b])?;
    if a.dim() != 2 {
        return runtime("self must be a matrix");
    }
    if b.dim() != 2 {
        return runtime("mat2 must be a matrix");
    }
    check_shapes(a, b, "mm")?;
    let saved = [Save::InputIf(a.requires_grad(), b), Save::InputIf(b.requires_grad(), a)];
    let early = save_early(&[a, b], &saved)?;
    let shape = [a.size(0), b.size(1)];
    let output = match super::out::take(&shape, &crate::contiguous_strides(&shape), a.dtype())? {
        Some(out) => out,
        None => empty(&shape, a.dtype(), a.device())?,
    };
    gemm(a, b, Library::Cublas)?;
    let (a_like, b_like) = (OperandLayout::of(a), OperandLayout::of(b));
    record_after(early, nodes::MmBackward0, &[a, b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let to_b = ctx.gradient(1, || mat2_backward(grad, &ctx.saved(1)?, b_like, ONE))?;
        let to_a = ctx.gradient(0, || mat1_backward(grad, &ctx.saved(0)?, a_like, ONE))?;
        Ok(vec![to_a, to_b])
    })?;
    Ok(output)
}

/// Whether a matrix was stored column by column, which its gradient then is, too.
#[derive(Clone, Copy, Debug)]
struct OperandLayout {
    is_column_major: bool,
}

impl OperandLayout {
    fn of(matrix: &Tensor) -> Self {
        Self { is_column_major: stride(matrix, 0) == 1 && stride(matrix, 1) == matrix.size(0) }
    }
}

fn mat1_backward(grad: &Tensor, mat2: &Tensor, layout: OperandLayout, alpha: Scalar) -> Result<Tensor> {
    if layout.is_column_major {
        return maybe_multiply(&t(&mm(mat2, &t(grad)?)?)?, alpha);
    }
    maybe_multiply(&mm(grad, &t(mat2)?)?, alpha)
}

fn mat2_backward(grad: &Tensor, mat1: &Tensor, layout: OperandLayout, alpha: Scalar) -> Result<Tensor> {
    if layout.is_column_major {
        return maybe_multiply(&t(&mm(&t(grad)?, mat1)?)?, alpha);
    }
    maybe_multiply(&mm(&t(mat1)?, grad)?, alpha)
}

/// `addmm`.
pub(crate) fn addmm(bias: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    addmm_into(Target::New, bias, a, b, [beta, alpha])
}

/// Where a product is written: into a new tensor, or into the tensor that it is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    New,
    Own,
}

impl Target {
    /// The cast of the arguments: autocast casts those of operators that make a tensor, and not of operators
    /// in place.
    fn cast(self, device: Device) -> Cast {
        if self == Self::New { Cast::lower(device) } else { Cast::off() }
    }

    fn output(self, input: &Tensor, shape: &[i64], dtype: Dtype) -> Result<Tensor> {
        if self == Self::New {
            return empty(shape, dtype, input.device());
        }
        if *input.shape() != *shape {
            return runtime(format!(
                "output with shape {:?} doesn't match the broadcast shape {shape:?}",
                input.shape()
            ));
        }
        if !input.is_contiguous() {
            session().note_estimate("addmm_", "a result with gaps was not recorded");
        }
        super::pointwise::change_in_place(input)?;
        Ok(input.clone())
    }
}

fn addmm_into(
    into: Target,
    bias: &Tensor,
    a: &Tensor,
    b: &Tensor,
    [beta, alpha]: [Scalar; 2],
) -> Result<Tensor> {
    let cast = into.cast(a.device());
    let [bias, a, b] = &cast.apply_all([bias, a, b])?;
    if a.dim() != 2 || b.dim() != 2 {
        return runtime(format!("mat1 must be a matrix, got {}-D tensor", a.dim()));
    }
    iterator::same_device(&[(bias, "self"), (a, "mat1"), (b, "mat2")], "addmm")?;
    check_shapes(a, b, "addmm")?;
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    let early = save_early(&[bias, a, b], &saved)?;
    let output = into.output(bias, &[a.size(0), b.size(1)], a.dtype())?;
    let uses_lt = into == Target::New
        && beta.to_f64() == Some(1.0)
        && bias.dim() == 1
        && bias.size(0) == b.size(1)
        && bias.is_contiguous()
        && matches!(a.dtype(), Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16)
        && b.size(0) > 1
        && b.size(1) > 1;
    if !uses_lt {
        expand(&bias.detach(), &output.shape())?;
    }
    gemm(a, b, if uses_lt { Library::CublasLt } else { Library::Cublas })?;
    let (a_like, b_like) = (OperandLayout::of(a), OperandLayout::of(b));
    record_after(early, nodes::AddmmBackward0, &[bias, a, b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let to_a = ctx.gradient(1, || mat1_backward(grad, &ctx.saved(1)?, a_like, alpha))?;
        let to_b = ctx.gradient(2, || mat2_backward(grad, &ctx.saved(0)?, b_like, alpha))?;
        let to_bias = ctx.gradient(0, || maybe_multiply(grad, beta))?;
        Ok(vec![to_bias, to_a, to_b])
    })?;
    Ok(output)
}

/// `tensordot`: both are laid out as matrices, whose product is one of `mm`.
fn tensordot(a: &Tensor, b: &Tensor, dims_a: &[i64], dims_b: &[i64]) -> Result<Tensor> {
    if dims_a.len() != dims_b.len() {
        return runtime("both dimension lists should have same length");
    }
    let wrapped = |dims: &[i64], tensor: &Tensor| -> Result<Vec<i64>> {
        dims.iter().map(|dim| super::views::wrap(*dim, tensor.dim()).map(|dim| dim as i64)).collect()
    };
    let (dims_a, dims_b) = (wrapped(dims_a, a)?, wrapped(dims_b, b)?);
    // Autocast runs the whole operator in the wider type of its inputs.
    let cast = Cast::widest(&[a, b]);
    let mut b = cast.apply(b)?;
    let mut a = cast.apply(a)?;
    let mut contracted = 1;
    for (dim_a, dim_b) in dims_a.iter().zip(&dims_b) {
        let (size_a, size_b) = (a.size(*dim_a), b.size(*dim_b));
        if size_b == 1 {
            a = super::reduce::sum(&a, Some(&[*dim_a]), true, None)?;
        } else if size_a == 1 {
            b = super::reduce::sum(&b, Some(&[*dim_b]), true, None)?;
        } else if size_a == size_b {
            contracted *= size_a;
        } else {
            return runtime(format!(
                "contracted dimensions need to match, but first has size {size_a} in dim {dim_a} and second has size \
                 {size_b} in dim {dim_b}"
            ));
        }
    }
    let kept = |tensor: &Tensor, dims: &[i64]| -> Vec<i64> {
        (0..tensor.dim() as i64).filter(|dim| !dims.contains(dim)).collect()
    };
    let (kept_a, kept_b) = (kept(&a, &dims_a), kept(&b, &dims_b));
    let rows: i64 = kept_a.iter().map(|dim| a.size(*dim)).product();
    let columns: i64 = kept_b.iter().map(|dim| b.size(*dim)).product();
    let shape: Vec<i64> =
        kept_a.iter().map(|dim| a.size(*dim)).chain(kept_b.iter().map(|dim| b.size(*dim))).collect();
    if rows == 1 && columns == 1 {
        let (left, right) = (
            super::views::permute(&a, &[kept_a, dims_a].concat())?,
            super::views::permute(&b, &[dims_b, kept_b].concat())?,
        );
        return reshape(&one_number(&left, &right)?, &shape);
    }
    let left = reshape(&super::views::permute(&a, &[kept_a, dims_a].concat())?, &[rows, contracted])?;
    drop(a);
    let right = reshape(&super::views::permute(&b, &[dims_b, kept_b].concat())?, &[contracted, columns])?;
    drop(b);
    reshape(&mm(&left, &right)?, &shape)
}

/// `tensordot` that leaves one number: a product of two vectors, or of the elements where one has gaps.
fn one_number(left: &Tensor, right: &Tensor) -> Result<Tensor> {
    if left.is_contiguous() && right.is_contiguous() {
        return dot(&super::views::flatten(left, 0, -1)?, &super::views::flatten(right, 0, -1)?);
    }
    let product = mul(&super::views::squeeze(left, None)?, &super::views::squeeze(right, None)?)?;
    super::reduce::sum(&product, None, false, None)
}

/// `linear`.
pub(crate) fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let cast = Cast::lower(input.device());
    // C++ evaluates arguments from the last to the first.
    let bias = &cast.apply_optional(bias)?;
    let [input, weight] = &cast.apply_all([input, weight])?;
    if input.dim() == 0 || weight.dim() == 0 {
        return runtime(format!(
            "both arguments to linear need to be at least 1D, but they are {}D and {}D",
            input.dim(),
            weight.dim()
        ));
    }
    if let Some(bias) = bias {
        if input.dim() == 2 {
            return addmm(bias, input, &t(weight)?, ONE, ONE);
        }
        if input.is_contiguous() && (input.dim() == 3 || bias.dim() == 1) {
            let sizes = input.shape();
            let last = input.size(-1);
            let flat =
                reshape(input, &[crate::numel(sizes.get(..sizes.len() - 1).unwrap_or_default()), last])?;
            let result = addmm(bias, &flat, &t(weight)?, ONE, ONE)?;
            let mut shape = sizes.to_vec();
            if let Some(last) = shape.last_mut() {
                *last = result.size(1);
            }
            return view(&result, &shape);
        }
    }
    let output = matmul(input, &t(weight)?)?;
    if let Some(bias) = bias {
        add_in_place(&output, bias)?;
    }
    Ok(output)
}

/// `einsum`, by way of one batched product for each further operand (`sumproduct_pair`).
fn einsum(equation: &str, operands: &[Tensor]) -> Result<Tensor> {
    super::einsum::einsum(equation, operands)
}

/// A line of the table for a product that is added to a tensor: into a new one or into that tensor.
macro_rules! added {
    ($schema:expr, $product:path, $into:expr) => {
        op!($schema, |own: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar| {
            $product($into, own, a, b, [beta, alpha])
        })
    };
}

pub(crate) const TABLE: &[Entry] = &[
    op!("_tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other)", tensordot),
    op!("mm(Tensor self, Tensor mat2)", mm).composed(&[nodes::MmBackward0]),
    op!("bmm(Tensor self, Tensor mat2)", bmm).composed(&[nodes::BmmBackward0]),
    op!("mv(Tensor self, Tensor vec)", mv),
    op!("dot(Tensor self, Tensor tensor)", dot),
    op!("vdot(Tensor self, Tensor other)", vdot),
    op!("inner(Tensor self, Tensor other)", |x: &Tensor, y: &Tensor| {
        if x.dim() == 0 || y.dim() == 0 {
            return mul(x, y);
        }
        tensordot(x, y, &[-1], &[-1])
    }),
    op!("outer(Tensor self, Tensor vec2)", outer),
    op!("ger(Tensor self, Tensor vec2)", outer),
    op!("matmul(Tensor self, Tensor other)", matmul),
    added!(
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)",
        addmm_into,
        Target::New
    )
    .composed(&[nodes::AddmmBackward0]),
    added!(
        "addmm_(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)",
        addmm_into,
        Target::Own
    ),
    added!(
        "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)",
        addmv,
        Target::New
    ),
    added!(
        "addmv_(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)",
        addmv,
        Target::Own
    ),
    added!(
        "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)",
        addbmm,
        Target::New
    ),
    added!(
        "addbmm_(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)",
        addbmm,
        Target::Own
    ),
    added!(
        "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)",
        baddbmm,
        Target::New
    ),
    added!(
        "baddbmm_(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)",
        baddbmm,
        Target::Own
    ),
    op!("linear(Tensor input, Tensor weight, Tensor? bias=None)", linear),
    op!("einsum(str equation, Tensor[] operands)", einsum),
];
