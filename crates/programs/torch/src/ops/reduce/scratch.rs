//! The buffer and the semaphores of a reduction that is split over several blocks (`setReduceConfig`).

use crate::iterator::Reduction;
use crate::{Dtype, session};

/// The sizes that decide how much memory a kernel takes: the bytes of the value that it adds up, and how many
/// values a thread reads at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReductionKernel {
    arg: u64,
    values_at_once: i64,
    vector: i64,
}

impl ReductionKernel {
    /// Sums and their like, in the accumulation type.
    pub(crate) fn of(arg: u64) -> Self {
        Self { arg, values_at_once: 4, vector: 4 }
    }

    /// `WelfordData`: two numbers in the type that adds up, and two counts of four bytes, which doubles align
    /// to eight.
    pub(crate) fn welford(dtype: Dtype) -> Self {
        Self { arg: if dtype == Dtype::F64 { 32 } else { 16 }, values_at_once: 2, vector: 2 }
    }
}

fn last_power_of_two(number: i64) -> i64 {
    if number < 1 { 1 } else { 1 << (63 - number.leading_zeros()) }
}

fn div_up(a: i64, b: i64) -> i64 {
    (a + b - 1) / b.max(1)
}

/// `setReduceConfig`: bytes of the buffer and of the semaphores, where the work is split over several blocks.
pub(super) fn scratch(reduction: &Reduction, kernel: ReductionKernel, dtype: Dtype) -> Option<(u64, u64)> {
    const MIN: i64 = 16;
    const MAX: i64 = 256;
    let profile = session().profile().clone();
    let outputs = reduction.outputs.max(1);
    let inputs = crate::numel(&reduction.shape) / outputs;
    let dims = reduction.shape.len();
    let stride = |dim: usize| reduction.strides.get(dim).copied().unwrap_or(1);
    let is_fastest_reduced = dims == 0 || reduction.reduced == dims || stride(0) < stride(reduction.reduced);
    let (mut dim0, dim1, fastest) = if dims == 0 {
        (1, 1, 1)
    } else if is_fastest_reduced {
        (inputs, outputs, stride(0))
    } else {
        (outputs, inputs, stride(reduction.reduced))
    };
    let mut output_vector = 1;
    if fastest == 1 {
        if is_fastest_reduced
            && dim0 > 128
            && reduction.reduced == 1
            && kernel.values_at_once >= kernel.vector
        {
            dim0 /= kernel.vector;
        } else if !is_fastest_reduced {
            output_vector = output_vector_size(reduction);
            dim0 /= output_vector;
        }
    }
    let most_threads = if dtype == Dtype::C128 { 256 } else { 512 } / output_vector;
    let power = |dim: i64| if dim < most_threads { last_power_of_two(dim) } else { most_threads };
    let (power0, power1) = (power(dim0), power(dim1));
    let width = power0.min(32);
    let height = power1.min(most_threads / width);
    let width = power0.min(most_threads / height);
    let threads = width * height;
    let (mut step_input, mut step_output) = (1, 1);
    let is_x_reduced = dims == 0 || is_fastest_reduced;
    if is_x_reduced {
        step_input *= width;
    } else {
        step_output *= width;
    }
    let is_split_across_warps = div_up(inputs, step_input) >= (height * 16).min(MAX);
    if is_split_across_warps {
        step_input *= height;
    } else {
        step_output *= height;
    }
    let blocks = i64::from(profile.threads_per_multiprocessor) / threads;
    let target = i64::from(profile.multiprocessors) * blocks;
    let grid = div_up(outputs / output_vector, step_output);
    let per_thread = div_up(inputs, step_input);
    if !is_split_across_warps || per_thread < MAX || grid > target {
        return None;
    }
    let per_output = div_up(target, grid).min(div_up(per_thread, MIN)).max(div_up(per_thread, MAX));
    if per_output <= 1 {
        return None;
    }
    let mut buffer = kernel.arg as i64 * outputs * per_output;
    if !is_x_reduced {
        buffer *= width * output_vector;
    }
    Some((buffer.max(0) as u64, (4 * grid).max(0) as u64))
}

/// `get_output_vec_size`: how many neighboring outputs a thread can read at once.
fn output_vector_size(reduction: &Reduction) -> i64 {
    let mut size = 4;
    let mut update = |number: i64| {
        while number % size != 0 {
            size /= 2;
        }
    };
    update(reduction.offset);
    update(reduction.shape.get(reduction.reduced).copied().unwrap_or(1));
    for (dim, stride) in reduction.strides.iter().enumerate() {
        if dim != reduction.reduced {
            update(*stride);
        }
    }
    size
}
