//! Between Python objects and the values of the crate `torch`.

use blockyard_torch::{MemoryFormat, Scalar, Tensor, Value};
use malachite_bigint::BigInt;
use rustpython_vm::builtins::{PyFloat, PyInt, PyList, PySlice, PyStr, PyTuple, PyTypeRef};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine};

use super::objects;
use super::tensor::PyTensor;
use super::values::{PyDevice, PyDtype, PyMemoryFormat};

/// The value of a Python object.
pub(crate) fn to_value(vm: &VirtualMachine, object: &PyObject) -> PyResult<Value> {
    if let Some(tensor) = object.downcast_ref::<PyTensor>() {
        return Ok(Value::Tensor(tensor.get()));
    }
    if vm.is_none(object) {
        return Ok(Value::None);
    }
    if object.is(&vm.ctx.true_value) || object.is(&vm.ctx.false_value) {
        return Ok(object.is(&vm.ctx.true_value).into());
    }
    if let Some(integer) = object.downcast_ref::<PyInt>() {
        return integer_value(vm, integer.as_bigint());
    }
    if let Some(float) = object.downcast_ref::<PyFloat>() {
        return Ok(unknown(vm, object)?.unwrap_or_else(|| float.to_f64().into()));
    }
    if let Some(text) = object.downcast_ref::<PyStr>() {
        return Ok(Value::Str(text.to_string_lossy().as_ref().into()));
    }
    if let Some(list) = object.downcast_ref::<PyList>() {
        let items = list.borrow_vec().to_vec();
        return items.iter().map(|item| to_value(vm, item)).collect::<PyResult<_>>().map(Value::List);
    }
    if let Some(tuple) = object.downcast_ref::<PyTuple>() {
        return tuple
            .as_slice()
            .iter()
            .map(|item| to_value(vm, item))
            .collect::<PyResult<_>>()
            .map(Value::List);
    }
    if let Some(list) = object.downcast_ref::<super::operators::PyTensorList>() {
        return Ok(list.value());
    }
    if let Some(dtype) = object.downcast_ref::<PyDtype>() {
        return Ok(Value::Dtype(dtype.0));
    }
    if let Some(device) = object.downcast_ref::<PyDevice>() {
        return Ok(Value::Device(device.resolve()));
    }
    if let Some(format) = object.downcast_ref::<PyMemoryFormat>() {
        return Ok(Value::MemoryFormat(format.0));
    }
    if let Some(slice) = object.downcast_ref::<PySlice>() {
        return slice_value(vm, slice);
    }
    if object.is(&vm.ctx.ellipsis) {
        return Ok(Value::Ellipsis);
    }
    if let Some(kind) = python_type(vm, object) {
        return Ok(kind);
    }
    if let Ok(Some(integer)) = object.to_owned().try_index_opt(vm).transpose() {
        return integer_value(vm, integer.as_bigint());
    }
    if object.class().has_attr(vm.ctx.intern_str("__iter__")) {
        let items: Vec<PyObjectRef> = object.to_owned().try_to_value(vm)?;
        return items.iter().map(|item| to_value(vm, item)).collect::<PyResult<_>>().map(Value::List);
    }
    Err(vm.new_type_error(format!("an argument of type {} is not modeled", object.class().name())))
}

/// `float`, `int` and `bool` as types of elements.
fn python_type(vm: &VirtualMachine, object: &PyObject) -> Option<Value> {
    let types = &vm.ctx.types;
    if object.is(types.float_type) {
        Some(Value::Dtype(blockyard_torch::Dtype::F32))
    } else if object.is(types.int_type) {
        Some(Value::Dtype(blockyard_torch::Dtype::I64))
    } else if object.is(types.bool_type) {
        Some(Value::Dtype(blockyard_torch::Dtype::Bool))
    } else {
        None
    }
}

fn integer_value(vm: &VirtualMachine, integer: &BigInt) -> PyResult<Value> {
    i64::try_from(integer).map(Value::from).map_err(|_too_large| {
        vm.new_runtime_error("value cannot be converted to type int64_t without overflow")
    })
}

/// The value of a number that is on a GPU, which is an object of the class `UnknownNumber`; `None` for other
/// objects.
fn unknown(vm: &VirtualMachine, object: &PyObject) -> PyResult<Option<Value>> {
    let Some(class) = objects::get("UnknownNumber") else { return Ok(None) };
    if !object.class().is(&class) {
        return Ok(None);
    }
    let dtype = object.get_attr("dtype", vm)?;
    Ok(dtype.downcast_ref::<PyDtype>().map(|dtype| Value::Scalar(Scalar::Unknown(dtype.0))))
}

fn slice_value(vm: &VirtualMachine, slice: &PySlice) -> PyResult<Value> {
    let bound = |object: Option<&PyObjectRef>| -> PyResult<Option<i64>> {
        let Some(object) = object.filter(|object| !vm.is_none(object)) else { return Ok(None) };
        match to_value(vm, object)? {
            Value::Scalar(Scalar::Int(value)) => Ok(Some(value)),
            Value::Scalar(Scalar::Bool(value)) => Ok(Some(i64::from(value))),
            Value::Tensor(tensor) => {
                let value =
                    tensor.values().and_then(|values| values.first().copied()).and_then(Scalar::to_i64);
                value.map(Some).ok_or_else(|| {
                    vm.new_runtime_error("the bound of a slice lies on the GPU and is not known")
                })
            }
            _ => Err(vm.new_type_error("slice indices must be integers or None or have an __index__ method")),
        }
    };
    let step = bound(slice.step.as_ref())?.unwrap_or(1);
    Ok(Value::Slice(bound(slice.start.as_ref())?, bound(Some(&slice.stop))?, step))
}

/// The Python object of a value. A tensor that one of the objects in `known` has gets that object, not a new
/// one.
pub(crate) fn to_object(vm: &VirtualMachine, value: Value, known: &[PyObjectRef]) -> PyResult {
    Ok(match value {
        Value::Scalar(scalar) => scalar_object(vm, scalar)?,
        Value::Str(text) => vm.ctx.new_str(&*text).into(),
        Value::Tensor(tensor) => tensor_object(vm, tensor, known)?,
        Value::List(items) => {
            let items =
                items.into_iter().map(|item| to_object(vm, item, known)).collect::<PyResult<Vec<_>>>()?;
            vm.ctx.new_tuple(items).into()
        }
        Value::Dtype(dtype) => dtype_object(vm, dtype),
        Value::Device(device) => PyDevice::of(device).into_ref(&vm.ctx).into(),
        Value::MemoryFormat(format) => PyMemoryFormat(format).into_ref(&vm.ctx).into(),
        Value::None | Value::Slice(..) | Value::Ellipsis => vm.ctx.none(),
    })
}

/// The Python object of a type of elements; each type has a single object.
pub(crate) fn dtype_object(vm: &VirtualMachine, dtype: blockyard_torch::Dtype) -> PyObjectRef {
    objects::get(dtype.name()).unwrap_or_else(|| {
        let object: PyObjectRef = PyDtype(dtype).into_ref(&vm.ctx).into();
        objects::set(dtype.name(), object.clone());
        object
    })
}

/// A Python number; for an unknown value an object that prints as `?`.
pub(crate) fn scalar_object(vm: &VirtualMachine, scalar: Scalar) -> PyResult {
    match scalar {
        Scalar::Bool(value) => Ok(vm.ctx.new_bool(value).into()),
        Scalar::Int(value) => Ok(vm.ctx.new_int(value).into()),
        Scalar::Float(value) => Ok(vm.ctx.new_float(value).into()),
        Scalar::Unknown(dtype) => {
            let class =
                objects::get("UnknownNumber").ok_or_else(|| vm.new_runtime_error("torch is not imported"))?;
            class.call((dtype_object(vm, dtype),), vm)
        }
    }
}

/// The Python object of a tensor.
pub(crate) fn tensor_object(vm: &VirtualMachine, tensor: Tensor, known: &[PyObjectRef]) -> PyResult {
    for object in known {
        if object.downcast_ref::<PyTensor>().is_some_and(|known| known.get().is_same(&tensor)) {
            return Ok(object.clone());
        }
    }
    new_tensor(vm, tensor, objects::get("Tensor"))
}

/// A new object of a class of tensors.
pub(crate) fn new_tensor(vm: &VirtualMachine, tensor: Tensor, class: Option<PyObjectRef>) -> PyResult {
    let class: Option<PyTypeRef> = class.and_then(|class| class.downcast().ok());
    let payload = PyTensor::new(tensor);
    let object: PyRef<PyTensor> = match class {
        Some(class) => payload.into_ref_with_type(vm, class)?,
        None => payload.into_ref(&vm.ctx),
    };
    Ok(object.into())
}

/// The name of an order in memory.
pub(crate) fn format_name(format: MemoryFormat) -> &'static str {
    match format {
        MemoryFormat::Contiguous => "torch.contiguous_format",
        MemoryFormat::ChannelsLast => "torch.channels_last",
        MemoryFormat::ChannelsLast3d => "torch.channels_last_3d",
        MemoryFormat::Preserve => "torch.preserve_format",
    }
}
