//! The operators of `_torch` by name, and the lists of tensors that they return.

pub(crate) use operators::PyTensorList;

#[rustpython_vm::pymodule(sub)]
pub(crate) mod operators {
    use std::rc::Rc;

    use blockyard_torch::{Operator, Tensor, Value};
    use rustpython_vm::builtins::{PyBoundMethod, PyStrRef};
    use rustpython_vm::common::lock::PyMutex;
    use rustpython_vm::function::FuncArgs;
    use rustpython_vm::types::{Callable, GetDescriptor, Iterable, Representable};
    use rustpython_vm::{AsObject as _, Py, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};

    use super::super::{convert, errors, objects};

    /// A list of tensors that an operator made; its tensors die last to first, as those of PyTorch's tuples
    /// do.
    #[pyattr]
    #[pyclass(name = "TensorList", module = "torch")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct PyTensorList {
        items: PyMutex<Vec<Tensor>>,
    }

    impl PyTensorList {
        /// The list as an operator's argument.
        pub(crate) fn value(&self) -> Value {
            Value::List(self.items.lock().iter().map(Value::from).collect())
        }
    }

    impl Drop for PyTensorList {
        fn drop(&mut self) {
            let mut items = std::mem::take(&mut *self.items.lock());
            while items.pop().is_some() {}
        }
    }

    #[pyclass(with(Iterable))]
    impl PyTensorList {}

    impl Iterable for PyTensorList {
        fn iter(zelf: rustpython_vm::PyRef<Self>, vm: &VirtualMachine) -> PyResult {
            let items = zelf.items.lock().clone();
            let items = items
                .into_iter()
                .map(|item| convert::tensor_object(vm, item, &[]))
                .collect::<PyResult<Vec<_>>>()?;
            vm.ctx.new_list(items).as_object().get_iter(vm).map(Into::into)
        }
    }

    /// An operator; on a tensor it is a method.
    #[pyattr]
    #[pyclass(name = "Operator", module = "torch")]
    #[derive(PyPayload)]
    pub(crate) struct PyOperator {
        operator: Rc<Operator>,
    }

    impl std::fmt::Debug for PyOperator {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("PyOperator").field(&self.operator.name()).finish()
        }
    }

    /// Keywords of PyTorch's functions on which no memory depends.
    const IGNORED: [&str; 2] = ["generator", "layout"];

    impl Callable for PyOperator {
        type Args = FuncArgs;

        fn call(zelf: &Py<Self>, args: FuncArgs, vm: &VirtualMachine) -> PyResult {
            crate::host::count_operator(vm)?;
            let operator = &zelf.operator;
            let values =
                args.args.iter().map(|arg| convert::to_value(vm, arg)).collect::<PyResult<Vec<_>>>()?;
            let mut keywords = Vec::with_capacity(args.kwargs.len());
            let out = args.kwargs.get("out").filter(|_| !operator.has_parameter("out"));
            let out = out.filter(|out| !vm.is_none(out));
            let on_gpu = out.filter(|out| crate::modules::torch::is_gpu_tensor(out));
            for (name, value) in &args.kwargs {
                let name = match name.as_str() {
                    "out" if !operator.has_parameter("out") => continue,
                    name if IGNORED.contains(&name) => continue,
                    "axis" => "dim",
                    name => name,
                };
                keywords.push((name, convert::to_value(vm, value)?));
            }
            if let Some(out) = on_gpu
                && let Value::Tensor(into) = convert::to_value(vm, out)?
            {
                operator
                    .call_into(&values, &keywords, &into)
                    .map_err(|error| errors::to_exception(vm, error))?;
                return Ok(out.clone());
            }
            let result =
                operator.call(&values, &keywords).map_err(|error| errors::to_exception(vm, error))?;
            drop(values);
            drop(keywords);
            let result = result_object(vm, operator.name(), result, &args.args)?;
            match out {
                Some(out) => vm.call_method(out, "_take", (result,)),
                None => Ok(result),
            }
        }
    }

    fn result_object(vm: &VirtualMachine, name: &str, result: Value, known: &[PyObjectRef]) -> PyResult {
        if name.starts_with("_foreach_")
            && let Value::List(items) = result
        {
            let items = items.into_iter().filter_map(|item| item.tensor().ok()).collect();
            return Ok(PyTensorList { items: PyMutex::new(items) }.into_ref(&vm.ctx).into());
        }
        let is_list = matches!(result, Value::List(_));
        let object = convert::to_object(vm, result, known)?;
        if is_list && let Some(types) = objects::get("return_types") {
            let class = types.get_item(name, vm);
            if let Ok(class) = class {
                return class.call((object,), vm);
            }
        }
        Ok(object)
    }

    impl GetDescriptor for PyOperator {
        fn descr_get(
            zelf: PyObjectRef,
            object: Option<PyObjectRef>,
            _class: Option<PyObjectRef>,
            vm: &VirtualMachine,
        ) -> PyResult {
            match object {
                Some(object) if !vm.is_none(&object) => {
                    Ok(PyBoundMethod::new(object, zelf).into_ref(&vm.ctx).into())
                }
                _ => Ok(zelf),
            }
        }
    }

    impl Representable for PyOperator {
        fn repr_str(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<String> {
            Ok(format!("<built-in method {}>", zelf.operator.name()))
        }
    }

    // As a method descriptor, a call on a tensor makes no object for the bound method.
    #[pyclass(flags(METHOD_DESCRIPTOR), with(Callable, GetDescriptor, Representable))]
    impl PyOperator {
        #[pygetset]
        fn __name__(&self) -> &'static str {
            self.operator.name()
        }

        #[pygetset]
        fn is_method(&self) -> bool {
            self.operator.is_method()
        }

        #[pygetset]
        fn parameters(&self, vm: &VirtualMachine) -> PyObjectRef {
            texts(vm, self.operator.parameters())
        }
    }

    /// The operator of that name; `None` if the crate `torch` has none.
    #[pyfunction]
    fn operator(name: PyStrRef) -> Option<PyOperator> {
        blockyard_torch::lookup(&name.to_string_lossy()).map(|operator| PyOperator { operator })
    }

    /// The names of all operators.
    #[pyfunction]
    fn operator_names(vm: &VirtualMachine) -> PyObjectRef {
        texts(vm, blockyard_torch::names())
    }

    fn texts(vm: &VirtualMachine, texts: Vec<&str>) -> PyObjectRef {
        vm.ctx.new_list(texts.into_iter().map(|text| vm.ctx.new_str(text).into()).collect()).into()
    }
}
