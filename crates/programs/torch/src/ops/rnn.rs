//! Recurrent layers: cuDNN's, and PyTorch's own cells.

mod cells;

use blockyard_gpus::recurrent::{self, Kind as Mode};

use crate::arguments::{Argument, FromArgument, Rest, Unread, arguments};
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Gradients, Save, nodes, record};
use crate::error::not_implemented;
use crate::registry::{Entry, op};
use crate::schema::ArgumentKind;
use crate::{Dtype, Result, Tensor, Value, session};

use super::copy::contiguous;
use super::creation::{empty, zeros};
use super::sort::temporary;
use super::views::{first, narrow, transpose, view};
use cells::cell;

/// One call of `_cudnn_rnn`.
#[derive(Clone, Copy, Debug)]
struct Layer {
    mode: Mode,
    input: i64,
    hidden: i64,
    layers: i64,
    batch: i64,
    time: i64,
    directions: i64,
    has_dropout: bool,
    is_training: bool,
    dtype: Dtype,
    /// The time steps of all sequences together, where the sequences are packed.
    packed: Option<i64>,
}

impl Layer {
    /// The shape of a tensor with a row of `width` elements for each time step of each sequence.
    fn rows(&self, width: i64) -> Vec<i64> {
        match self.packed {
            Some(steps) => vec![steps, width],
            None => vec![self.time, self.batch, width],
        }
    }

    /// The time steps of all sequences together.
    fn steps(&self) -> i64 {
        self.packed.unwrap_or_else(|| times(&[self.batch, self.time]))
    }

    /// The layer as cuDNN is asked about it.
    fn to_recurrent_layer(self) -> recurrent::Layer {
        let count = |size: i64| u64::try_from(size).unwrap_or(0);
        recurrent::Layer {
            kind: self.mode,
            input: count(self.input),
            hidden: count(self.hidden),
            layers: count(self.layers),
            directions: count(self.directions),
            batch: count(self.batch),
            longest: count(self.time),
            time_steps: count(self.steps()),
            is_packed: self.packed.is_some(),
            has_dropout: self.has_dropout,
            is_training: self.is_training,
            dtype: self.dtype as i64,
            element_bytes: self.dtype.size(),
        }
    }

    fn workspace(&self, is_forward: bool) -> u64 {
        let asked = self.to_recurrent_layer();
        estimated(asked.workspace(asked.algorithm(is_forward, session().profile())))
    }
}

/// The bytes of a size; notes an estimate where the size is one.
fn estimated(size: recurrent::Size) -> u64 {
    if !size.is_exact {
        session().note_estimate("rnn", "cuDNN's workspace for this recurrent layer was not recorded");
    }
    size.bytes
}

/// The product, or the most that the type holds.
fn times(factors: &[i64]) -> i64 {
    factors.iter().fold(1_i64, |product, factor| product.saturating_mul(*factor))
}

arguments! {
    /// The parameters of a recurrent layer, as a program gives them.
    #[derive(Clone, Copy)]
    struct Settings<'a> {
        params: &'a [Tensor],
        _has_biases: Unread,
        layers: i64,
        dropout: f64,
        is_training: bool,
        is_bidirectional: bool,
    }
}

impl Settings<'_> {
    fn layer(&self, mode: Mode, input: &Tensor, hx: &Tensor) -> Layer {
        Layer {
            mode,
            input: input.size(-1),
            hidden: hx.size(2),
            layers: self.layers,
            batch: hx.size(1),
            time: 0,
            directions: if self.is_bidirectional { 2 } else { 1 },
            has_dropout: self.dropout > 0.0 && self.layers > 1,
            is_training: self.is_training,
            dtype: input.dtype(),
            packed: None,
        }
    }
}

/// `lstm`, `gru`, `rnn_tanh`, `rnn_relu` over whole sequences.
fn recurrent(
    input: &Tensor,
    States(states): States,
    settings: &Settings<'_>,
    batch_first: bool,
    mode: Mode,
) -> Result<Value> {
    let Some(hx) = states.first() else { return not_implemented("a recurrent layer without a state") };
    if input.dim() != 3 {
        return crate::error::runtime(format!("input must have 3 dimensions, got {}", input.dim()));
    }
    let (batch_dim, time_dim) = if batch_first { (0, 1) } else { (1, 0) };
    let layer =
        Layer { batch: input.size(batch_dim), time: input.size(time_dim), ..settings.layer(mode, input, hx) };
    run(input, &states, settings.params, layer, batch_first)
}

/// `lstm`, `gru`, `rnn_tanh`, `rnn_relu` over packed sequences: the sizes of the batches lie on the host.
fn recurrent_packed(
    data: &Tensor,
    batch_sizes: &Tensor,
    States(states): States,
    settings: &Settings<'_>,
    mode: Mode,
) -> Result<Value> {
    let Some(hx) = states.first() else { return not_implemented("a recurrent layer without a state") };
    let layer = Layer {
        input: data.size(1),
        time: batch_sizes.numel(),
        packed: Some(data.size(0)),
        ..settings.layer(mode, data, hx)
    };
    run(data, &states, settings.params, layer, false)
}

/// The first states, of which an LSTM has two.
struct States(Vec<Tensor>);

impl<'a> FromArgument<'a> for States {
    const KINDS: &'static [ArgumentKind] = &[ArgumentKind::Any];

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        let items = argument.value().clone().list()?;
        items.into_iter().map(Value::tensor).collect::<Result<_>>().map(Self)
    }
}

fn run(
    input: &Tensor,
    states: &[Tensor],
    weights: &[Tensor],
    layer: Layer,
    batch_first: bool,
) -> Result<Value> {
    if Cast::lower(input.device()).is_on() && input.dtype() == Dtype::F32 {
        session().note_estimate("rnn", "recurrent layers under autocast were not recorded");
    }
    if let (true, true, crate::Device::Cuda(index)) = (layer.has_dropout, layer.is_training, input.device()) {
        session().allocate_dropout_state(index)?;
    }
    let outputs = cudnn(input, states, weights, layer, batch_first)?;
    Ok(Value::List(outputs.into_iter().map(Value::Tensor).collect()))
}

fn cudnn(
    input: &Tensor,
    states: &[Tensor],
    weights: &[Tensor],
    layer: Layer,
    batch_first: bool,
) -> Result<Vec<Tensor>> {
    let device = input.device();
    let no_grad = GradModeGuard::new(false);
    let time_first = if batch_first { transpose(input, 0, 1)? } else { input.clone() };
    let read = contiguous(&time_first)?;
    drop(time_first);
    let width = layer.hidden.saturating_mul(layer.directions);
    let output = empty(&layer.rows(width), input.dtype(), device)?;
    let state_shape = [layer.layers.saturating_mul(layer.directions), layer.batch, layer.hidden];
    let mut results = vec![];
    for _ in states {
        results.push(empty(&state_shape, input.dtype(), device)?);
    }
    // `RNNBase.flatten_parameters` leaves the weights of `bfloat16` apart: they are copied into one buffer,
    // which is saved.
    let mut packed = None;
    let mut reserve = None;
    if device.is_cuda() {
        if input.dtype() == Dtype::BF16 {
            packed = Some(empty(&[weights.iter().map(Tensor::numel).sum()], input.dtype(), device)?);
        }
        let workspace = temporary(device, layer.workspace(true))?;
        let bytes = if layer.is_training { estimated(layer.to_recurrent_layer().reserve()) } else { 0 };
        reserve = Some(empty(&[bytes as i64], Dtype::U8, device)?);
        drop(workspace);
    }
    drop(read);
    let output = if batch_first {
        let turned = transpose(&output, 0, 1)?;
        turned.alias(&turned.shape(), &turned.strides(), turned.offset())
    } else {
        output
    };
    drop(no_grad);
    let mut inputs = vec![input];
    inputs.extend(states);
    inputs.extend(weights);
    let mut outputs = vec![&output];
    outputs.extend(&results);
    // Members in the order of their names: cx, hx, input, result0, result3 (the reserve), result4 (the packed
    // weights), weight.
    let mut saved = vec![
        Save::Input(states.get(1)),
        Save::Input(states.first()),
        Save::Input(Some(input)),
        Save::Output(0),
        Save::Input(reserve.as_ref()),
        Save::Input(packed.as_ref()),
    ];
    saved.extend(weights.iter().map(|weight| Save::Input(Some(weight))));
    let (state_count, shapes) = (states.len(), weights.iter().map(Tensor::shape).collect::<Vec<_>>());
    record(nodes::CudnnRnnBackward0, &inputs, &outputs, &saved, move |ctx, grads| {
        backward(ctx, grads, layer, batch_first, state_count, &shapes)
    })?;
    drop(reserve);
    drop(packed);
    let mut all = vec![output];
    all.append(&mut results);
    Ok(all)
}

/// `_cudnn_rnn_backward`: the input's gradient, then all weights' in one buffer.
fn backward(
    ctx: &crate::autograd::Context<'_>,
    grads: &[Option<Tensor>],
    layer: Layer,
    batch_first: bool,
    state_count: usize,
    shapes: &[crate::Shape],
) -> Result<Gradients> {
    let input = ctx.saved(2)?;
    let device = input.device();
    let output = ctx.saved(3)?;
    let no_grad = GradModeGuard::new(false);
    let state_shape = [layer.layers.saturating_mul(layer.directions), layer.batch, layer.hidden];
    let grad = match first(grads) {
        Ok(grad) => grad.clone(),
        Err(_) => zeros(&output.shape(), output.dtype(), device)?,
    };
    let mut state_grads = Vec::new();
    for index in 0..state_count {
        state_grads.push(match grads.get(index + 1).and_then(Option::as_ref) {
            Some(grad) => grad.clone(),
            None => zeros(&state_shape, input.dtype(), device)?,
        });
    }
    let turned = |tensor: &Tensor| if batch_first { transpose(tensor, 0, 1) } else { Ok(tensor.clone()) };
    let (to_input, to_states) = {
        let read = contiguous(&turned(&input)?)?;
        let flow = contiguous(&turned(&grad)?)?;
        let to_input = empty(&layer.rows(layer.input), input.dtype(), device)?;
        let mut to_states = Vec::new();
        for _ in 0..state_count {
            to_states.push(empty(&state_shape, input.dtype(), device)?);
        }
        drop(temporary(device, layer.workspace(false))?);
        drop(flow);
        drop(read);
        let to_input = if batch_first {
            let turned = transpose(&to_input, 0, 1)?;
            turned.alias(&turned.shape(), &turned.strides(), turned.offset())
        } else {
            to_input
        };
        (to_input, to_states)
    };
    let total: i64 = shapes.iter().map(|shape| crate::numel(shape)).sum();
    let flat = {
        let read = contiguous(&turned(&input)?)?;
        let flat = zeros(&[total], input.dtype(), device)?;
        drop(temporary(device, layer.workspace(false))?);
        drop(read);
        flat
    };
    while let Some(last) = state_grads.pop() {
        drop(last);
    }
    drop(grad);
    drop(no_grad);
    let mut results: Gradients = vec![ctx.wants(0).then_some(to_input)];
    for (index, state) in to_states.into_iter().enumerate() {
        results.push(ctx.wants(1 + index).then_some(state));
    }
    let mut start = 0;
    for (index, shape) in shapes.iter().enumerate() {
        let count = crate::numel(shape);
        results.push(if ctx.wants(1 + state_count + index) {
            let part = view(&narrow(&flat, 0, start, count)?, shape)?;
            Some(part.alias(&part.shape(), &part.strides(), part.offset()))
        } else {
            None
        });
        start += count;
    }
    Ok(results)
}

/// `_cudnn_rnn_flatten_weight`: all weights become parts of one buffer.
fn flatten_weights(weights: &[Tensor], _: Rest<8>) -> Result<Value> {
    let Some(like) = weights.first() else { return Ok(Value::None) };
    let total: i64 = weights.iter().map(Tensor::numel).sum();
    let flat = zeros(&[total], like.dtype(), like.device())?;
    let mut start = 0;
    for weight in weights {
        let part = flat.alias(&weight.shape(), &crate::contiguous_strides(&weight.shape()), start);
        start += weight.numel();
        weight.set_data(&part);
    }
    Ok(flat.into())
}

macro_rules! sequence {
    ($name:literal, $mode:ident) => {
        op!(
            concat!(
                $name,
                "(Tensor input, Any hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool ",
                "bidirectional, bool batch_first)"
            ),
            |input: &Tensor, states: States, settings: Settings<'_>, batch_first: bool| {
                recurrent(input, states, &settings, batch_first, Mode::$mode)
            }
        )
    };
}

macro_rules! packed {
    ($name:literal, $mode:ident) => {
        op!(
            concat!(
                $name,
                "(Tensor data, Tensor batch_sizes, Any hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool ",
                "train, bool bidirectional)"
            ),
            |data: &Tensor, batch_sizes: &Tensor, states: States, settings: Settings<'_>| {
                recurrent_packed(data, batch_sizes, states, &settings, Mode::$mode)
            }
        )
    };
}

macro_rules! cells {
    ($name:literal, $mode:ident) => {
        op!(
            concat!(
                $name,
                "(Tensor input, Any hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)"
            ),
            |input: &Tensor,
             hx: States,
             w_ih: &Tensor,
             w_hh: &Tensor,
             b_ih: Option<&Tensor>,
             b_hh: Option<&Tensor>| cell(input, hx, w_ih, w_hh, b_ih, b_hh, Mode::$mode)
        )
    };
}

pub(crate) const TABLE: &[Entry] = &[
    sequence!("lstm", Lstm),
    sequence!("gru", Gru),
    sequence!("rnn_tanh", Tanh),
    sequence!("rnn_relu", Relu),
    packed!("lstm", Lstm),
    packed!("gru", Gru),
    packed!("rnn_tanh", Tanh),
    packed!("rnn_relu", Relu),
    cells!("lstm_cell", Lstm),
    cells!("gru_cell", Gru),
    cells!("rnn_tanh_cell", Tanh),
    cells!("rnn_relu_cell", Relu),
    op!(
        "_cudnn_rnn_flatten_weight(Tensor[] weight_arr, int weight_stride0=0, int input_size=0, int mode=0, int \
         hidden_size=0, int proj_size=0, int num_layers=0, bool batch_first=False, bool bidirectional=False)",
        flatten_weights,
    ),
];
