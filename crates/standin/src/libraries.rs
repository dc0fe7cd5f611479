//! Other libraries: what PyTorch calls when it loads, and sizes that must be set.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{c_int, c_longlong};

use crate::abi::Out;
use crate::report;
use crate::state::state;

const SUCCESS: c_int = 0;
const NOT_INITIALIZED: c_int = 1;

fn create(to: Out<usize>, kind: &'static str) -> c_int {
    to.put(state().objects.add(kind));
    SUCCESS
}

fn destroy(handle: usize) -> c_int {
    let removed = state().objects.remove(handle);
    if removed.is_some() { SUCCESS } else { NOT_INITIALIZED }
}

entries! {
    fn cusparseCreate(to: Out<usize>) -> c_int {
        create(to, "cuSPARSE handle")
    }

    fn cusparseDestroy(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cusolverDnCreate(to: Out<usize>) -> c_int {
        create(to, "cuSOLVER handle")
    }

    fn cusolverDnDestroy(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cufftCreate(to: Out<c_int>) -> c_int {
        // A plan is a small number.
        to.put(c_int::try_from(state().objects.add("cuFFT plan")).unwrap_or(1));
        SUCCESS
    }

    fn cufftDestroy(plan: c_int) -> c_int {
        destroy(usize::try_from(plan).unwrap_or(0))
    }

    fn cufftXtMakePlanMany(
        _plan: c_int,
        _rank: c_int,
        _sizes: usize,
        _in_embed: usize,
        _in_stride: c_longlong,
        _in_distance: c_longlong,
        _in_type: c_int,
        _out_embed: usize,
        _out_stride: c_longlong,
        _out_distance: c_longlong,
        _out_type: c_int,
        _batch: c_longlong,
        workspace: Out<usize>,
        _execution: c_int,
    ) -> c_int {
        report::estimate("the workspace of a Fourier transform is not recorded and is taken to be 0 bytes");
        workspace.put(0);
        SUCCESS
    }
}

setting! { cufftSetAutoAllocation cufftSetStream cufftSetWorkArea cusparseSetStream cusolverDnSetStream cusparseSetPointerMode }

computing! { cufftXtExec }
