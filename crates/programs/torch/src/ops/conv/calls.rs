//! Convolutions as a program calls them: `conv2d`, `conv_transpose2d` and their like.

use crate::arguments::{Argument, FromArgument, arguments, integers};
use crate::autocast::Cast;
use crate::error::runtime;
use crate::schema::ArgumentKind;
use crate::{Result, Tensor, Value};

use super::super::views::{squeeze, unsqueeze};
use super::{Settings, convolution, spread, value_of_dim};

/// Does the work on a batch: an input without a batch gets a batch of size 1, which the result loses again.
fn batched(dims: usize, input: &Tensor, work: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Value> {
    if input.dim() == dims + 1 {
        return Ok(squeeze(&work(&unsqueeze(input, 0)?)?, Some(&[0]))?.into());
    }
    if input.dim() != dims + 2 {
        return runtime(format!(
            "Expected {}D (unbatched) or {}D (batched) input to conv{dims}d, but got input of size: {:?}",
            dims + 1,
            dims + 2,
            input.shape()
        ));
    }
    Ok(work(input)?.into())
}

/// The padding of a convolution: sizes, or a text.
pub(super) enum Padding {
    Same,
    Valid,
    Sizes(Vec<i64>),
}

impl<'a> FromArgument<'a> for Padding {
    const KINDS: &'static [ArgumentKind] = &[ArgumentKind::Any];

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match argument.value() {
            Value::Str(text) if &**text == "same" => Ok(Self::Same),
            Value::Str(_) => Ok(Self::Valid),
            sizes => integers(sizes).map(Self::Sizes),
        }
    }
}

arguments! {
    /// The arguments of `conv2d` and its like.
    pub(super) struct Call<'a> {
        input: &'a Tensor,
        weight: &'a Tensor,
        bias: Option<&'a Tensor>,
        stride: &'a [i64],
        padding: Padding,
        dilation: &'a [i64],
        groups: i64,
    }
}

arguments! {
    /// The arguments of `conv_transpose2d` and its like.
    #[derive(Clone, Copy)]
    pub(super) struct TransposedCall<'a> {
        input: &'a Tensor,
        weight: &'a Tensor,
        bias: Option<&'a Tensor>,
        stride: &'a [i64],
        padding: &'a [i64],
        output_padding: &'a [i64],
        groups: i64,
        dilation: &'a [i64],
    }
}

/// `conv1d`, `conv2d` and `conv3d`, by the number of dimensions that the filter moves along.
pub(super) fn conv(call: Call<'_>, dims: usize) -> Result<Value> {
    let cast = Cast::lower(call.input.device());
    let bias = cast.apply_optional(call.bias)?;
    let weight = cast.apply(call.weight)?;
    let input = cast.apply(call.input)?;
    let dilation = spread(call.dilation, dims);
    let padding = match call.padding {
        Padding::Same => {
            let kernel = weight.shape();
            let padding: Vec<i64> = (0..dims)
                .map(|dim| value_of_dim(&dilation, dim) * (value_of_dim(&kernel, dim + 2) - 1))
                .collect();
            if padding.iter().any(|total| total % 2 != 0) {
                return crate::error::not_implemented("padding='same' with a kernel of an even size");
            }
            padding.iter().map(|total| total / 2).collect()
        }
        Padding::Valid => vec![0; dims],
        Padding::Sizes(sizes) => spread(&sizes, dims),
    };
    let settings = Settings {
        stride: spread(call.stride, dims),
        padding,
        dilation,
        output_padding: vec![0; dims],
        groups: call.groups,
        is_transposed: false,
    };
    batched(dims, &input, |input| convolution(input, &weight, bias.as_ref(), settings))
}

/// `conv_transpose1d` and its like, by the number of dimensions that the filter moves along.
pub(super) fn conv_transpose(call: TransposedCall<'_>, dims: usize) -> Result<Value> {
    let cast = Cast::lower(call.input.device());
    let bias = cast.apply_optional(call.bias)?;
    let weight = cast.apply(call.weight)?;
    let input = cast.apply(call.input)?;
    let settings = Settings {
        stride: spread(call.stride, dims),
        padding: spread(call.padding, dims),
        output_padding: spread(call.output_padding, dims),
        groups: call.groups,
        dilation: spread(call.dilation, dims),
        is_transposed: true,
    };
    batched(dims, &input, |input| convolution(input, &weight, bias.as_ref(), settings))
}
