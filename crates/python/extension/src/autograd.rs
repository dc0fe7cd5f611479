//! `_torch_autograd`: modes, the engine, hooks, and functions with their own backward.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use blockyard_torch::autograd::{
    self, BackwardCallback, GradMode, HookCallback, HookId, Node, SavedTensorHooks, TensorHook,
};
use blockyard_torch::memory::Phase;
use blockyard_torch::{Result as TorchResult, Tensor, TorchError, Value, session};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::errors::result;
use crate::tensor::tensor_of;
use crate::{convert, errors};

/// Calls a Python function from inside the crate `torch`.
fn call_back<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> TorchResult<T> {
    Python::attach(|python| call(python).map_err(errors::from_exception))
}
fn optional_object<'py>(python: Python<'py>, tensor: Option<&Tensor>) -> PyResult<Bound<'py, PyAny>> {
    tensor.map_or_else(
        || Ok(python.None().into_bound(python)),
        |tensor| convert::tensor_object(python, tensor.clone(), &[]),
    )
}

/// A pair of `pack` and `unpack` that are Python functions.
struct PythonHooks {
    pack: Py<PyAny>,
    unpack: Py<PyAny>,
}
impl SavedTensorHooks for PythonHooks {
    fn pack(&self, tensor: &Tensor) -> TorchResult<Rc<dyn Any>> {
        call_back(|python| {
            let packed =
                self.pack.bind(python).call1((convert::tensor_object(python, tensor.clone(), &[])?,))?;
            Ok(Rc::new(packed.unbind()) as Rc<dyn Any>)
        })
    }
    fn unpack(&self, packed: &Rc<dyn Any>) -> TorchResult<Tensor> {
        let packed = packed
            .downcast_ref::<Py<PyAny>>()
            .ok_or_else(|| TorchError::Runtime("a saved tensor was packed by somebody else".to_owned()))?;
        call_back(|python| {
            let object = self.unpack.bind(python).call1((packed.bind(python),))?;
            tensor_of(&object).ok_or_else(|| {
                PyTypeError::new_err("Output of saved tensor unpack_hook expected to be a Tensor")
            })
        })
    }
}
/// The backward of a `torch.autograd.Function`: a callable, held until the graph dies.
struct PythonFunction {
    callback: Py<PyAny>,
}

/// The Python function that a node's callback calls; `None` for another callback.
pub(crate) fn callback_of(callback: &dyn BackwardCallback) -> Option<&Py<PyAny>> {
    Some(&callback.as_any()?.downcast_ref::<PythonFunction>()?.callback)
}

impl BackwardCallback for PythonFunction {
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn backward(&self, grads: &[Option<Tensor>]) -> TorchResult<Vec<Option<Tensor>>> {
        call_back(|python| {
            let callback = self.callback.clone_ref(python);
            let grads = grads
                .iter()
                .map(|grad| optional_object(python, grad.as_ref()))
                .collect::<PyResult<Vec<_>>>()?;
            let results = callback.bind(python).call1(PyTuple::new(python, grads)?)?;
            Ok(objects(&results)?.iter().map(tensor_of).collect())
        })
    }
}

/// A hook of a tensor that is a Python function.
struct PythonHook {
    hook: Py<PyAny>,
}

/// The Python function of a hook; `None` for another hook.
pub(crate) fn hook_object(hook: &dyn HookCallback) -> Option<&Py<PyAny>> {
    let hook = hook.as_any()?;
    let gradient = hook.downcast_ref::<PythonHook>().map(|hook| &hook.hook);
    gradient.or_else(|| hook.downcast_ref::<PythonLeafHook>().map(|hook| &hook.hook))
}

impl HookCallback for PythonHook {
    fn call(&self, grad: &Tensor) -> TorchResult<Option<Tensor>> {
        call_back(|python| {
            let hook = self.hook.clone_ref(python);
            let grad = convert::tensor_object(python, grad.clone(), &[])?;
            Ok(tensor_of(&hook.bind(python).call1((grad,))?))
        })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// A hook that gets a leaf after its gradient was added up.
struct PythonLeafHook {
    hook: Py<PyAny>,
    /// A weak reference to the leaf's object, so that the hook gets that object while it lives.
    leaf: Py<PyWeakrefReference>,
}

impl HookCallback for PythonLeafHook {
    fn call(&self, leaf: &Tensor) -> TorchResult<Option<Tensor>> {
        call_back(|python| {
            let hook = self.hook.clone_ref(python);
            let object = match self.leaf.bind(python).upgrade() {
                Some(object) => object,
                None => convert::tensor_object(python, leaf.clone(), &[])?,
            };
            hook.bind(python).call1((object,)).map(|_| None)
        })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

fn objects<'py>(list: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    list.try_iter()?.collect()
}

#[pyfunction]
fn is_grad_enabled() -> bool {
    GradMode::is_enabled()
}
#[pyfunction]
fn set_grad_enabled(is_enabled: bool) -> bool {
    GradMode::set(is_enabled)
}
#[pyfunction]
fn is_inference() -> bool {
    GradMode::is_inference()
}
#[pyfunction]
fn set_inference(is_inference: bool) -> bool {
    GradMode::set_inference(is_inference)
}

/// The settings that `autocast.__exit__` sets again.
#[pyclass(module = "torch", unsendable)]
struct AutocastState {
    before: blockyard_torch::autocast::SavedAutocast,
}
#[pymethods]
impl AutocastState {
    fn exit(&self) {
        blockyard_torch::autocast::exit(self.before);
    }
}
#[pyfunction]
fn enter_autocast(dtype: Bound<'_, PyAny>, is_cache_enabled: bool) -> PyResult<AutocastState> {
    let dtype = match convert::to_value(&dtype)? {
        Value::Dtype(dtype) => Some(dtype),
        _ => None,
    };
    Ok(AutocastState { before: blockyard_torch::autocast::enter(dtype, is_cache_enabled) })
}
#[pyfunction]
fn clear_autocast_cache() {
    blockyard_torch::autocast::clear_cache();
}
#[pyfunction]
fn autocast_dtype(python: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    blockyard_torch::autocast::dtype().map(|dtype| convert::dtype_object(python, dtype)).transpose()
}

fn tensors(list: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    objects(list)?
        .iter()
        .map(|object| match tensor_of(object) {
            Some(tensor) => Ok(tensor),
            None => {
                Err(PyTypeError::new_err(format!("expected a Tensor, not {}", object.get_type().name()?)))
            }
        })
        .collect()
}
fn optional_tensors(list: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Tensor>>> {
    Ok(objects(list)?.iter().map(tensor_of).collect())
}

#[pyfunction]
fn backward(
    python: Python<'_>,
    outputs: Bound<'_, PyAny>,
    grads: Bound<'_, PyAny>,
    retain_graph: bool,
    create_graph: bool,
    inputs: Bound<'_, PyAny>,
) -> PyResult<()> {
    let outputs = tensors(&outputs)?;
    let grads = optional_tensors(&grads)?;
    let inputs = tensors(&inputs)?;
    let before = session().set_phase(Phase::Backward);
    let roots = autograd::root_gradients(&outputs, &grads);
    let done = roots.map(|roots| {
        let grads: Vec<Option<Tensor>> = roots.iter().cloned().map(Some).collect();
        let done = autograd::backward(&outputs, &grads, retain_graph, create_graph, &inputs);
        (roots, done)
    });
    session().set_phase(before);
    let (roots, done) = result(python, done)?;
    let Err(error) = done else { return Ok(()) };
    // In PyTorch they are variables of a function in Python, which the exception's traceback keeps alive.
    let exception = errors::to_exception(python, error);
    let roots = roots.iter().map(|root| optional_object(python, Some(root))).collect::<PyResult<Vec<_>>>()?;
    exception.value(python).setattr("_root_gradients", PyList::new(python, roots)?)?;
    Err(exception)
}
#[pyfunction]
fn grad<'py>(
    python: Python<'py>,
    outputs: Bound<'py, PyAny>,
    inputs: Bound<'py, PyAny>,
    grads: Bound<'py, PyAny>,
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let outputs = tensors(&outputs)?;
    let inputs = tensors(&inputs)?;
    let grads = optional_tensors(&grads)?;
    let before = session().set_phase(Phase::Backward);
    let results = autograd::grad(&outputs, &inputs, &grads, retain_graph, create_graph, allow_unused);
    session().set_phase(before);
    let results = result(python, results)?;
    PyTuple::new(
        python,
        results.iter().map(|grad| optional_object(python, grad.as_ref())).collect::<PyResult<Vec<_>>>()?,
    )
}
/// A hook that can be removed.
#[pyclass(module = "torch", unsendable)]
struct HookHandle {
    hook: RefCell<Option<(Tensor, HookId)>>,
}
#[pymethods]
impl HookHandle {
    fn remove(&self) {
        let hook = self.hook.borrow_mut().take();
        if let Some((tensor, id)) = hook {
            tensor.remove_hook(id);
        }
    }
}
fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    tensor_of(object).ok_or_else(|| PyTypeError::new_err("expected a Tensor"))
}
#[pyfunction]
fn register_hook(python: Python<'_>, object: Bound<'_, PyAny>, hook: Py<PyAny>) -> PyResult<HookHandle> {
    let tensor = tensor(&object)?;
    let hook: TensorHook = Rc::new(PythonHook { hook });
    let id = result(python, tensor.register_hook(hook))?;
    Ok(HookHandle { hook: RefCell::new(Some((tensor, id))) })
}
#[pyfunction]
fn register_post_accumulate_grad_hook(
    python: Python<'_>,
    object: Bound<'_, PyAny>,
    hook: Py<PyAny>,
) -> PyResult<HookHandle> {
    let tensor = tensor(&object)?;
    let leaf = PyWeakrefReference::new(&object)?.unbind();
    let hook: TensorHook = Rc::new(PythonLeafHook { hook, leaf });
    let id = result(python, tensor.register_post_accumulate_grad_hook(hook))?;
    Ok(HookHandle { hook: RefCell::new(Some((tensor, id))) })
}
#[pyfunction]
fn retain_grad(python: Python<'_>, object: Bound<'_, PyAny>) -> PyResult<()> {
    result(python, tensor(&object)?.retain_grad())
}
#[pyfunction]
fn detach_in_place(object: Bound<'_, PyAny>) -> PyResult<()> {
    tensor(&object)?.detach_in_place();
    Ok(())
}
#[pyfunction]
fn push_saved_tensors_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) {
    autograd::push_saved_tensor_hooks(Rc::new(PythonHooks { pack, unpack }));
}
#[pyfunction]
fn pop_saved_tensors_hooks() {
    let _hooks = autograd::pop_saved_tensor_hooks();
}

/// The saved tensors of a `torch.autograd.Function`, which the function's context asks for. The node keeps
/// the context, so the context does not keep the node.
#[pyclass(module = "torch", unsendable)]
struct SavedTensors(Weak<Node>);
#[pymethods]
impl SavedTensors {
    fn get<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(node) = self.0.upgrade() else { return Ok(python.None().into_bound(python)) };
        let saved = result(python, node.saved_tensors())?;
        let saved = saved
            .iter()
            .map(|tensor| optional_object(python, tensor.as_ref()))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(python, saved)?.into_any())
    }
}
thread_local! {
    /// Names of functions, which are few: a node's name is a constant.
    static NAMES: RefCell<HashMap<String, &'static str>> = RefCell::default();
}

/// Gives outputs a backward function that is Python's. The node keeps the tensors that the function saved;
/// each may be `None`.
#[pyfunction]
fn apply_custom(
    python: Python<'_>,
    name: &str,
    inputs: Bound<'_, PyAny>,
    outputs: Bound<'_, PyAny>,
    callback: Py<PyAny>,
    saved: Bound<'_, PyAny>,
) -> PyResult<SavedTensors> {
    let inputs = tensors(&inputs)?;
    let outputs = tensors(&outputs)?;
    let saved = optional_tensors(&saved)?;
    let function = PythonFunction { callback };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let outputs: Vec<&Tensor> = outputs.iter().collect();
    let name: &'static str = NAMES.with_borrow_mut(|names| {
        *names.entry(name.to_owned()).or_insert_with(|| Box::leak(name.to_owned().into_boxed_str()))
    });
    let node = result(python, autograd::apply_custom(name, &inputs, &outputs, &saved, Rc::new(function)))?;
    Ok(SavedTensors(node.as_ref().map(Rc::downgrade).unwrap_or_default()))
}

/// Adds the functions of this module to `_torch_autograd`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add { ($($function:ident)*) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* } }
    add!(is_grad_enabled set_grad_enabled is_inference set_inference enter_autocast clear_autocast_cache autocast_dtype backward grad
        register_hook register_post_accumulate_grad_hook retain_grad detach_in_place push_saved_tensors_hooks pop_saved_tensors_hooks apply_custom);
    module.add_class::<AutocastState>()?;
    module.add_class::<HookHandle>()?;
    module.add_class::<SavedTensors>()
}
