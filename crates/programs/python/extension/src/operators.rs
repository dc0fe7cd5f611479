//! The operators of `_torch` by name, and the lists of tensors that they return.

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_torch::{Operator, Tensor, TorchError, Value};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::tensor::tensor_of;
use crate::{convert, errors, objects, run};

/// A list of tensors that an operator made; its tensors die last to first, as those of PyTorch's tuples do.
#[pyclass(name = "TensorList", module = "torch", unsendable)]
pub(crate) struct PyTensorList {
    items: RefCell<Vec<Tensor>>,
}
impl PyTensorList {
    /// The list as an operator's argument.
    pub(crate) fn value(&self) -> Value {
        Value::List(self.items.borrow().iter().map(Value::from).collect())
    }
}
impl Drop for PyTensorList {
    fn drop(&mut self) {
        let mut items = std::mem::take(&mut *self.items.borrow_mut());
        while items.pop().is_some() {}
    }
}
#[pymethods]
impl PyTensorList {
    fn __iter__<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let items = self.items.borrow().clone();
        let items = items
            .into_iter()
            .map(|item| convert::tensor_object(python, item))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(python, items)?.try_iter()?.into_any())
    }
}

/// An operator; on a tensor it is a method.
#[pyclass(name = "Operator", module = "torch", frozen)]
pub(crate) struct PyOperator {
    /// The name, by which each thread finds the operator: Python may call it on any thread.
    name: &'static str,
    /// Whether Python calls it for `a + b`, where another class may have the answer to a type of `b` that is
    /// wrong here.
    is_special: bool,
}

/// Keywords of PyTorch's functions on which no memory depends.
const IGNORED: [&str; 2] = ["generator", "layout"];

impl PyOperator {
    fn operator(&self) -> PyResult<Rc<Operator>> {
        blockyard_torch::lookup(self.name).ok_or_else(|| PyRuntimeError::new_err("no such operator"))
    }

    fn run<'py>(
        &self,
        python: Python<'py>,
        args: &[Bound<'py, PyAny>],
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        run::count_operator(python)?;
        let operator = self.operator()?;
        let values = args.iter().map(convert::to_value).collect::<PyResult<Vec<_>>>()?;
        let mut names: Vec<(String, Value)> = Vec::new();
        let mut out: Option<Bound<'py, PyAny>> = None;
        if let Some(kwargs) = kwargs {
            for (name, value) in kwargs.iter() {
                let name: String = name.extract()?;
                match name.as_str() {
                    "out" if !operator.has_parameter("out") => {
                        if !value.is_none() {
                            out = Some(value);
                        }
                    }
                    name if IGNORED.contains(&name) => {}
                    "axis" => names.push(("dim".to_owned(), convert::to_value(&value)?)),
                    _ => names.push((name, convert::to_value(&value)?)),
                }
            }
        }
        let keywords: Vec<(&str, Value)> =
            names.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        if let Some(out) = &out
            && let Some(into) = tensor_of(out)
            && into.device().is_cuda()
        {
            errors::result(python, operator.call_into(&values, &keywords, &into))?;
            return Ok(out.clone());
        }
        let result = operator.call(&values, &keywords).map_err(|error| named_by_python(error, args));
        let result = errors::result(python, result)?;
        drop(values);
        drop(keywords);
        drop(names);
        let result = result_object(python, operator.name(), result)?;
        match out {
            Some(out) => out.call_method1("_take", (result,)),
            None => Ok(result),
        }
    }
}

/// The error for an argument of a wrong type, with the name of its class in Python: an array is not a list.
fn named_by_python(error: TorchError, args: &[Bound<'_, PyAny>]) -> TorchError {
    let TorchError::Type(text) = &error else { return error };
    let position = text.split_once("(position ").and_then(|(_, rest)| rest.split_once(')'));
    let object = position.and_then(|(number, _)| args.get(number.parse::<usize>().ok()?.checked_sub(1)?));
    let (Some(object), Some((start, "list"))) = (object, text.rsplit_once(", not ")) else {
        return error;
    };
    let class = object.get_type();
    match (class.module(), class.qualname()) {
        (Ok(module), Ok(name)) if module == "builtins" => TorchError::Type(format!("{start}, not {name}")),
        (Ok(module), Ok(name)) => TorchError::Type(format!("{start}, not {module}.{name}")),
        _ => error,
    }
}

/// The class of bound methods, `types.MethodType`.
static METHOD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn method_class(python: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(python.import("types")?.getattr("MethodType")?.unbind())
}

fn result_object<'py>(python: Python<'py>, name: &str, result: Value) -> PyResult<Bound<'py, PyAny>> {
    if name.starts_with("_foreach_")
        && let Value::List(items) = result
    {
        let items = items.into_iter().filter_map(|item| item.tensor().ok()).collect();
        return Ok(Bound::new(python, PyTensorList { items: RefCell::new(items) })?.into_any());
    }
    let is_list = matches!(result, Value::List(_));
    let object = convert::to_object(python, result)?;
    if is_list
        && let Some(types) = objects::get(python, "return_types")
        && let Ok(class) = types.get_item(name)
    {
        return class.call1((object,));
    }
    Ok(object)
}

#[pymethods]
impl PyOperator {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        python: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args: Vec<Bound<'py, PyAny>> = args.iter().collect();
        match self.run(python, &args, kwargs) {
            Err(error) if self.is_special && error.is_instance_of::<PyTypeError>(python) => {
                Ok(python.NotImplemented().into_bound(python))
            }
            done => done,
        }
    }
    fn __get__<'py>(
        slf: Bound<'py, Self>,
        object: Option<Bound<'py, PyAny>>,
        _class: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match object {
            Some(object) => {
                let python = slf.py();
                METHOD.get_or_try_init(python, || method_class(python))?.bind(python).call1((slf, object))
            }
            None => Ok(slf.into_any()),
        }
    }
    fn __repr__(&self) -> String {
        format!("<built-in method {}>", self.name)
    }
    #[getter]
    fn __name__(&self) -> &'static str {
        self.name
    }
    fn special(&self) -> Self {
        Self { name: self.name, is_special: true }
    }
    #[getter]
    fn is_method(&self) -> PyResult<bool> {
        Ok(self.operator()?.is_method())
    }
    #[getter]
    fn parameters(&self) -> PyResult<Vec<String>> {
        Ok(self.operator()?.parameters().into_iter().map(str::to_owned).collect())
    }
}

/// The operator of that name; `None` if the crate `torch` has none.
#[pyfunction]
fn operator(name: &str) -> Option<PyOperator> {
    blockyard_torch::lookup(name).map(|operator| PyOperator { name: operator.name(), is_special: false })
}

/// The names of all operators.
#[pyfunction]
fn operator_names() -> Vec<&'static str> {
    blockyard_torch::names()
}

/// Adds the classes and functions of this module to `_torch`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTensorList>()?;
    module.add_class::<PyOperator>()?;
    module.add_function(wrap_pyfunction!(operator, module)?)?;
    module.add_function(wrap_pyfunction!(operator_names, module)?)
}
