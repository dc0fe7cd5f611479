//! Types of elements, devices and orders in memory: plain values of `_torch`.

pub(crate) use values::{PyDevice, PyDtype, PyMemoryFormat};

#[rustpython_vm::pymodule(sub)]
pub(crate) mod values {
    use std::cell::RefCell;

    use blockyard_torch::{Device, Dtype, MemoryFormat, Value, session};
    use rustpython_vm::builtins::{PyStrRef, PyType};
    use rustpython_vm::common::hash::PyHash;
    use rustpython_vm::function::{FuncArgs, PyComparisonValue};
    use rustpython_vm::types::{Comparable, Constructor, Hashable, PyComparisonOp, Representable};
    use rustpython_vm::{Py, PyObject, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};

    use super::super::{convert, errors};

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
        /// The Python object of a device, with its number where it is a GPU.
        pub(crate) fn of(device: Device) -> Self {
            match device {
                Device::Cpu => Self { kind: "cpu", index: None },
                Device::Meta => Self { kind: "meta", index: None },
                Device::Cuda(index) => Self { kind: "cuda", index: Some(index) },
            }
        }

        /// The device; the current one for `cuda` without a number.
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

        /// `with torch.device(...)`: sets the device of new tensors that name none.
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

    /// The type of that name; `None` if there is none.
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
}
