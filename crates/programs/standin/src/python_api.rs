//! The functions of Python's C API that our libraries call. Nothing is linked: the functions are looked up in
//! the process.
//!
//! `crates/ends/torch-plugin` compiles this file too. The two are separate libraries, and the plug-in may not
//! export what the stand-in exports for PyTorch.
#![expect(unsafe_code, reason = "Python's C API is called")]

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_void};
use std::sync::OnceLock;

use libloading::os::unix::Library;

pub(crate) type Object = *mut c_void;

/// A function that Python calls on its main thread.
pub(crate) type Pending = extern "C" fn(*mut c_void) -> c_int;

/// Declares functions of Python by our name, Python's name and the signature in Python's documentation.
macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// The functions that are used.
        #[allow(dead_code, reason = "each library uses only some of them")]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
            pub(crate) is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
            /// The address of `None`.
            pub(crate) none: usize,
        }

        fn find_api() -> Option<Api> {
            let process = Library::this();
            let is_finalizing = [&b"Py_IsFinalizing\0"[..], b"_Py_IsFinalizing\0"];
            let is_finalizing = is_finalizing.into_iter().find_map(|name| {
                // SAFETY: the type is that of Python's documentation; the second name is that of older versions.
                unsafe { process.get(name) }.ok().map(|function| *function)
            });
            Some(Api {
                // SAFETY: the types are those of Python's documentation, and the interpreter is never unloaded.
                $($name: *unsafe { process.get($symbol) }.ok()?,)+
                is_finalizing,
                // SAFETY: the symbol is an object, of which only the address is taken.
                none: unsafe { process.get::<*mut c_void>(b"_Py_NoneStruct\0") }.ok()?.into_raw() as usize,
            })
        }
    };
}

functions! {
    is_initialized = b"Py_IsInitialized\0": fn() -> c_int;
    thread = b"PyGILState_GetThisThreadState\0": fn() -> Object;
    ensure = b"PyGILState_Ensure\0": fn() -> c_int;
    release = b"PyGILState_Release\0": fn(c_int);
    frame = b"PyEval_GetFrame\0": fn() -> Object;
    back = b"PyFrame_GetBack\0": fn(Object) -> Object;
    code = b"PyFrame_GetCode\0": fn(Object) -> Object;
    line = b"PyFrame_GetLineNumber\0": fn(Object) -> c_int;
    attribute = b"PyObject_GetAttrString\0": fn(Object, *const c_char) -> Object;
    text = b"PyUnicode_AsUTF8\0": fn(Object) -> *const c_char;
    clear_error = b"PyErr_Clear\0": fn();
    add_reference = b"Py_IncRef\0": fn(Object);
    drop_reference = b"Py_DecRef\0": fn(Object);
    integer = b"PyLong_FromLongLong\0": fn(c_longlong) -> Object;
    number = b"PyFloat_FromDouble\0": fn(f64) -> Object;
    boolean = b"PyBool_FromLong\0": fn(c_long) -> Object;
    new_text = b"PyUnicode_FromStringAndSize\0": fn(*const c_char, isize) -> Object;
    tuple = b"PyTuple_New\0": fn(isize) -> Object;
    set_in_tuple = b"PyTuple_SetItem\0": fn(Object, isize, Object) -> c_int;
    list = b"PyList_New\0": fn(isize) -> Object;
    set_in_list = b"PyList_SetItem\0": fn(Object, isize, Object) -> c_int;
    item = b"PySequence_GetItem\0": fn(Object, isize) -> Object;
    as_integer = b"PyLong_AsLongLong\0": fn(Object) -> c_longlong;
    call = b"PyObject_CallObject\0": fn(Object, Object) -> Object;
    error = b"PyErr_Occurred\0": fn() -> Object;
    print_error = b"PyErr_Print\0": fn();
    take_error = b"PyErr_Fetch\0": fn(*mut Object, *mut Object, *mut Object);
    set_error = b"PyErr_Restore\0": fn(Object, Object, Object);
    stop_collector = b"PyGC_Disable\0": fn() -> c_int;
    start_collector = b"PyGC_Enable\0": fn() -> c_int;
    pending = b"Py_AddPendingCall\0": fn(Pending, *mut c_void) -> c_int;
}

/// The functions of this process's Python; `None` if there is no interpreter.
pub(crate) fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(find_api).as_ref()
}

impl Api {
    /// An attribute of an object that lives, as a text; empty if it is not a text. The caller has Python's lock.
    pub(crate) fn text_of(&self, object: Object, name: &CStr) -> String {
        // SAFETY: Python's lock is held, the object lives, and the characters live as long as the value.
        unsafe {
            let value = (self.attribute)(object, name.as_ptr());
            if value.is_null() {
                (self.clear_error)();
                return String::new();
            }
            let characters = (self.text)(value);
            let text = if characters.is_null() {
                (self.clear_error)();
                String::new()
            } else {
                CStr::from_ptr(characters).to_string_lossy().into_owned()
            };
            (self.drop_reference)(value);
            text
        }
    }
}
