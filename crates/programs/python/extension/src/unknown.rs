//! Numbers that are not known stay unknown in `float(x)`, `int(x)`, `bool(x)`, `"%.4f" % x` and `values[x]`, where
//! Python itself would ask for the number.
//!
//! The first four are functions of Python's own classes, which a program cannot replace. [`patch`] replaces them in
//! the classes' tables of functions.
#![expect(unsafe_code, reason = "the tables of functions of Python's classes are structures of C")]

use std::cell::Cell;
use std::ffi::c_ulong;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::objects;
use crate::tensor::PyTensor;

/// The beginning of `PyTypeObject`, which is the same from Python 3.10 to 3.14 and which the stable ABI hides.
#[repr(C)]
struct TypeObject {
    reference_count: isize,
    class: *mut ffi::PyTypeObject,
    size: isize,
    name: *const u8,
    basic_size: isize,
    item_size: isize,
    dealloc: usize,
    vectorcall_offset: isize,
    getattr: usize,
    setattr: usize,
    as_async: usize,
    repr: usize,
    as_number: *mut NumberMethods,
    as_sequence: usize,
    as_mapping: usize,
    hash: usize,
    call: usize,
    str: usize,
    getattro: usize,
    setattro: usize,
    as_buffer: usize,
    flags: c_ulong,
    doc: usize,
    traverse: usize,
    clear: usize,
    richcompare: usize,
    weaklist_offset: isize,
    iter: usize,
    iternext: usize,
    methods: usize,
    members: usize,
    getset: usize,
    base: usize,
    dict: usize,
    descr_get: usize,
    descr_set: usize,
    dict_offset: isize,
    init: usize,
    alloc: usize,
    new: Option<ffi::newfunc>,
    free: usize,
    is_gc: usize,
    bases: usize,
    mro: usize,
    cache: usize,
    subclasses: usize,
    weaklist: usize,
    del: usize,
    version_tag: u32,
    finalize: usize,
    vectorcall: usize,
}

/// The beginning of `PyNumberMethods`.
#[repr(C)]
struct NumberMethods {
    add: usize,
    subtract: usize,
    multiply: usize,
    remainder: Option<ffi::binaryfunc>,
}

thread_local! {
    /// Python's own function for `text % values`.
    static PERCENT: Cell<Option<ffi::binaryfunc>> = const { Cell::new(None) };
    /// Python's own function for `float(value)`.
    static FLOAT: Cell<Option<ffi::newfunc>> = const { Cell::new(None) };
    /// Python's own function for `bool(value)`.
    static BOOL: Cell<Option<ffi::newfunc>> = const { Cell::new(None) };
    /// Python's own function for `int(value)`.
    static INT: Cell<Option<ffi::newfunc>> = const { Cell::new(None) };
}

/// Whether an object is an unknown number.
fn is_number_unknown(object: &Bound<'_, PyAny>) -> bool {
    is_of_class(object, "UnknownNumber")
}

/// Whether an object is an unknown number, or a number of our `NumPy` whose last digits are not known.
fn is_unknown(object: &Bound<'_, PyAny>) -> bool {
    is_number_unknown(object) || is_of_class(object, "NearNumber")
}

fn is_of_class(object: &Bound<'_, PyAny>, name: &str) -> bool {
    objects::get(object.py(), name)
        .is_some_and(|class| object.get_type().is_subclass(&class).unwrap_or(false))
}

fn is_ours(value: &Bound<'_, PyAny>) -> bool {
    is_unknown(value) || value.is_instance_of::<PyTensor>()
}

fn has_ours(values: &Bound<'_, PyAny>) -> bool {
    if let Ok(values) = values.cast::<PyTuple>() {
        values.iter().any(|value| is_ours(&value))
    } else if let Ok(values) = values.cast::<PyDict>() {
        values.iter().any(|(_key, value)| is_ours(&value))
    } else {
        is_ours(values)
    }
}

/// A new reference for C, or null with the exception set.
fn into_pointer(python: Python<'_>, result: PyResult<Bound<'_, PyAny>>) -> *mut ffi::PyObject {
    match result {
        Ok(object) => object.into_ptr(),
        Err(exception) => {
            exception.restore(python);
            std::ptr::null_mut()
        }
    }
}

/// `text % values`.
unsafe extern "C" fn percent(text: *mut ffi::PyObject, values: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls the function while it is attached, with two objects that it keeps alive.
    let (python, left, right) = unsafe {
        let python = Python::assume_attached();
        (python, Bound::from_borrowed_ptr(python, text), Bound::from_borrowed_ptr(python, values))
    };
    if left.is_instance_of::<PyString>()
        && has_ours(&right)
        && let Some(function) = objects::get(python, "percent")
    {
        return into_pointer(python, function.call1((left, right)));
    }
    match PERCENT.get() {
        // SAFETY: the arguments are those that Python passed.
        Some(own) => unsafe { own(text, values) },
        None => into_pointer(python, Ok(python.NotImplemented().into_bound(python))),
    }
}

/// `float(value)`, `int(value)` or `bool(value)` of an unknown number is unknown, too; `None` where Python's
/// own function is to run. A tensor is asked by `method`, whose known answers are of the class `T`.
fn unknown_number<'py, T: PyTypeInfo>(
    arguments: &Bound<'py, PyAny>,
    method: &str,
    is_unknown: fn(&Bound<'py, PyAny>) -> bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(arguments) = arguments.cast::<PyTuple>() else { return Ok(None) };
    if arguments.len() != 1 {
        return Ok(None);
    }
    let mut value = arguments.get_item(0)?;
    if value.is_instance_of::<PyTensor>() {
        value = value.call_method0(method)?;
        if value.is_exact_instance_of::<T>() {
            return Ok(Some(value));
        }
    }
    if is_number_unknown(&value) {
        let class = T::type_object(value.py());
        return value.call_method1(intern!(value.py(), "_of"), (class,)).map(Some);
    }
    Ok(Some(value).filter(is_unknown))
}

/// The function that Python calls to create a number of a class: see [`new_number`].
macro_rules! new_number {
    ($name:ident, $class:ty, $method:literal, $is_unknown:ident, $own:ident) => {
        unsafe extern "C" fn $name(
            class: *mut ffi::PyTypeObject,
            arguments: *mut ffi::PyObject,
            keywords: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            // SAFETY: Python calls the function while it is attached, and keeps the arguments alive.
            unsafe { new_number::<$class>(class, [arguments, keywords], $method, $is_unknown, $own.get()) }
        }
    };
}

new_number!(new_float, PyFloat, "__float__", is_unknown, FLOAT);
// A number whose last digits are not known has a whole part.
new_number!(new_int, PyInt, "__int__", is_number_unknown, INT);
new_number!(new_bool, PyBool, "_bool", is_number_unknown, BOOL);

/// Creates a number of the class `T`, by Python's `own` function where no argument is unknown.
///
/// # Safety
/// Python is attached and keeps the arguments alive.
unsafe fn new_number<T: PyTypeInfo>(
    class: *mut ffi::PyTypeObject,
    [arguments, keywords]: [*mut ffi::PyObject; 2],
    method: &str,
    is_unknown: fn(&Bound<'_, PyAny>) -> bool,
    own: Option<ffi::newfunc>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let python = unsafe { Python::assume_attached() };
    if class == T::type_object_raw(python) && !arguments.is_null() {
        // SAFETY: the caller's promise.
        let arguments = unsafe { Bound::from_borrowed_ptr(python, arguments) };
        match unknown_number::<T>(&arguments, method, is_unknown) {
            Ok(None) => {}
            Ok(Some(value)) => return value.into_ptr(),
            Err(exception) => return into_pointer(python, Err(exception)),
        }
    }
    match own {
        // SAFETY: the arguments are those that Python passed.
        Some(own) => unsafe { own(class, arguments, keywords) },
        None => into_pointer(python, Err(PyRuntimeError::new_err("Python has no such function"))),
    }
}

/// `values[key]`, which is unknown where the key is.
#[pyfunction]
fn item<'py>(values: Bound<'py, PyAny>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let python = values.py();
    if !key.is_exact_instance_of::<PyInt>()
        && !key.is_exact_instance_of::<PyString>()
        && !values.is_instance_of::<PyTensor>()
        && is_ours(&key)
        && let Some(function) = objects::get(python, "item")
    {
        return function.call1((values, key));
    }
    values.get_item(key)
}

/// Replaces Python's functions for `text % values`, `float(value)`, `int(value)` and `bool(value)`, once.
#[pyfunction]
fn patch() {
    if PERCENT.get().is_some() {
        return;
    }
    // SAFETY: the classes are static, their layout is that of `TypeObject` (a test calls the functions under
    // each Python), and no other thread runs Python while this one is attached.
    unsafe {
        let text = (&raw mut ffi::PyUnicode_Type).cast::<TypeObject>();
        let numbers = (*text).as_number;
        PERCENT.set((*numbers).remainder.replace(percent));
        for (class, own, new) in [
            (&raw mut ffi::PyFloat_Type, &FLOAT, new_float as ffi::newfunc),
            (&raw mut ffi::PyLong_Type, &INT, new_int),
            (&raw mut ffi::PyBool_Type, &BOOL, new_bool),
        ] {
            let table = class.cast::<TypeObject>();
            own.with(|own| own.set((*table).new.replace(new)));
            // The short way to a call would go around `new`.
            (*table).vectorcall = 0;
            ffi::PyType_Modified(class);
        }
    }
}

/// Adds the function of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(patch, module)?)?;
    module.add_function(wrap_pyfunction!(item, module)?)
}
