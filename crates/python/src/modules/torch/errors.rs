//! Errors of the crate `torch` as Python exceptions, and exceptions of callbacks as its errors.

use std::rc::Rc;

use blockyard_torch::{ForeignError, TorchError};
use rustpython_vm::VirtualMachine;
use rustpython_vm::builtins::{PyBaseExceptionRef, PyTypeRef};

use super::objects;

/// The exception with PyTorch's class and text.
pub(crate) fn to_exception(vm: &VirtualMachine, error: TorchError) -> PyBaseExceptionRef {
    match error {
        TorchError::OutOfMemory(text) => {
            let class = objects::get("OutOfMemoryError").and_then(|class| class.downcast().ok());
            let class: PyTypeRef = class.unwrap_or_else(|| vm.ctx.exceptions.memory_error.to_owned());
            vm.new_exception_msg(class, text.into())
        }
        TorchError::Type(text) => vm.new_type_error(text),
        TorchError::Value(text) => vm.new_value_error(text),
        TorchError::Index(text) => vm.new_index_error(text),
        TorchError::NotImplemented(text) => vm.new_not_implemented_error(text),
        TorchError::Callback(foreign) => match foreign.0.downcast::<PyBaseExceptionRef>() {
            Ok(exception) => (*exception).clone(),
            Err(_other) => vm.new_runtime_error("a callback failed"),
        },
        error => vm.new_runtime_error(error.to_string()),
    }
}

/// An exception of a callback as an error that passes through the crate `torch` unchanged.
pub(crate) fn from_exception(exception: PyBaseExceptionRef) -> TorchError {
    TorchError::Callback(ForeignError(Rc::new(exception)))
}
