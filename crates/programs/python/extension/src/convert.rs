//! Between Python objects and the values of the crate `torch`.

use blockyard_torch::{Dtype, MemoryFormat, Scalar, Tensor, Value};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};
use pyo3::{PyTypeInfo as _, intern};

use crate::objects;
use crate::operators::PyTensorList;
use crate::tensor::{self, PyTensor};
use crate::values::{PyDevice, PyDtype, PyMemoryFormat};

fn list_value<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Value> {
    items.map(|item| to_value(&item)).collect::<PyResult<_>>().map(Value::List)
}

/// The value of a Python object.
pub(crate) fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let python = object.py();
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Value::Tensor(tensor.borrow().get()));
    }
    if object.is_none() {
        return Ok(Value::None);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(truth.is_true().into());
    }
    if object.cast::<PyInt>().is_ok() {
        return integer_value(object);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(float.value().into());
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Str(text.to_string_lossy().as_ref().into()));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list_value(list.iter());
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return list_value(tuple.iter());
    }
    if let Ok(list) = object.cast::<PyTensorList>() {
        return Ok(list.borrow().value());
    }
    if let Ok(dtype) = object.cast::<PyDtype>() {
        return Ok(Value::Dtype(dtype.get().0));
    }
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(Value::Device(device.get().resolve()));
    }
    if let Ok(format) = object.cast::<PyMemoryFormat>() {
        return Ok(Value::MemoryFormat(format.get().0));
    }
    if let Ok(slice) = object.cast::<PySlice>() {
        return slice_value(slice);
    }
    if object.is(python.Ellipsis()) {
        return Ok(Value::Ellipsis);
    }
    if let Some(dtype) = python_type(object) {
        return Ok(Value::Dtype(dtype));
    }
    if let Some(unknown) = unknown(object)? {
        return Ok(unknown);
    }
    let class = object.get_type();
    if let Some(number) = number_of_array(object)? {
        return Ok(number);
    }
    if class.hasattr(intern!(python, "__index__"))?
        && let Ok(index) = object.call_method0(intern!(python, "__index__"))
    {
        return integer_value(&index);
    }
    if class.hasattr(intern!(python, "__iter__"))? {
        return list_value(object.try_iter()?.collect::<PyResult<Vec<_>>>()?.into_iter());
    }
    Err(PyTypeError::new_err(format!("an argument of type {} is not modeled", class.name()?)))
}

/// The value of a number of `NumPy`, or of an array without dimensions; `None` for other objects.
fn number_of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let python = object.py();
    let class = object.get_type();
    if !class.hasattr(intern!(python, "__array__"))?
        || object.getattr(intern!(python, "ndim"))?.is_truthy()?
    {
        return Ok(None);
    }
    let item = object.call_method0(intern!(python, "item"))?;
    if item.get_type().is(&class) {
        // A number whose last digits are not known.
        return Ok(Some(Value::Scalar(Scalar::Unknown(Dtype::F64))));
    }
    to_value(&item).map(Some)
}

/// `float`, `int` and `bool` as types of elements.
fn python_type(object: &Bound<'_, PyAny>) -> Option<Dtype> {
    let python = object.py();
    if object.is(python.get_type::<PyFloat>()) {
        Some(Dtype::F32)
    } else if object.is(python.get_type::<PyInt>()) {
        Some(Dtype::I64)
    } else if object.is(python.get_type::<PyBool>()) {
        Some(Dtype::Bool)
    } else {
        None
    }
}

fn integer_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    object.extract::<i64>().map(Value::from).map_err(|_too_large| {
        PyRuntimeError::new_err("value cannot be converted to type int64_t without overflow")
    })
}

/// The value of a number that is on a GPU, which is an object of the class `UnknownNumber`; `None` for other
/// objects.
fn unknown(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let python = object.py();
    let Some(class) = objects::get(python, "UnknownNumber") else { return Ok(None) };
    if !object.get_type().is(&class) {
        return Ok(None);
    }
    let dtype = object.getattr(intern!(python, "dtype"))?;
    Ok(dtype.cast::<PyDtype>().ok().map(|dtype| Value::Scalar(Scalar::Unknown(dtype.get().0))))
}

fn slice_value(slice: &Bound<'_, PySlice>) -> PyResult<Value> {
    let bound = |name: &str| -> PyResult<Option<i64>> {
        let object = slice.getattr(name)?;
        if object.is_none() {
            return Ok(None);
        }
        match to_value(&object)? {
            Value::Scalar(Scalar::Int(value)) => Ok(Some(value)),
            Value::Scalar(Scalar::Bool(value)) => Ok(Some(i64::from(value))),
            Value::Tensor(tensor) => {
                let value =
                    tensor.values().and_then(|values| values.first().copied()).and_then(Scalar::to_i64);
                value.map(Some).ok_or_else(|| {
                    PyRuntimeError::new_err("the bound of a slice lies on the GPU and is not known")
                })
            }
            Value::Scalar(Scalar::Unknown(_)) => Err(PyRuntimeError::new_err(
                "the bound of a slice lies on the GPU or is random, and is not known here; use a number in its place",
            )),
            _ => Err(PyTypeError::new_err(
                "slice indices must be integers or None or have an __index__ method",
            )),
        }
    };
    let step = bound("step")?.unwrap_or(1);
    Ok(Value::Slice(bound("start")?, bound("stop")?, step))
}

/// A value that becomes an object when a tuple takes it: PyTorch makes the tuple first, and the garbage
/// collector goes through objects in the order in which they were made.
struct ResultItem(Value);

impl<'py> IntoPyObject<'py> for ResultItem {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, python: Python<'py>) -> PyResult<Self::Output> {
        to_object(python, self.0)
    }
}

/// The Python object of a value.
pub(crate) fn to_object(python: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Scalar(scalar) => scalar_object(python, scalar)?,
        Value::Str(text) => PyString::new(python, &text).into_any(),
        Value::Tensor(tensor) => tensor_object(python, tensor)?,
        Value::List(items) => PyTuple::new(python, items.into_iter().map(ResultItem))?.into_any(),
        Value::Dtype(dtype) => dtype_object(python, dtype)?,
        Value::Device(device) => Bound::new(python, PyDevice::of(device))?.into_any(),
        Value::MemoryFormat(format) => Bound::new(python, PyMemoryFormat(format))?.into_any(),
        Value::None | Value::Slice(..) | Value::Ellipsis => python.None().into_bound(python),
    })
}

/// The Python object of a type of elements; each type has a single object.
pub(crate) fn dtype_object(python: Python<'_>, dtype: Dtype) -> PyResult<Bound<'_, PyAny>> {
    if let Some(object) = objects::get(python, dtype.name()) {
        return Ok(object);
    }
    let object = Bound::new(python, PyDtype(dtype))?.into_any();
    objects::register(dtype.name(), object.clone().unbind());
    Ok(object)
}

/// The Python number of a scalar; an `UnknownNumber` where the value is not known.
pub(crate) fn scalar_object(python: Python<'_>, scalar: Scalar) -> PyResult<Bound<'_, PyAny>> {
    match scalar {
        Scalar::Bool(value) => Ok(PyBool::new(python, value).to_owned().into_any()),
        Scalar::Int(value) => Ok(value.into_pyobject(python)?.into_any()),
        Scalar::Float(value) => Ok(PyFloat::new(python, value).into_any()),
        Scalar::Unknown(dtype) => objects::get(python, "UnknownNumber")
            .ok_or_else(|| PyRuntimeError::new_err("torch is not imported"))?
            .call1((dtype_object(python, dtype)?,)),
    }
}

/// The Python object of a tensor (`THPVariable_Wrap`): the one that it has, else a new `torch.Tensor`.
pub(crate) fn tensor_object(python: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    if let Some(object) = tensor::existing_object(python, &tensor) {
        return Ok(object);
    }
    let class = objects::get(python, "Tensor");
    tensor::new_object(python, tensor, class.unwrap_or_else(|| PyTensor::type_object(python).into_any()))
}

/// PyTorch's name of a memory format.
pub(crate) fn format_name(format: MemoryFormat) -> &'static str {
    match format {
        MemoryFormat::Contiguous => "torch.contiguous_format",
        MemoryFormat::ChannelsLast => "torch.channels_last",
        MemoryFormat::ChannelsLast3d => "torch.channels_last_3d",
        MemoryFormat::Preserve => "torch.preserve_format",
    }
}
