//! The plain values of `_torch`: types of elements, devices, memory formats.

use std::cell::RefCell;
use std::ffi::CString;

use blockyard_torch::{Device, Dtype, MemoryFormat, Value, session};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::{convert, errors};

/// `torch.dtype`.
#[pyclass(name = "dtype", module = "torch", frozen, eq, hash)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDtype(pub(crate) Dtype);

#[pymethods]
impl PyDtype {
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_floating()
    }
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }
    #[getter]
    fn is_signed(&self) -> bool {
        !matches!(self.0, Dtype::Bool | Dtype::U8)
    }
    #[getter]
    fn itemsize(&self) -> u64 {
        self.0.size()
    }
    fn __reduce__(&self) -> String {
        self.0.name().to_owned()
    }
    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

thread_local! {
    /// The default devices before each `with torch.device(...)` that is open.
    static DEFAULTS_BEFORE: RefCell<Vec<Device>> = const { RefCell::new(Vec::new()) };
}

/// `torch.device`; without an index, the device of CUDA that is current when the value is used.
#[pyclass(name = "device", module = "torch", frozen, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDevice {
    kind: &'static str,
    index: Option<u8>,
}

impl PyDevice {
    /// The Python value of a device.
    pub(crate) fn of(device: Device) -> Self {
        match device {
            Device::Cpu => Self { kind: "cpu", index: None },
            Device::Meta => Self { kind: "meta", index: None },
            Device::Cuda(index) => Self { kind: "cuda", index: Some(index) },
        }
    }
    /// The device that the value names now.
    pub(crate) fn resolve(&self) -> Device {
        match self.kind {
            "cuda" => Device::Cuda(self.index.unwrap_or_else(|| session().current_device())),
            "meta" => Device::Meta,
            _ => Device::Cpu,
        }
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (*args, **kwargs))]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let python = args.py();
        let keyword = |name: &str| -> Option<Bound<'_, PyAny>> { kwargs?.get_item(name).ok()? };
        let first = args.get_item(0).ok().or_else(|| keyword("type")).or_else(|| keyword("device"));
        let first = first.ok_or_else(|| PyTypeError::new_err("Device(): argument 'type' is missing"))?;
        if let Ok(device) = first.cast::<PyDevice>() {
            return Ok(device.get().clone());
        }
        let number = args.get_item(1).ok().or_else(|| keyword("index"));
        let number = match number {
            Some(number) if !number.is_none() => Some(number.extract::<u8>()?),
            _ => None,
        };
        if let Ok(index) = first.extract::<u8>() {
            return Ok(Self { kind: "cuda", index: Some(index) });
        }
        let text = first.str()?.to_string_lossy().into_owned();
        let device = errors::result(python, Device::parse(&text))?;
        let named = Self::of(device);
        let index = number.or(named.index.filter(|_| text.contains(':')));
        Ok(Self { kind: named.kind, index })
    }
    #[getter(r#type)]
    fn kind(&self) -> &'static str {
        self.kind
    }
    #[getter]
    fn index(&self) -> Option<u8> {
        self.index
    }
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let before = session().set_default_device(slf.get().resolve());
        DEFAULTS_BEFORE.with_borrow_mut(|defaults| defaults.push(before));
        slf
    }
    #[pyo3(signature = (*_args))]
    #[expect(clippy::unused_self, reason = "Python calls it on the object")]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        if let Some(before) = DEFAULTS_BEFORE.with_borrow_mut(Vec::pop) {
            session().set_default_device(before);
        }
    }
    fn __str__(&self) -> String {
        match self.index {
            Some(index) => format!("{}:{index}", self.kind),
            None => self.kind.to_owned(),
        }
    }
    fn __repr__(&self) -> String {
        match self.index {
            Some(index) => format!("device(type='{}', index={index})", self.kind),
            None => format!("device(type='{}')", self.kind),
        }
    }
}

/// `torch.memory_format`.
#[pyclass(name = "memory_format", module = "torch", frozen)]
#[derive(Debug)]
pub(crate) struct PyMemoryFormat(pub(crate) MemoryFormat);

#[pymethods]
impl PyMemoryFormat {
    fn __repr__(&self) -> String {
        convert::format_name(self.0).to_owned()
    }
    fn __hash__(&self) -> isize {
        self.0 as isize
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyMemoryFormat>().is_ok_and(|other| other.get().0 == self.0)
    }
}

/// The type of elements of a name; `None` where PyTorch has none of that name.
#[pyfunction]
fn dtype_of<'py>(python: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Dtype::from_name(name).map(|dtype| convert::dtype_object(python, dtype)).transpose()
}
/// The memory format of a name.
#[pyfunction]
fn format_of(name: &str) -> PyMemoryFormat {
    PyMemoryFormat(match name {
        "channels_last" => MemoryFormat::ChannelsLast,
        "channels_last_3d" => MemoryFormat::ChannelsLast3d,
        "preserve_format" => MemoryFormat::Preserve,
        _ => MemoryFormat::Contiguous,
    })
}
/// `torch.promote_types`.
#[pyfunction]
fn promote_types<'py>(a: Bound<'py, PyAny>, b: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match (convert::to_value(&a)?, convert::to_value(&b)?) {
        (Value::Dtype(x), Value::Dtype(y)) => convert::dtype_object(a.py(), blockyard_torch::promote(x, y)),
        _ => Err(PyTypeError::new_err("promote_types() takes two types")),
    }
}

/// A class of tuples with names, as PyTorch makes it for the results of an operator (`PyStructSequence`). The
/// items of such a tuple die first to last, those of another tuple last to first.
#[pyfunction]
#[expect(unsafe_code, reason = "PyO3 has no function for the classes of structure sequences")]
fn named_tuple<'py>(python: Python<'py>, name: &str, fields: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
    // The class keeps these texts, and lives until the process ends.
    let text = |text: &str| CString::new(text).map(|text| text.into_raw().cast_const());
    let mut members = Vec::with_capacity(fields.len() + 1);
    for field in &fields {
        members.push(ffi::PyStructSequence_Field { name: text(field)?, doc: std::ptr::null() });
    }
    members.push(ffi::PyStructSequence_Field { name: std::ptr::null(), doc: std::ptr::null() });
    let mut description = ffi::PyStructSequence_Desc {
        name: text(name)?,
        doc: std::ptr::null(),
        fields: members.leak().as_mut_ptr(),
        n_in_sequence: i32::try_from(fields.len()).unwrap_or(0),
    };
    // SAFETY: the description is complete, and its texts and fields are never freed.
    unsafe {
        let class = ffi::PyStructSequence_NewType(&raw mut description);
        Bound::from_owned_ptr_or_err(python, class.cast())
    }
}

/// Adds the classes and functions of this module to `_torch`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDtype>()?;
    module.add_class::<PyDevice>()?;
    module.add_class::<PyMemoryFormat>()?;
    module.add_function(wrap_pyfunction!(named_tuple, module)?)?;
    module.add_function(wrap_pyfunction!(dtype_of, module)?)?;
    module.add_function(wrap_pyfunction!(format_of, module)?)?;
    module.add_function(wrap_pyfunction!(promote_types, module)?)
}
