//! cuSOLVER: sizes of workspaces as recorded, and functions that say success without computing.
#![expect(unsafe_code, reason = "functions are exported under cuSOLVER's names")]

mod running;

use std::ffi::{c_int, c_longlong};

use blockyard_gpus::solver::{self, Element};

use crate::abi::Out;
use crate::libraries::{INVALID_VALUE, NOT_INITIALIZED, SUCCESS, create, destroy, is_of};
use crate::{non_pytorch, report};

const HANDLE: &str = "cuSOLVER handle";
const PARAMETERS: &str = "cuSOLVER parameters";
const JACOBI_VALUES: &str = "cuSOLVER parameters of gesvdj";
const JACOBI_EIGENVALUES: &str = "cuSOLVER parameters of syevj";

/// A length that a caller gave; 0 for a negative number.
fn length(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn note(rows: i64, columns: i64) {
    if !solver::is_recorded(length(rows), length(columns)) {
        report::report_estimate(
            "what cuSOLVER takes for a matrix of more than 4,200 rows or columns is not recorded, and is estimated",
        );
    }
}

/// Writes how many elements a function needs for matrices of these rows and columns. cuSOLVER refuses counts
/// beyond an `int`.
fn put(handle: usize, to: Out<c_int>, shape: [c_int; 2], elements: u64) -> c_int {
    if !is_of(handle, HANDLE) {
        return NOT_INITIALIZED;
    }
    let Ok(elements) = c_int::try_from(elements) else { return INVALID_VALUE };
    if shape.iter().any(|length| *length < 0) {
        return INVALID_VALUE;
    }
    note(shape[0].into(), shape[1].into());
    to.put(elements);
    SUCCESS
}

/// Writes how many bytes of the device a function needs, and 0 for the bytes of the host, which are not of a
/// device's memory.
fn put_bytes(
    handle: usize,
    device: Out<usize>,
    host: Out<usize>,
    shape: [i64; 2],
    bytes: Option<u64>,
) -> c_int {
    if !is_of(handle, HANDLE) {
        return NOT_INITIALIZED;
    }
    let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else { return INVALID_VALUE };
    if shape.iter().any(|length| *length < 0) {
        return INVALID_VALUE;
    }
    note(shape[0], shape[1]);
    device.put(bytes);
    host.put(0);
    SUCCESS
}

/// The type of a matrix by CUDA's number for it.
fn element(number: c_int) -> Option<Element> {
    match number {
        0 => Some(Element::F32),
        1 => Some(Element::F64),
        4 => Some(Element::C64),
        5 => Some(Element::C128),
        _ => None,
    }
}

const UPPER: c_int = 1;

/// Entry points of the four types, in the order of `Element`, with the same arguments. The body may use the
/// type.
macro_rules! typed {
    ($( [$($name:ident)*] |$element:ident| $arguments:tt $body:block )*) => {
        $( typed!(@each [$($name)*] [F32 F64 C64 C128] $element $arguments $body); )*
    };
    (@each [$($name:ident)*] [$($kind:ident)*] $element:ident $arguments:tt $body:block) => {
        typed!(@zip [$($name $kind,)*] $element $arguments $body);
    };
    (@zip [] $element:ident $arguments:tt $body:block) => {};
    (@zip [$name:ident $kind:ident, $($rest:tt)*] $element:ident ($($argument:ident : $type:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> c_int {
            report::report_call(stringify!($name));
            let $element = Element::$kind;
            let _ = $element;
            $body
        }
        typed!(@zip [$($rest)*] $element ($($argument: $type),*) $body);
    };
}

typed! {
    [cusolverDnSgetrf_bufferSize cusolverDnDgetrf_bufferSize cusolverDnCgetrf_bufferSize cusolverDnZgetrf_bufferSize]
    |element| (handle: usize, rows: c_int, columns: c_int, _a: usize, _lda: c_int, to: Out<c_int>) {
        let shape = [rows, columns];
        put(handle, to, shape, solver::getrf(element, length(rows.into()), length(columns.into())))
    }

    [cusolverDnSgeqrf_bufferSize cusolverDnDgeqrf_bufferSize cusolverDnCgeqrf_bufferSize cusolverDnZgeqrf_bufferSize]
    |_element| (handle: usize, rows: c_int, columns: c_int, _a: usize, _lda: c_int, to: Out<c_int>) {
        put(handle, to, [rows, columns], solver::geqrf(length(columns.into())))
    }

    [cusolverDnSorgqr_bufferSize cusolverDnDorgqr_bufferSize cusolverDnCungqr_bufferSize cusolverDnZungqr_bufferSize]
    |_element| (
        handle: usize, rows: c_int, columns: c_int, reflectors: c_int, _a: usize, _lda: c_int, _tau: usize, to: Out<c_int>,
    ) {
        let [m, n, k] = [rows, columns, reflectors].map(|number| length(number.into()));
        put(handle, to, [rows, columns], solver::orgqr(m, n, k))
    }

    [cusolverDnSormqr_bufferSize cusolverDnDormqr_bufferSize cusolverDnCunmqr_bufferSize cusolverDnZunmqr_bufferSize]
    |_element| (
        handle: usize, side: c_int, _transposed: c_int, rows: c_int, columns: c_int, reflectors: c_int, _a: usize, _lda: c_int,
        _tau: usize, _c: usize, _ldc: c_int, to: Out<c_int>,
    ) {
        let [m, n, k] = [rows, columns, reflectors].map(|number| length(number.into()));
        put(handle, to, [rows, columns], solver::ormqr(side == 0, m, n, k))
    }

    [cusolverDnSgesvd_bufferSize cusolverDnDgesvd_bufferSize cusolverDnCgesvd_bufferSize cusolverDnZgesvd_bufferSize]
    |_element| (handle: usize, rows: c_int, columns: c_int, to: Out<c_int>) {
        put(handle, to, [rows, columns], solver::gesvd(length(rows.into()), length(columns.into())))
    }

    [cusolverDnSgesvdj_bufferSize cusolverDnDgesvdj_bufferSize cusolverDnCgesvdj_bufferSize cusolverDnZgesvdj_bufferSize]
    |_element| (
        handle: usize, _vectors: c_int, economy: c_int, rows: c_int, columns: c_int, _a: usize, _lda: c_int, _s: usize,
        _u: usize, _ldu: c_int, _v: usize, _ldv: c_int, to: Out<c_int>, _parameters: usize,
    ) {
        let elements = solver::gesvdj(length(rows.into()), length(columns.into()), economy != 0);
        put(handle, to, [rows, columns], elements)
    }

    [cusolverDnSgesvdjBatched_bufferSize cusolverDnDgesvdjBatched_bufferSize cusolverDnCgesvdjBatched_bufferSize
        cusolverDnZgesvdjBatched_bufferSize]
    |_element| (
        handle: usize, _vectors: c_int, rows: c_int, columns: c_int, _a: usize, _lda: c_int, _s: usize, _u: usize,
        _ldu: c_int, _v: usize, _ldv: c_int, to: Out<c_int>, _parameters: usize, _batch: c_int,
    ) {
        put(handle, to, [rows, columns], solver::gesvdj_batched())
    }

    [cusolverDnSgesvdaStridedBatched_bufferSize cusolverDnDgesvdaStridedBatched_bufferSize
        cusolverDnCgesvdaStridedBatched_bufferSize cusolverDnZgesvdaStridedBatched_bufferSize]
    |element| (
        handle: usize, _vectors: c_int, _rank: c_int, rows: c_int, columns: c_int, _a: usize, _lda: c_int,
        _a_stride: c_longlong, _s: usize, _s_stride: c_longlong, _u: usize, _ldu: c_int, _u_stride: c_longlong, _v: usize,
        _ldv: c_int, _v_stride: c_longlong, to: Out<c_int>, batch: c_int,
    ) {
        let [m, n, batch] = [rows, columns, batch].map(|number| length(number.into()));
        put(handle, to, [rows, columns], solver::gesvda_batched(element, m, n, batch))
    }

    [cusolverDnSpotrf_bufferSize cusolverDnDpotrf_bufferSize cusolverDnCpotrf_bufferSize cusolverDnZpotrf_bufferSize]
    |element| (handle: usize, half: c_int, rows: c_int, _a: usize, _lda: c_int, to: Out<c_int>) {
        put(handle, to, [rows, rows], solver::potrf(element, length(rows.into()), half == UPPER))
    }

    [cusolverDnSsyevd_bufferSize cusolverDnDsyevd_bufferSize cusolverDnCheevd_bufferSize cusolverDnZheevd_bufferSize]
    |_element| (
        handle: usize, _vectors: c_int, _half: c_int, rows: c_int, _a: usize, _lda: c_int, _w: usize, to: Out<c_int>,
    ) {
        put(handle, to, [rows, rows], solver::syevd(length(rows.into())))
    }

    [cusolverDnSsyevj_bufferSize cusolverDnDsyevj_bufferSize cusolverDnCheevj_bufferSize cusolverDnZheevj_bufferSize]
    |_element| (
        handle: usize, _vectors: c_int, _half: c_int, rows: c_int, _a: usize, _lda: c_int, _w: usize, to: Out<c_int>,
        _parameters: usize,
    ) {
        put(handle, to, [rows, rows], solver::syevj(length(rows.into())))
    }

    [cusolverDnSsyevjBatched_bufferSize cusolverDnDsyevjBatched_bufferSize cusolverDnCheevjBatched_bufferSize
        cusolverDnZheevjBatched_bufferSize]
    |_element| (
        handle: usize, _vectors: c_int, _half: c_int, rows: c_int, _a: usize, _lda: c_int, _w: usize, to: Out<c_int>,
        _parameters: usize, batch: c_int,
    ) {
        put(handle, to, [rows, rows], solver::syevj_batched(length(rows.into()), length(batch.into())))
    }

    [cusolverDnSsytrf_bufferSize cusolverDnDsytrf_bufferSize cusolverDnCsytrf_bufferSize cusolverDnZsytrf_bufferSize]
    |element| (handle: usize, rows: c_int, _a: usize, _lda: c_int, to: Out<c_int>) {
        put(handle, to, [rows, rows], solver::sytrf(element, length(rows.into())))
    }
}

entries! {
    fn cusolverDnCreate(to: Out<usize>) -> c_int {
        non_pytorch::follow(non_pytorch::NonPytorchUse::Solver);
        create(to, HANDLE)
    }

    fn cusolverDnDestroy(handle: usize) -> c_int {
        destroy(handle, HANDLE)
    }

    fn cusolverDnXpotrf_bufferSize(
        handle: usize, _parameters: usize, half: c_int, rows: i64, kind: c_int, _a: usize, _lda: i64, _computes: c_int,
        device: Out<usize>, host: Out<usize>,
    ) -> c_int {
        let bytes = element(kind).map(|kind| solver::potrf_bytes(kind, length(rows), half == UPPER));
        put_bytes(handle, device, host, [rows, rows], bytes)
    }

    fn cusolverDnXgeqrf_bufferSize(
        handle: usize, _parameters: usize, rows: i64, columns: i64, kind: c_int, _a: usize, _lda: i64, _tau_kind: c_int,
        _tau: usize, _computes: c_int, device: Out<usize>, host: Out<usize>,
    ) -> c_int {
        let bytes = element(kind).map(|kind| solver::geqrf_bytes(kind, length(columns)));
        put_bytes(handle, device, host, [rows, columns], bytes)
    }

    fn cusolverDnXsyevd_bufferSize(
        handle: usize, _parameters: usize, _vectors: c_int, _half: c_int, rows: i64, kind: c_int, _a: usize, _lda: i64,
        _w_kind: c_int, _w: usize, _computes: c_int, device: Out<usize>, host: Out<usize>,
    ) -> c_int {
        let bytes = element(kind).map(|kind| solver::syevd_bytes(kind, length(rows), 1));
        put_bytes(handle, device, host, [rows, rows], bytes)
    }

    fn cusolverDnXsyevBatched_bufferSize(
        handle: usize, _parameters: usize, _vectors: c_int, _half: c_int, rows: i64, kind: c_int, _a: usize, _lda: i64,
        _w_kind: c_int, _w: usize, _computes: c_int, device: Out<usize>, host: Out<usize>, batch: i64,
    ) -> c_int {
        let bytes = element(kind).map(|kind| solver::syevd_bytes(kind, length(rows), length(batch)));
        put_bytes(handle, device, host, [rows, rows], bytes)
    }

    fn cusolverDnXgeev_bufferSize(
        handle: usize, _parameters: usize, _left: c_int, _right: c_int, rows: i64, kind: c_int, _a: usize, _lda: i64,
        _w_kind: c_int, _w: usize, _l_kind: c_int, _l: usize, _ldl: i64, _r_kind: c_int, _r: usize, _ldr: i64,
        _computes: c_int, device: Out<usize>, host: Out<usize>,
    ) -> c_int {
        let bytes = element(kind).map(|kind| solver::geev_bytes(kind, length(rows)));
        put_bytes(handle, device, host, [rows, rows], bytes)
    }

    // Recorded for 600 shapes of the four types: always 0.
    fn cusolverDnXsytrs_bufferSize(
        handle: usize, _half: c_int, rows: i64, columns: i64, _kind: c_int, _a: usize, _lda: i64, _pivots: usize,
        _b_kind: c_int, _b: usize, _ldb: i64, device: Out<usize>, host: Out<usize>,
    ) -> c_int {
        put_bytes(handle, device, host, [rows, columns], Some(0))
    }
}

objects! {
    create(PARAMETERS), destroy(PARAMETERS): cusolverDnCreateParams cusolverDnDestroyParams;
    create(JACOBI_VALUES), destroy(JACOBI_VALUES): cusolverDnCreateGesvdjInfo cusolverDnDestroyGesvdjInfo;
    create(JACOBI_EIGENVALUES), destroy(JACOBI_EIGENVALUES): cusolverDnCreateSyevjInfo cusolverDnDestroySyevjInfo;
}

setting! { cusolverDnSetStream cusolverDnXgesvdjSetTolerance cusolverDnXgesvdjSetMaxSweeps cusolverDnXgesvdjSetSortEig }

#[cfg(test)]
mod tests {
    use super::{
        cusolverDnCreate, cusolverDnDestroy, cusolverDnSgetrf_bufferSize, cusolverDnXgeev_bufferSize,
    };
    use crate::abi::Out;
    use crate::libraries::{INVALID_VALUE, NOT_INITIALIZED, SUCCESS};

    #[test]
    fn a_size_needs_a_handle_and_a_shape() {
        let (mut handle, mut size) = (0_usize, -1);
        assert_eq!(cusolverDnCreate(Out::of(&mut handle)), SUCCESS);
        assert_eq!(cusolverDnSgetrf_bufferSize(0, 64, 64, 0, 64, Out::of(&mut size)), NOT_INITIALIZED);
        assert_eq!(cusolverDnSgetrf_bufferSize(handle, -1, 64, 0, 64, Out::of(&mut size)), INVALID_VALUE);
        assert_eq!(size, -1);
        assert_eq!(cusolverDnSgetrf_bufferSize(handle, 64, 64, 0, 64, Out::of(&mut size)), SUCCESS);
        assert_eq!(size, 320);
        let (mut device, mut host) = (0, 7);
        let geev = |kind, device: &mut usize, host: &mut usize| {
            let places = (Out::of(device), Out::of(host));
            cusolverDnXgeev_bufferSize(
                handle, 0, 0, 1, 16, kind, 0, 16, 4, 0, 0, 0, 16, 0, 0, 16, 0, places.0, places.1,
            )
        };
        assert_eq!(geev(0, &mut device, &mut host), SUCCESS);
        assert_eq!((device, host), (133_632, 0));
        assert_eq!(geev(2, &mut device, &mut host), INVALID_VALUE);
        assert_eq!(cusolverDnDestroy(handle), SUCCESS);
        assert_eq!(cusolverDnDestroy(handle), NOT_INITIALIZED);
    }
}
