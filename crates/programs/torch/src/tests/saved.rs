//! Which tensors operators save, held against what PyTorch's wheel says (`derivatives.txt`, written by
//! `scripts/derivatives.py`).

use std::collections::BTreeMap;

use super::{randn, start};
use crate::autograd::DERIVATIVES;
use crate::{Tensor, Value, call};

/// Saved tensors by the name of a node.
fn table() -> BTreeMap<&'static str, Vec<&'static str>> {
    DERIVATIVES
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(' ');
            Some((parts.next()?, parts.collect()))
        })
        .collect()
}

fn tensor(value: Value) -> Tensor {
    match value {
        Value::Tensor(tensor) => tensor,
        Value::List(items) => items.into_iter().next().unwrap().tensor().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn check(name: &str, args: &[Value], wrong: &mut Vec<String>) {
    let result = tensor(call(name, args, &[]).unwrap());
    let node = result.grad_fn().unwrap();
    let saved = node.saved_count();
    let expected = table().get(node.name()).cloned();
    if expected.as_ref().map(Vec::len) != Some(saved) {
        wrong.push(format!("{name}: {} saves {saved}, PyTorch {expected:?}", node.name()));
    }
}

/// Operators of one tensor.
const OF_ONE: &str = "abs acos asin atan ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh silu mish hardswish hardsigmoid gelu elu softplus hardtanh leaky_relu sum mean max min t clone tril triu glu";

#[test]
fn operators_save_as_many_tensors_as_the_derivatives_of_pytorch_say() {
    start();
    let x = || Value::from(&randn(&[8, 6], true));
    let y = || Value::from(&randn(&[6, 8], true));
    let mut wrong = Vec::new();
    for name in OF_ONE.split(' ') {
        check(name, &[x()], &mut wrong);
    }
    for name in ["add", "sub", "mul", "div", "maximum", "minimum", "atan2", "pow"] {
        check(name, &[x(), x()], &mut wrong);
    }
    check("mm", &[x(), y()], &mut wrong);
    check("addmm", &[Value::from(&randn(&[8], true)), x(), y()], &mut wrong);
    for name in ["softmax", "log_softmax", "cumsum", "logcumsumexp"] {
        check(name, &[x(), 1.into()], &mut wrong);
    }
    for name in [
        "sum",
        "mean",
        "max",
        "min",
        "amax",
        "amin",
        "logsumexp",
        "prod",
        "std",
        "var",
        "median",
        "sort",
        "topk",
    ] {
        let args = if name == "topk" { vec![x(), 2.into()] } else { vec![x(), 1.into()] };
        check(name, &args, &mut wrong);
    }
    for name in ["mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"] {
        check(name, &[x(), x()], &mut wrong);
    }
    let index = Value::List(vec![0.into(), 1.into()]);
    let index = call("tensor", &[index], &[("device", crate::Device::Cuda(0).into())]).unwrap();
    check("index_select", &[x(), 0.into(), index.clone()], &mut wrong);
    check("embedding", &[x(), index.clone()], &mut wrong);
    check("index_add", &[x(), 0.into(), index.clone(), Value::from(&randn(&[2, 6], true))], &mut wrong);
    check("index_copy", &[x(), 0.into(), index, Value::from(&randn(&[2, 6], true))], &mut wrong);
    check("cdist", &[Value::from(&randn(&[40, 6], true)), x()], &mut wrong);
    check("pow", &[x(), 3.into()], &mut wrong);
    check("linalg_vector_norm", &[x(), 2.into()], &mut wrong);
    for name in ["view", "expand", "permute", "select", "unsqueeze", "flip", "roll", "repeat"] {
        let args: Vec<Value> = match name {
            "view" => vec![x(), vec![48].into()],
            "expand" => vec![x(), vec![2, 8, 6].into()],
            "permute" => vec![x(), vec![1, 0].into()],
            "roll" => vec![x(), vec![1].into(), vec![0].into()],
            "repeat" => vec![x(), vec![2, 1].into()],
            "flip" => vec![x(), vec![0].into()],
            "select" => vec![x(), 0.into(), 1.into()],
            _ => vec![x(), 0.into()],
        };
        check(name, &args, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_tensor_that_is_not_saved_is_seen() {
    start();
    let mut wrong = Vec::new();
    // The factor of a constant: only the constant is kept.
    check("mul", &[(&randn(&[4], true)).into(), (&randn(&[4], false)).into()], &mut wrong);
    assert_eq!(wrong, ["mul: MulBackward0 saves 1, PyTorch Some([\"other\", \"self\"])"]);
}
