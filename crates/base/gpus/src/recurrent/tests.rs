use super::{Algorithm, Kind, Layer, MAX_LAYERS};
use crate::GpuProfile;
use crate::tables::dtype;

const OF_H100: &str = include_str!("../../../../../tests/fixtures/workspaces/recurrent.txt");
const OF_H200: &str = include_str!("../../../../../tests/fixtures/workspaces/recurrent_h200.txt");

/// A layer that was recorded, and what it took.
struct RecordedLayer {
    layer: Layer,
    /// `None` where it was not recorded.
    of_backward: Option<u64>,
    of_forward: u64,
    reserve: u64,
}

/// The layer that the first fields describe; their order is that of the files' first lines.
fn layer(fields: &[&str]) -> Layer {
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    let (dtype, element) = match fields[8] {
        "4" | "f32" => (dtype::F32, 4),
        "2" | "f16" => (dtype::F16, 2),
        "bf16" => (dtype::BF16, 2),
        "f64" => (dtype::F64, 8),
        other => panic!("{other}"),
    };
    Layer {
        kind: match fields[0] {
            "lstm" => Kind::Lstm,
            "gru" => Kind::Gru,
            _ => Kind::Tanh,
        },
        input: number(1),
        hidden: number(2),
        layers: number(3),
        directions: number(4),
        has_dropout: number(5) == 1,
        longest: number(6),
        batch: number(7),
        dtype,
        element_bytes: element,
        is_packed: number(9) == 1,
        is_training: number(10) == 1,
        time_steps: number(11),
    }
}

fn recorded(text: &str) -> Vec<RecordedLayer> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<u64> = fields[12..].iter().map(|field| field.parse().unwrap()).collect();
        let (of_forward, of_backward, reserve) = match numbers[..] {
            [of_forward, reserve] => (of_forward, None, reserve),
            [of_forward, of_backward, reserve] => (of_forward, Some(of_backward), reserve),
            _ => panic!("{line}"),
        };
        RecordedLayer { layer: layer(&fields), of_backward, of_forward, reserve }
    };
    lines.map(read).collect()
}

#[test]
fn each_recorded_layer_takes_its_bytes() {
    let of = |text| (recorded(text), text);
    for ((all, text), count) in [(of(OF_H100), 900), (of(OF_H200), 1657)] {
        assert_eq!(all.len(), count);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for (RecordedLayer { layer, of_backward, of_forward, reserve }, line) in all.into_iter().zip(lines) {
            let pass = |is_forward| layer.workspace(layer.algorithm(is_forward, &GpuProfile::H200));
            let found = pass(true);
            assert!(found.is_exact, "{line}");
            assert_eq!(found.bytes, of_forward, "{line}");
            if layer.is_training {
                assert_eq!(layer.reserve().bytes, reserve, "{line}");
                if let Some(of_backward) = of_backward {
                    assert_eq!(pass(false).bytes, of_backward, "{line}");
                }
            }
        }
    }
}

#[test]
fn layers_of_a_sort_that_was_not_recorded_are_estimates() {
    let known =
        Layer { layers: MAX_LAYERS, directions: 1, dtype: dtype::F32, element_bytes: 4, ..Layer::default() };
    assert!(known.workspace(Algorithm::Standard).is_exact && known.reserve().is_exact);
    let deeper = Layer { layers: MAX_LAYERS + 1, ..known };
    assert!(!deeper.workspace(Algorithm::Standard).is_exact && !deeper.reserve().is_exact);
    assert!(!Layer { dtype: -1, ..known }.reserve().is_exact);
}

#[test]
fn any_numbers_have_a_size() {
    for size in [0, 1, u64::MAX] {
        for directions in [0, 2, u64::MAX] {
            for kind in [Kind::Relu, Kind::Lstm, Kind::Gru] {
                let layer = Layer {
                    kind,
                    input: size,
                    hidden: size,
                    layers: size,
                    directions,
                    batch: size,
                    longest: size,
                    time_steps: size,
                    has_dropout: true,
                    is_training: true,
                    element_bytes: 8,
                    ..Layer::default()
                };
                assert!(layer.reserve().bytes >= 256);
                for algorithm in [Algorithm::Standard, Algorithm::Small, Algorithm::Persistent] {
                    assert!(layer.workspace(algorithm).bytes >= 256);
                }
            }
        }
    }
}
