//! Recurrent layers: where their weights are in the buffer of all weights, and which workspaces they take.
#![expect(unsafe_code, reason = "functions are exported under cuDNN's names")]

use std::ffi::{c_int, c_uint};

use crate::abi::{In, Out};
use crate::cudnn::tensors::{Object, create, destroy, objects, set};
use crate::cudnn::{BAD_PARAM, SUCCESS};
use crate::report;

/// A stack of recurrent layers. Sizes count elements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LayerDescriptor {
    /// 0 for the standard algorithm, 1 to 3 for the persistent ones: static, dynamic, for small hidden sizes.
    pub(super) algorithm: c_int,
    /// 0 for an RNN with `ReLU`, 1 for one with tanh, 2 for an LSTM, 3 for a GRU.
    pub(super) mode: c_int,
    /// 0 for no bias, 1 for a bias of the input, 2 for both biases, 3 for a bias of the state.
    pub(super) bias: c_int,
    pub(super) directions: c_int,
    pub(super) kind: c_int,
    pub(super) input: c_int,
    pub(super) hidden: c_int,
    pub(super) projection: c_int,
    pub(super) layers: c_int,
    pub(super) has_dropout: bool,
}

/// The shape of a batch of sequences.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    pub(super) time: c_int,
    pub(super) batch: c_int,
    /// The time steps of all sequences together.
    pub(super) steps: i64,
    /// Whether the sequences are packed: one time step after the other, without padding.
    pub(super) is_packed: bool,
}

/// `CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED`.
const PACKED: c_int = 1;

/// `CUDNN_RNN_RELU`.
pub(super) const RELU: c_int = 0;
/// `CUDNN_LSTM`.
pub(super) const LSTM: c_int = 2;
/// `CUDNN_GRU`.
pub(super) const GRU: c_int = 3;
/// `CUDNN_RNN_NO_BIAS`.
const NO_BIAS: c_int = 0;
/// `CUDNN_RNN_DOUBLE_BIAS`.
const TWO_BIASES: c_int = 2;

impl LayerDescriptor {
    /// Bytes of an element.
    pub(super) fn element(&self) -> i64 {
        match self.kind {
            1 => 8,
            2 | 9 => 2,
            _ => 4,
        }
    }

    /// How many gates the layer has: matrices of the input, and as many of the state.
    fn gates(&self) -> i64 {
        match self.mode {
            LSTM => 4,
            GRU => 3,
            _ => 1,
        }
    }

    /// Width of the state that a time step hands to the next.
    fn state(&self) -> i64 {
        i64::from(if self.projection > 0 { self.projection } else { self.hidden })
    }

    /// Whether the layer projects its hidden state to another width.
    pub(super) fn projects(&self) -> bool {
        self.projection > 0 && self.projection != self.hidden
    }

    /// Width of the input that a layer reads in one direction.
    fn width(&self, place: i64) -> i64 {
        let directions = i64::from(self.directions);
        if place < directions { i64::from(self.input) } else { self.state().saturating_mul(directions) }
    }

    /// Elements of all matrices of one layer in one direction.
    fn matrices(&self, place: i64) -> i64 {
        let hidden = i64::from(self.hidden);
        let rows = self.gates().saturating_mul(hidden);
        let projection = if self.projects() { self.state().saturating_mul(hidden) } else { 0 };
        rows.saturating_mul(self.width(place).saturating_add(self.state())).saturating_add(projection)
    }

    fn places(&self) -> i64 {
        i64::from(self.layers).saturating_mul(i64::from(self.directions))
    }

    /// Biases of one layer in one direction.
    fn biases(&self) -> i64 {
        match self.bias {
            NO_BIAS => 0,
            TWO_BIASES => self.gates().saturating_mul(2),
            _ => self.gates(),
        }
    }

    /// All matrices, by layer and direction, then all biases.
    fn weights(&self) -> i64 {
        let matrices = (0..self.places()).fold(0_i64, |sum, place| sum.saturating_add(self.matrices(place)));
        let biases = self.places().saturating_mul(self.biases());
        matrices.saturating_add(biases.saturating_mul(i64::from(self.hidden)))
    }

    /// A matrix: where it starts, its rows and its columns. `None` where the layer has no matrix of this
    /// number.
    fn matrix(&self, place: i64, number: i64) -> Option<(i64, i64, i64)> {
        let (gates, hidden) = (self.gates(), i64::from(self.hidden));
        let before = (0..place).fold(0_i64, |sum, place| sum.saturating_add(self.matrices(place)));
        let (of_input, of_state) =
            (hidden.saturating_mul(self.width(place)), hidden.saturating_mul(self.state()));
        let (offset, rows, columns) = if number < gates {
            (number.saturating_mul(of_input), hidden, self.width(place))
        } else if number < gates.saturating_mul(2) {
            let done = gates.saturating_mul(of_input);
            (done.saturating_add(number.saturating_sub(gates).saturating_mul(of_state)), hidden, self.state())
        } else if self.projects() {
            (gates.saturating_mul(of_input.saturating_add(of_state)), self.state(), hidden)
        } else {
            return None;
        };
        Some((before.saturating_add(offset), rows, columns))
    }

    /// Where a bias starts among all weights, in elements; `None` where the layer has no such bias.
    fn bias_offset(&self, place: i64, number: i64) -> Option<i64> {
        if number >= self.biases() {
            return None;
        }
        let matrices = (0..self.places()).fold(0_i64, |sum, place| sum.saturating_add(self.matrices(place)));
        let before = place.saturating_mul(self.biases()).saturating_add(number);
        Some(matrices.saturating_add(before.saturating_mul(i64::from(self.hidden))))
    }
}

fn layer(handle: usize) -> Option<LayerDescriptor> {
    match objects().get(handle) {
        Some(Object::Layer(layer)) => Some(*layer),
        _ => None,
    }
}

fn sequence(handle: usize) -> Option<Sequence> {
    match objects().get(handle) {
        Some(Object::Sequence(sequence)) => Some(*sequence),
        _ => None,
    }
}

fn to_c_int(value: i64) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// The descriptor of a tensor with three sizes, of which the first is 1; without sizes where none are given.
fn shape(kind: c_int, sizes: Option<(i64, i64)>) -> Object {
    let (sizes, strides) = match sizes {
        None => (Vec::new(), Vec::new()),
        Some((rows, columns)) => (
            vec![1, to_c_int(rows), to_c_int(columns)],
            vec![to_c_int(rows.saturating_mul(columns)), to_c_int(columns), 1],
        ),
    };
    Object::Tensor { kind, sizes, strides }
}

fn address(base: u64, layer: &LayerDescriptor, offset: i64) -> u64 {
    base.saturating_add_signed(offset.saturating_mul(layer.element()))
}

entries! {
    fn cudnnCreateRNNDescriptor(to: Out<usize>) -> c_int {
        create(to, Object::Layer(LayerDescriptor::default()))
    }

    fn cudnnDestroyRNNDescriptor(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cudnnCreateRNNDataDescriptor(to: Out<usize>) -> c_int {
        create(to, Object::Sequence(Sequence::default()))
    }

    fn cudnnDestroyRNNDataDescriptor(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cudnnSetRNNDescriptor_v8(
        handle: usize, algorithm: c_int, mode: c_int, bias: c_int, direction: c_int, _input_mode: c_int, kind: c_int,
        _precision: c_int, _math: c_int, input: c_int, hidden: c_int, projection: c_int, layers: c_int, dropout: usize,
        _flags: c_uint,
    ) -> c_int {
        let share = match objects().get(dropout) {
            Some(Object::Dropout(share)) => *share,
            _ => 0.0,
        };
        let directions = if direction == 0 { 1 } else { 2 };
        let has_dropout = share > 0.0 && layers > 1;
        set(handle, Object::Layer(LayerDescriptor { algorithm, mode, bias, directions, kind, input, hidden, projection, layers, has_dropout }))
    }

    fn cudnnSetRNNDataDescriptor(
        handle: usize, _kind: c_int, layout: c_int, time: c_int, batch: c_int, _width: c_int, lengths: In<c_int>, _fill: usize,
    ) -> c_int {
        let lengths = lengths.list(usize::try_from(batch).unwrap_or(0));
        let steps = lengths.iter().fold(0_i64, |sum, length| sum.saturating_add(i64::from(*length)));
        set(handle, Object::Sequence(Sequence { time, batch, steps, is_packed: layout == PACKED }))
    }

    fn cudnnGetRNNWeightSpaceSize(_library: usize, handle: usize, to: Out<usize>) -> c_int {
        let Some(layer) = layer(handle) else { return BAD_PARAM };
        to.put(usize::try_from(layer.weights().saturating_mul(layer.element())).unwrap_or(0));
        SUCCESS
    }

    fn cudnnGetRNNWeightParams(
        _library: usize, handle: usize, place: c_int, _size: usize, base: u64, number: c_int, matrix: usize,
        to_matrix: Out<u64>, bias: usize, to_bias: Out<u64>,
    ) -> c_int {
        let Some(layer) = layer(handle) else { return BAD_PARAM };
        let (place, number) = (i64::from(place), i64::from(number));
        let found = layer.matrix(place, number);
        set(matrix, shape(layer.kind, found.map(|(_, rows, columns)| (rows, columns))));
        to_matrix.put(found.map_or(0, |(offset, ..)| address(base, &layer, offset)));
        let offset = layer.bias_offset(place, number);
        set(bias, shape(layer.kind, offset.map(|_| (i64::from(layer.hidden), 1))));
        to_bias.put(offset.map_or(0, |offset| address(base, &layer, offset)));
        SUCCESS
    }

    fn cudnnGetRNNTempSpaceSizes(
        _library: usize, handle: usize, training: c_int, data: usize, workspace: Out<usize>, reserve: Out<usize>,
    ) -> c_int {
        let (Some(layer), Some(sequence)) = (layer(handle), sequence(data)) else { return BAD_PARAM };
        let (sizes, remark) = crate::cudnn::workspaces::of_layer(&layer, &sequence, training != 0);
        if let Some(remark) = remark {
            report::report_estimate(remark);
        }
        workspace.put(usize::try_from(sizes[0]).unwrap_or(0));
        reserve.put(usize::try_from(sizes[1]).unwrap_or(0));
        SUCCESS
    }
}
