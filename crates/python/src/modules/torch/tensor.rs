//! `_torch`: tensors, types, devices, and the operators by name.

pub(crate) use _torch::{PyDevice, PyDtype, PyMemoryFormat, PyTensor, PyTensorList, module_def};

#[rustpython_vm::pymodule]
mod _torch {
    use std::cell::RefCell;
    use std::rc::Rc;

    use blockyard_torch::autograd::Node;
    use blockyard_torch::{Device, Dtype, MemoryFormat, Operator, Storage, Tensor, Value, session};
    use rustpython_vm::builtins::{PyBoundMethod, PyStr, PyStrRef, PyType, PyTypeRef};
    use rustpython_vm::class::StaticType as _;
    use rustpython_vm::common::hash::PyHash;
    use rustpython_vm::common::lock::PyMutex;
    use rustpython_vm::function::{ArgSequence, FuncArgs, OptionalArg, PyComparisonValue, PySetterValue};
    use rustpython_vm::types::{
        Callable, Comparable, Constructor, GetAttr, GetDescriptor, Hashable, Iterable, PyComparisonOp,
        Representable,
    };
    use rustpython_vm::{Py, PyObject, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};

    use super::super::{convert, errors, objects};
    use crate::position;

    /// A type of elements.
    #[pyattr]
    #[pyclass(name = "dtype", module = "torch")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct PyDtype(pub(crate) Dtype);

    #[pyclass(with(Representable, Hashable, Comparable))]
    impl PyDtype {
        #[pygetset]
        fn is_floating_point(&self) -> bool {
            self.0.is_floating()
        }

        #[pygetset]
        fn is_complex(&self) -> bool {
            self.0.is_complex()
        }

        #[pygetset]
        fn is_signed(&self) -> bool {
            !matches!(self.0, Dtype::Bool | Dtype::U8)
        }

        #[pygetset]
        fn itemsize(&self) -> u64 {
            self.0.size()
        }

        #[pymethod]
        fn __reduce__(&self) -> String {
            self.0.name().to_owned()
        }
    }

    impl Representable for PyDtype {
        fn repr_str(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<String> {
            Ok(zelf.0.to_string())
        }
    }

    impl Hashable for PyDtype {
        fn hash(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<PyHash> {
            Ok(zelf.0 as PyHash)
        }
    }

    impl Comparable for PyDtype {
        fn cmp(
            zelf: &Py<Self>,
            other: &PyObject,
            op: PyComparisonOp,
            _vm: &VirtualMachine,
        ) -> PyResult<PyComparisonValue> {
            op.eq_only(|| Ok(other.downcast_ref::<Self>().is_some_and(|other| other.0 == zelf.0).into()))
        }
    }

    /// A node of the backward graph.
    #[pyattr]
    #[pyclass(name = "Node", module = "torch.autograd.graph")]
    #[derive(PyPayload)]
    pub(crate) struct PyNode(Rc<Node>);

    impl std::fmt::Debug for PyNode {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.debug_struct("PyNode").field("name", &self.0.name()).finish()
        }
    }

    /// `_saved_self` and the like; numbers that a node keeps are not here.
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
                    "{}.{text} is not here: of what a node saves, its tensors are modeled",
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

    thread_local! {
        /// The default devices outside of each `with torch.device(...)`.
        static DEFAULTS_BEFORE: RefCell<Vec<Device>> = const { RefCell::new(Vec::new()) };
    }

    /// A device; `cuda` without a number is the current one.
    #[pyattr]
    #[pyclass(name = "device", module = "torch")]
    #[derive(Clone, Debug, PartialEq, Eq, PyPayload)]
    pub(crate) struct PyDevice {
        kind: &'static str,
        index: Option<u8>,
    }

    impl PyDevice {
        pub(crate) fn of(device: Device) -> Self {
            match device {
                Device::Cpu => Self { kind: "cpu", index: None },
                Device::Meta => Self { kind: "meta", index: None },
                Device::Cuda(index) => Self { kind: "cuda", index: Some(index) },
            }
        }

        pub(crate) fn resolve(&self) -> Device {
            match self.kind {
                "cuda" => Device::Cuda(self.index.unwrap_or_else(|| session().current_device())),
                "meta" => Device::Meta,
                _ => Device::Cpu,
            }
        }
    }

    impl Constructor for PyDevice {
        type Args = FuncArgs;

        fn py_new(_class: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<Self> {
            let first =
                args.args.first().or_else(|| args.kwargs.get("type")).or_else(|| args.kwargs.get("device"));
            let first = first.ok_or_else(|| vm.new_type_error("Device(): argument 'type' is missing"))?;
            if let Some(device) = first.downcast_ref::<Self>() {
                return Ok((**device).clone());
            }
            let number = args.args.get(1).or_else(|| args.kwargs.get("index"));
            let number = match number {
                Some(number) if !vm.is_none(number) => Some(number.clone().try_into_value::<u8>(vm)?),
                _ => None,
            };
            if let Ok(index) = first.clone().try_into_value::<u8>(vm) {
                return Ok(Self { kind: "cuda", index: Some(index) });
            }
            let text = first.str(vm)?.to_string_lossy().into_owned();
            let device = Device::parse(&text).map_err(|error| errors::to_exception(vm, error))?;
            let named = Self::of(device);
            let index = number.or(named.index.filter(|_| text.contains(':')));
            Ok(Self { kind: named.kind, index })
        }
    }

    #[pyclass(with(Constructor, Representable, Hashable, Comparable))]
    impl PyDevice {
        #[pygetset(name = "type")]
        fn kind(&self) -> &'static str {
            self.kind
        }

        #[pygetset]
        fn index(&self) -> Option<u8> {
            self.index
        }

        /// `with torch.device(...)`: where tensors are made that name no device.
        #[pymethod]
        fn __enter__(zelf: rustpython_vm::PyRef<Self>) -> rustpython_vm::PyRef<Self> {
            let before = session().set_default_device(zelf.resolve());
            DEFAULTS_BEFORE.with_borrow_mut(|defaults| defaults.push(before));
            zelf
        }

        #[pymethod]
        #[expect(clippy::unused_self, reason = "the form of a method")]
        fn __exit__(&self, _exception: FuncArgs) {
            if let Some(before) = DEFAULTS_BEFORE.with_borrow_mut(Vec::pop) {
                session().set_default_device(before);
            }
        }

        #[pymethod]
        fn __str__(&self) -> String {
            match self.index {
                Some(index) => format!("{}:{index}", self.kind),
                None => self.kind.to_owned(),
            }
        }
    }

    impl Representable for PyDevice {
        fn repr_str(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<String> {
            Ok(match zelf.index {
                Some(index) => format!("device(type='{}', index={index})", zelf.kind),
                None => format!("device(type='{}')", zelf.kind),
            })
        }
    }

    impl Hashable for PyDevice {
        fn hash(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<PyHash> {
            Ok(PyHash::from(zelf.index.map_or(-2, i32::from)) * 31 + PyHash::from(zelf.kind == "cuda"))
        }
    }

    impl Comparable for PyDevice {
        fn cmp(
            zelf: &Py<Self>,
            other: &PyObject,
            op: PyComparisonOp,
            _vm: &VirtualMachine,
        ) -> PyResult<PyComparisonValue> {
            op.eq_only(|| Ok(other.downcast_ref::<Self>().is_some_and(|other| **other == **zelf).into()))
        }
    }

    /// An order in memory.
    #[pyattr]
    #[pyclass(name = "memory_format", module = "torch")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct PyMemoryFormat(pub(crate) MemoryFormat);

    #[pyclass(with(Representable, Comparable, Hashable))]
    impl PyMemoryFormat {}

    impl Representable for PyMemoryFormat {
        fn repr_str(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<String> {
            Ok(convert::format_name(zelf.0).to_owned())
        }
    }

    impl Hashable for PyMemoryFormat {
        fn hash(zelf: &Py<Self>, _vm: &VirtualMachine) -> PyResult<PyHash> {
            Ok(zelf.0 as PyHash)
        }
    }

    impl Comparable for PyMemoryFormat {
        fn cmp(
            zelf: &Py<Self>,
            other: &PyObject,
            op: PyComparisonOp,
            _vm: &VirtualMachine,
        ) -> PyResult<PyComparisonValue> {
            op.eq_only(|| Ok(other.downcast_ref::<Self>().is_some_and(|other| other.0 == zelf.0).into()))
        }
    }

    /// A list of tensors that an operator made; its tensors die last to first, as those of PyTorch's tuples do.
    #[pyattr]
    #[pyclass(name = "TensorList", module = "torch")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct PyTensorList {
        items: PyMutex<Vec<Tensor>>,
    }

    impl PyTensorList {
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

    use rustpython_vm::AsObject as _;

    /// A tensor; `torch.Tensor` is a class of our own Python over it.
    #[pyattr]
    #[pyclass(name = "TensorBase", module = "torch._C")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct PyTensor {
        tensor: PyMutex<Tensor>,
    }

    impl PyTensor {
        pub(crate) fn new(tensor: Tensor) -> Self {
            Self { tensor: PyMutex::new(tensor) }
        }

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
            // Not a view that keeps its base: the history dies with the tensor that has it.
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
            let copy = self.get().storage().copied().map_err(|error| errors::to_exception(vm, error))?;
            let bytes = i64::try_from(copy.bytes()).unwrap_or(i64::MAX);
            Self::object(vm, Tensor::over(copy, &[bytes], &[1], 0, Dtype::U8))
        }

        /// This storage, seen as another tensor sees its own.
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
        fn _values(&self, vm: &VirtualMachine) -> PyResult<Option<PyObjectRef>> {
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

        /// A tensor of a class of its own over the same memory, without history.
        #[pymethod]
        fn _as_class(&self, class: PyTypeRef, requires_grad: bool, vm: &VirtualMachine) -> PyResult {
            let tensor = self.get().shallow_copy();
            if requires_grad {
                tensor.set_requires_grad(true).map_err(|error| errors::to_exception(vm, error))?;
            }
            convert::new_tensor(vm, tensor, Some(class.into()))
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

    /// Keywords that decide nothing here.
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

    /// The operator of that name, or nothing.
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

    /// The type of that name, or nothing.
    #[pyfunction]
    fn dtype_of(name: PyStrRef, vm: &VirtualMachine) -> Option<PyObjectRef> {
        Dtype::from_name(&name.to_string_lossy()).map(|dtype| convert::dtype_object(vm, dtype))
    }

    #[pyfunction]
    fn format_of(name: PyStrRef) -> PyMemoryFormat {
        PyMemoryFormat(match name.to_string_lossy().as_ref() {
            "channels_last" => MemoryFormat::ChannelsLast,
            "channels_last_3d" => MemoryFormat::ChannelsLast3d,
            "preserve_format" => MemoryFormat::Preserve,
            _ => MemoryFormat::Contiguous,
        })
    }

    #[pyfunction]
    fn promote_types(a: PyObjectRef, b: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        match (convert::to_value(vm, &a)?, convert::to_value(vm, &b)?) {
            (Value::Dtype(a), Value::Dtype(b)) => {
                Ok(convert::dtype_object(vm, blockyard_torch::promote(a, b)))
            }
            _ => Err(vm.new_type_error("promote_types() takes two types")),
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
