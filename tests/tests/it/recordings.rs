//! Fidelity: recordings of PyTorch's own allocator, replayed and compared fact by fact.

use std::ops::ControlFlow;

use blockyard_pytorch::OperationKind;
use blockyard_replay::{RunError, Verification, verify};
use blockyard_tests::fixtures::{DEFAULT, EXPANDABLE, POOLS, SETTINGS, recorded_run};

fn replay(name: &str) -> Result<Verification, RunError> {
    verify(&recorded_run(name), &mut |_| ControlFlow::Continue(()))
}

#[track_caller]
fn check_identical(name: &str) {
    let comparison = replay(name).expect("the recording can be replayed").comparison;
    println!("{name}: {:?}", comparison.counts);
    if let Some(difference) = &comparison.first_difference {
        panic!("{name}: {difference}");
    }
    assert!(comparison.is_identical(), "{name}: {comparison:?}");
}

#[test]
fn operations_under_default_settings_are_identical() {
    for profile in DEFAULT {
        check_identical(&format!("synthetic/default-{profile}"));
    }
}

#[test]
fn operations_under_split_limits_rounding_and_garbage_collection_are_identical() {
    for name in SETTINGS {
        check_identical(&format!("synthetic/{name}"));
    }
}

#[test]
fn operations_under_expandable_segments_are_identical() {
    for profile in EXPANDABLE {
        check_identical(&format!("synthetic/expand-{profile}"));
    }
}

#[test]
fn operations_in_memory_pools_are_identical() {
    for name in POOLS {
        check_identical(&format!("synthetic/{name}"));
    }
}

#[test]
fn statistics_of_the_drivers_pool_are_identical() {
    check_identical("synthetic/async-mix");
    let notes = replay("synthetic/async-mix").expect("the recording can be replayed").comparison.notes;
    let expected = "621 of 672 are where the model puts them by itself";
    assert!(notes.iter().any(|note| note.ends_with(expected)), "{notes:?}");
}

#[test]
fn statistics_of_the_drivers_pool_do_not_need_its_addresses() {
    let mut run = recorded_run("synthetic/async-mix");
    for operation in &mut run.operations {
        if let OperationKind::Allocate { result, .. } = &mut operation.kind {
            *result = None;
        }
    }
    let verified = verify(&run, &mut |_| ControlFlow::Continue(())).expect("the recording can be replayed");
    let statistics = verified.comparison.counts.iter().find(|count| count.kind == "statistics");
    let counts = statistics.map(|count| (count.identical, count.total));
    assert_eq!(counts, Some((1202, 1202)));
    assert!(verified.comparison.is_identical(), "{:?}", verified.comparison.first_difference);
}

#[test]
fn programs_are_identical() {
    for name in [
        "gpt2_varlen",
        "resnet50_amp",
        "gnn_random",
        "gnn_random.max_split_size_mb_128",
        "gnn_random.expandable_segments",
        "cudagraph_mlp",
        "multistream",
    ] {
        check_identical(&format!("programs/{name}"));
    }
}
