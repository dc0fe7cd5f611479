//! The line of the Python program that the calling thread runs, asked of the interpreter of this process, if there is one.
#![expect(unsafe_code, reason = "Python's C API is called")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::os::unix::Library;

/// A line of a file; empty and 0 where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: i32,
}

type Object = *mut c_void;

/// The functions of Python's C API that are used, with the signatures of its documentation.
struct Api {
    is_initialized: unsafe extern "C" fn() -> c_int,
    thread: unsafe extern "C" fn() -> Object,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    frame: unsafe extern "C" fn() -> Object,
    back: unsafe extern "C" fn(Object) -> Object,
    code: unsafe extern "C" fn(Object) -> Object,
    line: unsafe extern "C" fn(Object) -> c_int,
    attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    text: unsafe extern "C" fn(Object) -> *const c_char,
    clear_error: unsafe extern "C" fn(),
    add_reference: unsafe extern "C" fn(Object),
    drop_reference: unsafe extern "C" fn(Object),
}

fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(find_api).as_ref()
}

fn find_api() -> Option<Api> {
    let process = Library::this();
    macro_rules! function {
        ($name:literal) => {
            // SAFETY: the types of the fields are those of Python's documentation, and the interpreter is never unloaded.
            *unsafe { process.get($name) }.ok()?
        };
    }
    Some(Api {
        is_initialized: function!(b"Py_IsInitialized\0"),
        thread: function!(b"PyGILState_GetThisThreadState\0"),
        ensure: function!(b"PyGILState_Ensure\0"),
        release: function!(b"PyGILState_Release\0"),
        frame: function!(b"PyEval_GetFrame\0"),
        back: function!(b"PyFrame_GetBack\0"),
        code: function!(b"PyFrame_GetCode\0"),
        line: function!(b"PyFrame_GetLineNumber\0"),
        attribute: function!(b"PyObject_GetAttrString\0"),
        text: function!(b"PyUnicode_AsUTF8\0"),
        clear_error: function!(b"PyErr_Clear\0"),
        add_reference: function!(b"Py_IncRef\0"),
        drop_reference: function!(b"Py_DecRef\0"),
    })
}

/// Files that are no part of the user's program.
fn is_library(file: &str) -> bool {
    file.contains("/site-packages/") || file.contains("/lib/python3") || file.starts_with('<')
}

/// The innermost line of the program's own files, or the innermost of all where a library runs alone.
pub(crate) fn place() -> Place {
    let Some(api) = api() else { return Place::default() };
    // SAFETY: both functions may be called from any thread; a thread that Python does not know has no frames.
    if unsafe { (api.is_initialized)() == 0 || (api.thread)().is_null() } {
        return Place::default();
    }
    // SAFETY: Python is initialized, and this thread is known to it; no lock of ours is held.
    let state = unsafe { (api.ensure)() };
    let found = innermost(api);
    // SAFETY: this is the state that was just given.
    unsafe { (api.release)(state) };
    found
}

fn innermost(api: &Api) -> Place {
    let mut first = None;
    // SAFETY: the calling thread has Python's lock; the frame is borrowed and gets a reference of its own.
    let mut frame = unsafe {
        let frame = (api.frame)();
        if !frame.is_null() {
            (api.add_reference)(frame);
        }
        frame
    };
    while !frame.is_null() {
        let place = place_of(api, frame);
        if !is_library(&place.file) {
            // SAFETY: the frame has a reference of ours.
            unsafe { (api.drop_reference)(frame) };
            return place;
        }
        first.get_or_insert(place);
        // SAFETY: as above; the function gives a new reference or null.
        frame = unsafe {
            let back = (api.back)(frame);
            (api.drop_reference)(frame);
            back
        };
    }
    first.unwrap_or_default()
}

fn place_of(api: &Api, frame: Object) -> Place {
    // SAFETY: the frame is alive and the lock is held; each new reference is dropped once.
    unsafe {
        let line = (api.line)(frame);
        let code = (api.code)(frame);
        let name = (api.attribute)(code, c"co_filename".as_ptr());
        let file = if name.is_null() {
            (api.clear_error)();
            String::new()
        } else {
            let text = (api.text)(name);
            let file = if text.is_null() {
                (api.clear_error)();
                String::new()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            };
            (api.drop_reference)(name);
            file
        };
        (api.drop_reference)(code);
        Place { file, line }
    }
}
