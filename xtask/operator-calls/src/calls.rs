//! The calls of the recording program, by the names of its cases.

use blockyard_torch::{
    Device, Dtype, MemoryFormat, Result, Scalar, Tensor, TorchError, Value, call as call_with,
};
use serde_json::Value as Json;

use crate::OperatorCall;

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

fn ints(json: &Json) -> Vec<i64> {
    json.as_array().map(|items| items.iter().filter_map(Json::as_i64).collect()).unwrap_or_default()
}

/// The tensors and the call of a line; an error where the line's operator is not known here.
pub(crate) fn case(line: &OperatorCall) -> Result<Case> {
    let args = line.args.clone();
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

fn one(name: &str, args: &Json) -> Result<Case> {
    let n = args["n"].as_i64().unwrap_or(0);
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

fn two(name: &str, args: &Json) -> Result<Case> {
    let shape = ints(&args["shape"]);
    let of = args["dtype"].as_str().unwrap_or("f32").to_owned();
    let x = randn(&shape, &of, args["grad"].as_bool().unwrap_or(false))?;
    let name = name.to_owned();
    Ok(simple(x, move |x| two_call(&name, x)))
}

fn two_call(name: &str, x: Value) -> CallResult {
    let shape = shape_of(&x);
    let (rows, columns) = (shape.first().copied().unwrap_or(1), shape.get(1).copied().unwrap_or(1));
    let last = || Value::from(vec![columns]);
    let zeros = |shape: &[i64], dtype| of_type("zeros", shape, dtype);
    let like = |name: &str, x: &Value| call(name, std::slice::from_ref(x));
    match name {
        "sum0" => call("sum", &[x, 0.into()]),
        "sum1" => call("sum", &[x, 1.into()]),
        "mean0" => call("mean", &[x, 0.into()]),
        "mean1" => call("mean", &[x, (-1).into()]),
        "var1" => call("var", &[x, 1.into()]),
        "var0" => call("var", &[x, 0.into()]),
        "std1" => call("std", &[x, 1.into()]),
        "max1" => item(call("max", &[x, 1.into()])?, 0),
        "max0" => item(call("max", &[x, 0.into()])?, 0),
        "argmax1" => call("float", &[call("argmax", &[x, 1.into()])?]),
        "softmax" | "log_softmax" | "logsumexp" => call(name, &[x, (-1).into()]),
        "softmax0" => call("softmax", &[x, 0.into()]),
        "norm1" => call("linalg_vector_norm", &[x, 2.into(), vec![1].into()]),
        "layer_norm" => call("layer_norm", &[x, last()]),
        "rms_norm" => call("rms_norm", &[x, last()]),
        "cumsum1" => call("cumsum", &[x, 1.into()]),
        "cumsum0" => call("cumsum", &[x, 0.into()]),
        "sort1" => item(call("sort", &[x, 1.into()])?, 0),
        "topk" => item(call("topk", &[x, 5.min(columns).into(), 1.into()])?, 0),
        "cross_entropy" => call("cross_entropy_loss", &[x, zeros(&[rows], Dtype::I64)?]),
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
        "mse" => {
            let target = like("zeros_like", &x)?;
            call("mse_loss", &[x, target])
        }
        "l1" => {
            let target = like("zeros_like", &x)?;
            call("l1_loss", &[x, target])
        }
        "bce" => {
            let target = like("zeros_like", &x)?;
            call("binary_cross_entropy_with_logits", &[x, target])
        }
        "one_hot" => {
            let row = call("__getitem__", &[x, 0.into()])?;
            let classes = call("long", &[call("abs", &[row])?])?;
            let hot = call("one_hot", &[classes, 50.into()])?;
            call("float", &[hot])
        }
        "scatter" => {
            let own = like("zeros_like", &x)?;
            let index = zeros(&shape, Dtype::I64)?;
            call("scatter_add", &[own, 1.into(), index, x])
        }
        "index_add" => {
            let own = like("zeros_like", &x)?;
            let index = zeros(&[rows], Dtype::I64)?;
            call("index_add", &[own, 0.into(), index, x])
        }
        "index" => {
            let index = zeros(&[64], Dtype::I64)?;
            call("__getitem__", &[x, index])
        }
        "gather" => {
            let index = zeros(&[rows, 1], Dtype::I64)?;
            call("gather", &[x, 1.into(), index])
        }
        "repeat_interleave" => {
            let part = call("__getitem__", &[x, Value::Slice(None, Some(256), 1)])?;
            call("repeat_interleave", &[part, 2.into(), 0.into()])
        }
        "kl" => {
            let logarithms = call("log_softmax", &[x.clone(), (-1).into()])?;
            let target = like("ones_like", &x)?;
            // F.kl_div(reduction="batchmean"): the sum, divided by the batch.
            let reduced = call("kl_div", &[logarithms.clone(), target.clone(), 2.into()])?;
            let result = call("div", &[reduced, rows.into()])?;
            Ok(Value::List(vec![result, logarithms, target])).and_then(|all| item(all, 0))
        }
        "cosine" => {
            let other = like("ones_like", &x)?;
            call("cosine_similarity", &[x, other])
        }
        "cdist" => {
            let part = |x: Value| {
                let rows = call(
                    "__getitem__",
                    &[
                        x,
                        Value::List(vec![Value::Slice(None, Some(512), 1), Value::Slice(None, Some(256), 1)]),
                    ],
                )?;
                Ok::<_, TorchError>(rows)
            };
            let (a, b) = (part(x.clone())?, part(x)?);
            call("cdist", &[a, b])
        }
        other => call(other, &[x]),
    }
}

fn four(name: &str, args: &Json) -> Result<Case> {
    let shape = ints(&args["shape"]);
    let of = args["dtype"].as_str().unwrap_or("f32").to_owned();
    let is_channels_last = args["channels_last"].as_bool().unwrap_or(false);
    let mut x = randn(&shape, &of, false)?;
    if is_channels_last {
        x = call_with(
            "to",
            &[x.into()],
            &[("memory_format", Value::MemoryFormat(MemoryFormat::ChannelsLast))],
        )?
        .tensor()?;
    }
    x.set_requires_grad(true)?;
    let channels = shape.get(1).copied().unwrap_or(1);
    let (weight, bias) = (randn(&[channels], &of, true)?, randn(&[channels], &of, true)?);
    let (mean, var) = (
        of_type("zeros", &[channels], dtype(&of))?.tensor()?,
        of_type("ones", &[channels], dtype(&of))?.tensor()?,
    );
    let leaves = vec![x.clone(), weight.clone(), bias.clone()];
    let name = name.to_owned();
    let size = shape.get(2).copied().unwrap_or(1);
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
            "nearest" => call("upsample_nearest2d", &[x, vec![2 * size, 2 * size].into()]),
            "bilinear" => call("upsample_bilinear2d", &[x, vec![2 * size, 2 * size].into(), false.into()]),
            other => call(other, &[x]),
        }
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn embedding(args: &Json) -> Result<Case> {
    let int = |name: &str| args[name].as_i64().unwrap_or(0);
    let weight = randn(&[int("vocabulary"), int("dim")], "f32", true)?;
    let index = call_with(
        "randint",
        &[0.into(), int("vocabulary").into(), vec![int("n")].into()],
        &[("device", GPU.into())],
    )?;
    let padding = args["padding_idx"].as_i64().unwrap_or(-1);
    let leaves = vec![weight.clone()];
    let call = move || call("embedding", &[(&weight).into(), index.clone(), padding.into()]);
    Ok(Case { call: Box::new(call), leaves })
}

fn linear(args: &Json) -> Result<Case> {
    let shape = ints(&args["x"]);
    let of = args["dtype"].as_str().unwrap_or("f32");
    let out = args["out"].as_i64().unwrap_or(1);
    let x = randn(&shape, of, true)?;
    let weight = randn(&[out, shape.last().copied().unwrap_or(1)], of, true)?;
    let bias = if args["bias"].as_bool() == Some(true) { Some(randn(&[out], of, true)?) } else { None };
    let mut leaves = vec![x.clone(), weight.clone()];
    leaves.extend(bias.clone());
    let call = move || {
        let bias = bias.as_ref().map_or(Value::None, Value::from);
        call("linear", &[(&x).into(), (&weight).into(), bias])
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn attention(args: &Json) -> Result<Case> {
    let int = |name: &str| args[name].as_i64().unwrap_or(0);
    let of = args["dtype"].as_str().unwrap_or("f32").to_owned();
    let grad = args["grad"].as_bool().unwrap_or(false);
    let make = |length: i64| randn(&[int("b"), int("h"), length, int("d")], &of, grad);
    let (q, key, v) = (make(int("t"))?, make(int("s"))?, make(int("s"))?);
    let mask = match args["mask"].as_str() {
        Some("bool") => of_type("ones", &[int("t"), int("s")], Dtype::Bool)?,
        Some(_) => of_type("zeros", &[int("t"), int("s")], dtype(&of))?,
        None => Value::None,
    };
    let (causal, dropout) =
        (args["causal"].as_bool().unwrap_or(false), args["dropout"].as_f64().unwrap_or(0.0));
    let leaves = vec![q.clone(), key.clone(), v.clone()];
    let call = move || {
        let all = [(&q).into(), (&key).into(), (&v).into(), mask.clone(), dropout.into(), causal.into()];
        call("scaled_dot_product_attention", &all)
    };
    Ok(Case { call: Box::new(call), leaves })
}

fn recurrent(op: &str, args: &Json) -> Result<Case> {
    let int = |name: &str| args[name].as_i64().unwrap_or(0);
    let flag = |name: &str| args[name].as_bool().unwrap_or(false);
    let of = args["dtype"].as_str().unwrap_or("f32").to_owned();
    let (input, hidden, layers) = (int("input"), int("hidden"), int("layers"));
    let gates = match op {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    let directions = if flag("bidirectional") { 2 } else { 1 };
    let batch_first = flag("batch_first");
    let shape =
        if batch_first { [int("batch"), int("time"), input] } else { [int("time"), int("batch"), input] };
    let grad = flag("grad");
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
    let dropout = args["dropout"].as_f64().unwrap_or(0.0);
    let op = op.to_owned();
    let bidirectional = flag("bidirectional");
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

fn convolution(op: &str, args: &Json) -> Result<Case> {
    let of = args["dtype"].as_str().unwrap_or("f32").to_owned();
    let flag = |name: &str| args[name].as_bool().unwrap_or(false);
    let made = |shape: &[i64], is_channels_last: bool, has_grad: bool| {
        let mut tensor = randn(shape, &of, false)?;
        if is_channels_last {
            let format = Value::MemoryFormat(MemoryFormat::ChannelsLast);
            tensor = call_with("to", &[tensor.into()], &[("memory_format", format)])?.tensor()?;
        }
        tensor.set_requires_grad(has_grad)?;
        Ok::<_, TorchError>(tensor)
    };
    let x = made(&ints(&args["x"]), flag("channels_last"), flag("x_grad"))?;
    let shape = ints(&args["w"]);
    let weight = made(&shape, flag("w_channels_last"), flag("grad"))?;
    let groups = args["groups"].as_i64().unwrap_or(1);
    let is_transposed = op.contains("transpose");
    let outputs = if is_transposed {
        shape.get(1).copied().unwrap_or(1) * groups
    } else {
        shape.first().copied().unwrap_or(1)
    };
    let bias = if flag("bias") { Some(randn(&[outputs], &of, flag("grad"))?) } else { None };
    let mut leaves = vec![x.clone(), weight.clone()];
    leaves.extend(bias.clone());
    let number = |name: &str, default: i64| match &args[name] {
        Json::Array(_) => Value::from(ints(&args[name])),
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
