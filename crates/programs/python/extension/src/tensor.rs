//! `_torch`: tensors and the nodes of the backward graph.

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_torch::autograd::{Edge, Node};
use blockyard_torch::memory::Category;
use blockyard_torch::{Device, Dtype, MemoryFormat, Storage, Tensor, TensorObject, Value};
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTypeInfo as _, ffi};

use crate::autograd::{context_of, hooks_object, register_hooks};
use crate::values::{PyDevice, PyMemoryFormat};
use crate::{convert, errors, objects};

thread_local! {
    /// The tensor that the next new object takes.
    static PENDING: RefCell<Option<Tensor>> = const { RefCell::new(None) };
}

/// A node of the backward graph.
#[pyclass(name = "Node", module = "torch.autograd.graph", unsendable, frozen)]
pub(crate) struct PyNode(pub(crate) Rc<Node>);

#[pymethods]
impl PyNode {
    /// As PyTorch's `THPCppFunction_traverse`: a node that nothing but this object holds leads to its hooks.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if Rc::strong_count(&self.0) == 1 {
            for (_, hook) in self.0.hooks() {
                if let Some(object) = hooks_object(hook.as_ref()) {
                    visit.call(object)?;
                }
            }
        }
        Ok(())
    }
    /// The context of a `torch.autograd.Function`, which is the node's object in Python; `None` for the node
    /// of an operator.
    fn context(&self, python: Python<'_>) -> Option<Py<PyAny>> {
        context_of(&self.0).map(|context| context.clone_ref(python))
    }
    fn __getattr__<'py>(&self, python: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(member) = name.strip_prefix("_saved_") else {
            return Err(PyAttributeError::new_err(format!("'Node' object has no attribute '{name}'")));
        };
        match self.0.saved_member(member) {
            Some(Ok(Some(tensor))) => convert::tensor_object(python, tensor),
            Some(Ok(None)) => Ok(python.None().into_bound(python)),
            Some(Err(error)) => Err(errors::to_exception(python, error)),
            None => Err(PyNotImplementedError::new_err(format!(
                "{}.{name} is not modeled: of what a node saves, its tensors are",
                self.0.name()
            ))),
        }
    }
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn sequence(&self) -> u64 {
        self.0.sequence()
    }
    /// For each input the node before and the number of its output, or `None`.
    fn edges(&self) -> Vec<Option<(PyNode, usize)>> {
        let pair = |edge: Edge| (PyNode(edge.node), edge.input);
        self.0.edges().into_iter().map(|edge| edge.map(pair)).collect()
    }
}

/// The indices and the values of a sparse tensor, and whether they are coalesced.
type SparseParts<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, bool);

/// A tensor; `torch.Tensor` is a class of our own Python over it.
///
/// A tensor has one object, which lives as long as the tensor does ([`TensorObject`]). Fields are dropped in
/// order: hooks before the tensor.
#[pyclass(name = "TensorBase", module = "torch._C", subclass, unsendable)]
pub(crate) struct PyTensor {
    /// The dictionary of the tensor's hooks.
    hooks: RefCell<Option<Py<PyAny>>>,
    /// The dictionary of the hooks that get the leaf after its gradient was added up.
    hooks_after: RefCell<Option<Py<PyAny>>>,
    tensor: RefCell<Tensor>,
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        self.tensor.get_mut().forget_object();
    }
}

impl PyTensor {
    /// The tensor of the object; an empty one after the garbage collector cleared the object.
    pub(crate) fn get(&self) -> Tensor {
        self.tensor.borrow().clone()
    }

    /// The tensor of the object, unless the tensor is in the middle of a change.
    pub(crate) fn held(&self) -> Option<Tensor> {
        self.tensor.try_borrow().ok().map(|tensor| tensor.clone())
    }
}

/// The tensor of an object; `None` for an object that is not a tensor.
pub(crate) fn tensor_of(object: &Bound<'_, PyAny>) -> Option<Tensor> {
    object.cast::<PyTensor>().ok().map(|tensor| tensor.borrow().get())
}

fn object(python: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    convert::tensor_object(python, tensor)
}

/// Takes a reference to the object at an address.
#[expect(unsafe_code, reason = "a tensor keeps its object, which it knows by its address")]
fn keep(address: usize) {
    // SAFETY: the tensor has the address of a live object, and its thread has Python's lock.
    unsafe { ffi::Py_INCREF(std::ptr::with_exposed_provenance_mut(address)) }
}

/// Gives a reference to the object at an address back.
#[expect(unsafe_code, reason = "a tensor keeps its object, which it knows by its address")]
fn release(address: usize) {
    // SAFETY: the reference is the one that `keep` took, and the tensor's thread has Python's lock.
    unsafe { ffi::Py_DECREF(std::ptr::with_exposed_provenance_mut(address)) }
}

/// How many references the object at an address has.
#[expect(unsafe_code, reason = "a tensor keeps its object, which it knows by its address")]
fn references(address: usize) -> isize {
    // SAFETY: an object that dies takes its address from the tensor before its memory is freed.
    unsafe { ffi::Py_REFCNT(std::ptr::with_exposed_provenance_mut(address)) }
}

/// The object that a tensor has; `None` where it has none yet.
#[expect(unsafe_code, reason = "a tensor keeps its object, which it knows by its address")]
pub(crate) fn existing_object<'py>(python: Python<'py>, tensor: &Tensor) -> Option<Bound<'py, PyAny>> {
    let object = tensor.object().filter(|object| (object.references)(object.address) > 0)?;
    // SAFETY: the object is alive, and this is a new reference to it.
    Some(unsafe { Bound::from_borrowed_ptr(python, std::ptr::with_exposed_provenance_mut(object.address)) })
}

/// A new object of a class of tensors.
#[expect(unsafe_code, reason = "PyO3 makes objects of its own classes alone, and not of Python's subclasses")]
pub(crate) fn new_object<'py>(
    python: Python<'py>,
    tensor: Tensor,
    class: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let class = class.cast_into::<PyType>()?;
    if !class.is_subclass_of::<PyTensor>()? {
        return Err(PyTypeError::new_err("a class of tensors is expected"));
    }
    PENDING.with(|pending| pending.replace(Some(tensor)));
    let no_arguments = PyTuple::empty(python);
    // SAFETY: `TensorBase` has a `__new__`, whose slot is a `newfunc`; it takes a subclass, and gives a new
    // reference or sets an exception.
    let object = unsafe {
        let slot = ffi::PyType_GetSlot(PyTensor::type_object_raw(python), ffi::Py_tp_new);
        let new = std::mem::transmute::<*mut core::ffi::c_void, ffi::newfunc>(slot);
        let object = new(class.as_type_ptr(), no_arguments.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(python, object)?
    };
    let address = object.as_ptr().expose_provenance();
    let tensor = object.cast::<PyTensor>()?.borrow().get();
    tensor.set_object(TensorObject { address, keep, release, references });
    drop(tensor);
    Ok(object)
}

fn sizes<'py>(python: Python<'py>, sizes: &[i64]) -> PyResult<Bound<'py, PyAny>> {
    let tuple = PyTuple::new(python, sizes)?;
    match objects::get(python, "Size") {
        Some(class) => class.call1((tuple,)),
        None => Ok(tuple.into_any()),
    }
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let tensor = PENDING.take().ok_or_else(|| PyTypeError::new_err("TensorBase cannot be made"))?;
        Ok(Self { hooks: RefCell::default(), hooks_after: RefCell::default(), tensor: RefCell::new(tensor) })
    }
    /// As PyTorch's `THPVariable_traverse`: the object leads to its hooks. The tensor's own reference to the hooks
    /// of [`register_post_accumulate_grad_hook`](Tensor::register_post_accumulate_grad_hook) is left out, so a
    /// cycle through them is never freed. If nothing but the object holds the
    /// tensor and nothing but the tensor holds the node that made it, the object leads to the node's context.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for hooks in [&self.hooks, &self.hooks_after] {
            if let Ok(hooks) = hooks.try_borrow()
                && let Some(hooks) = hooks.as_ref()
            {
                visit.call(hooks)?;
            }
        }
        let Ok(tensor) = self.tensor.try_borrow() else { return Ok(()) };
        for hooks in tensor.kept_hooks() {
            if let Some(object) = hooks_object(hooks.as_ref()) {
                visit.call(object)?;
            }
        }
        if tensor.use_count() > 1 {
            return Ok(());
        }
        // One count is that of `node` itself.
        if let Some(node) = tensor.grad_fn_as_it_stands().filter(|node| Rc::strong_count(node) == 2)
            && let Some(context) = context_of(&node)
        {
            visit.call(context)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        for hooks in [&self.hooks, &self.hooks_after] {
            let hooks = hooks.try_borrow_mut().ok().and_then(|mut hooks| hooks.take());
            drop(hooks);
        }
        let shape = Value::List(vec![Value::from(0_i64)]);
        let empty = blockyard_torch::call("empty", &[shape], &[]).and_then(Value::tensor);
        if let (Ok(empty), Ok(mut tensor)) = (empty, self.tensor.try_borrow_mut()) {
            let before = std::mem::replace(&mut *tensor, empty);
            before.forget_object();
            // What dies may come back to this object.
            drop(tensor);
            drop(before);
        }
    }

    #[getter]
    fn _backward_hooks(&self, python: Python<'_>) -> Option<Py<PyAny>> {
        self.hooks.borrow().as_ref().map(|hooks| hooks.clone_ref(python))
    }
    #[setter(_backward_hooks)]
    fn set_backward_hooks(&self, python: Python<'_>, hooks: Py<PyAny>) -> PyResult<()> {
        errors::result(python, register_hooks(&self.get(), hooks.clone_ref(python), false))?;
        let before = self.hooks.replace(Some(hooks));
        drop(before);
        Ok(())
    }
    #[getter]
    fn _post_accumulate_grad_hooks(&self, python: Python<'_>) -> Option<Py<PyAny>> {
        self.hooks_after.borrow().as_ref().map(|hooks| hooks.clone_ref(python))
    }
    #[setter(_post_accumulate_grad_hooks)]
    fn set_post_accumulate_grad_hooks(&self, python: Python<'_>, hooks: Py<PyAny>) -> PyResult<()> {
        errors::result(python, register_hooks(&self.get(), hooks.clone_ref(python), true))?;
        let before = self.hooks_after.replace(Some(hooks));
        drop(before);
        Ok(())
    }

    fn __hash__(&self) -> isize {
        #[expect(clippy::cast_possible_wrap, reason = "any number will do")]
        let hash = self.get().identity() as isize;
        hash >> 4
    }
    #[getter]
    fn shape<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        sizes(python, &self.get().shape())
    }
    #[pyo3(signature = (dim=None))]
    fn stride<'py>(&self, python: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.get();
        let strides = tensor.strides();
        if let Some(dim) = dim {
            let rank = i64::try_from(strides.len()).unwrap_or(0);
            let index = usize::try_from(if dim < 0 { dim + rank } else { dim }).unwrap_or(usize::MAX);
            let stride = strides.get(index).ok_or_else(|| PyIndexError::new_err("Dimension out of range"))?;
            return Ok(stride.into_pyobject(python)?.into_any());
        }
        Ok(PyTuple::new(python, strides.iter())?.into_any())
    }
    #[getter]
    fn dtype<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::dtype_object(python, self.get().dtype())
    }
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.get().device())
    }
    #[getter]
    fn is_cuda(&self) -> bool {
        self.get().device().is_cuda()
    }
    #[getter]
    fn is_cpu(&self) -> bool {
        self.get().device() == Device::Cpu
    }
    #[getter]
    fn is_meta(&self) -> bool {
        self.get().device() == Device::Meta
    }
    #[getter]
    fn ndim(&self) -> usize {
        self.get().dim()
    }
    fn dim(&self) -> usize {
        self.get().dim()
    }
    fn numel(&self) -> i64 {
        self.get().numel()
    }
    #[getter]
    fn is_sparse(&self) -> bool {
        self.get().is_sparse()
    }
    /// Indices, values and whether they are coalesced; `None` of a dense tensor.
    fn _sparse_parts<'py>(&self, python: Python<'py>) -> PyResult<Option<SparseParts<'py>>> {
        let tensor = self.get();
        let Some(parts) = tensor.sparse_parts() else { return Ok(None) };
        Ok(Some((
            object(python, parts.indices().clone())?,
            object(python, parts.values().clone())?,
            parts.is_coalesced(),
        )))
    }
    fn storage_offset(&self) -> i64 {
        self.get().offset()
    }
    fn element_size(&self) -> u64 {
        self.get().dtype().size()
    }
    fn data_ptr(&self) -> u64 {
        let tensor = self.get();
        tensor.storage().addr() + u64::try_from(tensor.offset()).unwrap_or(0) * tensor.dtype().size()
    }
    fn is_pinned(&self) -> bool {
        self.get().storage().is_pinned()
    }
    fn _is_contiguous(&self, format: Bound<'_, PyAny>) -> bool {
        let format = format.cast::<PyMemoryFormat>().map_or(MemoryFormat::Contiguous, |f| f.get().0);
        self.get().is_contiguous_in(format)
    }
    #[getter]
    fn is_leaf(&self) -> bool {
        self.get().is_leaf()
    }
    fn is_inference(&self) -> bool {
        self.get().is_inference()
    }
    fn _is_view(&self) -> bool {
        self.get().is_view()
    }
    #[getter]
    fn _base<'py>(&self, python: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.get().base().map(|base| object(python, base)).transpose()
    }
    #[getter]
    fn _version(&self) -> u32 {
        self.get().version()
    }
    #[getter]
    fn output_nr(&self) -> usize {
        self.get().output_number()
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        self.get().requires_grad()
    }
    #[setter]
    fn set_requires_grad(&self, python: Python<'_>, value: bool) -> PyResult<()> {
        errors::result(python, self.get().set_requires_grad(value))
    }
    #[getter]
    fn grad<'py>(&self, python: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.get().grad().map(|grad| object(python, grad)).transpose()
    }
    #[setter]
    fn set_grad(&self, value: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let grad = match value {
            Some(value) => Some(
                tensor_of(&value)
                    .ok_or_else(|| PyTypeError::new_err("assigned grad has to be a Tensor or None"))?,
            ),
            None => None,
        };
        let tensor = self.get();
        if let Some(grad) = &grad
            && (grad.shape() != tensor.shape() || grad.device() != tensor.device())
        {
            return Err(PyRuntimeError::new_err(
                "assigned grad has data of a different size or device than the tensor that it belongs to",
            ));
        }
        tensor.set_grad(grad);
        Ok(())
    }
    #[deleter]
    fn delete_grad(&self) {
        self.get().set_grad(None);
    }
    #[getter]
    fn data<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(python, self.get().shallow_copy())
    }
    #[setter]
    fn set_data(&self, value: Bound<'_, PyAny>) -> PyResult<()> {
        let data =
            tensor_of(&value).ok_or_else(|| PyTypeError::new_err("Variable data has to be a tensor"))?;
        self.get().set_data(&data);
        Ok(())
    }
    fn detach<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(python, self.get().shallow_copy())
    }
    /// The node that made this tensor.
    fn _node(&self) -> Option<PyNode> {
        self.get().grad_fn().map(PyNode)
    }
    fn _is_same(&self, other: Bound<'_, PyAny>) -> bool {
        tensor_of(&other).is_some_and(|other| other.is_same(&self.get()))
    }
    fn _shares_storage(&self, other: Bound<'_, PyAny>) -> bool {
        tensor_of(&other).is_some_and(|other| Rc::ptr_eq(&other.storage(), &self.get().storage()))
    }
    fn _storage_bytes(&self) -> u64 {
        self.get().storage().bytes()
    }
    fn _storage_ptr(&self) -> u64 {
        self.get().storage().addr()
    }
    /// A tensor of bytes over a copy of the whole storage.
    fn _storage_copy<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let copy = errors::result(python, self.get().storage().copy())?;
        let bytes = i64::try_from(copy.bytes()).unwrap_or(i64::MAX);
        object(python, Tensor::over(copy, &[bytes], &[1], 0, Dtype::U8))
    }
    /// A tensor over this storage with the shape, strides, offset and type of another tensor.
    fn _seen_as<'py>(&self, python: Python<'py>, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let other = tensor_of(&other).ok_or_else(|| PyTypeError::new_err("a tensor is expected"))?;
        object(
            python,
            Tensor::over(
                self.get().storage(),
                &other.shape(),
                &other.strides(),
                other.offset(),
                other.dtype(),
            ),
        )
    }
    fn _resize_storage(&self, python: Python<'_>, bytes: u64) -> PyResult<()> {
        errors::result(python, self.get().storage().resize(bytes))
    }
    /// Another shape over the same memory.
    #[pyo3(signature = (sizes, strides, offset=None))]
    fn _set_geometry(&self, sizes: Vec<i64>, strides: Vec<i64>, offset: Option<i64>) {
        let offset = offset.unwrap_or_else(|| self.get().offset());
        self.get().set_geometry(&sizes, &strides, offset);
    }
    fn _set_category(&self, name: &str) {
        self.get().storage().set_category(match name {
            "parameter" => Category::Parameter,
            "optimizer_state" => Category::OptimizerState,
            "gradient" => Category::Gradient,
            _ => Category::Input,
        });
    }
    /// Values in order of the elements; `None` where they are not known.
    fn _known_values<'py>(&self, python: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(values) = self.get().values() else { return Ok(None) };
        values
            .into_iter()
            .map(|value| convert::scalar_object(python, value))
            .collect::<PyResult<Vec<_>>>()
            .map(Some)
    }
    fn _set_values(&self, values: Bound<'_, PyAny>) -> PyResult<()> {
        let Value::List(values) = convert::to_value(&values)? else { return Ok(()) };
        let values: Vec<_> = values
            .into_iter()
            .filter_map(|value| if let Value::Scalar(scalar) = value { Some(scalar) } else { None })
            .collect();
        self.get().set_numbers(&values);
        Ok(())
    }
    /// A tensor of the given class over the same memory, without history.
    fn _as_class<'py>(
        &self,
        python: Python<'py>,
        class: Bound<'py, PyAny>,
        requires_grad: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.get().shallow_copy();
        if requires_grad {
            errors::result(python, tensor.set_requires_grad(true))?;
        }
        new_object(python, tensor, class)
    }
}

/// A tensor over a storage of this many bytes, for `UntypedStorage`.
#[pyfunction]
fn storage_tensor<'py>(
    python: Python<'py>,
    bytes: i64,
    device: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let Value::Device(device) = convert::to_value(&device)? else {
        return Err(PyTypeError::new_err("a device is expected"));
    };
    let storage = Storage::new(device, u64::try_from(bytes).unwrap_or(0), Category::Input);
    let storage = errors::result(python, storage)?;
    object(python, Tensor::over(storage, &[bytes], &[1], 0, Dtype::U8))
}

#[pyfunction]
fn tensor_class(python: Python<'_>) -> Bound<'_, PyType> {
    python.get_type::<PyTensor>()
}

/// Adds the classes and functions of this module to `_torch`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNode>()?;
    module.add_class::<PyTensor>()?;
    module.add_function(wrap_pyfunction!(storage_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(tensor_class, module)?)
}
