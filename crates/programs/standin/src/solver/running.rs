//! Functions of cuSOLVER that compute: nothing is computed, and each matrix is reported as solved. A matrix
//! that cuSOLVER could not solve would end most programs with an error.

use std::ffi::c_int;

use crate::libraries::{NOT_INITIALIZED, finish_computation, is_of};
use crate::solver::HANDLE;

/// Ends a function: `count` reports at the address `reports` say success.
fn solved(handle: u64, reports: u64, count: i64) -> c_int {
    let is_known = usize::try_from(handle).is_ok_and(|handle| is_of(handle, HANDLE));
    if is_known { finish_computation(reports, count) } else { NOT_INITIALIZED }
}

/// The number of matrices that a caller gave as an `int`, of which an ABI leaves the upper half undefined.
fn int(batch: u64) -> i64 {
    i64::from(((batch & 0xffff_ffff) as u32).cast_signed())
}

/// Entry points by the places of the arguments that are read. All are integers or addresses, and each takes a
/// register or eight bytes of the stack; what comes after the last is not read (see `computing`).
macro_rules! solving {
    ($( $arguments:tt => $result:expr; [$($name:ident)*] )*) => {
        $( solving!(@each $arguments $result; $($name)*); )*
    };
    (@each $arguments:tt $result:expr;) => {};
    (@each ($($argument:pat_param),*) $result:expr; $name:ident $($rest:ident)*) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: u64),*) -> c_int {
            $crate::report::report_call(stringify!($name));
            $result
        }
        solving!(@each ($($argument),*) $result; $($rest)*);
    };
}

solving! {
    (handle, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnSgetrf cusolverDnDgetrf cusolverDnCgetrf cusolverDnZgetrf
        cusolverDnSpotrf cusolverDnDpotrf cusolverDnCpotrf cusolverDnZpotrf
    ]
    (handle, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnSgeqrf cusolverDnDgeqrf cusolverDnCgeqrf cusolverDnZgeqrf
        cusolverDnSpotrs cusolverDnDpotrs cusolverDnCpotrs cusolverDnZpotrs
        // One report for all matrices: whether the arguments are right.
        cusolverDnSpotrsBatched cusolverDnDpotrsBatched cusolverDnCpotrsBatched cusolverDnZpotrsBatched
        cusolverDnSsytrf cusolverDnDsytrf cusolverDnCsytrf cusolverDnZsytrf
    ]
    (handle, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnSgetrs cusolverDnDgetrs cusolverDnCgetrs cusolverDnZgetrs
        cusolverDnSorgqr cusolverDnDorgqr cusolverDnCungqr cusolverDnZungqr
        cusolverDnSsyevd cusolverDnDsyevd cusolverDnCheevd cusolverDnZheevd
        cusolverDnSsyevj cusolverDnDsyevj cusolverDnCheevj cusolverDnZheevj
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnXpotrs
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnXpotrf
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnSormqr cusolverDnDormqr cusolverDnCunmqr cusolverDnZunmqr
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnSgesvdj cusolverDnDgesvdj cusolverDnCgesvdj cusolverDnZgesvdj
        cusolverDnXgeqrf
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnSgesvd cusolverDnDgesvd cusolverDnCgesvd cusolverDnZgesvd
        cusolverDnXsyevd
        cusolverDnXsytrs
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, info) => solved(handle, info, 1); [
        cusolverDnXgeev
    ]
    (handle, _, _, _, _, info, batch) => solved(handle, info, int(batch)); [
        cusolverDnSpotrfBatched cusolverDnDpotrfBatched cusolverDnCpotrfBatched cusolverDnZpotrfBatched
    ]
    (handle, _, _, _, _, _, _, _, _, info, _, batch) => solved(handle, info, int(batch)); [
        cusolverDnSsyevjBatched cusolverDnDsyevjBatched cusolverDnCheevjBatched cusolverDnZheevjBatched
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, info, _, batch) => solved(handle, info, int(batch)); [
        cusolverDnSgesvdjBatched cusolverDnDgesvdjBatched cusolverDnCgesvdjBatched cusolverDnZgesvdjBatched
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, _, _, info, batch) => solved(handle, info, batch.cast_signed()); [
        cusolverDnXsyevBatched
    ]
    (handle, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, info, _, batch) => solved(handle, info, int(batch)); [
        cusolverDnSgesvdaStridedBatched cusolverDnDgesvdaStridedBatched cusolverDnCgesvdaStridedBatched
        cusolverDnZgesvdaStridedBatched
    ]
}
