//! The workspaces that cuDNN takes beside the operands: recorded sizes, or an estimate with its reason.

use std::ffi::c_int;

use blockyard_gpus::recurrent::{self, Algorithm, Kind};
use blockyard_gpus::tables::{
    LayerSize, Operands, WorkspaceRequest, dtype, estimate, hash, largest_in_layers, recorded_size,
    size_in_layers, size_in_networks,
};

use crate::cudnn::backend::{Convolution, Tensor};
use crate::cudnn::recurrent::{GRU, LSTM, LayerDescriptor, RELU, Sequence};

/// The tables' number of a type, and the bytes of an element.
fn kind(number: c_int) -> Option<(i64, u64)> {
    Some(match number {
        0 => (dtype::F32, 4),
        1 => (dtype::F64, 8),
        2 => (dtype::F16, 2),
        9 => (dtype::BF16, 2),
        _ => return None,
    })
}

/// Elements of a tensor; 0 for sizes that no tensor has.
fn elements(sizes: &[i64]) -> u64 {
    sizes.iter().fold(1_u64, |product, size| product.saturating_mul(u64::try_from(*size).unwrap_or(0)))
}

/// Whether channels lie last in memory; `None` where both orders are the same.
fn is_channels_last(tensor: &Tensor) -> Option<bool> {
    let spatial = tensor.sizes.get(2..).unwrap_or(&[]);
    if tensor.sizes.get(1) == Some(&1) {
        return None;
    }
    if elements(spatial) == 1 {
        // The order is the same, but PyTorch still writes steps of all channels.
        return (!spatial.is_empty() && tensor.strides.last() == tensor.sizes.get(1)).then_some(true);
    }
    Some(tensor.strides.get(1) == Some(&1))
}

/// Whether channels lie last in the operands.
fn is_last(asked: &Convolution) -> bool {
    [&asked.input, &asked.output, &asked.filter].into_iter().find_map(is_channels_last).unwrap_or(false)
}

/// Sizes with channels rounded up to what tensor cores read at once.
fn padded(sizes: &[i64], places: std::ops::Range<usize>, element: u64) -> Vec<i64> {
    let at_once = i64::try_from(16 / element.max(1)).unwrap_or(1).max(1);
    let mut sizes = sizes.to_vec();
    for size in sizes.get_mut(places).into_iter().flatten() {
        *size = size.saturating_add(at_once - 1) / at_once * at_once;
    }
    sizes
}

/// A convolution as PyTorch's operator has it: the convolution that cuDNN runs, or a transposed convolution,
/// whose forward pass is the gradient of an input for cuDNN.
struct Operator<'a> {
    pass: i64,
    is_transposed: bool,
    input: &'a [i64],
    output: &'a [i64],
}

impl Operator<'_> {
    fn recorded(&self, asked: &Convolution, is_last: bool) -> Option<u64> {
        let (number, element) = kind(asked.input.kind)?;
        let filter = &asked.filter.sizes;
        let groups = asked.input.sizes.get(1)?.checked_div(*filter.get(1)?)?;
        let mut numbers =
            vec![1, self.pass, i64::from(self.is_transposed), number, i64::from(is_last), groups];
        for list in [self.input, filter, &asked.stride, &asked.padding, &asked.dilation] {
            numbers.push(-1);
            numbers.extend(list);
        }
        let bytes = |sizes: &[i64]| elements(sizes).saturating_mul(element);
        let operands = Operands {
            plain: [bytes(self.input), bytes(filter), bytes(self.output)],
            padded: [
                bytes(&padded(self.input, 1..2, element)),
                bytes(&padded(filter, 0..2, element)),
                bytes(&padded(self.output, 1..2, element)),
            ],
            partial: elements(filter).saturating_mul(4),
            batch: u64::try_from(*self.input.first()?).unwrap_or(0),
        };
        let key = hash(&numbers);
        recorded_size(key, &operands).or_else(|| size_in_networks(key, &operands))
    }
}

/// Bytes of a convolution's workspace, and why they are an estimate; `None` where they are exact.
pub(super) fn of_convolution(asked: &Convolution) -> (u64, Option<&'static str>) {
    let (input, output) = (asked.input.sizes.as_slice(), asked.output.sizes.as_slice());
    let is_last = is_last(asked);
    // The layers of networks are searched first: their keys are longer, so no layer is confused with another.
    let of_layer = in_layers(asked, is_last);
    if let Some(LayerSize::Recorded(size)) = of_layer {
        return (size, None);
    }
    let own = i64::try_from(asked.operation).unwrap_or(0);
    let other = match asked.operation {
        0 => 1,
        1 => 0,
        _ => own,
    };
    let plain = Operator { pass: own, is_transposed: false, input, output };
    let transposed = Operator { pass: other, is_transposed: true, input: output, output: input };
    match (plain.recorded(asked, is_last), transposed.recorded(asked, is_last)) {
        (Some(one), Some(two)) if one != two => (
            one,
            Some(
                "cuDNN's workspace of a convolution was recorded in two ways, with and without a transposed one",
            ),
        ),
        (Some(size), _) | (None, Some(size)) => (size, None),
        (None, None) => {
            let remark = "cuDNN's workspace of a convolution is not recorded, and is estimated";
            let size = match of_layer {
                Some(LayerSize::Near(size) | LayerSize::Recorded(size)) => Some(size),
                None => request(asked, is_last).and_then(|request| estimate(&request)),
            };
            (size.unwrap_or(0), Some(remark))
        }
    }
}

/// Bytes of the largest workspace that any algorithm wants for a convolution, and why they are an estimate.
pub(super) fn largest_of_convolution(asked: &Convolution) -> (u64, Option<&'static str>) {
    let found = request(asked, is_last(asked)).and_then(|request| largest_in_layers(&request));
    match found {
        Some(LayerSize::Recorded(size)) => (size, None),
        Some(LayerSize::Near(size)) => (size, Some(NEAR_LARGEST)),
        // No algorithm is known to want more than the one that cuDNN recommends.
        None => (of_convolution(asked).0, Some(UNKNOWN_LARGEST)),
    }
}

const NEAR_LARGEST: &str = "the largest workspace that torch.backends.cudnn.benchmark tries for a convolution was recorded with \
     another batch, and is estimated";
const UNKNOWN_LARGEST: &str = "the largest workspace that torch.backends.cudnn.benchmark tries for a convolution is not \
     recorded: the peak may be higher";

fn request(asked: &Convolution, is_last: bool) -> Option<WorkspaceRequest<'_>> {
    let (number, element) = kind(asked.input.kind)?;
    Some(WorkspaceRequest {
        operation: asked.operation,
        dtype: number,
        element_bytes: element,
        is_channels_last: is_last,
        input: &asked.input.sizes,
        filter: &asked.filter.sizes,
        output: &asked.output.sizes,
        stride: &asked.stride,
        padding: &asked.padding,
        dilation: &asked.dilation,
    })
}

/// Bytes of a convolution that known networks have, perhaps with another batch.
fn in_layers(asked: &Convolution, is_last: bool) -> Option<LayerSize> {
    size_in_layers(&request(asked, is_last)?)
}

/// Bytes of workspace and reserve of a recurrent layer, and why they are an estimate.
pub(super) fn of_layer(
    layer: &LayerDescriptor,
    sequence: &Sequence,
    is_training: bool,
) -> ([u64; 2], Option<&'static str>) {
    let (dtype, element) = kind(layer.kind).unwrap_or((-1, u64::try_from(layer.element()).unwrap_or(0)));
    let count = |size: c_int| u64::try_from(size).unwrap_or(0);
    let asked = recurrent::Layer {
        kind: match layer.mode {
            RELU => Kind::Relu,
            LSTM => Kind::Lstm,
            GRU => Kind::Gru,
            _ => Kind::Tanh,
        },
        input: count(layer.input),
        hidden: count(layer.hidden),
        layers: count(layer.layers),
        directions: count(layer.directions),
        batch: count(sequence.batch),
        longest: count(sequence.time),
        time_steps: u64::try_from(sequence.steps).unwrap_or(0),
        is_packed: sequence.is_packed,
        has_dropout: layer.has_dropout,
        is_training,
        dtype,
        element_bytes: element,
    };
    // cuDNN's numbers (`cudnnRNNAlgo_t`); PyTorch asks for no other algorithm.
    let (algorithm, is_known) = match layer.algorithm {
        0 => (Algorithm::Standard, true),
        1 => (Algorithm::Persistent, !sequence.is_packed),
        3 => (Algorithm::Small, !sequence.is_packed),
        _ => (Algorithm::Standard, false),
    };
    let (workspace, reserve) = (asked.workspace(algorithm), asked.reserve());
    let is_exact = workspace.is_exact && is_known && !layer.projects();
    let remark = "what cuDNN takes for this recurrent layer is not recorded, and is estimated by a rule";
    let reserve = if is_training { reserve.bytes } else { 0 };
    ([workspace.bytes, reserve], (!is_exact).then_some(remark))
}

#[cfg(test)]
mod tests {
    use super::of_convolution;
    use crate::cudnn::backend::{Convolution, Tensor};

    fn tensor(sizes: [i64; 4]) -> Tensor {
        let [_, channels, rows, columns] = sizes;
        let strides = vec![channels * rows * columns, rows * columns, columns, 1];
        Tensor { kind: 0, sizes: sizes.to_vec(), strides }
    }

    /// A layer of `GoogLeNet`, as an H200 answered for its gradients.
    #[test]
    fn layers_of_known_networks_are_recorded() {
        let asked = |operation| Convolution {
            operation,
            input: tensor([128, 832, 7, 7]),
            filter: tensor([256, 832, 1, 1]),
            output: tensor([128, 256, 7, 7]),
            stride: vec![1, 1],
            padding: vec![0, 0],
            dilation: vec![1, 1],
        };
        assert_eq!(of_convolution(&asked(1)), (27_295_891, None));
        assert_eq!(of_convolution(&asked(2)), (30_704_831, None));
        let odd = |batch| Convolution {
            input: tensor([batch, 832, 7, 7]),
            output: tensor([batch, 256, 7, 7]),
            ..asked(1)
        };
        assert_eq!(
            of_convolution(&odd(27)).1,
            None,
            "of a layer that networks have, such batches are recorded too"
        );
        let other = odd(127);
        assert!(of_convolution(&other).1.is_some(), "a batch that was not recorded is an estimate");
    }
}
