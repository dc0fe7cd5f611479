//! `_torch`: tensors and the backward graph; `values` and `operators` have the rest of the module.

pub(crate) use _torch::{PyTensor, module_def};

#[rustpython_vm::pymodule(with(super::values::values, super::operators::operators))]
mod _torch {
    use std::rc::Rc;

    use blockyard_torch::autograd::Node;
    use blockyard_torch::{Device, Dtype, MemoryFormat, Storage, Tensor, Value};
    use rustpython_vm::builtins::{PyStr, PyStrRef, PyTypeRef};
    use rustpython_vm::class::StaticType as _;
    use rustpython_vm::common::hash::PyHash;
    use rustpython_vm::common::lock::PyMutex;
    use rustpython_vm::function::{ArgSequence, OptionalArg, PySetterValue};
    use rustpython_vm::types::{GetAttr, Hashable};
    use rustpython_vm::{AsObject as _, Py, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};

    use super::super::values::{PyDevice, PyMemoryFormat};
    use super::super::{convert, errors, objects};
    use crate::position;

    /// A node of the backward graph.
    #[pyattr]
    #[pyclass(name = "Node", module = "torch.autograd.graph")]
    #[derive(PyPayload)]
    pub(crate) struct PyNode(Rc<Node>);

    impl std::fmt::Debug for PyNode {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("PyNode").field("name", &self.0.name()).finish()
        }
    }

    /// The attributes `_saved_self` and the like. Only tensors are found: the numbers that PyTorch's nodes
    /// keep are not modeled.
    impl GetAttr for PyNode {
        fn getattro(zelf: &Py<Self>, name: &Py<PyStr>, vm: &VirtualMachine) -> PyResult {
            let text = name.to_string_lossy();
            let Some(member) = text.strip_prefix("_saved_") else {
                return zelf.as_object().generic_getattr(name, vm);
            };
            match zelf.0.saved_member(member) {
                Some(Ok(Some(tensor))) => convert::tensor_object(vm, tensor, &[]),
                Some(Ok(None)) => Ok(vm.ctx.none()),
                Some(Err(error)) => Err(errors::to_exception(vm, error)),
                None => Err(vm.new_not_implemented_error(format!(
                    "{}.{text} is not modeled: of what a node saves, its tensors are",
                    zelf.0.name()
                ))),
            }
        }
    }

    #[pyclass(with(GetAttr))]
    impl PyNode {
        #[pymethod]
        fn name(&self) -> &'static str {
            self.0.name()
        }

        #[pymethod]
        fn sequence(&self) -> u64 {
            self.0.sequence()
        }

        /// For each input the node before and the number of its output, or `None`.
        #[pymethod]
        fn edges(&self, vm: &VirtualMachine) -> Vec<PyObjectRef> {
            let edge = |edge: Option<blockyard_torch::autograd::Edge>| match edge {
                Some(edge) => {
                    let node = PyNode(edge.node).into_pyobject(vm);
                    vm.ctx.new_tuple(vec![node, vm.ctx.new_int(edge.input).into()]).into()
                }
                None => vm.ctx.none(),
            };
            self.0.edges().into_iter().map(edge).collect()
        }
    }

    /// A tensor; `torch.Tensor` is a class of our own Python over it.
    #[pyattr]
    #[pyclass(name = "TensorBase", module = "torch._C")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct PyTensor {
        tensor: PyMutex<Tensor>,
    }

    impl PyTensor {
        /// A new Python object of the tensor.
        pub(crate) fn new(tensor: Tensor) -> Self {
            Self { tensor: PyMutex::new(tensor) }
        }

        /// The tensor that the object has now.
        pub(crate) fn get(&self) -> Tensor {
            self.tensor.lock().clone()
        }

        /// [`PyTensor::get`], unless the tensor is in the middle of a change.
        pub(crate) fn try_get(&self) -> Option<Tensor> {
            self.tensor.try_lock().map(|tensor| tensor.clone())
        }

        fn object(vm: &VirtualMachine, tensor: Tensor) -> PyResult {
            convert::tensor_object(vm, tensor, &[])
        }
    }

    fn sizes(vm: &VirtualMachine, sizes: &[i64]) -> PyResult {
        let tuple = vm.ctx.new_tuple(sizes.iter().map(|size| vm.ctx.new_int(*size).into()).collect());
        match objects::get("Size") {
            Some(class) => class.call((tuple,), vm),
            None => Ok(tuple.into()),
        }
    }

    impl Hashable for PyTensor {
        fn hash(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<PyHash> {
            #[expect(clippy::cast_possible_wrap, reason = "any number will do")]
            let hash = zelf.get().identity() as PyHash;
            Ok(hash >> 4)
        }
    }

    #[pyclass(flags(BASETYPE, HAS_DICT, HAS_WEAKREF), with(Hashable))]
    impl PyTensor {
        #[pygetset]
        fn shape(&self, vm: &VirtualMachine) -> PyResult {
            sizes(vm, &self.get().shape())
        }

        #[pymethod]
        fn stride(&self, dim: OptionalArg<i64>, vm: &VirtualMachine) -> PyResult {
            let tensor = self.get();
            let strides = tensor.strides();
            if let OptionalArg::Present(dim) = dim {
                let rank = i64::try_from(strides.len()).unwrap_or(0);
                let index = usize::try_from(if dim < 0 { dim + rank } else { dim }).unwrap_or(usize::MAX);
                let stride =
                    strides.get(index).ok_or_else(|| vm.new_index_error("Dimension out of range"))?;
                return Ok(vm.ctx.new_int(*stride).into());
            }
            Ok(vm.ctx.new_tuple(strides.iter().map(|stride| vm.ctx.new_int(*stride).into()).collect()).into())
        }

        #[pygetset]
        fn dtype(&self, vm: &VirtualMachine) -> PyObjectRef {
            convert::dtype_object(vm, self.get().dtype())
        }

        #[pygetset]
        fn device(&self) -> PyDevice {
            PyDevice::of(self.get().device())
        }

        #[pygetset]
        fn is_cuda(&self) -> bool {
            self.get().device().is_cuda()
        }

        #[pygetset]
        fn is_cpu(&self) -> bool {
            self.get().device() == Device::Cpu
        }

        #[pygetset]
        fn is_meta(&self) -> bool {
            self.get().device() == Device::Meta
        }

        #[pygetset]
        fn ndim(&self) -> usize {
            self.get().dim()
        }

        #[pymethod]
        fn dim(&self) -> usize {
            self.get().dim()
        }

        #[pymethod]
        fn numel(&self) -> i64 {
            self.get().numel()
        }

        #[pygetset]
        fn is_sparse(&self) -> bool {
            self.get().is_sparse()
        }

        /// Indices, values and whether they are coalesced; `None` of a dense tensor.
        #[pymethod]
        fn _sparse_parts(&self, vm: &VirtualMachine) -> PyResult<Option<PyObjectRef>> {
            let Some(parts) = self.get().sparse_parts() else { return Ok(None) };
            let indices = Self::object(vm, parts.indices().clone())?;
            let values = Self::object(vm, parts.values().clone())?;
            let is_coalesced = vm.ctx.new_bool(parts.is_coalesced());
            Ok(Some(vm.ctx.new_tuple(vec![indices, values, is_coalesced.into()]).into()))
        }

        #[pymethod]
        fn storage_offset(&self) -> i64 {
            self.get().offset()
        }

        #[pymethod]
        fn element_size(&self) -> u64 {
            self.get().dtype().size()
        }

        #[pymethod]
        fn data_ptr(&self) -> u64 {
            let tensor = self.get();
            let offset = u64::try_from(tensor.offset()).unwrap_or(0) * tensor.dtype().size();
            tensor.storage().addr() + offset
        }

        #[pymethod]
        fn is_pinned(&self) -> bool {
            self.get().storage().is_pinned()
        }

        #[pymethod]
        fn _is_contiguous(&self, format: PyObjectRef, vm: &VirtualMachine) -> bool {
            let format =
                format.downcast_ref::<PyMemoryFormat>().map_or(MemoryFormat::Contiguous, |format| format.0);
            let _ = vm;
            self.get().is_contiguous_in(format)
        }

        #[pygetset]
        fn is_leaf(&self) -> bool {
            self.get().is_leaf()
        }

        #[pymethod]
        fn _is_view(&self) -> bool {
            self.get().is_view()
        }

        #[pygetset]
        fn _base(&self, vm: &VirtualMachine) -> PyResult<Option<PyObjectRef>> {
            self.get().base().map(|base| Self::object(vm, base)).transpose()
        }

        #[pygetset]
        fn _version(&self) -> u32 {
            self.get().version()
        }

        #[pygetset]
        fn output_nr(&self) -> usize {
            self.get().output_number()
        }

        #[pygetset]
        fn requires_grad(&self) -> bool {
            self.get().requires_grad()
        }

        #[pygetset(setter)]
        fn set_requires_grad(&self, value: PySetterValue<bool>, vm: &VirtualMachine) -> PyResult<()> {
            let PySetterValue::Assign(value) = value else {
                return Err(vm.new_attribute_error("can't delete requires_grad"));
            };
            self.get().set_requires_grad(value).map_err(|error| errors::to_exception(vm, error))
        }

        #[pygetset]
        fn grad(&self, vm: &VirtualMachine) -> PyResult<Option<PyObjectRef>> {
            self.get().grad().map(|grad| Self::object(vm, grad)).transpose()
        }

        #[pygetset(setter)]
        fn set_grad(&self, value: PySetterValue, vm: &VirtualMachine) -> PyResult<()> {
            let grad = match value {
                PySetterValue::Assign(value) if !vm.is_none(&value) => {
                    let grad = value.downcast_ref::<Self>().map(|grad| grad.get());
                    Some(grad.ok_or_else(|| vm.new_type_error("assigned grad has to be a Tensor or None"))?)
                }
                _ => None,
            };
            let tensor = self.get();
            if let Some(grad) = &grad
                && (grad.shape() != tensor.shape() || grad.device() != tensor.device())
            {
                return Err(vm.new_runtime_error(
                    "assigned grad has data of a different size or device than the tensor that it belongs to",
                ));
            }
            tensor.set_grad(grad);
            Ok(())
        }

        #[pygetset]
        fn data(&self, vm: &VirtualMachine) -> PyResult {
            let detached = self.get().shallow_copy();
            convert::new_tensor(vm, detached, objects::get("Tensor"))
        }

        #[pygetset(setter)]
        fn set_data(&self, value: PySetterValue, vm: &VirtualMachine) -> PyResult<()> {
            let PySetterValue::Assign(value) = value else {
                return Err(vm.new_attribute_error("can't delete data"));
            };
            let data = value
                .downcast_ref::<Self>()
                .ok_or_else(|| vm.new_type_error("Variable data has to be a tensor"))?;
            self.get().set_data(&data.get());
            Ok(())
        }

        #[pymethod]
        fn detach(&self, vm: &VirtualMachine) -> PyResult {
            // The result is not a view, which would keep its base: the history dies with the tensor that has
            // it.
            convert::new_tensor(vm, self.get().shallow_copy(), objects::get("Tensor"))
        }

        /// The node that made this tensor.
        #[pymethod]
        fn _node(&self) -> Option<PyNode> {
            self.get().grad_fn().map(PyNode)
        }

        #[pymethod]
        fn _is_same(&self, other: PyObjectRef) -> bool {
            other.downcast_ref::<Self>().is_some_and(|other| other.get().is_same(&self.get()))
        }

        #[pymethod]
        fn _shares_storage(&self, other: PyObjectRef) -> bool {
            let other = other.downcast_ref::<Self>().map(|other| other.get().storage());
            other.is_some_and(|other| Rc::ptr_eq(&other, &self.get().storage()))
        }

        #[pymethod]
        fn _storage_bytes(&self) -> u64 {
            self.get().storage().bytes()
        }

        #[pymethod]
        fn _storage_ptr(&self) -> u64 {
            self.get().storage().addr()
        }

        /// A tensor of bytes over a copy of the whole storage.
        #[pymethod]
        fn _storage_copy(&self, vm: &VirtualMachine) -> PyResult {
            let copy = self.get().storage().copy().map_err(|error| errors::to_exception(vm, error))?;
            let bytes = i64::try_from(copy.bytes()).unwrap_or(i64::MAX);
            Self::object(vm, Tensor::over(copy, &[bytes], &[1], 0, Dtype::U8))
        }

        /// A tensor over this storage with the shape, strides, offset and type of another tensor.
        #[pymethod]
        fn _seen_as(&self, other: PyObjectRef, vm: &VirtualMachine) -> PyResult {
            let other = other.downcast_ref::<Self>().map(|other| other.get());
            let other = other.ok_or_else(|| vm.new_type_error("a tensor is expected"))?;
            let seen = Tensor::over(
                self.get().storage(),
                &other.shape(),
                &other.strides(),
                other.offset(),
                other.dtype(),
            );
            Self::object(vm, seen)
        }

        #[pymethod]
        fn _resize_storage(&self, bytes: u64, vm: &VirtualMachine) -> PyResult<()> {
            self.get().storage().resize(bytes).map_err(|error| errors::to_exception(vm, error))
        }

        /// Another shape over the same memory.
        #[pymethod]
        fn _set_geometry(
            &self,
            sizes: ArgSequence<i64>,
            strides: ArgSequence<i64>,
            offset: OptionalArg<Option<i64>>,
        ) {
            let offset = offset.into_option().flatten().unwrap_or_else(|| self.get().offset());
            self.get().set_geometry(&sizes, &strides, offset);
        }

        #[pymethod]
        fn _set_category(&self, name: PyStrRef) {
            use blockyard_torch::memory::Category;
            let category = match name.to_string_lossy().as_ref() {
                "parameter" => Category::Parameter,
                "optimizer_state" => Category::OptimizerState,
                "gradient" => Category::Gradient,
                _ => Category::Input,
            };
            self.get().storage().set_category(category);
        }

        /// Values in order of the elements; `None` where they are not known.
        #[pymethod]
        fn _known_values(&self, vm: &VirtualMachine) -> PyResult<Option<PyObjectRef>> {
            let Some(values) = self.get().values() else { return Ok(None) };
            let values = values
                .into_iter()
                .map(|value| convert::scalar_object(vm, value))
                .collect::<PyResult<Vec<_>>>()?;
            Ok(Some(vm.ctx.new_list(values).into()))
        }

        #[pymethod]
        fn _set_values(&self, values: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
            let Value::List(values) = convert::to_value(vm, &values)? else { return Ok(()) };
            let values: Vec<_> = values
                .into_iter()
                .filter_map(|value| if let Value::Scalar(scalar) = value { Some(scalar) } else { None })
                .collect();
            self.get().set_values(Some(&values));
            Ok(())
        }

        /// A tensor of the given class over the same memory, without history.
        #[pymethod]
        fn _as_class(&self, class: PyTypeRef, requires_grad: bool, vm: &VirtualMachine) -> PyResult {
            let tensor = self.get().shallow_copy();
            if requires_grad {
                tensor.set_requires_grad(true).map_err(|error| errors::to_exception(vm, error))?;
            }
            convert::new_tensor(vm, tensor, Some(class.into()))
        }
    }

    /// Keeps a class of our own Python for native code.
    #[pyfunction]
    fn register(name: PyStrRef, object: PyObjectRef) {
        objects::set(&name.to_string_lossy(), object);
    }

    /// The line of the program that runs.
    #[pyfunction]
    fn current_line(vm: &VirtualMachine) -> u32 {
        position::current_line(vm)
    }

    /// A tensor over a storage of this many bytes, for `UntypedStorage`.
    #[pyfunction]
    fn storage_tensor(bytes: i64, device: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        let Value::Device(device) = convert::to_value(vm, &device)? else {
            return Err(vm.new_type_error("a device is expected"));
        };
        let storage =
            Storage::new(device, u64::try_from(bytes).unwrap_or(0), blockyard_torch::memory::Category::Input)
                .map_err(|error| errors::to_exception(vm, error))?;
        PyTensor::object(vm, Tensor::over(storage, &[bytes], &[1], 0, Dtype::U8))
    }

    #[pyfunction]
    fn tensor_class() -> PyTypeRef {
        PyTensor::static_type().to_owned()
    }
}
