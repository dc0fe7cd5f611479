//! Descriptors outside of the backend interface: tensors, dropout, and descriptors of which nothing is read.
#![expect(unsafe_code, reason = "functions are exported under cuDNN's names")]

use std::ffi::{c_int, c_ulonglong};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{In, Out};
use crate::cudnn::recurrent::{LayerDescriptor, Sequence};
use crate::cudnn::{BAD_PARAM, SUCCESS};
use crate::handles::Handles;
use crate::settings::settings;

/// The object that a descriptor describes.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Tensor { kind: c_int, sizes: Vec<c_int>, strides: Vec<c_int> },
    Dropout(f32),
    Layer(LayerDescriptor),
    Sequence(Sequence),
    Other,
}

static OBJECTS: Mutex<Handles<Object>> = Mutex::new(Handles::above(0x5c00_0000));

/// Locks the table of the objects that cuDNN's handles name.
pub(super) fn objects() -> MutexGuard<'static, Handles<Object>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives out a descriptor for an object.
pub(super) fn create(to: Out<usize>, object: Object) -> c_int {
    to.put(objects().add(object));
    SUCCESS
}

/// Removes a descriptor; an error for a handle that was not given out.
pub(super) fn destroy(handle: usize) -> c_int {
    let removed = objects().remove(handle);
    if removed.is_some() { SUCCESS } else { BAD_PARAM }
}

/// Replaces the object of a descriptor; an error for a handle that was not given out.
pub(super) fn set(handle: usize, object: Object) -> c_int {
    match objects().get_mut(handle) {
        Some(found) => {
            *found = object;
            SUCCESS
        }
        None => BAD_PARAM,
    }
}

/// Bytes of the states of random generators: one state for each thread that a device can run at once.
fn dropout_states() -> usize {
    let gpu = &settings().gpu;
    let threads = u64::from(gpu.multiprocessors) * u64::from(gpu.threads_per_multiprocessor);
    usize::try_from(threads.saturating_mul(24)).unwrap_or(0)
}

entries! {
    fn cudnnCreateTensorDescriptor(to: Out<usize>) -> c_int {
        create(to, Object::Tensor { kind: 0, sizes: Vec::new(), strides: Vec::new() })
    }

    fn cudnnDestroyTensorDescriptor(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cudnnSetTensorNdDescriptor(handle: usize, kind: c_int, count: c_int, sizes: In<c_int>, strides: In<c_int>) -> c_int {
        let count = usize::try_from(count).unwrap_or(0);
        set(handle, Object::Tensor { kind, sizes: sizes.list(count), strides: strides.list(count) })
    }

    fn cudnnGetTensorNdDescriptor(
        handle: usize, wanted: c_int, kind: Out<c_int>, count: Out<c_int>, to_sizes: Out<c_int>, to_strides: Out<c_int>,
    ) -> c_int {
        let Some(Object::Tensor { kind: found, sizes, strides }) = objects().get(handle).cloned() else { return BAD_PARAM };
        kind.put(found);
        count.put(c_int::try_from(sizes.len()).unwrap_or(0));
        for (index, (size, stride)) in sizes.iter().zip(&strides).take(usize::try_from(wanted).unwrap_or(0)).enumerate() {
            to_sizes.put_at(index, *size);
            to_strides.put_at(index, *stride);
        }
        SUCCESS
    }

    fn cudnnCreateDropoutDescriptor(to: Out<usize>) -> c_int {
        create(to, Object::Dropout(0.0))
    }

    fn cudnnDestroyDropoutDescriptor(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cudnnDropoutGetStatesSize(_handle: usize, to: Out<usize>) -> c_int {
        to.put(dropout_states());
        SUCCESS
    }

    fn cudnnSetDropoutDescriptor(
        handle: usize, _library: usize, share: f32, _states: u64, _size: usize, _seed: c_ulonglong,
    ) -> c_int {
        set(handle, Object::Dropout(share))
    }

    fn cudnnRestoreDropoutDescriptor(
        handle: usize, _library: usize, share: f32, _states: u64, _size: usize, _seed: c_ulonglong,
    ) -> c_int {
        set(handle, Object::Dropout(share))
    }

    fn cudnnCreateFilterDescriptor(to: Out<usize>) -> c_int {
        create(to, Object::Tensor { kind: 0, sizes: Vec::new(), strides: Vec::new() })
    }

    fn cudnnDestroyFilterDescriptor(handle: usize) -> c_int {
        destroy(handle)
    }

    fn cudnnSetFilterNdDescriptor(handle: usize, kind: c_int, _format: c_int, count: c_int, sizes: In<c_int>) -> c_int {
        let sizes = sizes.list(usize::try_from(count).unwrap_or(0));
        set(handle, Object::Tensor { kind, strides: vec![0; sizes.len()], sizes })
    }

    fn cudnnGetFilterNdDescriptor(
        handle: usize, wanted: c_int, kind: Out<c_int>, format: Out<c_int>, count: Out<c_int>, to: Out<c_int>,
    ) -> c_int {
        let Some(Object::Tensor { kind: found, sizes, .. }) = objects().get(handle).cloned() else { return BAD_PARAM };
        kind.put(found);
        format.put(0);
        count.put(c_int::try_from(sizes.len()).unwrap_or(0));
        for (index, size) in sizes.iter().take(usize::try_from(wanted).unwrap_or(0)).enumerate() {
            to.put_at(index, *size);
        }
        SUCCESS
    }
}

objects! {
    create(Object::Other), destroy():
        cudnnCreateConvolutionDescriptor cudnnDestroyConvolutionDescriptor
        cudnnCreateActivationDescriptor cudnnDestroyActivationDescriptor
        cudnnCreateSpatialTransformerDescriptor cudnnDestroySpatialTransformerDescriptor
        cudnnCreateCTCLossDescriptor cudnnDestroyCTCLossDescriptor;
}

setting! {
    cudnnSetActivationDescriptor cudnnSetSpatialTransformerNdDescriptor cudnnSetConvolutionNdDescriptor
    cudnnSetConvolutionGroupCount cudnnSetConvolutionMathType cudnnSetCTCLossDescriptorEx cudnnSetCTCLossDescriptor_v9
}
