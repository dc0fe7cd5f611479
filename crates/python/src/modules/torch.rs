//! `_torch`: the crate `torch` as native objects; our own Python in `lib/torch` makes the package of them.

mod autograd;
mod convert;
mod errors;
mod memory;
mod objects;
mod tensor;

pub(crate) use objects::forget;

use rustpython_vm::Context;
use rustpython_vm::builtins::PyModuleDef;

pub(crate) fn module_defs(context: &Context) -> [&'static PyModuleDef; 3] {
    [tensor::module_def(context), memory::module_def(context), autograd::module_def(context)]
}

/// Whether an object is a tensor of a GPU.
pub(crate) fn is_gpu_tensor(object: &rustpython_vm::PyObject) -> bool {
    object.downcast_ref::<tensor::PyTensor>().is_some_and(|tensor| tensor.get().device().is_cuda())
}
