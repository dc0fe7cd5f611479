//! Integers that are too long for a run: one call that makes them would take hours and could not be stopped.

use std::cell::Cell;

use rustpython_vm::builtins::PyInt;
use rustpython_vm::{PyObject, PyResult, VirtualMachine};

type Binary = fn(&PyObject, &PyObject, &VirtualMachine) -> PyResult;
type Ternary = fn(&PyObject, &PyObject, &PyObject, &VirtualMachine) -> PyResult;

/// The bits of the longest integer that a product, a power or a shift may make: some five million digits, a
/// second's work.
const MAX_BITS: u64 = 1 << 24;

thread_local! {
    /// The interpreter's own function for a power; `SHIFT` and `MULTIPLY` are those for the other operators.
    static POWER: Cell<Option<Ternary>> = const { Cell::new(None) };
    static SHIFT: Cell<Option<Binary>> = const { Cell::new(None) };
    static MULTIPLY: Cell<Option<Binary>> = const { Cell::new(None) };
}

/// Replaces the interpreter's functions by those of this module, which check the length of the result first.
pub(crate) fn install(vm: &VirtualMachine) {
    let slots = &vm.ctx.types.int_type.slots.as_number;
    // Types live as long as the thread: an earlier run may have been here.
    if POWER.get().is_none() {
        POWER.set(slots.power.load());
        SHIFT.set(slots.lshift.load());
        MULTIPLY.set(slots.multiply.load());
    }
    slots.power.store(Some(power));
    slots.lshift.store(Some(shift));
    slots.multiply.store(Some(multiply));
}

/// Bits of an integer's absolute value.
fn bits(value: &PyObject) -> Option<u64> {
    value.downcast_ref::<PyInt>().map(|int| int.as_bigint().bits())
}

/// An integer as a count, at most the largest count, and 0 for a negative integer; `None` for an object that
/// is not an integer.
fn count(value: &PyObject) -> Option<u64> {
    let int = value.downcast_ref::<PyInt>()?.as_bigint();
    Some(u64::try_from(int).unwrap_or(if int.sign() == malachite_bigint::Sign::Minus { 0 } else { u64::MAX }))
}

fn power(base: &PyObject, exponent: &PyObject, modulus: &PyObject, vm: &VirtualMachine) -> PyResult {
    // Powers of 0, 1 and -1, which have one bit at most, are short.
    if vm.is_none(modulus)
        && let (Some(bits @ 2..), Some(times)) = (bits(base), count(exponent))
    {
        check(bits.saturating_mul(times), vm)?;
    }
    match POWER.get() {
        Some(own) => own(base, exponent, modulus, vm),
        None => Ok(vm.ctx.not_implemented()),
    }
}

fn shift(value: &PyObject, by: &PyObject, vm: &VirtualMachine) -> PyResult {
    if let (Some(bits @ 1..), Some(by)) = (bits(value), count(by)) {
        check(bits.saturating_add(by), vm)?;
    }
    pass(SHIFT.get(), value, by, vm)
}

fn multiply(left: &PyObject, right: &PyObject, vm: &VirtualMachine) -> PyResult {
    if let (Some(left), Some(right)) = (bits(left), bits(right)) {
        check(left.saturating_add(right), vm)?;
    }
    pass(MULTIPLY.get(), left, right, vm)
}

fn pass(own: Option<Binary>, left: &PyObject, right: &PyObject, vm: &VirtualMachine) -> PyResult {
    match own {
        Some(own) => own(left, right, vm),
        None => Ok(vm.ctx.not_implemented()),
    }
}

fn check(bits: u64, vm: &VirtualMachine) -> PyResult<()> {
    if bits <= MAX_BITS {
        return Ok(());
    }
    Err(vm.new_memory_error(format!(
        "an integer of {bits} bits is longer than the {MAX_BITS} that one may have here"
    )))
}
