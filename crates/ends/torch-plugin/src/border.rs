//! The border to C: nothing unwinds across it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::PluginError;

/// Set by a panic: an allocator that broke off in the middle of a step could hand out the same memory twice.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs a function that PyTorch calls. An error is written to standard error, and `failed` is returned.
#[inline]
pub(crate) fn run_hook<R>(failed: R, act: impl FnOnce() -> Result<R, PluginError>) -> R {
    match catch_panics(act) {
        Ok(done) => done,
        Err(error) => {
            print_error(&error);
            failed
        }
    }
}

/// Runs a function that the Python module calls. An error is kept for [`last_error`], and `failed` is
/// returned.
pub(crate) fn run_answer<R>(failed: R, act: impl FnOnce() -> Result<R, PluginError>) -> R {
    match catch_panics(act) {
        Ok(done) => done,
        Err(error) => {
            let text = c_text(error.text());
            LAST_ERROR.with(|last| *last.borrow_mut() = text);
            failed
        }
    }
}

/// The text of this thread's last error, valid until the thread's next error.
pub(crate) fn last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

/// Text for C, without the zeros that it may contain.
pub(crate) fn c_text(text: String) -> CString {
    let mut bytes = text.into_bytes();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// Copies a text from C; `name` is the argument's name for the error about null or bytes that are not UTF-8.
///
/// # Safety
///
/// `text` is null, or text that ends with a zero and does not change meanwhile.
#[expect(unsafe_code, reason = "text from C is known by its first byte alone")]
pub(crate) unsafe fn read_text(text: *const c_char, name: &'static str) -> Result<String, PluginError> {
    if text.is_null() {
        return Err(PluginError::Argument(name));
    }
    // SAFETY: the text is not null, and the caller says that it ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(str::to_owned).map_err(|_| PluginError::Argument(name))
}

#[inline]
fn catch_panics<R>(act: impl FnOnce() -> Result<R, PluginError>) -> Result<R, PluginError> {
    if IS_BROKEN.load(Ordering::Relaxed) {
        return Err(PluginError::Panicked);
    }
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        IS_BROKEN.store(true, Ordering::Relaxed);
        Err(PluginError::Panicked)
    })
}

// Not `eprintln!`, which panics where standard error is closed.
#[cold]
fn print_error(error: &PluginError) {
    let _ = writeln!(std::io::stderr(), "blockyard: {}", error.text());
}
