//! What cuDNN takes for recurrent layers, as a rule: 900 layers were recorded on an H100 (`tests/fixtures/workspaces/recurrent.txt`), of one and
//! two layers, in one and both directions, over padded and packed sequences, in single and half precision.
//!
//! The reserve follows the rule in all 600 that train, the workspace in all over packed sequences but networks of plain RNNs. Over padded
//! sequences cuDNN takes other buffers for some sizes, so that the rule is an estimate there.

use std::ffi::c_int;

use crate::cudnn::recurrent::{GRU, LSTM, Layer, Sequence};

/// What a layer takes by the rule, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleSizes {
    pub(super) workspace: u64,
    pub(super) reserve: u64,
    pub(super) is_workspace_proved: bool,
    pub(super) is_reserve_proved: bool,
}

/// `CUDNN_DATA_FLOAT` and `CUDNN_DATA_HALF`.
const RECORDED_KINDS: [c_int; 2] = [0, 2];
/// What each layer takes in each direction.
const OF_PLACE: i64 = 8 << 20;
const ALIGNMENT: i64 = 256;

fn product(parts: &[i64]) -> i64 {
    parts.iter().fold(1_i64, |product, part| product.saturating_mul(*part))
}

fn sum(parts: &[i64]) -> u64 {
    let sum = parts.iter().fold(0_i64, |sum, part| sum.saturating_add(*part));
    u64::try_from(sum).unwrap_or(0)
}

/// Rounded up to whole 32 bytes.
fn rounded(bytes: i64) -> i64 {
    bytes.saturating_add(31) / 32 * 32
}

pub(super) fn of_layer(layer: &Layer, sequence: &Sequence, is_training: bool) -> RuleSizes {
    let [input, hidden, layers, directions] =
        [layer.input, layer.hidden, layer.layers, layer.directions].map(i64::from);
    let (batch, time) = (i64::from(sequence.batch), i64::from(sequence.time));
    let (steps, element, gates) = (sequence.steps, layer.element(), layer.gates());
    // Values that are kept of each step, and buffers for each sequence.
    let (kept, of_sequence): (i64, i64) = match layer.mode {
        LSTM => (5, 6),
        GRU => (6, 3),
        _ => (1, 1),
    };
    let is_deep = layers > 1;
    let between = layers.saturating_sub(1);
    let is_plain = !matches!(layer.mode, LSTM | GRU);
    let has_dropout = layer.has_dropout && is_deep;
    // A bit for each value between two layers.
    let bits = rounded(product(&[time, batch, hidden, directions]).saturating_add(7) / 8);
    let mask = if has_dropout { product(&[between, directions, bits]) } else { 0 };
    let values = product(&[steps, hidden, directions, element]);
    let reserve = [ALIGNMENT, product(&[values, kept.saturating_mul(layers).saturating_add(between)]), mask];
    let both = directions.saturating_sub(1).saturating_mul(4);
    let of_step = gates.saturating_mul(directions).saturating_add(both);
    let of_state = of_sequence.saturating_mul(directions).saturating_add(both);
    let takes_more = is_training && directions == 1 && (has_dropout || is_plain);
    let padding = if sequence.is_packed {
        0
    } else {
        let width = input.saturating_add(hidden.saturating_mul(directions));
        let copies = product(&[steps, width, element]);
        let states = product(&[4, layers, directions, batch, hidden, element]);
        rounded(batch.saturating_mul(8)).saturating_add(copies).saturating_add(states)
    };
    let workspace = [
        ALIGNMENT,
        product(&[OF_PLACE, layers, directions]),
        layer.all_matrices().saturating_mul(element),
        product(&[steps, hidden, element, of_step]),
        product(&[batch, hidden, layers, element, of_state]),
        if takes_more { values } else { 0 },
        padding,
    ];
    let is_recorded = RECORDED_KINDS.contains(&layer.kind) && layers <= 2 && !layer.projects();
    RuleSizes {
        workspace: sum(&workspace),
        reserve: sum(&reserve),
        is_workspace_proved: is_recorded && sequence.is_packed && !(is_plain && is_deep),
        is_reserve_proved: is_recorded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line: the kind, inputs, hidden, layers, directions, whether there is dropout, time, batch, bytes of an element, whether it is
    /// packed, whether it trains, all steps, workspace, reserve.
    const RECORDED: &str = include_str!("../../../../tests/fixtures/workspaces/recurrent.txt");

    #[test]
    fn the_rule_has_what_an_h100_took() {
        let (mut count, mut proved) = (0, 0);
        for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(' ');
            let mode = match fields.next().unwrap() {
                "lstm" => LSTM,
                "gru" => GRU,
                _ => 1,
            };
            let numbers: Vec<i64> = fields.map(|field| field.parse().unwrap()).collect();
            let [
                input,
                hidden,
                layers,
                directions,
                dropout,
                time,
                batch,
                element,
                packed,
                trains,
                steps,
                workspace,
                reserve,
            ] = numbers[..]
            else {
                panic!("{line}")
            };
            let int = |number: i64| c_int::try_from(number).unwrap();
            let layer = Layer {
                mode,
                bias: 2,
                directions: int(directions),
                kind: if element == 2 { 2 } else { 0 },
                input: int(input),
                hidden: int(hidden),
                layers: int(layers),
                has_dropout: dropout == 1,
                ..Layer::default()
            };
            let sequence = Sequence { time: int(time), batch: int(batch), steps, is_packed: packed == 1 };
            let found = of_layer(&layer, &sequence, trains == 1);
            if trains == 1 {
                assert_eq!(found.reserve, u64::try_from(reserve).unwrap(), "{line}");
            }
            if found.is_workspace_proved {
                assert_eq!(found.workspace, u64::try_from(workspace).unwrap(), "{line}");
                proved += 1;
            }
            count += 1;
        }
        // All over packed sequences but the networks of two plain layers.
        assert_eq!((count, proved), (900, 390));
    }
}
