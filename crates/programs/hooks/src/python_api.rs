//! The functions of Python's C API that our libraries call. Nothing is linked: the functions are looked up in
//! the process.
#![expect(unsafe_code, reason = "Python's C API is called")]

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_void};
use std::sync::OnceLock;

use libloading::os::unix::Library;

/// An object of Python, or null.
pub type Object = *mut c_void;

/// A function that Python calls on its main thread.
pub type Pending = extern "C" fn(*mut c_void) -> c_int;

/// Declares functions of Python by our name, Python's name and the signature in Python's documentation.
macro_rules! functions {
    ($($name:ident = $symbol:ident: fn($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// The functions that are used.
        #[derive(Debug)]
        pub struct Api {
            $(#[doc = concat!("`", stringify!($symbol), "`.")] pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
            /// `Py_IsFinalizing`, in versions that have it.
            pub is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
            /// The address of `None`.
            pub none: usize,
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
                $($name: *unsafe { process.get(concat!(stringify!($symbol), "\0").as_bytes()) }.ok()?,)+
                is_finalizing,
                // SAFETY: the symbol is an object, of which only the address is taken.
                none: unsafe { process.get::<*mut c_void>(b"_Py_NoneStruct\0") }.ok()?.into_raw() as usize,
            })
        }
    };
}

functions! {
    is_initialized = Py_IsInitialized: fn() -> c_int;
    thread = PyGILState_GetThisThreadState: fn() -> Object;
    ensure = PyGILState_Ensure: fn() -> c_int;
    release = PyGILState_Release: fn(c_int);
    frame = PyEval_GetFrame: fn() -> Object;
    back = PyFrame_GetBack: fn(Object) -> Object;
    code = PyFrame_GetCode: fn(Object) -> Object;
    line = PyFrame_GetLineNumber: fn(Object) -> c_int;
    attribute = PyObject_GetAttrString: fn(Object, *const c_char) -> Object;
    text = PyUnicode_AsUTF8: fn(Object) -> *const c_char;
    clear_error = PyErr_Clear: fn();
    add_reference = Py_IncRef: fn(Object);
    drop_reference = Py_DecRef: fn(Object);
    integer = PyLong_FromLongLong: fn(c_longlong) -> Object;
    number = PyFloat_FromDouble: fn(f64) -> Object;
    boolean = PyBool_FromLong: fn(c_long) -> Object;
    new_text = PyUnicode_FromStringAndSize: fn(*const c_char, isize) -> Object;
    tuple = PyTuple_New: fn(isize) -> Object;
    set_in_tuple = PyTuple_SetItem: fn(Object, isize, Object) -> c_int;
    list = PyList_New: fn(isize) -> Object;
    set_in_list = PyList_SetItem: fn(Object, isize, Object) -> c_int;
    item = PySequence_GetItem: fn(Object, isize) -> Object;
    as_integer = PyLong_AsLongLong: fn(Object) -> c_longlong;
    call = PyObject_CallObject: fn(Object, Object) -> Object;
    error = PyErr_Occurred: fn() -> Object;
    print_error = PyErr_Print: fn();
    take_error = PyErr_Fetch: fn(*mut Object, *mut Object, *mut Object);
    set_error = PyErr_Restore: fn(Object, Object, Object);
    stop_collector = PyGC_Disable: fn() -> c_int;
    start_collector = PyGC_Enable: fn() -> c_int;
    pending = Py_AddPendingCall: fn(Pending, *mut c_void) -> c_int;
}

/// The functions of this process's Python; `None` if there is no interpreter.
pub fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(find_api).as_ref()
}

impl Api {
    /// An attribute of an object as a text; empty if it is not a text.
    ///
    /// # Safety
    /// The caller has Python's lock, and the object lives.
    pub unsafe fn text_of(&self, object: Object, name: &CStr) -> String {
        // SAFETY: the caller's promise; the characters live as long as the value.
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
