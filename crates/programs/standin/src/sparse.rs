//! cuSPARSE: descriptors keep shapes, and sizes of buffers are as recorded.
#![expect(unsafe_code, reason = "functions are exported under cuSPARSE's names")]

mod older;

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use blockyard_gpus::sparse::{Algorithm, Element, Matrix, product, product_at_places, product_with_vector};

use crate::abi::{Out, text};
use crate::handles::Handles;
use crate::libraries::{INVALID_VALUE, NOT_INITIALIZED, SUCCESS, create, destroy, is_of};
use crate::{non_pytorch, report};

const HANDLE: &str = "cuSPARSE handle";
/// `CUSPARSE_INDEX_64I`.
const WIDE: c_int = 3;
/// `CUSPARSE_ORDER_ROW`.
const ROW_MAJOR: c_int = 2;

/// The object that a descriptor describes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Object {
    Sparse {
        rows: i64,
        columns: i64,
        nonzero: i64,
        kind: c_int,
        is_wide: bool,
        is_compressed: bool,
    },
    Dense {
        rows: i64,
        columns: i64,
        order: c_int,
    },
    Vector {
        length: i64,
    },
    /// Settings of which no size depends, by their kind.
    Other(&'static str),
}

static OBJECTS: Mutex<Handles<Object>> = Mutex::new(Handles::above(0x7000_0000));

fn objects() -> MutexGuard<'static, Handles<Object>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives out a descriptor for an object.
pub(super) fn describe(to: Out<usize>, object: Object) -> c_int {
    if to.is_null() {
        return INVALID_VALUE;
    }
    to.put(objects().add(object));
    SUCCESS
}

/// Removes a descriptor of a kind; an error for any other handle.
fn discard(descriptor: usize, is_of_kind: impl FnOnce(&Object) -> bool) -> c_int {
    let mut objects = objects();
    if objects.get(descriptor).is_some_and(is_of_kind) {
        objects.remove(descriptor);
        SUCCESS
    } else {
        INVALID_VALUE
    }
}

/// The element type by CUDA's number for it.
fn element(kind: c_int) -> Option<Element> {
    Some(match kind {
        0 => Element::F32,
        1 => Element::F64,
        2 | 14 => Element::Half,
        4 => Element::C64,
        5 => Element::C128,
        _ => return None,
    })
}

/// A number that a caller gave; 0 for a negative one.
pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A sparse matrix, and whether its rows are compressed.
fn matrix(descriptor: usize) -> Option<(Matrix, bool)> {
    match objects().get(descriptor) {
        Some(Object::Sparse { nonzero, kind, is_wide, is_compressed, .. }) => {
            let matrix = Matrix { element: element(*kind)?, is_wide: *is_wide, nonzero: count(*nonzero) };
            Some((matrix, *is_compressed))
        }
        _ => None,
    }
}

/// Rows, columns and order of a dense matrix.
fn dense(descriptor: usize) -> Option<(i64, i64, c_int)> {
    match objects().get(descriptor) {
        Some(Object::Dense { rows, columns, order }) => Some((*rows, *columns, *order)),
        _ => None,
    }
}

/// Writes the bytes of a buffer for the caller, unless the library's handle is unknown.
pub(super) fn put(handle: usize, to: Out<usize>, bytes: u64) -> c_int {
    if !is_of(handle, HANDLE) {
        return NOT_INITIALIZED;
    }
    to.put(usize::try_from(bytes).unwrap_or(usize::MAX));
    SUCCESS
}

/// Bytes of the buffer for the product with a dense matrix, by the number of the algorithm; `None` where they
/// are not known.
fn of_product(a: usize, c: usize, is_transposed: bool, number: c_int) -> Option<u64> {
    let ((matrix, is_compressed), (.., order)) = (matrix(a)?, dense(c)?);
    let algorithm = match number {
        4 => Algorithm::First,
        6 => Algorithm::Second,
        _ => Algorithm::Default { is_row_major: order == ROW_MAJOR },
    };
    let is_short = matches!(matrix.element, Element::Half | Element::F32);
    match (is_compressed, number) {
        (true, 0 | 4 | 6) => Some(product(&matrix, algorithm)),
        // For a matrix of coordinates, only the second algorithm takes memory, for long elements.
        (false, number) if number != 2 || is_short || is_transposed => Some(0),
        _ => {
            report::report_estimate(
                "what cuSPARSE takes for a product of this kind is not recorded, and is assumed to be 0 bytes",
            );
            Some(0)
        }
    }
}

entries! {
    fn cusparseCreate(to: Out<usize>) -> c_int {
        non_pytorch::follow(non_pytorch::NonPytorchUse::Sparse);
        create(to, HANDLE)
    }

    fn cusparseDestroy(handle: usize) -> c_int {
        destroy(handle, HANDLE)
    }

    fn cusparseGetErrorString(_status: c_int) -> *const c_char {
        text(c"a status of cuSPARSE")
    }

    fn cusparseCreateCsr(
        to: Out<usize>, rows: i64, columns: i64, nonzero: i64, _offsets: usize, _places: usize, _values: usize,
        offset_kind: c_int, _place_kind: c_int, _base: c_int, kind: c_int,
    ) -> c_int {
        let is_wide = offset_kind == WIDE;
        describe(to, Object::Sparse { rows, columns, nonzero, kind, is_wide, is_compressed: true })
    }

    fn cusparseCreateCoo(
        to: Out<usize>, rows: i64, columns: i64, nonzero: i64, _row_places: usize, _places: usize, _values: usize,
        place_kind: c_int, _base: c_int, kind: c_int,
    ) -> c_int {
        let is_wide = place_kind == WIDE;
        describe(to, Object::Sparse { rows, columns, nonzero, kind, is_wide, is_compressed: false })
    }

    fn cusparseDestroySpMat(descriptor: usize) -> c_int {
        discard(descriptor, |object| matches!(object, Object::Sparse { .. }))
    }

    fn cusparseSpMatGetSize(descriptor: usize, to_rows: Out<i64>, to_columns: Out<i64>, to_nonzero: Out<i64>) -> c_int {
        let Some(Object::Sparse { rows, columns, nonzero, .. }) = objects().get(descriptor).copied() else {
            return INVALID_VALUE;
        };
        to_rows.put(rows);
        to_columns.put(columns);
        to_nonzero.put(nonzero);
        SUCCESS
    }

    fn cusparseCreateDnMat(
        to: Out<usize>, rows: i64, columns: i64, _leading: i64, _values: usize, _kind: c_int, order: c_int,
    ) -> c_int {
        describe(to, Object::Dense { rows, columns, order })
    }

    fn cusparseDestroyDnMat(descriptor: usize) -> c_int {
        discard(descriptor, |object| matches!(object, Object::Dense { .. }))
    }

    fn cusparseCreateDnVec(to: Out<usize>, length: i64, _values: usize, _kind: c_int) -> c_int {
        describe(to, Object::Vector { length })
    }

    fn cusparseDestroyDnVec(descriptor: usize) -> c_int {
        discard(descriptor, |object| matches!(object, Object::Vector { .. }))
    }

    fn cusparseSpMM_bufferSize(
        handle: usize, transposed: c_int, _b_transposed: c_int, _alpha: usize, a: usize, _b: usize, _beta: usize, c: usize,
        _computes: c_int, algorithm: c_int, to: Out<usize>,
    ) -> c_int {
        match of_product(a, c, transposed != 0, algorithm) {
            Some(bytes) => put(handle, to, bytes),
            None => INVALID_VALUE,
        }
    }

    fn cusparseSpMV_bufferSize(
        handle: usize, _transposed: c_int, _alpha: usize, a: usize, _x: usize, _beta: usize, y: usize, _computes: c_int,
        _algorithm: c_int, to: Out<usize>,
    ) -> c_int {
        let length = match objects().get(y) {
            Some(Object::Vector { length }) => *length,
            _ => return INVALID_VALUE,
        };
        let Some((matrix, is_compressed)) = matrix(a) else { return INVALID_VALUE };
        if !is_compressed {
            report::report_estimate("what cuSPARSE takes for coordinates times a vector is estimated as for compressed rows");
        }
        put(handle, to, product_with_vector(&matrix, count(length)))
    }

    fn cusparseSDDMM_bufferSize(
        handle: usize, _a_transposed: c_int, _b_transposed: c_int, _alpha: usize, a: usize, b: usize, _beta: usize, c: usize,
        _computes: c_int, _algorithm: c_int, to: Out<usize>,
    ) -> c_int {
        let (Some((rows, inner, _)), Some((_, columns, _)), Some((matrix, _))) = (dense(a), dense(b), matrix(c)) else {
            return INVALID_VALUE;
        };
        let (bytes, is_recorded) = product_at_places(&matrix, count(rows), count(inner), count(columns));
        if !is_recorded {
            report::report_estimate("what cuSPARSE takes for a product at the places of a sparse matrix is estimated");
        }
        put(handle, to, bytes)
    }
}

setting! {
    cusparseSetStream cusparseSetPointerMode cusparseCsrSetPointers cusparseCsrSetStridedBatch cusparseDnMatSetStridedBatch
    cusparseSpMatSetAttribute
}

computing! { cusparseSpMM cusparseSpMV cusparseSDDMM cusparseSDDMM_preprocess }

#[cfg(test)]
mod tests {
    use super::{
        cusparseCreate, cusparseCreateCsr, cusparseCreateDnMat, cusparseCreateDnVec, cusparseDestroySpMat,
        cusparseSpMM_bufferSize, cusparseSpMV_bufferSize,
    };
    use crate::abi::Out;
    use crate::libraries::{INVALID_VALUE, NOT_INITIALIZED, SUCCESS};

    #[test]
    fn buffers_follow_from_descriptors() {
        let (mut handle, mut a, mut c, mut y) = (0, 0, 0, 0);
        assert_eq!(cusparseCreate(Out::of(&mut handle)), SUCCESS);
        assert_eq!(cusparseCreateCsr(Out::of(&mut a), 100, 80, 2000, 0, 0, 0, 2, 2, 0, 1), SUCCESS);
        assert_eq!(cusparseCreateDnMat(Out::of(&mut c), 100, 16, 16, 0, 1, 2), SUCCESS);
        assert_eq!(cusparseCreateDnVec(Out::of(&mut y), 100, 0, 1), SUCCESS);
        let mut bytes = 7;
        let product = |handle, a, to: &mut usize| {
            cusparseSpMM_bufferSize(handle, 0, 0, 0, a, c, 0, c, 1, 6, Out::of(to))
        };
        assert_eq!(product(handle, a, &mut bytes), SUCCESS);
        assert_eq!(bytes, 339);
        assert_eq!(product(0, a, &mut bytes), NOT_INITIALIZED);
        assert_eq!(product(handle, c, &mut bytes), INVALID_VALUE);
        assert_eq!(cusparseSpMV_bufferSize(handle, 0, 0, a, y, 0, y, 1, 0, Out::of(&mut bytes)), SUCCESS);
        assert_eq!(bytes, 11);
        assert_eq!(cusparseDestroySpMat(a), SUCCESS);
        assert_eq!(product(handle, a, &mut bytes), INVALID_VALUE);
    }
}
