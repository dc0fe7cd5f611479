//! What counts as recorded of a second derivative is the variant, not the backward function's name.

use super::{randn, start};
use crate::{Tensor, Value, autograd, call};

fn of(name: &str, arguments: &[Value], keywords: &[(&str, Value)]) -> Tensor {
    call(name, arguments, keywords).unwrap().tensor().unwrap()
}

/// The operators that are estimated after the gradient of `run` is differentiated again.
fn estimated(run: impl Fn(&Tensor) -> Tensor) -> Vec<String> {
    start();
    let x = randn(&[100, 80], true);
    let total = of("sum", &[(&run(&x)).into()], &[]);
    let gradients = autograd::grad(&[total], &[x], &[None], true, true, false).unwrap();
    let gradient = gradients.into_iter().flatten().next().unwrap();
    let squared = of("pow", &[(&gradient).into(), 2.into()], &[]);
    autograd::backward(&[of("sum", &[(&squared).into()], &[])], &[None], false, false, &[]).unwrap();
    crate::session().take_estimates().into_iter().map(|estimate| estimate.operator).collect()
}

fn norm(x: &Tensor, order: f64) -> Tensor {
    of("norm", &[x.into(), order.into(), Value::from(&[1_i64][..])], &[])
}

#[test]
fn a_recorded_variant_is_not_marked() {
    assert_eq!(estimated(|x| norm(x, 2.0)), Vec::<String>::new());
    assert_eq!(estimated(|x| of("softmax", &[x.into(), 1.into()], &[])), Vec::<String>::new());
}

#[test]
fn an_unrecorded_variant_of_a_recorded_function_is_marked() {
    // Another formula.
    assert!(estimated(|x| norm(x, 0.25)).contains(&"LinalgVectorNormBackward0".to_owned()));
    // Another type: the same function in float64.
    let wide = |x: &Tensor| of("to", &[x.into()], &[("dtype", crate::Dtype::F64.into())]);
    assert!(estimated(|x| norm(&wide(x), 2.0)).contains(&"LinalgVectorNormBackward0".to_owned()));
    // Another dimension, and another layout of the input.
    let middle = |x: &Tensor| {
        let cube = of("view", &[x.into(), Value::from(&[4_i64, 25, 80][..])], &[]);
        of("softmax", &[(&cube).into(), 1.into()], &[])
    };
    assert!(estimated(middle).contains(&"SoftmaxBackward0".to_owned()));
    assert!(
        estimated(|x| norm(&of("t", &[x.into()], &[]), 2.0))
            .contains(&"LinalgVectorNormBackward0".to_owned())
    );
    // Another reduction of a loss.
    let loss = |x: &Tensor| {
        let zeros = of("zeros_like", &[x.into()], &[]);
        of("mse_loss", &[x.into(), (&zeros).into()], &[("reduction", "sum".into())])
    };
    assert!(estimated(loss).contains(&"MseLossBackward0".to_owned()));
}
