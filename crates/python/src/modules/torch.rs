//! `_torch`: the crate `torch` as native objects; our own Python in `lib/torch` makes the package of them.

mod autograd;
mod convert;
mod errors;
mod memory;
mod objects;
mod operators;
mod tensor;
mod values;

pub(crate) use objects::forget;

use rustpython_vm::Context;
use rustpython_vm::builtins::PyModuleDef;

/// The definitions of the native modules of `torch`: tensors, memory, autograd.
pub(crate) fn module_defs(context: &Context) -> [&'static PyModuleDef; 3] {
    [tensor::module_def(context), memory::module_def(context), autograd::module_def(context)]
}

/// The object that `lib/torch` registered under a name; `None` before `torch` was imported.
pub(crate) fn object(name: &str) -> Option<rustpython_vm::PyObjectRef> {
    objects::get(name)
}

/// Whether an object is a tensor.
pub(crate) fn is_tensor(object: &rustpython_vm::PyObject) -> bool {
    object.downcast_ref::<tensor::PyTensor>().is_some()
}

/// Whether an object is a tensor of a GPU.
pub(crate) fn is_gpu_tensor(object: &rustpython_vm::PyObject) -> bool {
    object.downcast_ref::<tensor::PyTensor>().is_some_and(|tensor| tensor.get().device().is_cuda())
}

/// The tensor of a Python object; `None` if the object is not a tensor, or if the tensor is in the middle of
/// a change.
pub(crate) fn tensor_of(object: &rustpython_vm::PyObject) -> Option<blockyard_torch::Tensor> {
    object.downcast_ref::<tensor::PyTensor>()?.try_get()
}

/// The Python function that a node calls back; `None` for a callback that is not Python's.
pub(crate) fn callback_of(
    callback: &dyn blockyard_torch::autograd::BackwardCallback,
) -> Option<rustpython_vm::PyObjectRef> {
    autograd::callback_of(callback)
}
