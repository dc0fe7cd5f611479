//! Recurrent layers: cuDNN's, and PyTorch's own cells.

use blockyard_gpus::recurrent::{self, Kind as Mode};

use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Grads, Save, record};
use crate::error::not_implemented;
use crate::registry::{Entry, op};
use crate::schema::Args;
use crate::{Dtype, Result, Tensor, Value, session};

use super::copy::contiguous;
use super::creation::{empty, empty_like_as, zeros};
use super::sort::temporary;
use super::views::{first, narrow, transpose, view};

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
    /// The steps of all sequences together, where they are packed.
    packed: Option<i64>,
}

impl Layer {
    /// The shape of what has a row for each step of each sequence.
    fn rows(&self, width: i64) -> Vec<i64> {
        match self.packed {
            Some(steps) => vec![steps, width],
            None => vec![self.time, self.batch, width],
        }
    }

    /// The steps of all sequences together.
    fn steps(&self) -> i64 {
        self.packed.unwrap_or_else(|| times(&[self.batch, self.time]))
    }

    /// The layer as cuDNN is asked about it.
    fn asked(&self) -> recurrent::Layer {
        let count = |size: i64| u64::try_from(size).unwrap_or(0);
        recurrent::Layer {
            kind: self.mode,
            input: count(self.input),
            hidden: count(self.hidden),
            layers: count(self.layers),
            directions: count(self.directions),
            batch: count(self.batch),
            time: count(self.time),
            steps: count(self.steps()),
            is_packed: self.packed.is_some(),
            has_dropout: self.has_dropout,
            is_training: self.is_training,
            dtype: self.dtype as i64,
            element: self.dtype.size(),
        }
    }

    fn workspace(&self, is_forward: bool) -> u64 {
        let asked = self.asked();
        marked(asked.workspace(asked.algorithm(is_forward, session().profile())))
    }
}

/// The bytes, and a mark where they are an estimate.
fn marked(size: recurrent::Size) -> u64 {
    if !size.is_exact {
        session().mark_estimated("rnn", "cuDNN's workspace for this recurrent layer was not recorded");
    }
    size.bytes
}

/// The product, or the most that the type holds.
fn times(factors: &[i64]) -> i64 {
    factors.iter().fold(1_i64, |product, factor| product.saturating_mul(*factor))
}

/// `lstm`, `gru`, `rnn_tanh`, `rnn_relu` over whole sequences.
fn recurrent(args: &Args, mode: Mode) -> Result<Value> {
    let input = args.t(0)?;
    let (states, weights) = (states(args, 1)?, args.tensors(2)?);
    let (layers, dropout, is_training, is_bidirectional, batch_first) =
        (args.int(4)?, args.float(5)?, args.bool(6)?, args.bool(7)?, args.bool(8)?);
    let Some(hx) = states.first() else { return not_implemented("a recurrent layer without a state") };
    if input.dim() != 3 {
        return crate::error::runtime(format!("input must have 3 dimensions, got {}", input.dim()));
    }
    let (batch_dim, time_dim) = if batch_first { (0, 1) } else { (1, 0) };
    let layer = Layer {
        mode,
        input: input.size(2),
        hidden: hx.size(2),
        layers,
        batch: input.size(batch_dim),
        time: input.size(time_dim),
        directions: if is_bidirectional { 2 } else { 1 },
        has_dropout: dropout > 0.0 && layers > 1,
        is_training,
        dtype: input.dtype(),
        packed: None,
    };
    run(&input, &states, &weights, layer, batch_first)
}

/// `lstm`, `gru`, `rnn_tanh`, `rnn_relu` over packed sequences: the sizes of the batches lie on the host.
fn recurrent_packed(args: &Args, mode: Mode) -> Result<Value> {
    let (data, batch_sizes) = (args.t(0)?, args.t(1)?);
    let (states, weights) = (states(args, 2)?, args.tensors(3)?);
    let (layers, dropout, is_training, is_bidirectional) =
        (args.int(5)?, args.float(6)?, args.bool(7)?, args.bool(8)?);
    let Some(hx) = states.first() else { return not_implemented("a recurrent layer without a state") };
    let layer = Layer {
        mode,
        input: data.size(1),
        hidden: hx.size(2),
        layers,
        batch: hx.size(1),
        time: batch_sizes.numel(),
        directions: if is_bidirectional { 2 } else { 1 },
        has_dropout: dropout > 0.0 && layers > 1,
        is_training,
        dtype: data.dtype(),
        packed: Some(data.size(0)),
    };
    run(&data, &states, &weights, layer, false)
}

/// The first states, of which an LSTM has two.
fn states(args: &Args, at: usize) -> Result<Vec<Tensor>> {
    match args.value(at)? {
        Value::List(_) => args.tensors(at),
        _ => Ok(vec![args.t(at)?]),
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
        session().mark_estimated("rnn", "recurrent layers under autocast were not recorded");
    }
    if let (true, true, crate::Device::Cuda(index)) = (layer.has_dropout, layer.is_training, input.device()) {
        session().take_dropout_state(index)?;
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
    let below = GradModeGuard::new(false);
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
    // `RNNBase.flatten_parameters` leaves the weights of `bfloat16` apart: they are copied into one buffer, which is saved.
    let mut packed = None;
    let mut reserve = None;
    if device.is_cuda() {
        if input.dtype() == Dtype::BF16 {
            packed = Some(empty(&[weights.iter().map(Tensor::numel).sum()], input.dtype(), device)?);
        }
        let workspace = temporary(device, layer.workspace(true))?;
        let bytes = if layer.is_training { marked(layer.asked().reserve()) } else { 0 };
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
    drop(below);
    let mut inputs = vec![input];
    inputs.extend(states);
    inputs.extend(weights);
    let mut outputs = vec![&output];
    outputs.extend(&results);
    // Members in the order of their names: cx, hx, input, result0, result3 (the reserve), result4 (the packed weights), weight.
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
    record("CudnnRnnBackward0", &inputs, &outputs, &saved, move |ctx, grads| {
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
) -> Result<Grads> {
    let input = ctx.saved(2)?;
    let device = input.device();
    let output = ctx.saved(3)?;
    let below = GradModeGuard::new(false);
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
    drop(below);
    let mut results: Grads = vec![ctx.wants(0).then_some(to_input)];
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
fn flatten_weights(args: &Args) -> Result<Value> {
    let weights = args.tensors(0)?;
    let Some(like) = weights.first() else { return Ok(Value::None) };
    let total: i64 = weights.iter().map(Tensor::numel).sum();
    let flat = zeros(&[total], like.dtype(), like.device())?;
    let mut start = 0;
    for weight in &weights {
        let part = flat.alias(&weight.shape(), &crate::contiguous_strides(&weight.shape()), start);
        start += weight.numel();
        weight.set_data(&part);
    }
    Ok(flat.into())
}

/// `gru_cell` and `lstm_cell`: two products, then one fused kernel whose gates are kept.
fn cell(args: &Args, mode: Mode) -> Result<Value> {
    let input = args.t(0)?;
    let states: Vec<Tensor> = match args.value(1)? {
        Value::List(_) => args.tensors(1)?,
        _ => vec![args.t(1)?],
    };
    let (w_ih, w_hh, b_ih, b_hh) = (args.t(2)?, args.t(3)?, args.topt(4)?, args.topt(5)?);
    let Some(hx) = states.first() else { return not_implemented("a recurrent cell without a state") };
    let is_plain = matches!(mode, Mode::Tanh | Mode::Relu);
    if is_plain || !input.device().is_cuda() {
        let a = super::matmul::linear(&input, &w_ih, b_ih.as_ref())?;
        let b = super::matmul::linear(hx, &w_hh, b_hh.as_ref())?;
        let sum = super::pointwise::add(&a, &b)?;
        return Ok(
            if mode == Mode::Relu { super::unary::relu(&sum)? } else { super::unary::tanh(&sum)? }.into()
        );
    }
    let a = super::matmul::matmul(&input, &super::views::t(&w_ih)?)?;
    let b = super::matmul::matmul(hx, &super::views::t(&w_hh)?)?;
    fused_cell(&a, &b, &states, b_ih.as_ref(), b_hh.as_ref(), mode)
}

fn fused_cell(
    a: &Tensor,
    b: &Tensor,
    states: &[Tensor],
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
    mode: Mode,
) -> Result<Value> {
    let Some(last) = states.last() else { return not_implemented("a recurrent cell without a state") };
    let shape = last.shape();
    let (rows, hidden) = (shape.first().copied().unwrap_or(1), shape.last().copied().unwrap_or(1));
    let gates = if mode == Mode::Gru { 5 } else { 4 };
    let workspace = empty(&[rows, hidden * gates], a.dtype(), a.device())?;
    let hy = empty_like_as(last, last.dtype(), crate::MemoryFormat::Contiguous)?;
    let mut outputs = vec![hy];
    if mode == Mode::Lstm {
        outputs.push(empty_like_as(last, last.dtype(), crate::MemoryFormat::Contiguous)?);
    }
    let mut inputs = vec![a, b, last];
    inputs.extend(b_ih);
    inputs.extend(b_hh);
    let results: Vec<&Tensor> = outputs.iter().collect();
    // Members in the order of their names: the gates are kept for the second derivative.
    let saved = [
        Save::Input(Some(last)),
        Save::Input(Some(b)),
        Save::Input(Some(a)),
        if mode == Mode::Lstm { Save::Output(1) } else { Save::Input(None) },
        Save::Input(Some(&workspace)),
    ];
    let biases = usize::from(b_ih.is_some()) + usize::from(b_hh.is_some());
    record("ThnnFusedCellBackward0", &inputs, &results, &saved, move |ctx, _| {
        let workspace = ctx.saved(4)?;
        let of_width = |width: i64| empty(&[rows, width], workspace.dtype(), workspace.device());
        if mode == Mode::Lstm {
            let gates = of_width(hidden * 4)?;
            let state = of_width(hidden)?;
            let mut results: Grads = vec![Some(gates.clone()), Some(gates.clone()), Some(state)];
            if biases > 0 {
                // Both biases get the same tensor.
                let sum = super::reduce::sum(&gates, Some(&[0]), false, None)?;
                results.extend((0..biases).map(|_| Some(sum.clone())));
            }
            return Ok(results);
        }
        session().mark_estimated("gru_cell", "its gradient was not recorded");
        let (input_gates, hidden_gates) = (of_width(hidden * 3)?, of_width(hidden * 3)?);
        let state = of_width(hidden)?;
        let mut results: Grads = vec![Some(input_gates.clone()), Some(hidden_gates.clone()), Some(state)];
        for gates in [&input_gates, &hidden_gates].into_iter().take(biases) {
            results.push(Some(super::reduce::sum(gates, Some(&[0]), false, None)?));
        }
        Ok(results)
    })?;
    drop(workspace);
    Ok(match mode {
        Mode::Lstm => Value::List(outputs.into_iter().map(Value::Tensor).collect()),
        _ => outputs.into_iter().next().map_or(Value::None, Value::Tensor),
    })
}

macro_rules! sequence {
    ($name:literal, $mode:ident) => {
        op(
            concat!(
                $name,
                "(Tensor input, Any hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool ",
                "bidirectional, bool batch_first)"
            ),
            |a| recurrent(a, Mode::$mode),
        )
    };
}

macro_rules! packed {
    ($name:literal, $mode:ident) => {
        op(
            concat!(
                $name,
                "(Tensor data, Tensor batch_sizes, Any hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool ",
                "train, bool bidirectional)"
            ),
            |a| recurrent_packed(a, Mode::$mode),
        )
    };
}

macro_rules! cells {
    ($name:literal, $mode:ident) => {
        op(
            concat!(
                $name,
                "(Tensor input, Any hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)"
            ),
            |a| cell(a, Mode::$mode),
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
    op(
        "_cudnn_rnn_flatten_weight(Tensor[] weight_arr, int weight_stride0=0, int input_size=0, int mode=0, int \
         hidden_size=0, int proj_size=0, int num_layers=0, bool batch_first=False, bool bidirectional=False)",
        flatten_weights,
    ),
];
