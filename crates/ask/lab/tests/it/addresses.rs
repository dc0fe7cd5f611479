//! Which peaks depend on the addresses of segments.

use std::ops::ControlFlow;

use blockyard_lab::{Run, RunBytes, address_dependence};
use blockyard_record::Bytes;
use blockyard_workload::Workload;

use crate::program;

fn run(text: &str) -> Run {
    Run::from_workload("test", Workload::parse(text).unwrap(), "", Bytes::gib(1))
}

/// Two segments of 20 MiB with a free block of 10 MiB each: the next 10 MiB go to the lower one, and only a
/// whole segment serves the request after them or is released.
const TIE: &str = "a = alloc 6 MiB; b = alloc 14 MiB; c = alloc 6 MiB; d = alloc 14 MiB; free b, d; e = alloc 14 MiB; free a; f = alloc 20 MiB";

#[test]
fn a_tie_of_two_segments_is_a_range() {
    let found = address_dependence(&run(TIE), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(found.recorded.peak_reserved, Bytes::mib(60));
    assert_eq!((found.least.peak_reserved, found.most.peak_reserved), (Bytes::mib(40), Bytes::mib(60)));
    assert_eq!(found.least.peak_allocated, found.most.peak_allocated);
    assert_eq!((found.orders, found.first_difference), (8, Some(6)));
}

#[test]
fn a_run_without_ties_is_the_same_under_all_orders() {
    let found =
        address_dependence(&run("a = alloc 6 MiB; b = alloc 30 MiB; free a; c = alloc 5 MiB"), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((found.least, found.most, found.first_difference), (found.recorded, found.recorded, None));
    assert_eq!(found.recorded.peak_reserved, Bytes::mib(50));
    let none = address_dependence(&run(""), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((none.recorded, none.first_difference), (RunBytes::default(), None));
}

#[test]
fn a_recording_has_its_own_peaks_among_those_of_other_orders() {
    let found = address_dependence(&program("gnn_random"), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(found.recorded.peak_reserved.get(), 6_589_251_584);
    assert!(found.least.peak_reserved <= found.recorded.peak_reserved);
    assert!(found.most.peak_reserved >= found.recorded.peak_reserved);
}
