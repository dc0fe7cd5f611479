//! The line of the program that runs.
#![expect(unsafe_code, reason = "PyO3 has no functions for frames, which Python's C interface has")]

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{ffi, intern};

// Python exports the function; the stable ABI, and so PyO3, leaves it out.
unsafe extern "C" {
    fn PyFrame_GetBack(frame: *mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
}

thread_local! {
    static FILE: RefCell<Option<Py<PyString>>> = const { RefCell::new(None) };
    static OWN_LINES: Cell<Option<(u32, u32)>> = const { Cell::new(None) };
}

/// Sets the program's file, as its code objects name it.
pub(crate) fn set_file(file: Option<Py<PyString>>) {
    drop(FILE.replace(file));
    OWN_LINES.set(None);
}

/// Sets the lines of the program that its reader wrote: the first, counted from 1, and the line after the
/// last.
#[cfg(target_os = "emscripten")]
pub(crate) fn set_own_lines(own: Option<(u32, u32)>) {
    OWN_LINES.set(own);
}

/// The line of the program's file in the innermost call of the file's code, counted from 1; 0 where no such
/// call runs. A call from the reader's own lines comes before the calls inside of it.
pub(crate) fn current(python: Python<'_>) -> u32 {
    let Some(file) = FILE.with_borrow(|file| file.as_ref().map(|file| file.bind(python).clone())) else {
        return 0;
    };
    let own = OWN_LINES.get();
    let mut innermost = None;
    // SAFETY: the interpreter is attached, and the frame that runs is borrowed from it.
    let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(python, ffi::PyEval_GetFrame().cast()) };
    while let Some(called) = frame {
        // SAFETY: `called` is a frame, and `PyFrame_GetCode` returns a new reference.
        let code = unsafe {
            Bound::from_owned_ptr_or_opt(python, ffi::PyFrame_GetCode(called.as_ptr().cast()).cast())
        };
        let name = code.and_then(|code| code.getattr(intern!(python, "co_filename")).ok());
        if name.is_some_and(|name| name.is(&file) || name.eq(&file).unwrap_or(false)) {
            // SAFETY: `called` is a frame.
            let line = unsafe { ffi::PyFrame_GetLineNumber(called.as_ptr().cast()) };
            let line = u32::try_from(line).unwrap_or(0);
            if own.is_none_or(|(first, end)| (first..end).contains(&line)) {
                return line;
            }
            innermost = innermost.or(Some(line));
        }
        // SAFETY: `called` is a frame, and `PyFrame_GetBack` returns a new reference or none.
        frame =
            unsafe { Bound::from_owned_ptr_or_opt(python, PyFrame_GetBack(called.as_ptr().cast()).cast()) };
    }
    innermost.unwrap_or(0)
}

/// The line of the program that runs.
#[pyfunction]
pub(crate) fn current_line(python: Python<'_>) -> u32 {
    current(python)
}
