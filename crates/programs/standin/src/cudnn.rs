//! cuDNN: descriptors keep the values that are set; each graph of operations is offered one engine.
#![expect(unsafe_code, reason = "functions are exported under cuDNN's names")]

mod attention;
mod attributes;
mod backend;
mod normalization;
mod recurrent;
mod tensors;
mod workspaces;

use std::ffi::{c_char, c_int};

pub(crate) use self::backend::is_trying_engines;
use crate::abi::{Out, put_text, text};
use crate::non_pytorch;
use crate::settings::settings;
use crate::state::state;

const SUCCESS: c_int = 0;
const NOT_INITIALIZED: c_int = 1001;
const BAD_PARAM: c_int = 2000;
const NOT_SUPPORTED: c_int = 3000;

const HANDLE: &str = "cuDNN handle";

entries! {
    fn cudnnGetVersion() -> usize {
        settings().cudnn
    }

    fn cudnnGetCudartVersion() -> usize {
        usize::try_from(settings().cuda).unwrap_or(0)
    }

    fn cudnnGetProperty(kind: c_int, to: Out<c_int>) -> c_int {
        let version = c_int::try_from(settings().cudnn).unwrap_or(0);
        to.put(match kind {
            0 => version / 10_000,
            1 => version / 100 % 100,
            _ => version % 100,
        });
        SUCCESS
    }

    fn cudnnGetErrorString(_status: c_int) -> *const c_char {
        text(c"a status of cuDNN")
    }

    fn cudnnGetLastErrorString(to: Out<u8>, room: usize) -> () {
        put_text(to, room, "");
    }

    fn cudnnCreate(to: Out<usize>) -> c_int {
        non_pytorch::follow(non_pytorch::NonPytorchUse::Dnn);
        to.put(state().objects.add(HANDLE));
        SUCCESS
    }

    fn cudnnDestroy(handle: usize) -> c_int {
        let removed = state().objects.remove(handle);
        if removed == Some(HANDLE) { SUCCESS } else { NOT_INITIALIZED }
    }

    fn cudnnGetStream(_handle: usize, to: Out<usize>) -> c_int {
        to.put(0);
        SUCCESS
    }
}

setting! { cudnnSetStream }

computing! {
    cudnnRNNForward cudnnRNNBackwardData_v8 cudnnRNNBackwardWeights_v8
    cudnnConvolutionForward cudnnConvolutionBackwardData cudnnConvolutionBackwardFilter cudnnConvolutionBiasActivationForward
    cudnnSpatialTfGridGeneratorForward cudnnSpatialTfGridGeneratorBackward cudnnSpatialTfSamplerForward cudnnSpatialTfSamplerBackward
}
