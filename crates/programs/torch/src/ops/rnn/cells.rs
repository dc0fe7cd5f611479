//! Cells: one time step of a recurrent layer.

use crate::autograd::{Gradients, Save, nodes, record};
use crate::error::{not_implemented, runtime};
use crate::{Result, Tensor, Value, session};

use super::super::creation::{empty, empty_like_as};
use super::{Mode, States};

/// `gru_cell` and `lstm_cell`: two products, then one fused kernel whose gates are kept.
pub(super) fn cell(
    input: &Tensor,
    States(states): States,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
    mode: Mode,
) -> Result<Value> {
    let Some(hx) = states.first() else { return not_implemented("a recurrent cell without a state") };
    if input.size(-1) != w_ih.size(1) {
        return runtime(format!(
            "input has inconsistent input_size: got {} expected {}",
            input.size(-1),
            w_ih.size(1)
        ));
    }
    for (number, state) in states.iter().enumerate() {
        if state.size(-1) != w_hh.size(1) {
            return runtime(format!(
                "hidden{number} has inconsistent hidden_size: got {}, expected {}",
                state.size(-1),
                w_hh.size(1)
            ));
        }
    }
    let is_plain = matches!(mode, Mode::Tanh | Mode::Relu);
    if is_plain {
        let a = super::super::matmul::linear(input, w_ih, b_ih)?;
        let b = super::super::matmul::linear(hx, w_hh, b_hh)?;
        let sum = super::super::pointwise::add(&a, &b)?;
        return Ok(if mode == Mode::Relu {
            super::super::unary::relu(&sum)?
        } else {
            super::super::unary::tanh(&sum)?
        }
        .into());
    }
    let a = super::super::matmul::matmul(input, &super::super::views::t(w_ih)?)?;
    let b = super::super::matmul::matmul(hx, &super::super::views::t(w_hh)?)?;
    fused_cell(&a, &b, &states, b_ih, b_hh, mode)
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
    record(nodes::ThnnFusedCellBackward0, &inputs, &results, &saved, move |ctx, _| {
        let workspace = ctx.saved(4)?;
        let of_width = |width: i64| empty(&[rows, width], workspace.dtype(), workspace.device());
        if mode == Mode::Lstm {
            let gates = of_width(hidden * 4)?;
            let state = of_width(hidden)?;
            let mut results: Gradients = vec![Some(gates.clone()), Some(gates.clone()), Some(state)];
            if biases > 0 {
                // Both biases get the same tensor.
                let sum = super::super::reduce::sum(&gates, Some(&[0]), false, None)?;
                results.extend((0..biases).map(|_| Some(sum.clone())));
            }
            return Ok(results);
        }
        session().note_estimate("gru_cell", "its gradient was not recorded");
        let (input_gates, hidden_gates) = (of_width(hidden * 3)?, of_width(hidden * 3)?);
        let state = of_width(hidden)?;
        let mut results: Gradients = vec![Some(input_gates.clone()), Some(hidden_gates.clone()), Some(state)];
        for gates in [&input_gates, &hidden_gates].into_iter().take(biases) {
            results.push(Some(super::super::reduce::sum(gates, Some(&[0]), false, None)?));
        }
        Ok(results)
    })?;
    drop(workspace);
    Ok(match mode {
        Mode::Lstm => Value::List(outputs.into_iter().map(Value::Tensor).collect()),
        _ => outputs.into_iter().next().map_or(Value::None, Value::Tensor),
    })
}
