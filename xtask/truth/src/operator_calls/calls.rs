//! The calls of the recording program, by the names of its cases.

use blockyard_torch::{
    Device, Dtype, MemoryFormat, Result, Scalar, Tensor, TorchError, Value, call as call_with,
};
use serde_json::Value as Json;

use super::OperatorCall;

type CallResult = Result<Value>;

/// A call with its tensors made.
pub(crate) struct Case {
    pub(crate) call: Box<dyn Fn() -> CallResult>,
    pub(crate) leaves: Vec<Tensor>,
}

fn dtype(text: &str) -> Dtype {
    match text {
        "f16" => Dtype::F16,
        "bf16" => Dtype::BF16,
        _ => Dtype::F32,
    }
}

const GPU: Device = Device::Cuda(0);

/// A tensor of random numbers on the GPU; `of` names its type, as the line of the case does.
pub(crate) fn randn(shape: &[i64], of: &str, requires_grad: bool) -> Result<Tensor> {
    let keywords =
        [("device", GPU.into()), ("dtype", dtype(of).into()), ("requires_grad", Value::from(requires_grad))];
    call_with("randn", &[shape.into()], &keywords)?.tensor()
}

fn of_type(name: &str, shape: &[i64], dtype: Dtype) -> CallResult {
    call_with(name, &[shape.into()], &[("device", GPU.into()), ("dtype", dtype.into())])
}

fn call(name: &str, args: &[Value]) -> CallResult {
    call_with(name, args, &[])
}

fn item(list: Value, index: usize) -> CallResult {
    Ok(list.list()?.into_iter().nth(index).unwrap_or(Value::None))
}

/// The arguments of a line, with the recording program's defaults.
struct Arguments<'a>(&'a Json);

impl Arguments<'_> {
    fn int(&self, name: &str) -> i64 {
        self.0[name].as_i64().unwrap_or(0)
    }

    fn flag(&self, name: &str) -> bool {
        self.0[name].as_bool().unwrap_or(false)
    }

    fn float(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(0.0)
    }

    fn ints(&self, name: &str) -> Vec<i64> {
        let items = self.0[name].as_array().map(|items| items.iter().filter_map(Json::as_i64).collect());
        items.unwrap_or_default()
    }

    fn dtype(&self) -> String {
        self.0["dtype"].as_str().unwrap_or("f32").to_owned()
    }
}

fn size(shape: &[i64], dim: usize) -> i64 {
    shape.get(dim).copied().unwrap_or(1)
}

/// A tensor of random numbers in one of the two layouts of images.
fn image(shape: &[i64], of: &str, is_channels_last: bool, requires_grad: bool) -> Result<Tensor> {
    let mut tensor = randn(shape, of, false)?;
    if is_channels_last {
        let format = Value::MemoryFormat(MemoryFormat::ChannelsLast);
        tensor = call_with("to", &[tensor.into()], &[("memory_format", format)])?.tensor()?;
    }
    tensor.set_requires_grad(requires_grad)?;
    Ok(tensor)
}

/// The tensors and the call of a line; an error where the line's operator is not known here.
pub(crate) fn case(line: &OperatorCall) -> Result<Case> {
    let args = Arguments(&line.args);
    let op = line.op.as_str();
    if let Some(name) = op.strip_suffix(":1d") {
        return one(name, &args);
    }
    if let Some(name) = op.strip_suffix(":2d") {
        return two(name, &args);
    }
    if let Some(name) = op.strip_suffix(":4d") {
        return four(name, &args);
    }
    match op {
        "embedding" => embedding(&args),
        "linear" => linear(&args),
        "scaled_dot_product_attention" => attention(&args),
        "LSTM" | "GRU" | "RNN" => recurrent(op, &args),
        _ if op.starts_with("conv") => convolution(op, &args),
        _ => Err(TorchError::NotImplemented(format!("this program does not know the case {op}"))),
    }
}

fn simple(x: Tensor, call: impl Fn(Value) -> CallResult + 'static) -> Case {
    let leaves = vec![x.clone()];
    Case { call: Box::new(move || call((&x).into())), leaves }
}

fn shape_of(value: &Value) -> Vec<i64> {
    match value {
        Value::Tensor(tensor) => tensor.shape().to_vec(),
        _ => Vec::new(),
    }
}

fn one(name: &str, args: &Arguments<'_>) -> Result<Case> {
    let n = args.int("n");
    let x = randn(&[n], "f32", false)?;
    let name = name.to_owned();
    Ok(simple(x, move |x| {
        let zero = || Value::from(0);
        let positive = |x: Value| call("gt", &[x, 0.into()]);
        match name.as_str() {
            "topk5" => call("topk", &[x, 5.min(n).into()]),
            "cumsum" | "cumprod" | "logsumexp" | "cummax" => call(&name, &[x, zero()]),
            "flip" => call("flip", &[x, vec![0].into()]),
            "nonzero" => call("nonzero", &[positive(x)?]),
            "masked_select" => {
                let mask = positive(x.clone())?;
                call("__getitem__", &[x, mask])
            }
            "unique" => call("unique", &[call("long", &[x])?]),
            "randperm" => call_with("randperm", &[n.into()], &[("device", GPU.into())]),
            "histc" => call("histc", &[x, 50.into()]),
            "bincount" => call("bincount", &[call("long", &[call("abs", &[x])?])?]),
            "any" => call("any", &[positive(x)?]),
            "all_item" => call("all", &[positive(x)?]),
            "kthvalue" => call("kthvalue", &[x, 1.into()]),
            "bool_sum" => call("sum", &[positive(x)?]),
            "quantile" => {
                let part = call("__getitem__", &[x, Value::Slice(None, Some(1_000_000), 1)])?;
                call("quantile", &[part, 0.5.into()])
            }
            "dot" => call("dot", &[x.clone(), x]),
            other => call(other, &[x]),
        }
    }))
}

fn two(name: &str, args: &Arguments<'_>) -> Result<Case> {
    let x = randn(&args.ints("shape"), &args.dtype(), args.flag("grad"))?;
    let name = name.to_owned();
    Ok(simple(x, move |x| two_call(&name, x)))
}

/// The cases of a matrix that are a call with one number: the operator and the number.
fn number_case(name: &str) -> Option<(&'static str, i64)> {
    Some(match name {
        "sum0" => ("sum", 0),
        "sum1" => ("sum", 1),
        "mean0" => ("mean", 0),
        "mean1" => ("mean", -1),
        "var0" => ("var", 0),
        "var1" => ("var", 1),
        "std1" => ("std", 1),
        "max0" => ("max", 0),
        "max1" => ("max", 1),
        "sort1" => ("sort", 1),
        "softmax" => ("softmax", -1),
        "softmax0" => ("softmax", 0),
        "log_softmax" => ("log_softmax", -1),
        "logsumexp" => ("logsumexp", -1),
        "cumsum0" => ("cumsum", 0),
        "cumsum1" => ("cumsum", 1),
        _ => return None,
    })
}

/// The cases of a matrix that are a call with a matrix of its shape: the operator, and what makes the other
/// matrix.
fn other_matrix_case(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "mse" => ("mse_loss", "zeros_like"),
        "l1" => ("l1_loss", "zeros_like"),
        "bce" => ("binary_cross_entropy_with_logits", "zeros_like"),
        "cosine" => ("cosine_similarity", "ones_like"),
        _ => return None,
    })
}

fn two_call(name: &str, x: Value) -> CallResult {
    if let Some((operator, number)) = number_case(name) {
        let result = call(operator, &[x, number.into()])?;
        return if matches!(operator, "max" | "sort") { item(result, 0) } else { Ok(result) };
    }
    if let Some((operator, maker)) = other_matrix_case(name) {
        let other = call(maker, std::slice::from_ref(&x))?;
        return call(operator, &[x, other]);
    }
    let shape = shape_of(&x);
    let (rows, columns) = (size(&shape, 0), size(&shape, 1));
    match name {
        "argmax1" => call("float", &[call("argmax", &[x, 1.into()])?]),
        "norm1" => call("linalg_vector_norm", &[x, 2.into(), vec![1].into()]),
        "layer_norm" | "rms_norm" => call(name, &[x, vec![columns].into()]),
        "topk" => item(call("topk", &[x, 5.min(columns).into(), 1.into()])?, 0),
        "normalize" => {
            // F.normalize: norm, clamp_min, expand_as, division.
            let norm = call("linalg_vector_norm", &[x.clone(), 2.into(), vec![1].into(), true.into()])?;
            let denominator = call("expand_as", &[call("clamp_min", &[norm, 1e-12.into()])?, x.clone()])?;
            call("div", &[x, denominator])
        }
        "dropout" => call("dropout", &[x, 0.1.into(), true.into()]),
        "multinomial" => {
            let weights = call("softmax", &[call("detach", &[x])?, (-1).into()])?;
            let samples = call("multinomial", &[weights, 1.into()])?;
            call("float", &[samples])
        }
        "transpose" => call("contiguous", &[call("t", &[x])?]),
        "bias" => {
            let row = call("__getitem__", &[x.clone(), 0.into()])?;
            call("add", &[x, row])
        }
        "kl" => {
            let logarithms = call("log_softmax", &[x.clone(), (-1).into()])?;
            let target = call("ones_like", &[x])?;
            // F.kl_div(reduction="batchmean"): the sum, divided by the batch.
            let reduced = call("kl_div", &[logarithms.clone(), target.clone(), 2.into()])?;
            let result = call("div", &[reduced, rows.into()])?;
            Ok(Value::List(vec![result, logarithms, target])).and_then(|all| item(all, 0))
        }
        "cdist" => {
            let ranges = || vec![Value::Slice(None, Some(512), 1), Value::Slice(None, Some(256), 1)];
            let part = |x: Value| call("__getitem__", &[x, Value::List(ranges())]);
            let (a, b) = (part(x.clone())?, part(x)?);
            call("cdist", &[a, b])
        }
        _ => index_call(name, x, &shape),
    }
}

/// The cases of a matrix and indices.
fn index_call(name: &str, x: Value, shape: &[i64]) -> CallResult {
    let rows = size(shape, 0);
    let zeros = |shape: &[i64]| of_type("zeros", shape, Dtype::I64);
    match name {
        "cross_entropy" => call("cross_entropy_loss", &[x, zeros(&[rows])?]),
        "one_hot" => {
            let row = call("__getitem__", &[x, 0.into()])?;
            let classes = call("long", &[call("abs", &[row])?])?;
            let hot = call("one_hot", &[classes, 50.into()])?;
            call("float", &[hot])
        }
        "scatter" => {
            let own = call("zeros_like", std::slice::from_ref(&x))?;
            call("scatter_add", &[own, 1.into(), zeros(shape)?, x])
        }
        "index_add" => {
            let own = call("zeros_like", std::slice::from_ref(&x))?;
            call("index_add", &[own, 0.into(), zeros(&[rows])?, x])
        }
        "index" => call("__getitem__", &[x, zeros(&[64])?]),
        "gather" => call("gather", &[x, 1.into(), zeros(&[rows, 1])?]),
        "repeat_interleave" => {
            let part = call("__getitem__", &[x, Value::Slice(None, Some(256), 1)])?;
            call("repeat_interleave", &[part, 2.into(), 0.into()])
        }
        other => call(other, &[x]),
    }
}

fn four(name: &str, args: &Arguments<'_>) -> Result<Case> {
    let (shape, of) = (args.ints("shape"), args.dtype());
    let x = image(&shape, &of, args.flag("channels_last"), true)?;
    let (channels, side) = (size(&shape, 1), size(&shape, 2));
    let (weight, bias) = (randn(&[channels], &of, true)?, randn(&[channels], &of, true)?);
    let (mean, var) = (
        of_type("zeros", &[channels], dtype(&of))?.tensor()?,
        of_type("ones", &[channels], dtype(&of))?.tensor()?,
    );
    let leaves = vec![x.clone(), weight.clone(), bias.clone()];
    let name = name.to_owned();
    let call = move || -> CallResult {
        let (x, w, b) = (Value::from(&x), Value::from(&weight), Value::from(&bias));
        let (m, v) = (Value::from(&mean), Value::from(&var));
        let tail = [0.1.into(), 1e-5.into(), true.into()];
        match name.as_str() {
            "batch" | "batch_eval" => {
                let mut args = vec![x, w, b, m, v, Value::from(name == "batch")];
                args.extend(tail);
                call("batch_norm", &args)
            }
            "group" => call("group_norm", &[x, 8.into(), w, b]),
            "instance" => {
                let mut args = vec![x, Value::None, Value::None, Value::None, Value::None, true.into()];
                args.extend(tail);
                call("instance_norm", &args)
            }
            "max_pool" => call_with("max_pool2d", &[x, vec![2].into()], &[("ceil_mode", true.into())]),
            "avg_pool" => call_with("avg_pool2d", &[x, vec![2].into()], &[("ceil_mode", true.into())]),
            "adaptive" => call("adaptive_avg_pool2d", &[x, vec![1, 1].into()]),
            "nearest" => call("upsample_nearest2d", &[x, vec![2 * side, 2 * side].into()]),
            "bilinear" => call("upsample_bilinear2d", &[x, vec![2 * side, 2 * side].into(), false.into()]),
            other => call(other, &[x]),
        }
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn embedding(args: &Arguments<'_>) -> Result<Case> {
    let words = args.int("vocabulary");
    let weight = randn(&[words, args.int("dim")], "f32", true)?;
    let bounds = [0.into(), words.into(), vec![args.int("n")].into()];
    let index = call_with("randint", &bounds, &[("device", GPU.into())])?;
    let padding = args.0["padding_idx"].as_i64().unwrap_or(-1);
    let leaves = vec![weight.clone()];
    let call = move || call("embedding", &[(&weight).into(), index.clone(), padding.into()]);
    Ok(Case { call: Box::new(call), leaves })
}

fn linear(args: &Arguments<'_>) -> Result<Case> {
    let (shape, of) = (args.ints("x"), args.dtype());
    let out = args.0["out"].as_i64().unwrap_or(1);
    let x = randn(&shape, &of, true)?;
    let weight = randn(&[out, shape.last().copied().unwrap_or(1)], &of, true)?;
    let bias = if args.flag("bias") { Some(randn(&[out], &of, true)?) } else { None };
    let mut leaves = vec![x.clone(), weight.clone()];
    leaves.extend(bias.clone());
    let call = move || {
        let bias = bias.as_ref().map_or(Value::None, Value::from);
        call("linear", &[(&x).into(), (&weight).into(), bias])
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn attention(args: &Arguments<'_>) -> Result<Case> {
    let int = |name| args.int(name);
    let (of, grad) = (args.dtype(), args.flag("grad"));
    let make = |length: i64| randn(&[int("b"), int("h"), length, int("d")], &of, grad);
    let (q, key, v) = (make(int("t"))?, make(int("s"))?, make(int("s"))?);
    let mask = match args.0["mask"].as_str() {
        Some("bool") => of_type("ones", &[int("t"), int("s")], Dtype::Bool)?,
        Some(_) => of_type("zeros", &[int("t"), int("s")], dtype(&of))?,
        None => Value::None,
    };
    let (causal, dropout) = (args.flag("causal"), args.float("dropout"));
    let leaves = vec![q.clone(), key.clone(), v.clone()];
    let call = move || {
        let all = [(&q).into(), (&key).into(), (&v).into(), mask.clone(), dropout.into(), causal.into()];
        call("scaled_dot_product_attention", &all)
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn recurrent(op: &str, args: &Arguments<'_>) -> Result<Case> {
    let int = |name| args.int(name);
    let of = args.dtype();
    let (input, hidden, layers) = (int("input"), int("hidden"), int("layers"));
    let gates = match op {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    let (bidirectional, batch_first) = (args.flag("bidirectional"), args.flag("batch_first"));
    let directions = if bidirectional { 2 } else { 1 };
    let shape =
        if batch_first { [int("batch"), int("time"), input] } else { [int("time"), int("batch"), input] };
    let grad = args.flag("grad");
    // One flat buffer holds all weights, as flatten_parameters leaves them.
    let mut shapes = Vec::new();
    for layer in 0..layers {
        for _ in 0..directions {
            let width = if layer == 0 { input } else { hidden * directions };
            let rows = gates * hidden;
            shapes.extend([vec![rows, width], vec![rows, hidden], vec![rows], vec![rows]]);
        }
    }
    let total: i64 = shapes.iter().map(|shape| shape.iter().product::<i64>()).sum();
    let flat = randn(&[total], &of, false)?;
    let mut weights = Vec::new();
    let mut start = 0;
    for shape in &shapes {
        let count: i64 = shape.iter().product();
        let part = call("narrow", &[(&flat).into(), 0.into(), start.into(), count.into()])?;
        let weight = call("view", &[part, shape.clone().into()])?.tensor()?.detach();
        weight.set_requires_grad(grad)?;
        weights.push(weight);
        start += count;
    }
    let x = randn(&shape, &of, grad)?;
    let mut leaves = vec![x.clone()];
    leaves.extend(weights.clone());
    let dropout = args.float("dropout");
    let op = op.to_owned();
    let call = move || {
        let batch = x.size(i64::from(!batch_first));
        let state_shape = [layers * directions, batch, hidden];
        let keywords = [("device", GPU.into()), ("dtype", Value::from(x.dtype()))];
        let state = || call_with("zeros", &[state_shape.as_slice().into()], &keywords);
        let name = match op.as_str() {
            "LSTM" => "lstm",
            "GRU" => "gru",
            _ => "rnn_tanh",
        };
        let hx = if op == "LSTM" { Value::List(vec![state()?, state()?]) } else { state()? };
        let mut result = call(
            name,
            &[
                (&x).into(),
                hx,
                weights.clone().into(),
                true.into(),
                layers.into(),
                dropout.into(),
                true.into(),
                bidirectional.into(),
                batch_first.into(),
            ],
        )?
        .list()?;
        // A tuple of Python's dies from its end.
        result.truncate(3);
        while result.len() > 1 {
            drop(result.pop());
        }
        Ok(result.pop().unwrap_or(Value::None))
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn convolution(op: &str, args: &Arguments<'_>) -> Result<Case> {
    let (of, shape) = (args.dtype(), args.ints("w"));
    let x = image(&args.ints("x"), &of, args.flag("channels_last"), args.flag("x_grad"))?;
    let weight = image(&shape, &of, args.flag("w_channels_last"), args.flag("grad"))?;
    let groups = args.0["groups"].as_i64().unwrap_or(1);
    let is_transposed = op.contains("transpose");
    let outputs = if is_transposed { size(&shape, 1) * groups } else { size(&shape, 0) };
    let bias = if args.flag("bias") { Some(randn(&[outputs], &of, args.flag("grad"))?) } else { None };
    let mut leaves = vec![x.clone(), weight.clone()];
    leaves.extend(bias.clone());
    let number = |name: &str, default: i64| match &args.0[name] {
        Json::Array(_) => Value::from(args.ints(name)),
        json => Value::Scalar(Scalar::Int(json.as_i64().unwrap_or(default))),
    };
    let mut keywords = vec![
        ("stride", number("stride", 1)),
        ("padding", number("padding", 0)),
        ("dilation", number("dilation", 1)),
        ("groups", groups.into()),
    ];
    if is_transposed {
        keywords.push(("output_padding", number("output_padding", 0)));
    }
    let op = op.to_owned();
    let call = move || {
        let bias = bias.as_ref().map_or(Value::None, Value::from);
        call_with(&op, &[(&x).into(), (&weight).into(), bias], &keywords)
    };
    Ok(Case { call: Box::new(call), leaves })
}
