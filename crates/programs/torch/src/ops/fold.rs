//! Sliding windows as columns, and columns added up into an image: `nn.Unfold` and `nn.Fold`.

use crate::arguments::arguments;
use crate::autograd::{GradModeGuard, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Result, Tensor, contiguous_strides, numel};

use super::copy::contiguous;
use super::creation::empty;
use super::views::first;

/// The two sizes of a window's parameters.
type Pair = [i64; 2];

arguments! {
    /// The parameters of a window as a program gives them.
    #[derive(Clone, Copy)]
    struct Sizes<'a> {
        kernel: &'a [i64],
        dilation: &'a [i64],
        padding: &'a [i64],
        stride: &'a [i64],
    }
}

/// A window that slides over an image: rows first, then columns.
#[derive(Clone, Copy, Debug)]
struct Window {
    kernel: Pair,
    dilation: Pair,
    padding: Pair,
    stride: Pair,
}

fn pair_of(sizes: &[i64], name: &str) -> Result<Pair> {
    match sizes {
        [both] => Ok([*both, *both]),
        [rows, columns] => Ok([*rows, *columns]),
        other => runtime(format!("It is expected {name} equals to 2, but got size {}", other.len())),
    }
}

impl Window {
    fn of(sizes: &Sizes<'_>) -> Result<Self> {
        let window = Self {
            kernel: pair_of(sizes.kernel, "kernel_size")?,
            dilation: pair_of(sizes.dilation, "dilation")?,
            padding: pair_of(sizes.padding, "padding")?,
            stride: pair_of(sizes.stride, "stride")?,
        };
        for (name, [rows, columns]) in
            [("kernel size", window.kernel), ("dilation", window.dilation), ("stride", window.stride)]
        {
            if rows <= 0 || columns <= 0 {
                return runtime(format!(
                    "{name} should be greater than zero, but got {name}_height: {rows} {name}_width: {columns}"
                ));
            }
        }
        if window.padding.iter().any(|side| *side < 0) {
            return runtime("padding should be non-negative");
        }
        Ok(window)
    }

    /// How many windows fit into an image of this size.
    fn places(&self, size: Pair) -> Result<Pair> {
        let mut places = [0; 2];
        for (dim, slot) in places.iter_mut().enumerate() {
            let at = |pair: &Pair| pair.get(dim).copied().unwrap_or(1);
            let reach =
                at(&self.dilation).saturating_mul(at(&self.kernel).saturating_sub(1)).saturating_add(1);
            let padded = at(&size).saturating_add(at(&self.padding).saturating_mul(2));
            *slot = padded.saturating_sub(reach).div_euclid(at(&self.stride)).saturating_add(1);
        }
        if places.iter().any(|count| *count < 1) {
            return runtime(format!(
                "Given input with spatial size ({}, {}), kernel_size=({}, {}), dilation=({}, {}), padding=({}, {}), calculated \
                 shape of the array of sliding blocks as ({}, {}), but its components must be at least one.",
                size[0],
                size[1],
                self.kernel[0],
                self.kernel[1],
                self.dilation[0],
                self.dilation[1],
                self.padding[0],
                self.padding[1],
                places[0],
                places[1]
            ));
        }
        Ok(places)
    }

    fn area(&self) -> i64 {
        self.kernel[0].saturating_mul(self.kernel[1])
    }
}

/// `at::empty_like(input)`, then a contiguous input, then `output.resize_(shape)`: a smaller output keeps the
/// first memory.
fn resized_like(input: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let output = empty(&input.shape(), input.dtype(), input.device())?;
    let read = contiguous(input)?;
    let output = if numel(shape) > output.numel() {
        let larger = empty(shape, input.dtype(), input.device())?;
        drop(output);
        larger
    } else {
        output.alias(shape, &contiguous_strides(shape), 0)
    };
    drop(read);
    Ok(output)
}

/// `im2col`.
fn im2col(input: &Tensor, window: Window) -> Result<Tensor> {
    let shape = input.shape();
    let (batch, channels, size) = match &*shape {
        [channels, rows, columns] => (None, *channels, [*rows, *columns]),
        [batch, channels, rows, columns] => (Some(*batch), *channels, [*rows, *columns]),
        _ => {
            return runtime(format!(
                "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but \
                 got: {:?}",
                &*shape
            ));
        }
    };
    let [rows, columns] = window.places(size)?;
    let mut to: Vec<i64> = batch.into_iter().collect();
    to.extend([channels.saturating_mul(window.area()), rows.saturating_mul(columns)]);
    let output = resized_like(input, &to)?;
    record(nodes::Im2ColBackward0, &[input], &[&output], &[], move |_, grads| {
        Ok(vec![Some(col2im(first(grads)?, size, window)?)])
    })?;
    Ok(output)
}

/// `col2im`.
fn col2im(input: &Tensor, size: Pair, window: Window) -> Result<Tensor> {
    let shape = input.shape();
    let (batch, channels, blocks) = match &*shape {
        [channels, blocks] => (None, *channels, *blocks),
        [batch, channels, blocks] => (Some(*batch), *channels, *blocks),
        _ => {
            return runtime(format!(
                "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, \
                 but got: {:?}",
                &*shape
            ));
        }
    };
    if channels % window.area() != 0 {
        return runtime(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got \
             input.size(1)={channels} and kernel_size=({}, {}).",
            window.kernel[0], window.kernel[1]
        ));
    }
    let [rows, columns] = window.places(size)?;
    if blocks != rows.saturating_mul(columns) {
        return runtime(format!(
            "Given output_size=({}, {}), kernel_size=({}, {}), expected size of input's dimension 2 to match the calculated number \
             of sliding blocks {rows} * {columns} = {}, but got input.size(2)={blocks}.",
            size[0],
            size[1],
            window.kernel[0],
            window.kernel[1],
            rows.saturating_mul(columns)
        ));
    }
    let mut to: Vec<i64> = batch.into_iter().collect();
    to.extend([channels / window.area(), size[0], size[1]]);
    let output = resized_like(input, &to)?;
    record(nodes::Col2ImBackward0, &[input], &[&output], &[], move |_, grads| {
        Ok(vec![Some(im2col(first(grads)?, window)?)])
    })?;
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride)",
        |tensor: &Tensor, sizes: Sizes<'_>| im2col(tensor, Window::of(&sizes)?)
    ),
    op!(
        "col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride)",
        |tensor: &Tensor, output: &[i64], sizes: Sizes<'_>| {
            col2im(tensor, pair_of(output, "output_size")?, Window::of(&sizes)?)
        }
    ),
];
