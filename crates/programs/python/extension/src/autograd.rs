//! `_torch_autograd`: modes, the engine, hooks, and functions with their own backward.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use blockyard_torch::autograd::{self, BackwardCallback, GradMode, HookCallback, Node, SavedTensorHooks};
use blockyard_torch::memory::Phase;
use blockyard_torch::{Result as TorchResult, Tensor, TorchError, Value, session};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::result;
use crate::tensor::{PyNode, tensor_of};
use crate::{convert, errors};

/// Calls a Python function from inside the crate `torch`.
fn call_back<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> TorchResult<T> {
    Python::attach(|python| call(python).map_err(errors::from_exception))
}
fn optional_object<'py>(python: Python<'py>, tensor: Option<&Tensor>) -> PyResult<Bound<'py, PyAny>> {
    tensor.map_or_else(
        || Ok(python.None().into_bound(python)),
        |tensor| convert::tensor_object(python, tensor.clone()),
    )
}

/// A tensor or `None`, which becomes an object when a tuple takes it: PyTorch makes the tuple first, and the
/// garbage collector goes through objects in the order in which they were made.
struct OptionalTensor<'a>(Option<&'a Tensor>);

impl<'py> IntoPyObject<'py> for OptionalTensor<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, python: Python<'py>) -> PyResult<Self::Output> {
        optional_object(python, self.0)
    }
}

/// A tuple of tensors.
fn tensor_tuple<'py>(python: Python<'py>, tensors: &[Option<Tensor>]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(python, tensors.iter().map(|tensor| OptionalTensor(tensor.as_ref())))
}

/// A pair of `pack` and `unpack` that are Python functions.
struct PythonPacker {
    pack: Py<PyAny>,
    unpack: Py<PyAny>,
}
impl SavedTensorHooks for PythonPacker {
    fn pack(&self, tensor: &Tensor) -> TorchResult<Rc<dyn Any>> {
        call_back(|python| {
            let packed = self.pack.bind(python).call1((convert::tensor_object(python, tensor.clone())?,))?;
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
/// The backward of a `torch.autograd.Function` (`PyNode`).
struct PythonFunction {
    /// The context, whose method `apply` calls the program's function.
    context: Py<PyAny>,
    name: &'static str,
    /// Of each argument of the function whether it is a tensor.
    is_tensor: Vec<bool>,
    /// The same of each result.
    is_tensor_result: Vec<bool>,
}

/// The context that a node's callback keeps; `None` for another callback.
pub(crate) fn context_of(node: &Node) -> Option<&Py<PyAny>> {
    Some(&node.callback()?.as_any()?.downcast_ref::<PythonFunction>()?.context)
}

impl PythonFunction {
    /// The gradients of the arguments that are tensors, among those that the program's function gave.
    fn gradients(&self, results: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Tensor>>> {
        let mut given = match results.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_single) => vec![results.clone()],
        };
        let expected = self.is_tensor.len();
        if given.len() > expected && given.iter().skip(expected).all(Bound::is_none) {
            given.truncate(expected);
        }
        if given.len() != expected {
            return Err(PyRuntimeError::new_err(format!(
                "function {} returned an incorrect number of gradients (expected {expected}, got {})",
                self.name,
                given.len()
            )));
        }
        let mut gradients = Vec::with_capacity(expected);
        for (place, (gradient, is_tensor)) in given.iter().zip(&self.is_tensor).enumerate() {
            if *is_tensor {
                gradients.push(tensor_of(gradient));
            } else if !gradient.is_none() {
                return Err(PyRuntimeError::new_err(format!(
                    "function {} returned a gradient different from None at position {}, but the corresponding forward \
                     input was not a Variable",
                    self.name,
                    place + 1
                )));
            }
        }
        Ok(gradients)
    }
}

impl BackwardCallback for PythonFunction {
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn backward(&self, node: &Node, grads: &[Option<Tensor>]) -> TorchResult<Vec<Option<Tensor>>> {
        call_back(|python| {
            let context = self.context.bind(python).clone();
            let has_zeros = context.getattr(intern!(python, "materialize_grads"))?.is_truthy()?;
            let mut inputs = grads.to_vec();
            for (number, grad) in inputs.iter_mut().enumerate() {
                if grad.is_none() && has_zeros && self.is_tensor_result.get(number) == Some(&true) {
                    *grad = result(python, node.zeros_like_output(number))?;
                }
            }
            let arguments = tensor_tuple(python, &inputs)?;
            drop(inputs);
            let results = context.call_method1(intern!(python, "apply"), &arguments)?;
            self.gradients(&results)
        })
    }
}

/// The hooks of a tensor: a dictionary whose values are Python functions (`PyFunctionTensorPreHook`).
struct PythonHooks {
    hooks: Py<PyAny>,
    /// Whether the functions get the leaf after its gradient was added up, and return nothing.
    is_after: bool,
}

/// The dictionary of a tensor's hooks; `None` for another hook.
pub(crate) fn hooks_object(hook: &dyn HookCallback) -> Option<&Py<PyAny>> {
    Some(&hook.as_any()?.downcast_ref::<PythonHooks>()?.hooks)
}

/// Registers a dictionary of hooks, which may change later.
pub(crate) fn register_hooks(tensor: &Tensor, hooks: Py<PyAny>, is_after: bool) -> TorchResult<()> {
    let hooks = Rc::new(PythonHooks { hooks, is_after });
    if is_after { tensor.register_post_accumulate_grad_hook(hooks) } else { tensor.register_hook(hooks) }
}

impl HookCallback for PythonHooks {
    fn call(&self, tensor: Option<&Tensor>) -> TorchResult<Option<Tensor>> {
        call_back(|python| {
            let mut value = optional_object(python, tensor)?;
            let mut is_replaced = false;
            // A copy, since a hook may remove hooks.
            let hooks = objects(&self.hooks.bind(python).call_method0(intern!(python, "values"))?)?;
            for hook in hooks {
                let returned = hook.call1((&value,))?;
                if returned.is_none() {
                    continue;
                }
                if self.is_after {
                    return Err(PyRuntimeError::new_err(
                        "Tensor post accumulate grad hooks should return None.",
                    ));
                }
                value = returned;
                is_replaced = true;
            }
            Ok(if is_replaced { tensor_of(&value) } else { None })
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

/// The number of the backward pass that runs; -1 outside of one.
#[pyfunction]
fn current_graph_task() -> i64 {
    autograd::current_graph_task().and_then(|number| i64::try_from(number).ok()).unwrap_or(-1)
}

#[pyfunction]
fn is_checkpoint_valid() -> bool {
    autograd::is_checkpoint_valid()
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
    let done = autograd::backward(&outputs, &grads, retain_graph, create_graph, &inputs);
    session().set_phase(before);
    result(python, done)
}
/// The gradients that a backward pass begins with (`_make_grads`).
#[pyfunction]
fn root_gradients<'py>(
    python: Python<'py>,
    outputs: Bound<'py, PyAny>,
    grads: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyTuple>> {
    let outputs = tensors(&outputs)?;
    let grads = optional_tensors(&grads)?;
    let before = session().set_phase(Phase::Backward);
    let roots = autograd::root_gradients(&outputs, &grads);
    session().set_phase(before);
    tensor_tuple(python, &result(python, roots)?)
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
    tensor_tuple(python, &result(python, results)?)
}
fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    tensor_of(object).ok_or_else(|| PyTypeError::new_err("expected a Tensor"))
}
#[pyfunction]
fn retain_grad(python: Python<'_>, object: Bound<'_, PyAny>) -> PyResult<()> {
    result(python, tensor(&object)?.retain_grad())
}
#[pyfunction]
fn detach_in_place(python: Python<'_>, object: Bound<'_, PyAny>) -> PyResult<()> {
    result(python, tensor(&object)?.detach_in_place())
}
#[pyfunction]
fn push_saved_tensors_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) {
    autograd::push_saved_tensor_hooks(Rc::new(PythonPacker { pack, unpack }));
}
#[pyfunction]
fn pop_saved_tensors_hooks() {
    let _hooks = autograd::pop_saved_tensor_hooks();
}

/// The context of a call of a `torch.autograd.Function` (`THPFunction`). The node keeps the context, so the
/// context does not keep the node.
#[pyclass(name = "_FunctionBase", module = "torch._C", subclass, unsendable)]
struct FunctionBase {
    #[pyo3(get, set)]
    needs_input_grad: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    to_save: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    non_differentiable: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    dirty_tensors: Option<Py<PyAny>>,
    #[pyo3(get, set)]
    materialize_grads: bool,
    /// `None` before the function has a node.
    node: Option<Weak<Node>>,
}
#[pymethods]
impl FunctionBase {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            needs_input_grad: None,
            to_save: None,
            non_differentiable: None,
            dirty_tensors: None,
            materialize_grads: true,
            node: None,
        }
    }
    /// As PyTorch's `THPFunction_traverse`.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.to_save, &self.non_differentiable, &self.dirty_tensors]
            .into_iter()
            .flatten()
            .try_for_each(|object| visit.call(object))
    }
    fn __clear__(&mut self) {
        drop(self.needs_input_grad.take());
        drop(self.to_save.take());
        drop(self.non_differentiable.take());
        drop(self.dirty_tensors.take());
    }
    #[getter]
    fn saved_tensors<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(node) = &self.node else { return Ok(PyTuple::empty(python)) };
        let Some(node) = node.upgrade() else {
            return Err(PyRuntimeError::new_err(autograd::GRAPH_RELEASED));
        };
        tensor_tuple(python, &result(python, node.saved_tensors())?)
    }
    /// The node; `None` where there is none any more.
    fn _graph_node(&self) -> Option<PyNode> {
        self.node.as_ref().and_then(Weak::upgrade).map(PyNode)
    }
}
thread_local! {
    /// Names of functions, which are few: a node's name is a constant.
    static NAMES: RefCell<HashMap<String, &'static str>> = RefCell::default();
}

/// Gives the outputs that are differentiable a backward function of Python, which has its context. The node
/// keeps the tensors that the function saved; each may be `None`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "our own Python hands over what it has of a call")]
fn apply_custom(
    python: Python<'_>,
    context: Bound<'_, FunctionBase>,
    name: &str,
    inputs: Bound<'_, PyAny>,
    is_tensor: Vec<bool>,
    outputs: Bound<'_, PyAny>,
    are_differentiable: Vec<bool>,
    saved: Bound<'_, PyAny>,
) -> PyResult<()> {
    let inputs = tensors(&inputs)?;
    let outputs = optional_tensors(&outputs)?;
    let saved = optional_tensors(&saved)?;
    let name: &'static str = NAMES.with_borrow_mut(|names| {
        *names.entry(name.to_owned()).or_insert_with(|| Box::leak(name.to_owned().into_boxed_str()))
    });
    let is_tensor_result = outputs.iter().map(Option::is_some).collect();
    let kept = context.clone().into_any().unbind();
    let function = PythonFunction { context: kept, name, is_tensor, is_tensor_result };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let outputs: Vec<_> = outputs.iter().map(Option::as_ref).zip(are_differentiable).collect();
    let node = result(python, autograd::apply_custom(name, &inputs, &outputs, &saved, Rc::new(function)))?;
    context.borrow_mut().node = node.as_ref().map(Rc::downgrade);
    Ok(())
}

/// Adds the functions of this module to `_torch_autograd`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add { ($($function:ident)*) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* } }
    add!(current_graph_task is_checkpoint_valid is_grad_enabled set_grad_enabled is_inference set_inference enter_autocast clear_autocast_cache autocast_dtype backward root_gradients grad
        retain_grad detach_in_place push_saved_tensors_hooks pop_saved_tensors_hooks apply_custom);
    module.add_class::<AutocastState>()?;
    module.add_class::<FunctionBase>()
}
