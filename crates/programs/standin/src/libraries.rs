//! Handles of cuBLAS, cuSOLVER, cuSPARSE and cuFFT, and the statuses that their functions share.

use std::ffi::c_int;

use crate::abi::Out;
use crate::state::state;

/// `CUBLAS_STATUS_SUCCESS`, `CUSOLVER_STATUS_SUCCESS`, `CUSPARSE_STATUS_SUCCESS`, `CUFFT_SUCCESS`.
pub(crate) const SUCCESS: c_int = 0;
/// `CUBLAS_STATUS_NOT_INITIALIZED`, `CUSOLVER_STATUS_NOT_INITIALIZED`, `CUSPARSE_STATUS_NOT_INITIALIZED`,
/// `CUFFT_INVALID_PLAN`: the handle was not given out.
pub(crate) const NOT_INITIALIZED: c_int = 1;
/// `CUSOLVER_STATUS_INVALID_VALUE`, `CUSPARSE_STATUS_INVALID_VALUE`.
pub(crate) const INVALID_VALUE: c_int = 3;

/// Gives out a handle for an object of this kind.
pub(crate) fn create(to: Out<usize>, kind: &'static str) -> c_int {
    if to.is_null() {
        return INVALID_VALUE;
    }
    to.put(state().objects.add(kind));
    SUCCESS
}

/// Removes an object of this kind; an error for any other handle.
pub(crate) fn destroy(handle: usize, kind: &str) -> c_int {
    if is_of(handle, kind) {
        state().objects.remove(handle);
        SUCCESS
    } else {
        NOT_INITIALIZED
    }
}

/// Whether the handle was given out for this kind of object.
pub(crate) fn is_of(handle: usize, kind: &str) -> bool {
    state().objects.get(handle) == Some(&kind)
}

/// Ends a function that computes on the device: the bytes that it would write become unknown, except for its
/// reports on `count` matrices at `reports`, which say success.
pub(crate) fn finish_computation(reports: u64, count: i64) -> c_int {
    crate::values::note_computation();
    let bytes = u64::try_from(count).unwrap_or(0).saturating_mul(4);
    if reports == 0 || bytes == 0 {
        return SUCCESS;
    }
    if state().devices.fill(reports, 0, bytes).is_ok() { SUCCESS } else { INVALID_VALUE }
}
