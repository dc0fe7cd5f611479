//! What the compiler checks of each row of a family's table, shown on rows that would not compile, and what
//! it does not check.

use std::collections::BTreeSet;

use crate::arguments::{AcceptedParameters, Operand, Rest, Unread, accepted, agrees, arguments};
use crate::autograd::DERIVATIVES;
use crate::{Scalar, Tensor, Value, registry};

fn glu(_: &Tensor, _: i64) {}

fn clamp(_: &Tensor, _: Option<Scalar>, _: Option<Scalar>) {}

fn pow(_: &Tensor, _: Operand<'_>) {}

arguments! {
    #[derive(Clone, Copy)]
    struct Window<'a> {
        _kernel: &'a [i64],
        _ceils: bool,
    }
}

fn pool(_: &Tensor, _: Window<'_>) {}

fn nothing_of(_: &Tensor, _: Unread) {}

fn first_of(_: &[Tensor], _: Rest<2>) {}

#[test]
fn a_row_whose_function_takes_other_parameters_than_the_schema_does_not_compile() {
    let rows: [(&str, &[AcceptedParameters], bool); 21] = [
        ("glu(Tensor self, int dim=-1)", accepted(&glu), true),
        ("glu(Tensor self, *, int dim=-1)", accepted(&glu), true),
        ("glu(Operand self, int dim=-1)", accepted(&glu), true),
        ("glu(int dim, Tensor self)", accepted(&glu), false),
        ("glu(Tensor self, float dim=-1)", accepted(&glu), false),
        ("glu(Tensor self, int? dim=None)", accepted(&glu), false),
        ("glu(Tensor? self, int dim)", accepted(&glu), false),
        ("glu(Tensor self)", accepted(&glu), false),
        ("glu(Tensor self, int dim, int last=-1)", accepted(&glu), false),
        ("clamp(Tensor self, Scalar? min=None, Scalar? max=None)", accepted(&clamp), true),
        ("clamp(Tensor self, Scalar? min, Scalar max)", accepted(&clamp), false),
        ("pow(Operand self, Operand exponent)", accepted(&pow), true),
        ("pow(Operand self, Tensor exponent)", accepted(&pow), false),
        ("pool(Tensor self, int[] kernel_size, bool ceil_mode=False)", accepted(&pool), true),
        ("pool(Tensor self, bool ceil_mode, int[] kernel_size)", accepted(&pool), false),
        ("nothing_of(Tensor self, str? mode=None)", accepted(&nothing_of), true),
        ("nothing_of(Tensor self)", accepted(&nothing_of), false),
        ("first_of(Tensor[] self, Any other, *, Scalar alpha=1)", accepted(&first_of), true),
        ("first_of(Tensor[] self, Any other)", accepted(&first_of), false),
        ("first_of(Tensor[] self, Any other, *, Scalar alpha=1, int last=0)", accepted(&first_of), false),
        ("first_of(Tensor self, Any other, *, Scalar alpha=1)", accepted(&first_of), false),
    ];
    for (schema, accepted, compiles) in rows {
        assert_eq!(agrees(schema, accepted), compiles, "{schema}");
    }
}

#[test]
fn a_missing_argument_is_none_and_a_list_of_nothing_is_not() {
    super::start();
    let tensor = super::randn(&[2, 3], false);
    let sum = |dims: Value| crate::call("sum", &[(&tensor).into(), dims], &[]).unwrap().tensor().unwrap();
    assert_eq!(sum(Value::None).dim(), 0);
    let squeeze = |dims: &[i64]| {
        let tensor = super::randn(&[1, 3, 1], false);
        crate::call("squeeze", &[tensor.into(), dims.into()], &[]).unwrap().tensor().unwrap().dim()
    };
    assert_eq!(squeeze(&[]), 3);
    let logit = crate::call("logit", &[tensor.into(), Value::None], &[]).unwrap().tensor().unwrap();
    assert_eq!(logit.dim(), 2);
}

#[test]
fn each_composed_backward_function_is_in_pytorchs_list() {
    let nodes: BTreeSet<&str> = DERIVATIVES.lines().filter_map(|line| line.split(' ').next()).collect();
    let composed: Vec<&str> = registry::composed().collect();
    assert!(!composed.is_empty());
    for node in composed {
        assert!(nodes.contains(node), "{node}");
    }
}
