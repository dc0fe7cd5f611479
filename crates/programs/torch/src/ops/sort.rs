//! Sorting, top-k, scans and permutations, with the memory that CUB takes for them.

use std::rc::Rc;

use crate::arguments::Unread;
use crate::autocast::full_dtype;
use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::memory::Category;
use crate::registry::{Entry, op};
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Storage, Tensor, Value, session};

use super::copy::contiguous;
use super::creation::{empty, empty_like, empty_like_as};
use super::pointwise::{add, gt, lt, sub, where_};
use super::views::{first, wrap};
use super::{reduce, views};

/// Memory that a kernel of CUB works in, which the caller drops after the kernel.
pub(crate) fn temporary(device: Device, bytes: u64) -> Result<Rc<Storage>> {
    Storage::new(device, bytes, Category::Workspace)
}

const fn aligned(bytes: u64) -> u64 {
    bytes.div_ceil(256) * 256
}

/// Bytes of CUB's radix sort over keys and values of these sizes, comparing this many bits.
pub(crate) fn radix_sort_bytes(count: u64, key: u64, value: u64, bits: u64) -> u64 {
    const PORTION: u64 = 1 << 28;
    let single = if key.max(value) == 8 { 256 * 9 } else { 256 * 19 };
    if count <= single {
        return 1;
    }
    let tile = match (key, value) {
        (8, 8) => 4608,
        (2, 8) => 5632,
        (8, 0) => 5760,
        _ => 5376,
    };
    let passes = bits.div_ceil(8);
    let portions = count.div_ceil(PORTION);
    let blocks = count.min(PORTION).div_ceil(tile);
    let mut total =
        aligned(portions * passes * 256 * 8) + aligned(blocks * 256 * 4) + aligned(portions * passes * 4);
    if passes > 1 {
        total += aligned(count * key) + aligned(count * value);
    }
    total + 255
}

/// Bytes of CUB's scan over values of this type.
pub(crate) fn scan_bytes(count: u64, dtype: Dtype) -> u64 {
    let states = |tile: u64| count.max(1).div_ceil(tile) + 32;
    if dtype.is_reduced_float() {
        let states = states(128 * 15);
        return aligned(4 * states) + 2 * aligned(2 * states) + 256 + 255;
    }
    let (tile, width) = if dtype.size() == 8 { (128 * 7, 16) } else { (128 * 15, 8) };
    aligned(states(tile) * width) + 256 + 255
}

/// `randperm` on a GPU: random keys are sorted, with as many bits as make equal ones unlikely.
pub(crate) fn randperm(count: i64, dtype: Dtype, device: Device) -> Result<Tensor> {
    let result = empty(&[count], dtype, device)?;
    let n = count.max(0) as u64;
    if n == 0 {
        return Ok(result);
    }
    let real = count as f64;
    let threshold = 0.9_f64.ln() * 12.0;
    let bits = ((real - (6.0 * real * real + 1.0) / threshold).log2().ceil() as u64).min(64);
    drop(temporary(device, 8)?);
    let range = temporary(device, n * dtype.size())?;
    let key = if bits <= 32 { 4 } else { 8 };
    let keys = temporary(device, n * key)?;
    let keys_out = temporary(device, n * key)?;
    drop(temporary(device, radix_sort_bytes(n, key, dtype.size(), bits))?);
    drop(keys_out);
    drop(keys);
    drop(range);
    Ok(result)
}

/// `sort`: values and indices.
pub(crate) fn sort(tensor: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    let at = wrap(dim, tensor.dim())?;
    let length = tensor.size(at as i64).max(1) as u64;
    let values = empty_like(tensor)?;
    let indices = empty_like_as(tensor, Dtype::I64, MemoryFormat::Preserve)?;
    let count = tensor.numel().max(0) as u64;
    let device = tensor.device();
    if device.is_cuda() && count > 0 && tensor.dim() > 0 {
        if tensor.strides().get(at) != Some(&1) && length > 4096 {
            session().note_estimate("sort", "sorting a dimension that is not the innermost was not recorded");
        }
        sort_memory(device, count, length, tensor.dtype().size())?;
    }
    super::reduce::record_selection(nodes::SortBackward0, tensor, &values, &indices, at as i64, true)?;
    Ok((values, indices))
}

fn sort_memory(device: Device, count: u64, length: u64, element: u64) -> Result<()> {
    let segments = count / length;
    if length <= 4096 {
        drop(temporary(device, length * 8)?);
        return Ok(());
    }
    let bits = element * 8;
    if segments == 1 {
        let range = temporary(device, count * 8)?;
        drop(temporary(device, radix_sort_bytes(count, element, 8, bits))?);
        drop(range);
    } else if segments < 128 {
        let pairs = temporary(device, count * 8)?;
        let pairs_out = temporary(device, count * 8)?;
        let keys = temporary(device, count * element)?;
        drop(temporary(device, radix_sort_bytes(count, element, 8, bits))?);
        drop(keys);
        drop(temporary(device, radix_sort_bytes(count, 8, 0, 8))?);
        drop(pairs_out);
        drop(pairs);
    } else {
        let range = temporary(device, count * 8)?;
        drop(temporary(device, aligned(count * element) + aligned(count * 8) + 255)?);
        drop(range);
    }
    Ok(())
}

/// Whether a top-k is split over several blocks (`should_use_multiblock`).
fn is_multiblock(slices: u64, length: u64) -> bool {
    match slices {
        0..=20 => length >= 20_000,
        21..=40 => length >= 10_000,
        41..=80 => length >= 8_000,
        81..=199 => length >= 5_000,
        200..=799 => length >= 3_000,
        800..=4_000 => length >= 800,
        _ => length >= 400,
    }
}

/// The values of a top-k over the last dimension, for a caller that has memory for the indices already.
pub(crate) fn topk_values(tensor: &Tensor, k: i64) -> Result<Tensor> {
    let mut shape = tensor.shape().to_vec();
    let length = shape.last().copied().unwrap_or(1);
    if k < 0 || k > length {
        return crate::error::runtime("selected index k out of range");
    }
    if let Some(size) = shape.last_mut() {
        *size = k;
    }
    let values = empty(&shape, tensor.dtype(), tensor.device())?;
    topk_scratch(tensor, length)?;
    Ok(values)
}

/// The memory that the kernel of a top-k takes beside its results: allocated and freed.
fn topk_scratch(tensor: &Tensor, length: i64) -> Result<()> {
    let slices = (tensor.numel() / length.max(1)).max(0) as u64;
    let device = tensor.device();
    if device.is_cuda() && tensor.numel() > 0 {
        let read = {
            let _no_grad = GradModeGuard::new(false);
            contiguous(tensor)?
        };
        if is_multiblock(slices, length.max(0) as u64) {
            multiblock_topk(device, slices, length.max(0) as u64, tensor.dtype().size())?;
        }
        drop(read);
    }
    Ok(())
}

/// The memory of the kernel that sorts the selected elements, which runs for more than 4096 of them in a row.
fn sort_selected(values: &Tensor, indices: &Tensor, k: i64) -> Result<()> {
    let sorted_indices = empty_like_as(indices, Dtype::I64, MemoryFormat::Preserve)?;
    let sorted_values = empty_like(values)?;
    let count = values.numel().max(0) as u64;
    sort_memory(values.device(), count, k.max(1) as u64, values.dtype().size())?;
    drop(empty_like_as(indices, Dtype::I64, MemoryFormat::Preserve)?);
    drop(sorted_values);
    drop(sorted_indices);
    Ok(())
}

/// `topk`: values and indices.
fn topk(tensor: &Tensor, k: i64, dim: i64, is_sorted: bool) -> Result<(Tensor, Tensor)> {
    let at = wrap(dim, tensor.dim())?;
    let length = tensor.size(at as i64);
    if k < 0 || k > length {
        return crate::error::runtime("selected index k out of range");
    }
    let mut shape = tensor.shape().to_vec();
    if let Some(size) = shape.get_mut(at) {
        *size = k;
    }
    let values = empty(&shape, tensor.dtype(), tensor.device())?;
    let indices = empty(&shape, Dtype::I64, tensor.device())?;
    topk_scratch(tensor, length)?;
    if is_sorted && k > 4096 && tensor.device().is_cuda() {
        sort_selected(&values, &indices, k)?;
    }
    reduce::record_selection(nodes::TopkBackward0, tensor, &values, &indices, at as i64, true)?;
    Ok((values, indices))
}

fn multiblock_topk(device: Device, slices: u64, length: u64, element: u64) -> Result<()> {
    let profile = session().profile().clone();
    let per_thread = (slices * length).div_ceil(u64::from(profile.multiprocessors) * 6 * 256).clamp(4, 64);
    let blocks = length.div_ceil(per_thread * 256);
    // The bits of the sought element that are known so far, as integers of four or eight bytes.
    let bits = element.max(4);
    let sizes = [
        element * slices,
        8 * slices,
        2 * bits * slices,
        slices * blocks * 512,
        slices * 1024,
        4 * slices * blocks,
        4 * slices * blocks,
    ];
    let mut held = Vec::new();
    for size in sizes {
        held.push(temporary(device, size)?);
    }
    drop(temporary(device, 1279)?);
    drop(temporary(device, 1279)?);
    while let Some(last) = held.pop() {
        drop(last);
    }
    Ok(())
}

/// `cumsum` and `cumprod`.
fn scan(
    tensor: &Tensor,
    dim: i64,
    dtype: Option<Dtype>,
    node: &'static str,
    is_in_place: bool,
) -> Result<Tensor> {
    let at = wrap(dim, tensor.dim())?;
    let dtype = if is_in_place { Some(tensor.dtype()) } else { full_dtype(tensor, dtype) };
    let to = dtype.unwrap_or(if tensor.dtype().is_integral() { Dtype::I64 } else { tensor.dtype() });
    let original =
        if is_in_place && node != SUM { super::pointwise::kept_for_gradient(tensor)? } else { None };
    let output = if is_in_place {
        if !tensor.is_contiguous() {
            session().note_estimate(node, "running sums in place of a tensor with gaps were not recorded");
        }
        super::pointwise::change_in_place(tensor)?;
        tensor.clone()
    } else {
        empty(&tensor.shape(), to, tensor.device())?
    };
    {
        let _no_grad = GradModeGuard::new(false);
        // A number is filled in as it is.
        let read = if tensor.dim() == 0 { tensor.clone() } else { super::copy::to_dtype(tensor, to)? };
        let read = contiguous(&read)?;
        if tensor.device().is_cuda()
            && tensor.dim() > 0
            && tensor.numel() > 0
            && tensor.numel() == tensor.size(at as i64)
        {
            drop(temporary(tensor.device(), scan_bytes(tensor.numel().max(0) as u64, to))?);
        }
        drop(read);
    }
    let from = tensor.dtype();
    let at = at as i64;
    if node == SUM {
        record(node, &[tensor], &[&output], &[], move |_, grads| {
            let grad = super::copy::to_dtype(first(grads)?, from)?;
            if grad.numel() <= 1 || grad.size(at) == 1 {
                return Ok(vec![Some(grad)]);
            }
            Ok(vec![Some(reversed_cumsum(&grad, at)?)])
        })?;
    } else {
        let saved = [Save::Input(Some(original.as_ref().unwrap_or(tensor))), Save::Output(0)];
        record(node, &[tensor], &[&output], &saved, move |ctx, grads| {
            let grad = super::copy::to_dtype(first(grads)?, from)?;
            Ok(vec![Some(cumprod_backward(&grad, &ctx.saved(0)?, &ctx.saved(1)?, at)?)])
        })?;
    }
    Ok(output)
}

const SUM: &str = nodes::CumsumBackward0;

/// `cumsum`.
pub(crate) fn cumsum(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    scan(tensor, dim, None, SUM, false)
}

/// `cumprod`.
pub(crate) fn cumprod(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    scan(tensor, dim, None, nodes::CumprodBackward0, false)
}

/// `w.flip(dim).cumsum(dim).flip(dim)`
fn reversed_cumsum(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    flip(&cumsum(&flip(tensor, &[dim])?, dim)?, &[dim])
}

/// `cumprod_backward`: the path of an input without zeros.
fn cumprod_backward(grad: &Tensor, input: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    if input.numel() <= 1 || input.size(dim) == 1 {
        return Ok(grad.clone());
    }
    session().note_estimate(
        nodes::CumprodBackward0,
        "the path depends on where the input is zero; no zeros are assumed",
    );
    let weighted = super::pointwise::mul(result, grad)?;
    let is_zero = super::pointwise::eq(input, &super::creation::wrapped(crate::Scalar::Int(0)))?;
    drop(crate::call("any", &[(&is_zero).into()], &[])?);
    let grad_input = super::pointwise::div(&reversed_cumsum(&weighted, dim)?, input);
    drop(is_zero);
    drop(weighted);
    grad_input
}

/// `logcumsumexp`.
fn logcumsumexp(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    let at = wrap(dim, tensor.dim())? as i64;
    let output = super::creation::empty_like_as(tensor, tensor.dtype(), MemoryFormat::Contiguous)?;
    {
        let _no_grad = GradModeGuard::new(false);
        let read = contiguous(tensor)?;
        if tensor.device().is_cuda()
            && tensor.dim() > 0
            && tensor.numel() > 0
            && tensor.numel() == tensor.size(at)
        {
            drop(temporary(tensor.device(), scan_bytes(tensor.numel().max(0) as u64, tensor.dtype()))?);
        }
        drop(read);
    }
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    record(nodes::LogcumsumexpBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (grad, input, result) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        if grad.numel() == 0 || grad.dim() == 0 {
            return Ok(vec![Some(grad.clone())]);
        }
        logcumsumexp_backward(grad, &input, &result, at).map(|grad_input| vec![Some(grad_input)])
    })?;
    Ok(output)
}

/// `logcumsumexp_backward`: positive and negative gradients apart, so that both have a logarithm.
fn logcumsumexp_backward(grad: &Tensor, input: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    let least = empty(&[], grad.dtype(), grad.device())?;
    let logarithm = {
        let absolute = super::unary::abs(grad)?;
        super::unary::log(&absolute)?
    };
    let zero = super::creation::wrapped(crate::Scalar::Int(0));
    let positive = where_(&gt(grad, &zero)?, &logarithm, &least)?;
    let negative = where_(&lt(grad, &zero)?, &logarithm, &least)?;
    let part = |signed: &Tensor| -> Result<Tensor> {
        let difference = sub(signed, result)?;
        let summed = {
            let flipped = flip(&difference, &[dim])?;
            let summed = logcumsumexp(&flipped, dim)?;
            flip(&summed, &[dim])?
        };
        let shifted = add(&summed, input)?;
        super::unary::exp(&shifted)
    };
    let output_positive = part(&positive)?;
    let output_negative = part(&negative)?;
    sub(&output_positive, &output_negative)
}

/// `flip`.
pub(crate) fn flip(tensor: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let dims: Vec<i64> =
        dims.iter().map(|dim| wrap(*dim, tensor.dim()).map(|dim| dim as i64)).collect::<Result<_>>()?;
    let output = empty_like(tensor)?;
    record(nodes::FlipBackward0, &[tensor], &[&output], &[], move |_, grads| {
        Ok(vec![Some(flip(first(grads)?, &dims)?)])
    })?;
    Ok(output)
}

/// `roll`: one kernel for each dimension, whatever the shift is.
fn roll(tensor: &Tensor, _shifts: Unread, dims: &[i64]) -> Result<Tensor> {
    if dims.is_empty() {
        let flat = roll(&views::reshape(tensor, &[-1])?, Unread, &[0])?;
        return views::view(&flat, &tensor.shape());
    }
    let mut result = tensor.clone();
    for &dim in dims {
        let rolled = {
            let read = contiguous(&result)?;
            empty_like_as(&read, read.dtype(), MemoryFormat::Contiguous)?
        };
        record(nodes::RollBackward0, &[&result], &[&rolled], &[], move |_, grads| {
            Ok(vec![Some(roll(first(grads)?, Unread, &[dim])?)])
        })?;
        result = rolled;
    }
    Ok(result)
}

/// `cummax` and `cummin`: the values and their indices.
fn cumulative_extremum(tensor: &Tensor, dim: i64, node: &'static str) -> Result<Value> {
    wrap(dim, tensor.dim())?;
    let values = empty(&tensor.shape(), tensor.dtype(), tensor.device())?;
    let indices = empty(&tensor.shape(), Dtype::I64, tensor.device())?;
    {
        let _no_grad = GradModeGuard::new(false);
        drop(contiguous(tensor)?);
    }
    let saved = [Save::Input(Some(tensor)), Save::Input(Some(&indices))];
    record(node, &[tensor], &[&values, &indices], &saved, move |ctx, grads| {
        let (grad, input, indices) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        // at::zeros(input.sizes()).scatter_add_(dim, indices, grad)
        let full = super::creation::zeros(&input.shape(), input.dtype(), input.device())?;
        super::scatter::record_scattered(nodes::ScatterAddBackward0, grad, dim, &indices, &full)?;
        Ok(vec![Some(full)])
    })?;
    Ok((values, indices).into())
}

/// Sets the values of a sorted row of the host, where they are known.
fn sort_known(tensor: &Tensor, is_descending: bool, values: &Tensor, indices: &Tensor) {
    let known = tensor.values().filter(|_| tensor.dim() == 1);
    let keys: Option<Vec<f64>> =
        known.as_ref().and_then(|known| known.iter().map(|value| value.to_f64()).collect());
    let (Some(known), Some(keys)) = (known, keys) else { return };
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let key = |at: &usize| keys.get(*at).copied().unwrap_or(f64::NAN);
    // PyTorch keeps the order of equal elements in rows of so few elements, as this sort does.
    order.sort_by(|a, b| if is_descending { key(b).total_cmp(&key(a)) } else { key(a).total_cmp(&key(b)) });
    let sorted: Vec<Scalar> = order.iter().filter_map(|at| known.get(*at).copied()).collect();
    values.set_values(Some(&sorted));
    indices.set_values(Some(&order.iter().map(|at| Scalar::Int(*at as i64)).collect::<Vec<_>>()));
}

fn sort_call(tensor: &Tensor, dim: i64, descending: bool, _: Unread) -> Result<Value> {
    let (values, indices) = sort(tensor, dim)?;
    sort_known(tensor, descending, &values, &indices);
    Ok((values, indices).into())
}

fn argsort(tensor: &Tensor, dim: i64, descending: bool, _: Unread) -> Result<Value> {
    let (values, indices) = sort(tensor, dim)?;
    sort_known(tensor, descending, &values, &indices);
    drop(values);
    Ok(indices.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!("sort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False)", sort_call),
    op!("argsort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False)", argsort),
    op!("msort(Tensor self)", |tensor: &Tensor| Ok(sort(tensor, 0)?.0)),
    op!(
        "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)",
        |tensor: &Tensor, k: i64, dim: i64, _: Unread, sorted: bool| topk(tensor, k, dim, sorted)
    ),
    op!(
        "cumsum(Tensor self, int dim, *, ScalarType? dtype=None)",
        |own: &Tensor, dim: i64, dtype: Option<Dtype>| scan(own, dim, dtype, nodes::CumsumBackward0, false)
    ),
    op!("cumsum_(Tensor self, int dim)", |tensor: &Tensor, dim: i64| {
        scan(tensor, dim, None, nodes::CumsumBackward0, true)
    }),
    op!(
        "cumprod(Tensor self, int dim, *, ScalarType? dtype=None)",
        |own: &Tensor, dim: i64, dtype: Option<Dtype>| scan(own, dim, dtype, nodes::CumprodBackward0, false)
    ),
    op!("cumprod_(Tensor self, int dim)", |tensor: &Tensor, dim: i64| {
        scan(tensor, dim, None, nodes::CumprodBackward0, true)
    }),
    op!("logcumsumexp(Tensor self, int dim)", logcumsumexp),
    op!("cummax(Tensor self, int dim)", |tensor: &Tensor, dim: i64| {
        cumulative_extremum(tensor, dim, nodes::CummaxBackward0)
    }),
    op!("cummin(Tensor self, int dim)", |tensor: &Tensor, dim: i64| {
        cumulative_extremum(tensor, dim, nodes::CumminBackward0)
    }),
    op!("flip(Tensor self, int[] dims)", flip),
    op!("roll(Tensor self, int[] shifts, int[] dims=[])", roll),
];
