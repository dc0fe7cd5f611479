//! Gradients that autograd's threads allocate without a stack.

use std::sync::Arc;

use blockyard_figure::{AllocationFilter, Collector, GroupBy, GroupKey, holders, rows_in};
use blockyard_record::{Bytes, StackCategory};

use crate::program::Program;

/// The bytes of each category at the end.
fn categories(program: Program) -> Vec<(StackCategory, Bytes)> {
    let recording = Arc::new(program.recording());
    let allocations = Collector::collect(recording.clone());
    let rows = rows_in(&allocations, AllocationFilter::At(recording.step_count()));
    let found = holders(&allocations, &recording, &rows, GroupBy::Category);
    let of = |key| if let GroupKey::Category(category) = key { category } else { panic!("no category") };
    let mut found: Vec<_> = found.iter().map(|holder| (of(holder.key), holder.bytes)).collect();
    found.sort();
    found
}

fn model(program: &mut Program) {
    program.under("_apply", "torch/nn/modules/module.py");
    program.alloc("weight", Bytes::mib(20)).alloc("bias", Bytes::mib(2));
    program.under("forward", "torch/nn/modules/linear.py").alloc("activation", Bytes::mib(8));
}

#[test]
fn what_has_the_size_of_a_parameter_and_outlives_the_backward_pass_is_its_gradient() {
    let mut program = Program::new(Bytes::gib(1));
    model(&mut program);
    program.under("", "");
    // A temporary of the backward pass with the size of a parameter, and an allocation with another size than
    // every parameter.
    program.alloc("temporary", Bytes::mib(20)).free("temporary");
    program
        .alloc("weight.grad", Bytes::mib(20))
        .alloc("bias.grad", Bytes::mib(2))
        .alloc("other", Bytes::mib(4));
    program.under("step", "torch/optim/adam.py").alloc("exp_avg", Bytes::mib(20));
    assert_eq!(
        categories(program),
        [
            (StackCategory::Parameters, Bytes::mib(22)),
            (StackCategory::Gradients, Bytes::mib(22)),
            (StackCategory::Optimizer, Bytes::mib(20)),
            (StackCategory::Activations, Bytes::mib(8)),
            (StackCategory::Unknown, Bytes::mib(4)),
        ]
    );
}

#[test]
fn without_enough_evidence_nothing_is_a_gradient() {
    // The recording ends within the backward pass: whether the block outlives that is not known.
    let mut program = Program::new(Bytes::gib(1));
    model(&mut program);
    program.under("", "").alloc("weight.grad", Bytes::mib(20));
    assert!(categories(program).contains(&(StackCategory::Unknown, Bytes::mib(20))));
    // A parameter has one gradient.
    let mut program = Program::new(Bytes::gib(1));
    model(&mut program);
    program.under("", "").alloc("weight.grad", Bytes::mib(20)).alloc("copy", Bytes::mib(20));
    program.under("step", "torch/optim/adam.py").alloc("exp_avg", Bytes::mib(2));
    let found = categories(program);
    assert!(found.contains(&(StackCategory::Gradients, Bytes::mib(20))), "{found:?}");
    assert!(found.contains(&(StackCategory::Unknown, Bytes::mib(20))), "{found:?}");
}
