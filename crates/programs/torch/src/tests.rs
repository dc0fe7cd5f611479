//! The first steps: what a few statements allocate and free.

mod declarations;
mod double_backward;
mod extremes;
mod nodes;
mod saved;

use std::rc::Rc;

use crate::memory::LogEntry;
use crate::{Device, Dtype, Session, SessionSettings, Value, autograd, call, install};

/// The requests since the last look: `+bytes` and `-number`, counted from 1.
fn log() -> Vec<i64> {
    let session = crate::session();
    let device = session.device(0).unwrap();
    device
        .take_log()
        .into_iter()
        .filter_map(|entry| match entry {
            LogEntry::Allocate(_, bytes) => Some(i64::try_from(bytes).unwrap()),
            LogEntry::Free(number) => Some(-(i64::from(number) + 1)),
            LogEntry::Unordered(_) => None,
        })
        .collect()
}

fn start() {
    install(Rc::new(Session::new(SessionSettings::default())));
    crate::session().device(0).unwrap().start_log();
}

fn randn(shape: &[i64], requires_grad: bool) -> crate::Tensor {
    let keywords = [("device", Value::Device(Device::Cuda(0))), ("requires_grad", requires_grad.into())];
    call("randn", &[shape.into()], &keywords).unwrap().tensor().unwrap()
}

#[test]
fn a_product_keeps_the_other_factor_only() {
    start();
    let a = randn(&[256], true);
    let b = randn(&[256], false);
    let product = call("mul", &[(&a).into(), (&b).into()], &[]).unwrap().tensor().unwrap();
    let total = call("sum", &[product.into()], &[]).unwrap().tensor().unwrap();
    // The product dies at once: nothing saved it.
    assert_eq!(log(), [1024, 1024, 1024, 4, -3]);
    drop(b);
    autograd::backward(std::slice::from_ref(&total), &[None], false, false, &[]).unwrap();
    // The gradient of 1, the product of it and `b`, taken over as `a.grad`; then what was kept dies.
    assert_eq!(log(), [4, 1024, -2, -5]);
    assert_eq!(a.grad().map(|grad| grad.dtype()), Some(Dtype::F32));
}

#[test]
fn shapes_that_do_not_broadcast_are_refused_with_pytorchs_text() {
    start();
    let error = call("add", &[randn(&[2, 3], false).into(), randn(&[4], false).into()], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
    );
}

#[test]
fn what_depends_on_the_addresses_of_segments_is_known_to_do_so() {
    start();
    let session = crate::session();
    let device = session.device(0).unwrap();
    let mib =
        |count: i64| call("empty", &[(&[count << 18][..]).into()], &[("device", Device::Cuda(0).into())]);
    let reserved = |stats: &blockyard_record::Stats| stats.reserved_bytes.all.current;
    let (whole, split) = (mib(20).unwrap(), mib(22).unwrap());
    drop(split);
    let before = mib(2).unwrap();
    drop(whole);
    assert!(!device.depends_on_addresses(reserved));
    // Each segment has a free block of 20 MiB: the one that lies lower is taken.
    let between = mib(2).unwrap();
    drop(before);
    // Without `between` the larger segment is free as a whole.
    let large = mib(21).unwrap();
    assert!(device.depends_on_addresses(reserved));
    assert!(!device.depends_on_addresses(|stats| stats.allocated_bytes.all.peak));
    drop((between, large));
    device.empty_cache().unwrap();
    assert!(!device.depends_on_addresses(reserved));
}
