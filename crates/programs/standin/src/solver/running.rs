//! Functions of cuSOLVER that compute: nothing is computed, and each matrix is reported as solved. A matrix
//! that cuSOLVER could not solve would end most programs with an error.

use std::ffi::{c_int, c_longlong};

use crate::libraries::{NOT_INITIALIZED, finish_computation, is_of};
use crate::solver::HANDLE;

/// Ends a function: `count` reports at the address `reports` say success.
fn solved(handle: usize, reports: u64, count: i64) -> c_int {
    if is_of(handle, HANDLE) { finish_computation(reports, count) } else { NOT_INITIALIZED }
}

typed_entries! {
    [cusolverDnSgetrf cusolverDnDgetrf cusolverDnCgetrf cusolverDnZgetrf]
    (handle: usize, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _work: usize, _pivots: usize, info: u64) {
        solved(handle, info, 1)
    }

    [cusolverDnSgetrs cusolverDnDgetrs cusolverDnCgetrs cusolverDnZgetrs]
    (
        handle: usize, _trans: c_int, _n: c_int, _columns: c_int, _a: usize, _lda: c_int, _pivots: usize, _b: usize,
        _ldb: c_int, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSgeqrf cusolverDnDgeqrf cusolverDnCgeqrf cusolverDnZgeqrf]
    (
        handle: usize, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _tau: usize, _work: usize, _size: c_int, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSorgqr cusolverDnDorgqr cusolverDnCungqr cusolverDnZungqr]
    (
        handle: usize, _m: c_int, _n: c_int, _k: c_int, _a: usize, _lda: c_int, _tau: usize, _work: usize, _size: c_int,
        info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSormqr cusolverDnDormqr cusolverDnCunmqr cusolverDnZunmqr]
    (
        handle: usize, _side: c_int, _trans: c_int, _m: c_int, _n: c_int, _k: c_int, _a: usize, _lda: c_int, _tau: usize,
        _c: usize, _ldc: c_int, _work: usize, _size: c_int, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSgesvd cusolverDnDgesvd cusolverDnCgesvd cusolverDnZgesvd]
    (
        handle: usize, _u_job: c_int, _v_job: c_int, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _s: usize, _u: usize,
        _ldu: c_int, _v: usize, _ldv: c_int, _work: usize, _size: c_int, _real_work: usize, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSgesvdj cusolverDnDgesvdj cusolverDnCgesvdj cusolverDnZgesvdj]
    (
        handle: usize, _job: c_int, _economy: c_int, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _s: usize, _u: usize,
        _ldu: c_int, _v: usize, _ldv: c_int, _work: usize, _size: c_int, info: u64, _parameters: usize,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSgesvdjBatched cusolverDnDgesvdjBatched cusolverDnCgesvdjBatched cusolverDnZgesvdjBatched]
    (
        handle: usize, _job: c_int, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _s: usize, _u: usize, _ldu: c_int,
        _v: usize, _ldv: c_int, _work: usize, _size: c_int, info: u64, _parameters: usize, batch: c_int,
    ) {
        solved(handle, info, batch.into())
    }

    [cusolverDnSgesvdaStridedBatched cusolverDnDgesvdaStridedBatched cusolverDnCgesvdaStridedBatched
        cusolverDnZgesvdaStridedBatched]
    (
        handle: usize, _job: c_int, _rank: c_int, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _a_stride: c_longlong,
        _s: usize, _s_stride: c_longlong, _u: usize, _ldu: c_int, _u_stride: c_longlong, _v: usize, _ldv: c_int,
        _v_stride: c_longlong, _work: usize, _size: c_int, info: u64, _residual: usize, batch: c_int,
    ) {
        solved(handle, info, batch.into())
    }

    [cusolverDnSpotrf cusolverDnDpotrf cusolverDnCpotrf cusolverDnZpotrf]
    (handle: usize, _half: c_int, _n: c_int, _a: usize, _lda: c_int, _work: usize, _size: c_int, info: u64) {
        solved(handle, info, 1)
    }

    [cusolverDnSpotrfBatched cusolverDnDpotrfBatched cusolverDnCpotrfBatched cusolverDnZpotrfBatched]
    (handle: usize, _half: c_int, _n: c_int, _a: usize, _lda: c_int, info: u64, batch: c_int) {
        solved(handle, info, batch.into())
    }

    [cusolverDnSpotrs cusolverDnDpotrs cusolverDnCpotrs cusolverDnZpotrs]
    (
        handle: usize, _half: c_int, _n: c_int, _columns: c_int, _a: usize, _lda: c_int, _b: usize, _ldb: c_int, info: u64,
    ) {
        solved(handle, info, 1)
    }

    // One report for all matrices: whether the arguments are right.
    [cusolverDnSpotrsBatched cusolverDnDpotrsBatched cusolverDnCpotrsBatched cusolverDnZpotrsBatched]
    (
        handle: usize, _half: c_int, _n: c_int, _columns: c_int, _a: usize, _lda: c_int, _b: usize, _ldb: c_int, info: u64,
        _batch: c_int,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSsyevd cusolverDnDsyevd cusolverDnCheevd cusolverDnZheevd]
    (
        handle: usize, _job: c_int, _half: c_int, _n: c_int, _a: usize, _lda: c_int, _w: usize, _work: usize, _size: c_int,
        info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSsyevj cusolverDnDsyevj cusolverDnCheevj cusolverDnZheevj]
    (
        handle: usize, _job: c_int, _half: c_int, _n: c_int, _a: usize, _lda: c_int, _w: usize, _work: usize, _size: c_int,
        info: u64, _parameters: usize,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnSsyevjBatched cusolverDnDsyevjBatched cusolverDnCheevjBatched cusolverDnZheevjBatched]
    (
        handle: usize, _job: c_int, _half: c_int, _n: c_int, _a: usize, _lda: c_int, _w: usize, _work: usize, _size: c_int,
        info: u64, _parameters: usize, batch: c_int,
    ) {
        solved(handle, info, batch.into())
    }

    [cusolverDnSsytrf cusolverDnDsytrf cusolverDnCsytrf cusolverDnZsytrf]
    (
        handle: usize, _half: c_int, _n: c_int, _a: usize, _lda: c_int, _pivots: usize, _work: usize, _size: c_int,
        info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnXpotrf]
    (
        handle: usize, _parameters: usize, _half: c_int, _n: i64, _kind: c_int, _a: usize, _lda: i64, _computes: c_int,
        _work: usize, _size: usize, _host: usize, _host_size: usize, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnXpotrs]
    (
        handle: usize, _parameters: usize, _half: c_int, _n: i64, _columns: i64, _kind: c_int, _a: usize, _lda: i64,
        _b_kind: c_int, _b: usize, _ldb: i64, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnXgeqrf]
    (
        handle: usize, _parameters: usize, _m: i64, _n: i64, _kind: c_int, _a: usize, _lda: i64, _tau_kind: c_int,
        _tau: usize, _computes: c_int, _work: usize, _size: usize, _host: usize, _host_size: usize, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnXsyevd]
    (
        handle: usize, _parameters: usize, _job: c_int, _half: c_int, _n: i64, _kind: c_int, _a: usize, _lda: i64,
        _w_kind: c_int, _w: usize, _computes: c_int, _work: usize, _size: usize, _host: usize, _host_size: usize,
        info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnXsyevBatched]
    (
        handle: usize, _parameters: usize, _job: c_int, _half: c_int, _n: i64, _kind: c_int, _a: usize, _lda: i64,
        _w_kind: c_int, _w: usize, _computes: c_int, _work: usize, _size: usize, _host: usize, _host_size: usize,
        info: u64, batch: i64,
    ) {
        solved(handle, info, batch)
    }

    [cusolverDnXsytrs]
    (
        handle: usize, _half: c_int, _n: i64, _columns: i64, _kind: c_int, _a: usize, _lda: i64, _pivots: usize,
        _b_kind: c_int, _b: usize, _ldb: i64, _work: usize, _size: usize, _host: usize, _host_size: usize, info: u64,
    ) {
        solved(handle, info, 1)
    }

    [cusolverDnXgeev]
    (
        handle: usize, _parameters: usize, _left: c_int, _right: c_int, _n: i64, _kind: c_int, _a: usize, _lda: i64,
        _w_kind: c_int, _w: usize, _l_kind: c_int, _l: usize, _ldl: i64, _r_kind: c_int, _r: usize, _ldr: i64,
        _computes: c_int, _work: usize, _size: usize, _host: usize, _host_size: usize, info: u64,
    ) {
        solved(handle, info, 1)
    }
}
