//! Shapes, strides and devices of results, as `TensorIterator` decides them.

use crate::dtype::ResultType;
use crate::error::runtime;
use crate::{Device, Dtype, Result, Tensor, channels_last_strides, contiguous_strides, numel};

/// The shape that all these shapes broadcast to.
pub(crate) fn broadcast(shapes: &[&[i64]]) -> Result<Vec<i64>> {
    let mut result: Vec<i64> = Vec::new();
    for shape in shapes {
        let (longer, shorter): (Vec<i64>, &[i64]) =
            if shape.len() > result.len() { (shape.to_vec(), &result) } else { (result.clone(), shape) };
        let shift = longer.len() - shorter.len();
        let mut merged = longer.clone();
        // From the last dimension on, as PyTorch: the error names the first dimension that does not fit.
        for (index, size) in shorter.iter().enumerate().rev() {
            let dim = index + shift;
            let Some(slot) = merged.get_mut(dim) else { continue };
            if *slot == *size || *size == 1 {
                continue;
            }
            if *slot == 1 {
                *slot = *size;
                continue;
            }
            let (a, b) = if shape.len() > result.len() { (*size, *slot) } else { (*slot, *size) };
            return runtime(format!(
                "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
            ));
        }
        result = merged;
    }
    Ok(result)
}

/// The device of a result; tensors of the host without dimensions go with any device.
pub(crate) fn common_device(inputs: &[&Tensor]) -> Result<Device> {
    let first = inputs.iter().find(|input| input.dim() > 0 || input.device() != Device::Cpu);
    let device = first.or(inputs.first()).map_or(Device::Cpu, |input| input.device());
    for input in inputs {
        let fits = input.device() == device || (input.device() == Device::Cpu && input.dim() == 0);
        if !fits {
            let (a, b) = (device, input.device());
            return runtime(format!(
                "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!"
            ));
        }
    }
    Ok(device)
}

/// `common_device_check_failure`: all arguments of an operator have to lie where its first one lies.
pub(crate) fn same_device(arguments: &[(&Tensor, &str)], method: &str) -> Result<()> {
    let Some((first, _)) = arguments.first() else { return Ok(()) };
    let device = first.device();
    match arguments.iter().find(|(tensor, _)| tensor.device() != device) {
        Some((tensor, name)) => runtime(format!(
            "Expected all tensors to be on the same device, but got {name} is on {}, different from other tensors on \
             {device} (when checking argument in method wrapper_CUDA_{method})",
            tensor.device()
        )),
        None => Ok(()),
    }
}

/// The type that the types of the inputs promote to.
pub(crate) fn result_type(inputs: &[&Tensor]) -> Dtype {
    inputs
        .iter()
        .fold(ResultType::default(), |sum, input| {
            sum.add(input.dtype(), input.dim() == 0, input.is_wrapped_number())
        })
        .get()
}

/// The strides, in elements, of an input that is broadcast to a shape: 0 for repeated dimensions.
fn seen_in(input: &Tensor, shape: &[i64]) -> Vec<i64> {
    let (sizes, strides) = (input.shape(), input.strides());
    let shift = shape.len().saturating_sub(sizes.len());
    shape
        .iter()
        .enumerate()
        .map(|(dim, target)| {
            let Some(index) = dim.checked_sub(shift) else { return 0 };
            match (sizes.get(index), strides.get(index)) {
                (Some(1), _) if *target != 1 => 0,
                (_, Some(stride)) => *stride,
                _ => 0,
            }
        })
        .collect()
}

/// Strides of a new result of an elementwise operator.
pub(crate) fn output_strides(inputs: &[&Tensor], shape: &[i64]) -> Vec<i64> {
    let all_same = inputs.iter().all(|input| *input.shape() == *shape);
    if all_same {
        if inputs.iter().all(|input| input.is_contiguous()) {
            return contiguous_strides(shape);
        }
        if inputs.iter().all(|input| input.is_contiguous_in(crate::MemoryFormat::ChannelsLast)) {
            return channels_last_strides(shape);
        }
        if let Some(first) = inputs.first()
            && inputs
                .iter()
                .all(|input| input.is_non_overlapping_and_dense() && input.strides() == first.strides())
        {
            return first.strides().to_vec();
        }
    }
    let operands: Vec<(Vec<i64>, i64)> =
        inputs.iter().map(|input| (seen_in(input, shape), input.dtype().size() as i64)).collect();
    let order = reorder(shape, &operands, None);
    let mut strides = vec![0; shape.len()];
    let mut next = 1_i64;
    for dim in order {
        if let (Some(stride), Some(size)) = (strides.get_mut(dim), shape.get(dim)) {
            *stride = next;
            // Saturates as `numel` does: the allocation of the result fails.
            next = next.saturating_mul(*size);
        }
    }
    if numel(shape) == 0 { contiguous_strides(shape) } else { strides }
}

/// The dimensions, fastest first (`reorder_dimensions`); the dimensions in `reduced` come before all others.
fn reorder(shape: &[i64], operands: &[(Vec<i64>, i64)], reduced: Option<&[bool]>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    let at = |list: &[i64], dim: usize| list.get(dim).copied().unwrap_or(0);
    let is_reduced = |dim: usize| reduced.and_then(|reduced| reduced.get(dim)).copied().unwrap_or(false);
    let should_swap = |a: usize, b: usize| {
        if reduced.is_some() && is_reduced(a) != is_reduced(b) {
            return if is_reduced(b) { 1 } else { -1 };
        }
        for (strides, width) in operands {
            let (x, y) = (at(strides, a) * width, at(strides, b) * width);
            if x == 0 || y == 0 {
                continue;
            }
            if x < y {
                return -1;
            }
            if x > y {
                return 1;
            }
            if at(shape, a) > at(shape, b) {
                return 1;
            }
        }
        0
    };
    for start in 1..order.len() {
        let mut moving = start;
        for before in (0..start).rev() {
            let (Some(a), Some(b)) = (order.get(before).copied(), order.get(moving).copied()) else { break };
            match should_swap(a, b) {
                1 => {
                    order.swap(before, moving);
                    moving = before;
                }
                -1 => break,
                _ => {}
            }
        }
    }
    order
}

/// A reduction as the kernel sees it: dimensions reordered and joined.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub(crate) shape: Vec<i64>,
    /// Strides of the input in elements.
    pub(crate) strides: Vec<i64>,
    /// How many of the dimensions, from the first, are reduced.
    pub(crate) reduced: usize,
    pub(crate) outputs: i64,
    /// Where the input begins in its storage, in elements.
    pub(crate) offset: i64,
}

impl Reduction {
    /// The reduction of an input over the dimensions that `is_reduced` marks.
    pub(crate) fn new(input: &Tensor, is_reduced: &[bool], output_strides: &[i64]) -> Self {
        let (shape, strides) = (input.shape(), input.strides());
        let operands = [(output_strides.to_vec(), 1), (strides.to_vec(), 1)];
        let order = reorder(&shape, &operands, Some(is_reduced));
        let mut dims: Vec<(i64, i64, i64, bool)> = Vec::new();
        for dim in order {
            let (Some(size), Some(stride), Some(output), Some(reduced)) =
                (shape.get(dim), strides.get(dim), output_strides.get(dim), is_reduced.get(dim))
            else {
                continue;
            };
            let output = if *reduced { 0 } else { *output };
            // Dimensions that follow each other in both tensors are joined (`coalesce_dimensions`).
            if let Some(last) = dims.last_mut() {
                let joins =
                    last.0 == 1 || *size == 1 || (last.0 * last.1 == *stride && last.0 * last.2 == output);
                if joins {
                    if last.0 == 1 {
                        last.1 = *stride;
                        last.2 = output;
                        last.3 = *reduced;
                    }
                    last.0 *= size;
                    continue;
                }
            }
            dims.push((*size, *stride, output, *reduced));
        }
        // `num_reduce_dims` counts the output's strides of 0, whatever they come from.
        let reduced = dims.iter().filter(|dim| dim.2 == 0).count();
        let outputs =
            shape.iter().zip(is_reduced).filter(|(_, reduced)| !**reduced).map(|(size, _)| *size).product();
        Self {
            shape: dims.iter().map(|dim| dim.0).collect(),
            strides: dims.iter().map(|dim| dim.1).collect(),
            reduced,
            outputs,
            offset: input.offset(),
        }
    }
}
