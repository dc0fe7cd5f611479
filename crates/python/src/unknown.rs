//! Numbers that are not known stay unknown in `float(x)` and in `"%.4f" % x`, where the interpreter would
//! take the plain number.

use std::cell::Cell;

use rustpython_vm::builtins::{PyDict, PyStr, PyTuple, PyTypeRef};
use rustpython_vm::function::FuncArgs;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};

use crate::modules::torch::{is_tensor, object};

type Binary = fn(&PyObject, &PyObject, &VirtualMachine) -> PyResult;
type Constructor = fn(PyTypeRef, FuncArgs, &VirtualMachine) -> PyResult;

thread_local! {
    /// The interpreter's own function for `text % values`; `FLOAT` is that for `float(value)`.
    static PERCENT: Cell<Option<Binary>> = const { Cell::new(None) };
    static FLOAT: Cell<Option<Constructor>> = const { Cell::new(None) };
}

/// Replaces the interpreter's functions by those of this module, which look for unknown numbers first.
pub(crate) fn install(vm: &VirtualMachine) {
    // Types live as long as the thread: an earlier run may have been here.
    let remainder = &vm.ctx.types.str_type.slots.as_number.remainder;
    if PERCENT.get().is_none() {
        PERCENT.set(remainder.load());
    }
    remainder.store(Some(percent));
    let float = &vm.ctx.types.float_type.slots;
    if FLOAT.get().is_none() {
        FLOAT.set(float.new.load());
    }
    float.new.store(Some(new_float));
    // The short way to a call would go around `new`.
    float.vectorcall.store(None);
}

fn is_unknown(value: &PyObject) -> bool {
    object("UnknownNumber").is_some_and(|class| value.class().is(&class))
}

/// `text % values`.
fn percent(text: &PyObject, values: &PyObject, vm: &VirtualMachine) -> PyResult {
    let needs_ours = |value: &PyObject| is_unknown(value) || is_tensor(value);
    let is_ours = text.downcast_ref::<PyStr>().is_some()
        && if let Some(values) = values.downcast_ref::<PyTuple>() {
            values.as_slice().iter().any(|value| needs_ours(value))
        } else if let Some(values) = values.downcast_ref::<PyDict>() {
            values.into_iter().any(|(_key, value)| needs_ours(&value))
        } else {
            needs_ours(values)
        };
    match (object("percent").filter(|_| is_ours), PERCENT.get()) {
        (Some(ours), _) => ours.call((text.to_owned(), values.to_owned()), vm),
        (None, Some(interpreters)) => interpreters(text, values, vm),
        (None, None) => Ok(vm.ctx.not_implemented()),
    }
}

/// `float(value)`.
fn new_float(class: PyTypeRef, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult {
    if class.is(vm.ctx.types.float_type)
        && let [value] = arguments.args.as_slice()
    {
        let value: PyObjectRef =
            if is_tensor(value) { vm.call_method(value, "__float__", ())? } else { value.clone() };
        if is_unknown(&value) {
            return Ok(value);
        }
    }
    match FLOAT.get() {
        Some(new) => new(class, arguments, vm),
        None => Err(vm.new_runtime_error("the interpreter has no float()")),
    }
}
