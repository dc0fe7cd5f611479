//! Functions of cuSPARSE whose sizes are not recorded: every output is set, and a size is an estimate.

use std::ffi::c_int;

use crate::abi::Out;
use crate::libraries::{INVALID_VALUE, SUCCESS};
use crate::report;
use crate::sparse::{Object, count, describe, discard, objects, put};

fn unrecorded() {
    report::report_estimate(
        "what cuSPARSE takes for this function is not recorded, and is assumed to be 0 bytes",
    );
}

/// The places of a product or sum of sparse matrices that hold something.
fn places(rows: i64, columns: i64, most: i64) -> i64 {
    report::report_estimate(
        "the places of a sum or product of sparse matrices depend on values, and are assumed to be as many as of both",
    );
    most.min(rows.saturating_mul(columns)).max(0)
}

fn nonzero(descriptor: usize) -> i64 {
    match objects().get(descriptor) {
        Some(Object::Sparse { nonzero, .. }) => *nonzero,
        _ => 0,
    }
}

/// Descriptors of which no size depends.
macro_rules! descriptors {
    ($( $create:ident $destroy:ident $kind:literal )*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $create(to: Out<usize>) -> c_int {
                report::report_call(stringify!($create));
                describe(to, Object::Other($kind))
            }

            #[unsafe(no_mangle)]
            extern "C" fn $destroy(descriptor: usize) -> c_int {
                report::report_call(stringify!($destroy));
                discard(descriptor, |object| matches!(object, Object::Other($kind)))
            }
        )*
    };
}

descriptors! {
    cusparseCreateMatDescr cusparseDestroyMatDescr "matrix"
    cusparseCreateBsrsv2Info cusparseDestroyBsrsv2Info "solver of a vector"
    cusparseCreateBsrsm2Info cusparseDestroyBsrsm2Info "solver of a matrix"
    cusparseSpGEMM_createDescr cusparseSpGEMM_destroyDescr "product"
    cusparseSpSV_createDescr cusparseSpSV_destroyDescr "solver of a vector"
    cusparseSpSM_createDescr cusparseSpSM_destroyDescr "solver of a matrix"
}

typed_entries! {
    [cusparseScsrgeam2_bufferSizeExt cusparseDcsrgeam2_bufferSizeExt cusparseCcsrgeam2_bufferSizeExt
        cusparseZcsrgeam2_bufferSizeExt]
    (
        handle: usize, _m: c_int, _n: c_int, _alpha: usize, _a: usize, _a_nonzero: c_int, _a_values: usize, _a_rows: usize,
        _a_columns: usize, _beta: usize, _b: usize, _b_nonzero: c_int, _b_values: usize, _b_rows: usize, _b_columns: usize,
        _c: usize, _c_values: usize, _c_rows: usize, _c_columns: usize, to: Out<usize>,
    ) {
        unrecorded();
        put(handle, to, 0)
    }

    [cusparseSbsrsv2_bufferSize cusparseDbsrsv2_bufferSize cusparseCbsrsv2_bufferSize cusparseZbsrsv2_bufferSize]
    (
        _handle: usize, _direction: c_int, _transposed: c_int, _rows: c_int, _nonzero: c_int, _a: usize, _values: usize,
        _offsets: usize, _columns: usize, _block: c_int, _info: usize, to: Out<c_int>,
    ) {
        unrecorded();
        to.put(0);
        SUCCESS
    }

    [cusparseSbsrsm2_bufferSize cusparseDbsrsm2_bufferSize cusparseCbsrsm2_bufferSize cusparseZbsrsm2_bufferSize]
    (
        _handle: usize, _direction: c_int, _transposed: c_int, _x_transposed: c_int, _rows: c_int, _n: c_int,
        _nonzero: c_int, _a: usize, _values: usize, _offsets: usize, _columns: usize, _block: c_int, _info: usize,
        to: Out<c_int>,
    ) {
        unrecorded();
        to.put(0);
        SUCCESS
    }

    // No pivot is zero.
    [cusparseXbsrsv2_zeroPivot cusparseXbsrsm2_zeroPivot]
    (_handle: usize, _info: usize, to: Out<c_int>) {
        to.put(-1);
        SUCCESS
    }

    [cusparseXcoosort_bufferSizeExt cusparseXcsrsort_bufferSizeExt]
    (handle: usize, _m: c_int, _n: c_int, _nonzero: c_int, _rows: usize, _columns: usize, to: Out<usize>) {
        unrecorded();
        put(handle, to, 0)
    }
}

entries! {
    fn cusparseXcsrgeam2Nnz(
        _handle: usize, m: c_int, n: c_int, _a: usize, a_nonzero: c_int, _a_rows: usize, _a_columns: usize, _b: usize,
        b_nonzero: c_int, _b_rows: usize, _b_columns: usize, _c: usize, _c_rows: usize, to: Out<c_int>, _work: usize,
    ) -> c_int {
        let most = i64::from(a_nonzero).saturating_add(b_nonzero.into());
        to.put(c_int::try_from(places(m.into(), n.into(), most)).unwrap_or(c_int::MAX));
        crate::values::note_computation();
        SUCCESS
    }

    fn cusparseSpSV_bufferSize(
        handle: usize, _transposed: c_int, _alpha: usize, _a: usize, _x: usize, _y: usize, _computes: c_int,
        _algorithm: c_int, _solver: usize, to: Out<usize>,
    ) -> c_int {
        unrecorded();
        put(handle, to, 0)
    }

    fn cusparseSpSM_bufferSize(
        handle: usize, _transposed: c_int, _b_transposed: c_int, _alpha: usize, _a: usize, _b: usize, _c: usize,
        _computes: c_int, _algorithm: c_int, _solver: usize, to: Out<usize>,
    ) -> c_int {
        unrecorded();
        put(handle, to, 0)
    }

    fn cusparseSpGEMM_workEstimation(
        handle: usize, _a_transposed: c_int, _b_transposed: c_int, _alpha: usize, _a: usize, _b: usize, _beta: usize,
        _c: usize, _computes: c_int, _algorithm: c_int, _product: usize, to: Out<usize>, buffer: usize,
    ) -> c_int {
        // The second call has a buffer and only works.
        if buffer == 0 {
            unrecorded();
        }
        put(handle, to, 0)
    }

    fn cusparseSpGEMM_compute(
        handle: usize, _a_transposed: c_int, _b_transposed: c_int, _alpha: usize, a: usize, b: usize, _beta: usize,
        c: usize, _computes: c_int, _algorithm: c_int, _product: usize, to: Out<usize>, _buffer: usize,
    ) -> c_int {
        let most = nonzero(a).saturating_add(nonzero(b));
        let shape = match objects().get(c) {
            Some(Object::Sparse { rows, columns, .. }) => (*rows, *columns),
            _ => return INVALID_VALUE,
        };
        let found = places(shape.0, shape.1, most);
        if let Some(Object::Sparse { nonzero, .. }) = objects().get_mut(c) {
            *nonzero = found;
        }
        put(handle, to, count(0))
    }
}

setting! {
    cusparseSetMatType cusparseSetMatFillMode cusparseSetMatDiagType cusparseSetMatIndexBase
}

computing! {
    cusparseXcoo2csr cusparseXcoosortByRow cusparseXcsrsort cusparseCreateIdentityPermutation cusparseSpGEMM_copy
    cusparseSpSV_analysis cusparseSpSV_solve cusparseSpSM_analysis cusparseSpSM_solve
    cusparseScsrgeam2 cusparseDcsrgeam2 cusparseCcsrgeam2 cusparseZcsrgeam2
    cusparseSbsrmm cusparseDbsrmm cusparseCbsrmm cusparseZbsrmm cusparseSbsrmv cusparseDbsrmv cusparseCbsrmv cusparseZbsrmv
    cusparseSbsrsv2_analysis cusparseDbsrsv2_analysis cusparseCbsrsv2_analysis cusparseZbsrsv2_analysis
    cusparseSbsrsv2_solve cusparseDbsrsv2_solve cusparseCbsrsv2_solve cusparseZbsrsv2_solve
    cusparseSbsrsm2_analysis cusparseDbsrsm2_analysis cusparseCbsrsm2_analysis cusparseZbsrsm2_analysis
    cusparseSbsrsm2_solve cusparseDbsrsm2_solve cusparseCbsrsm2_solve cusparseZbsrsm2_solve
}
