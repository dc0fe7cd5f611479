//! cuBLAS and cuBLASLt: products are not computed. PyTorch allocates the workspaces itself.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{c_char, c_int};

use crate::abi::{Out, text};
use crate::libraries::{SUCCESS, destroy, finish_computation};
use crate::non_pytorch;
use crate::settings::settings;
use crate::state::state;

const INVALID_VALUE: c_int = 7;

const HANDLE: &str = "cuBLAS handle";
const DESCRIPTOR: &str = "cuBLASLt descriptor";

fn create(to: Out<usize>, kind: &'static str) -> c_int {
    to.put(state().objects.add(kind));
    SUCCESS
}

/// The version that a release of CUDA came with: 13.0 has 130002.
fn version() -> c_int {
    settings().cuda.saturating_mul(10).saturating_add(2)
}

/// The result of `cublasLtMatmulAlgoGetHeuristic` about one algorithm (`cublasLtMatmulHeuristicResult_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace: u64,
    status: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

entries! {
    fn cublasCreate_v2(to: Out<usize>) -> c_int {
        non_pytorch::follow(non_pytorch::NonPytorchUse::Blas);
        create(to, HANDLE)
    }

    fn cublasDestroy_v2(handle: usize) -> c_int {
        destroy(handle, HANDLE)
    }

    fn cublasGetMathMode(_handle: usize, to: Out<c_int>) -> c_int {
        to.put(0);
        SUCCESS
    }

    fn cublasGetPointerMode_v2(_handle: usize, to: Out<c_int>) -> c_int {
        to.put(0);
        SUCCESS
    }

    fn cublasGetVersion_v2(_handle: usize, to: Out<c_int>) -> c_int {
        to.put(version());
        SUCCESS
    }

    fn cublasGetStatusString(_status: c_int) -> *const c_char {
        text(c"a status of cuBLAS")
    }

    fn cublasLtGetVersion() -> usize {
        usize::try_from(version()).unwrap_or(0)
    }

    fn cublasLtGetCudartVersion() -> usize {
        usize::try_from(settings().cuda).unwrap_or(0)
    }

    fn cublasLtCreate(to: Out<usize>) -> c_int {
        create(to, HANDLE)
    }

    // Reports one algorithm that needs no workspace: PyTorch has allocated a workspace before it asks.
    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: usize,
        _operation: usize,
        _a: usize,
        _b: usize,
        _c: usize,
        _d: usize,
        _preference: usize,
        wanted: c_int,
        to: Out<Heuristic>,
        count: Out<c_int>,
    ) -> c_int {
        if wanted < 1 {
            return INVALID_VALUE;
        }
        to.put(Heuristic { algorithm: [0; 8], workspace: 0, status: SUCCESS, waves: 1.0, reserved: [0; 4] });
        count.put(1);
        SUCCESS
    }
}

objects! {
    create(DESCRIPTOR), destroy(DESCRIPTOR):
        cublasLtMatmulDescCreate cublasLtMatmulDescDestroy
        cublasLtMatmulPreferenceCreate cublasLtMatmulPreferenceDestroy
        cublasLtMatrixLayoutCreate cublasLtMatrixLayoutDestroy;
}

setting! {
    cublasSetMathMode cublasSetPointerMode_v2 cublasSetStream_v2 cublasSetWorkspace_v2 cublasSetAtomicsMode
    cublasLtMatmulDescSetAttribute cublasLtMatmulPreferenceSetAttribute cublasLtMatrixLayoutSetAttribute cublasLtDestroy
}

// The functions that PyTorch's operators call. Entry points for the others that the wheel names (those of
// MAGMA) are generated.
computing! {
    cublasLtMatmul
    cublasSgemm_v2 cublasDgemm_v2 cublasCgemm_v2 cublasZgemm_v2 cublasGemmEx cublasSgemmEx
    cublasSgemmStridedBatched cublasDgemmStridedBatched cublasCgemmStridedBatched cublasZgemmStridedBatched cublasGemmStridedBatchedEx
    cublasSgemmBatched cublasDgemmBatched cublasCgemmBatched cublasZgemmBatched
    cublasSgemv_v2 cublasDgemv_v2 cublasCgemv_v2 cublasZgemv_v2
    cublasSdot_v2 cublasDdot_v2 cublasCdotu_v2 cublasZdotu_v2 cublasCdotc_v2 cublasZdotc_v2 cublasDotEx
    cublasStrsm_v2 cublasDtrsm_v2 cublasCtrsm_v2 cublasZtrsm_v2
    cublasStrsmBatched cublasDtrsmBatched cublasCtrsmBatched cublasZtrsmBatched
    cublasStrmm_v2 cublasDtrmm_v2 cublasCtrmm_v2 cublasZtrmm_v2
}

// Functions that report on each matrix: the reports say that no matrix failed.
typed_entries! {
    [cublasSgetrfBatched cublasDgetrfBatched cublasCgetrfBatched cublasZgetrfBatched]
    (_handle: usize, _n: c_int, _a: usize, _lda: c_int, _pivots: usize, info: u64, batch: c_int) {
        finish_computation(info, batch.into())
    }

    // The host's report is on the arguments.
    [cublasSgetrsBatched cublasDgetrsBatched cublasCgetrsBatched cublasZgetrsBatched]
    (
        _handle: usize, _trans: c_int, _n: c_int, _columns: c_int, _a: usize, _lda: c_int, _pivots: usize, _b: usize,
        _ldb: c_int, info: Out<c_int>, _batch: c_int,
    ) {
        info.put(0);
        finish_computation(0, 0)
    }

    [cublasSgeqrfBatched cublasDgeqrfBatched cublasCgeqrfBatched cublasZgeqrfBatched]
    (
        _handle: usize, _m: c_int, _n: c_int, _a: usize, _lda: c_int, _tau: usize, info: Out<c_int>, _batch: c_int,
    ) {
        info.put(0);
        finish_computation(0, 0)
    }

    [cublasSgelsBatched cublasDgelsBatched cublasCgelsBatched cublasZgelsBatched]
    (
        _handle: usize, _trans: c_int, _m: c_int, _n: c_int, _columns: c_int, _a: usize, _lda: c_int, _c: usize,
        _ldc: c_int, info: Out<c_int>, device: u64, batch: c_int,
    ) {
        info.put(0);
        finish_computation(device, batch.into())
    }
}
