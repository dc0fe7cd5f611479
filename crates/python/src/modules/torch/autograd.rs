//! `_torch_autograd`: modes, the engine, hooks, and functions with their own backward.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use blockyard_torch::autograd::{BackwardCallback, SavedTensorHooks};
use blockyard_torch::{Result, Tensor, TorchError};
use rustpython_vm::vm::thread::with_current_vm;
use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};

use super::tensor::PyTensor;
use super::{convert, errors};

pub(crate) use _torch_autograd::module_def;

/// Calls a Python function from inside the crate `torch`.
fn call_back<T>(call: impl FnOnce(&VirtualMachine) -> PyResult<T>) -> Result<T> {
    with_current_vm(|vm| call(vm).map_err(errors::from_exception))
}

fn optional_object(vm: &VirtualMachine, tensor: Option<&Tensor>) -> PyResult {
    tensor.map_or_else(|| Ok(vm.ctx.none()), |tensor| convert::tensor_object(vm, tensor.clone(), &[]))
}

fn optional_tensor(object: &PyObjectRef) -> Option<Tensor> {
    object.downcast_ref::<PyTensor>().map(|tensor| tensor.get())
}

/// A pair of `pack` and `unpack` that are Python functions.
struct PythonHooks {
    pack: PyObjectRef,
    unpack: PyObjectRef,
}

impl SavedTensorHooks for PythonHooks {
    fn pack(&self, tensor: &Tensor) -> Result<Rc<dyn Any>> {
        call_back(|vm| {
            let packed = self.pack.call((convert::tensor_object(vm, tensor.clone(), &[])?,), vm)?;
            Ok(Rc::new(packed) as Rc<dyn Any>)
        })
    }

    fn unpack(&self, packed: &Rc<dyn Any>) -> Result<Tensor> {
        let packed = packed.downcast_ref::<PyObjectRef>().cloned();
        let packed = packed
            .ok_or_else(|| TorchError::Runtime("a saved tensor was packed by somebody else".to_owned()))?;
        call_back(|vm| {
            let object = self.unpack.call((packed,), vm)?;
            optional_tensor(&object).ok_or_else(|| {
                vm.new_type_error("Output of saved tensor unpack_hook expected to be a Tensor")
            })
        })
    }
}

/// The backward of a `torch.autograd.Function`: a callable, held until the graph dies.
struct PythonFunction {
    callback: RefCell<Option<PyObjectRef>>,
}

/// The Python function that a node's callback calls; `None` for another callback.
pub(super) fn callback_of(callback: &dyn BackwardCallback) -> Option<PyObjectRef> {
    callback.as_any()?.downcast_ref::<PythonFunction>()?.callback.try_borrow().ok()?.clone()
}

impl BackwardCallback for PythonFunction {
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn backward(&self, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let callback = self.callback.borrow().clone();
        call_back(|vm| {
            let callback = callback
                .ok_or_else(|| vm.new_runtime_error("the function's backward does not exist any more"))?;
            let grads =
                grads.iter().map(|grad| optional_object(vm, grad.as_ref())).collect::<PyResult<Vec<_>>>()?;
            let results = callback.call(grads, vm)?;
            let results: Vec<PyObjectRef> = results.try_to_value(vm)?;
            Ok(results.iter().map(optional_tensor).collect())
        })
    }
}

#[rustpython_vm::pymodule]
mod _torch_autograd {
    use std::cell::RefCell;
    use std::rc::{Rc, Weak};

    use blockyard_torch::autograd::{self, GradMode, Node};
    use blockyard_torch::memory::Phase;
    use blockyard_torch::{Tensor, Value, session};
    use rustpython_vm::builtins::PyStrRef;
    use rustpython_vm::common::lock::PyMutex;
    use rustpython_vm::{PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};

    use super::super::{convert, errors};
    use super::{PyTensor, PythonFunction, PythonHooks, call_back, optional_tensor};

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
    #[pyattr]
    #[pyclass(name = "AutocastState", module = "torch")]
    #[derive(Debug, PyPayload)]
    struct AutocastState {
        before: blockyard_torch::autocast::SavedAutocast,
    }

    #[pyclass]
    impl AutocastState {
        #[pymethod]
        fn exit(&self) {
            blockyard_torch::autocast::exit(self.before);
        }
    }

    #[pyfunction]
    fn enter_autocast(
        dtype: PyObjectRef,
        is_cache_enabled: bool,
        vm: &VirtualMachine,
    ) -> PyResult<AutocastState> {
        let dtype = match convert::to_value(vm, &dtype)? {
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
    fn autocast_dtype(vm: &VirtualMachine) -> Option<PyObjectRef> {
        blockyard_torch::autocast::dtype().map(|dtype| convert::dtype_object(vm, dtype))
    }

    fn tensors(vm: &VirtualMachine, list: &PyObjectRef) -> PyResult<Vec<Tensor>> {
        let objects: Vec<PyObjectRef> = list.try_to_value(vm)?;
        objects
            .iter()
            .map(|object| {
                optional_tensor(object).ok_or_else(|| {
                    vm.new_type_error(format!("expected a Tensor, not {}", object.class().name()))
                })
            })
            .collect()
    }

    use rustpython_vm::AsObject as _;

    fn optional_tensors(vm: &VirtualMachine, list: &PyObjectRef) -> PyResult<Vec<Option<Tensor>>> {
        let objects: Vec<PyObjectRef> = list.try_to_value(vm)?;
        Ok(objects.iter().map(optional_tensor).collect())
    }

    #[pyfunction]
    fn backward(
        outputs: PyObjectRef,
        grads: PyObjectRef,
        retain_graph: bool,
        create_graph: bool,
        inputs: PyObjectRef,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let outputs = tensors(vm, &outputs)?;
        let grads = optional_tensors(vm, &grads)?;
        let inputs = tensors(vm, &inputs)?;
        let before = session().set_phase(Phase::Backward);
        let roots = autograd::root_gradients(&outputs, &grads);
        let result = roots.map(|roots| {
            let grads: Vec<Option<Tensor>> = roots.iter().cloned().map(Some).collect();
            let result = autograd::backward(&outputs, &grads, retain_graph, create_graph, &inputs);
            (roots, result)
        });
        session().set_phase(before);
        let (roots, result) = result.map_err(|error| errors::to_exception(vm, error))?;
        let Err(error) = result else { return Ok(()) };
        // In PyTorch they are variables of a function in Python, which the exception's traceback keeps alive.
        let exception = errors::to_exception(vm, error);
        let roots = roots.iter().map(|root| super::optional_object(vm, Some(root)));
        let roots = vm.ctx.new_list(roots.collect::<PyResult<Vec<_>>>()?);
        exception.as_object().set_attr("_root_gradients", roots, vm)?;
        Err(exception)
    }

    #[pyfunction]
    fn grad(
        outputs: PyObjectRef,
        inputs: PyObjectRef,
        grads: PyObjectRef,
        retain_graph: bool,
        create_graph: bool,
        allow_unused: bool,
        vm: &VirtualMachine,
    ) -> PyResult {
        let outputs = tensors(vm, &outputs)?;
        let inputs = tensors(vm, &inputs)?;
        let grads = optional_tensors(vm, &grads)?;
        let before = session().set_phase(Phase::Backward);
        let results = autograd::grad(&outputs, &inputs, &grads, retain_graph, create_graph, allow_unused);
        session().set_phase(before);
        let results = results.map_err(|error| errors::to_exception(vm, error))?;
        let results = results
            .iter()
            .map(|grad| super::optional_object(vm, grad.as_ref()))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(vm.ctx.new_tuple(results).into())
    }

    /// A hook that can be removed.
    #[pyattr]
    #[pyclass(name = "HookHandle", module = "torch")]
    #[derive(Debug, PyPayload)]
    struct HookHandle {
        hook: PyMutex<Option<(Tensor, autograd::HookId)>>,
    }

    #[pyclass]
    impl HookHandle {
        #[pymethod]
        fn remove(&self) {
            let hook = self.hook.lock().take();
            if let Some((tensor, id)) = hook {
                tensor.remove_hook(id);
            }
        }
    }

    fn tensor(vm: &VirtualMachine, object: &PyObjectRef) -> PyResult<Tensor> {
        object
            .downcast_ref::<PyTensor>()
            .map(|tensor| tensor.get())
            .ok_or_else(|| vm.new_type_error("expected a Tensor"))
    }

    #[pyfunction]
    fn register_hook(object: PyObjectRef, hook: PyObjectRef, vm: &VirtualMachine) -> PyResult<HookHandle> {
        let tensor = tensor(vm, &object)?;
        let hook: autograd::TensorHook = Rc::new(move |grad: &Tensor| {
            call_back(|vm| {
                let result = hook.call((convert::tensor_object(vm, grad.clone(), &[])?,), vm)?;
                Ok(optional_tensor(&result))
            })
        });
        let id = tensor.register_hook(hook).map_err(|error| errors::to_exception(vm, error))?;
        Ok(HookHandle { hook: PyMutex::new(Some((tensor, id))) })
    }

    #[pyfunction]
    fn register_post_accumulate_grad_hook(
        object: PyObjectRef,
        hook: PyObjectRef,
        vm: &VirtualMachine,
    ) -> PyResult<HookHandle> {
        let tensor = tensor(vm, &object)?;
        let target = object.downgrade(None, vm)?;
        let hook: autograd::PostAccumulateHook = Rc::new(move |leaf: &Tensor| {
            call_back(|vm| {
                let object = match target.upgrade() {
                    Some(object) => object,
                    None => convert::tensor_object(vm, leaf.clone(), &[])?,
                };
                hook.call((object,), vm).map(drop)
            })
        });
        let id = tensor
            .register_post_accumulate_grad_hook(hook)
            .map_err(|error| errors::to_exception(vm, error))?;
        Ok(HookHandle { hook: PyMutex::new(Some((tensor, id))) })
    }

    #[pyfunction]
    fn retain_grad(object: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        tensor(vm, &object)?.retain_grad().map_err(|error| errors::to_exception(vm, error))
    }

    #[pyfunction]
    fn detach_in_place(object: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        tensor(vm, &object)?.detach_in_place();
        Ok(())
    }

    #[pyfunction]
    fn push_saved_tensors_hooks(pack: PyObjectRef, unpack: PyObjectRef) {
        autograd::push_saved_tensor_hooks(Rc::new(PythonHooks { pack, unpack }));
    }

    #[pyfunction]
    fn pop_saved_tensors_hooks() {
        let _hooks = autograd::pop_saved_tensor_hooks();
    }

    /// The saved tensors of a `torch.autograd.Function`, which the function's context asks for. The node
    /// keeps the context, so the context does not keep the node.
    #[pyattr]
    #[pyclass(name = "SavedTensors", module = "torch")]
    #[derive(PyPayload)]
    struct SavedTensors(Weak<Node>);

    impl std::fmt::Debug for SavedTensors {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("SavedTensors")
        }
    }

    #[pyclass]
    impl SavedTensors {
        /// The tensors; `None` after the graph died.
        #[pymethod]
        fn get(&self, vm: &VirtualMachine) -> PyResult {
            let Some(node) = self.0.upgrade() else { return Ok(vm.ctx.none()) };
            let saved = node.saved_tensors().map_err(|error| errors::to_exception(vm, error))?;
            let saved = saved.iter().map(|tensor| super::optional_object(vm, tensor.as_ref()));
            Ok(vm.ctx.new_tuple(saved.collect::<PyResult<Vec<_>>>()?).into())
        }
    }

    /// Gives outputs a backward function that is Python's. The node keeps the tensors that the function
    /// saved; each may be `None`.
    #[pyfunction]
    fn apply_custom(
        name: PyStrRef,
        inputs: PyObjectRef,
        outputs: PyObjectRef,
        callback: PyObjectRef,
        saved: PyObjectRef,
        vm: &VirtualMachine,
    ) -> PyResult<SavedTensors> {
        let inputs = tensors(vm, &inputs)?;
        let outputs = tensors(vm, &outputs)?;
        let saved = optional_tensors(vm, &saved)?;
        let function = PythonFunction { callback: RefCell::new(Some(callback)) };
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        // A node's name is a constant: names of functions are few.
        let name: &'static str = vm.ctx.intern_str(name.to_string_lossy().as_ref()).as_str();
        let node = autograd::apply_custom(name, &inputs, &outputs, &saved, Rc::new(function))
            .map_err(|error| errors::to_exception(vm, error))?;
        Ok(SavedTensors(node.as_ref().map(Rc::downgrade).unwrap_or_default()))
    }
}
