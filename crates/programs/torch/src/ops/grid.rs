//! Sampling at the places of a grid: `grid_sample` and `affine_grid`.

use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Gradients, Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy::{self, contiguous};
use super::creation::{self, empty, empty_like_as, wrapped};
use super::matmul::bmm;
use super::pointwise::{div, mul};
use super::views::{first, reshape, select, transpose, unsqueeze, view};

/// `contiguousIfZeroInStrides`: only what is expanded is copied.
fn contiguous_if_expanded(tensor: &Tensor) -> Result<Tensor> {
    if tensor.strides().contains(&0) { contiguous(tensor) } else { Ok(tensor.clone()) }
}

fn check(input: &Tensor, grid: &Tensor) -> Result<()> {
    let (from, places) = (input.shape(), grid.shape());
    if from.len() != places.len() || !(4..=5).contains(&from.len()) {
        return runtime(format!(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {:?} and \
             grid with sizes {:?}",
            &*from, &*places
        ));
    }
    if input.size(0) != grid.size(0) {
        return runtime(format!(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes {:?} and grid with sizes \
             {:?}",
            &*from, &*places
        ));
    }
    if grid.size(-1) != from.len() as i64 - 2 {
        return runtime(format!(
            "grid_sampler(): expected grid to have size {} in last dimension, but got grid with sizes {:?}",
            from.len() - 2,
            &*places
        ));
    }
    Ok(())
}

/// `grid_sampler`: cuDNN's for bilinear samples with zeros around and aligned corners, PyTorch's own for all
/// others.
fn grid_sampler(
    input: &Tensor,
    grid: &Tensor,
    mode: i64,
    padding: i64,
    is_aligned: bool,
    cudnn_enabled: bool,
) -> Result<Value> {
    let cast = Cast::widest(&[input, grid]);
    let (input, grid) = (cast.apply(input)?, cast.apply(grid)?);
    check(&input, &grid)?;
    if mode == 2 && input.dim() == 5 {
        return runtime("grid_sampler(): bicubic interpolation only supports 4D input");
    }
    let is_cudnn = input.device().is_cuda()
        && cudnn_enabled
        && input.dim() == 4
        && input.size(1) <= 1024
        && mode == 0
        && padding == 0
        && is_aligned
        && input.dtype() != Dtype::BF16;
    let mut shape = vec![input.size(0), input.size(1)];
    shape.extend(grid.shape().iter().skip(1).take(input.dim() - 2));
    let output = {
        let _no_grad = GradModeGuard::new(false);
        if is_cudnn {
            let read = contiguous_if_expanded(&input)?;
            let places = contiguous(&grid)?;
            let output = empty(&shape, input.dtype(), input.device())?;
            drop(places);
            drop(read);
            output
        } else {
            empty(&shape, input.dtype(), input.device())?
        }
    };
    let node = match (is_cudnn, input.dim()) {
        (true, _) => nodes::CudnnGridSamplerBackward0,
        (false, 5) => nodes::GridSampler3DBackward0,
        (false, _) => nodes::GridSampler2DBackward0,
    };
    let saved = [Save::Input(Some(&grid)), Save::Input(Some(&input))];
    record(node, &[&input, &grid], &[&output], &saved, move |ctx, grads| {
        let (grad, grid, input) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        if is_cudnn { cudnn_backward(grad, &input, &grid) } else { backward(&input, &grid, ctx.wants(0)) }
    })?;
    Ok(output.into())
}

/// `grid_sampler_2d_backward` and `grid_sampler_3d_backward`: the grid's gradient is always made.
fn backward(input: &Tensor, grid: &Tensor, wants_input: bool) -> Result<Gradients> {
    let to_input = if wants_input {
        Some(creation::zeros(&input.shape(), input.dtype(), input.device())?)
    } else {
        None
    };
    let to_grid = empty_like_as(grid, grid.dtype(), MemoryFormat::Contiguous)?;
    Ok(vec![to_input, Some(to_grid)])
}

/// `cudnn_grid_sampler_backward`: both gradients are always made.
fn cudnn_backward(grad: &Tensor, input: &Tensor, grid: &Tensor) -> Result<Gradients> {
    let _no_grad = GradModeGuard::new(false);
    let read = contiguous_if_expanded(input)?;
    let places = contiguous(grid)?;
    let flow = contiguous_if_expanded(grad)?;
    let to_input = empty(&input.shape(), input.dtype(), input.device())?;
    let to_grid = empty(&grid.shape(), grid.dtype(), grid.device())?;
    drop(flow);
    drop(places);
    drop(read);
    Ok(vec![Some(to_input), Some(to_grid)])
}

/// `linspace_from_neg_one`.
fn steps(like: &Tensor, count: i64, is_aligned: bool) -> Result<Tensor> {
    if count <= 1 {
        return empty(&[], like.dtype(), like.device());
    }
    let range = empty(&[count], like.dtype(), like.device())?;
    if is_aligned {
        return Ok(range);
    }
    let scaled = mul(&range, &wrapped(Scalar::Int(count - 1)))?;
    let shrunk = div(&scaled, &wrapped(Scalar::Int(count)))?;
    drop(range);
    drop(scaled);
    Ok(shrunk)
}

/// `make_base_grid_4D` and `make_base_grid_5D`: a coordinate for each dimension, and ones.
fn base_grid(like: &Tensor, size: &[i64], is_aligned: bool) -> Result<Tensor> {
    let spatial: Vec<i64> = size.iter().skip(2).copied().collect();
    let mut shape = vec![size.first().copied().unwrap_or(1)];
    shape.extend(&spatial);
    shape.push(spatial.len() as i64 + 1);
    let grid = empty(&shape, like.dtype(), like.device())?;
    for (dim, count) in spatial.iter().rev().enumerate() {
        let mut range = steps(like, *count, is_aligned)?;
        for _ in 0..dim {
            range = unsqueeze(&range, -1)?;
        }
        copy::copy_in_place(&select(&grid, -1, dim as i64)?, &range)?;
    }
    Ok(grid)
}

/// `affine_grid_generator`.
fn affine_grid(theta: &Tensor, size: &[i64], is_aligned: bool) -> Result<Tensor> {
    let coordinates = size.len() as i64 - 2;
    if !(2..=3).contains(&coordinates) {
        return runtime("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
    }
    let points: i64 = size.iter().skip(2).fold(1, |product, count| product.saturating_mul(*count));
    let batch = size.first().copied().unwrap_or(1);
    let mut shape = vec![batch];
    shape.extend(size.iter().skip(2));
    shape.push(coordinates);
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let base = base_grid(theta, size, is_aligned)?;
        let flat = view(&base, &[batch, points, coordinates + 1])?;
        let grid = bmm(&flat, &transpose(theta, 1, 2)?)?;
        drop(flat);
        drop(base);
        view(&grid, &shape)?
    };
    let output = output.alias(&output.shape(), &output.strides(), output.offset());
    let size = size.to_vec();
    record(nodes::AffineGridGeneratorBackward0, &[theta], &[&output], &[], move |_, grads| {
        let grad = first(grads)?;
        let _no_grad = GradModeGuard::new(false);
        let base = base_grid(grad, &size, is_aligned)?;
        let flat = view(&base, &[batch, points, coordinates + 1])?;
        let flow = reshape(grad, &[batch, points, coordinates])?;
        let to_theta = bmm(&transpose(&flat, 1, 2)?, &flow)?;
        drop(flow);
        drop(flat);
        drop(base);
        Ok(vec![Some(transpose(&to_theta, 1, 2)?)])
    })?;
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool \
         cudnn_enabled=True)",
        grid_sampler,
    ),
    op!("affine_grid_generator(Tensor theta, int[] size, bool align_corners)", affine_grid),
];
