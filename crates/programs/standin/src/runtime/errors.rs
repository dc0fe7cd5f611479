//! Errors of the runtime.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{CStr, c_char, c_int};

use crate::abi::text;
use crate::memory::MemoryError;
use crate::state;

/// `cudaSuccess`.
pub(crate) const SUCCESS: c_int = 0;
/// `cudaErrorInvalidValue`.
pub(crate) const INVALID_VALUE: c_int = 1;
/// `cudaErrorMemoryAllocation`.
pub(crate) const MEMORY_ALLOCATION: c_int = 2;
/// `cudaErrorInvalidConfiguration`.
pub(crate) const INVALID_CONFIGURATION: c_int = 9;
/// `cudaErrorInvalidDevice`.
pub(crate) const INVALID_DEVICE: c_int = 101;
/// `cudaErrorInvalidResourceHandle`.
pub(crate) const INVALID_HANDLE: c_int = 400;
/// `cudaErrorNotReady`.
pub(crate) const NOT_READY: c_int = 600;
/// `cudaErrorAssert`.
pub(crate) const ASSERT: c_int = 710;
/// `cudaErrorNotSupported`.
pub(crate) const NOT_SUPPORTED: c_int = 801;

/// The runtime's number for a result.
#[expect(clippy::needless_pass_by_value, reason = "the last use of a result")]
pub(crate) fn code<T>(result: Result<T, MemoryError>) -> c_int {
    match result {
        Ok(_) => SUCCESS,
        Err(MemoryError::Full) => state::set_error(MEMORY_ALLOCATION),
        Err(MemoryError::NoSuchAddress) => state::set_error(INVALID_VALUE),
    }
}

/// Keeps an error for `cudaGetLastError`, and returns the error.
pub(crate) fn fail(error: c_int) -> c_int {
    state::set_error(error)
}

/// Name and sentence of an error, as CUDA's documentation has them.
fn words(error: c_int) -> (&'static CStr, &'static CStr) {
    match error {
        SUCCESS => (c"cudaSuccess", c"no error"),
        INVALID_VALUE => (c"cudaErrorInvalidValue", c"invalid argument"),
        MEMORY_ALLOCATION => (c"cudaErrorMemoryAllocation", c"out of memory"),
        INVALID_CONFIGURATION => (c"cudaErrorInvalidConfiguration", c"invalid configuration argument"),
        INVALID_DEVICE => (c"cudaErrorInvalidDevice", c"invalid device ordinal"),
        INVALID_HANDLE => (c"cudaErrorInvalidResourceHandle", c"invalid resource handle"),
        ASSERT => (c"cudaErrorAssert", c"the program waits for a value that a kernel would have computed"),
        NOT_SUPPORTED => (c"cudaErrorNotSupported", c"operation not supported"),
        _ => (c"cudaErrorUnknown", c"unknown error"),
    }
}

entries! {
    fn cudaGetLastError() -> c_int {
        state::take_error()
    }

    fn cudaPeekAtLastError() -> c_int {
        state::last_error()
    }

    fn cudaGetErrorName(error: c_int) -> *const c_char {
        text(words(error).0)
    }

    fn cudaGetErrorString(error: c_int) -> *const c_char {
        text(words(error).1)
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn errors_have_cudas_words() {
        assert_eq!(words(2).1, c"out of memory");
        assert_eq!(words(12345).0, c"cudaErrorUnknown");
    }
}
