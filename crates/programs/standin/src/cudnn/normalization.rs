//! Batch norm and the CTC loss, outside of the backend interface.
#![expect(unsafe_code, reason = "functions are exported under cuDNN's names")]

use std::ffi::c_int;

use blockyard_gpus::layers::{BatchNorm, ctc};

use crate::abi::Out;
use crate::cudnn::tensors::{Object, objects};
use crate::cudnn::{BAD_PARAM, SUCCESS};
use crate::report;

/// `CUDNN_BATCHNORM_SPATIAL_PERSISTENT`: PyTorch asks for it where channels lie last in memory.
const PERSISTENT: c_int = 2;
const FLOAT: c_int = 0;
const HALF: c_int = 2;

/// Type and sizes of a tensor.
fn tensor(handle: usize) -> Option<(c_int, Vec<u64>)> {
    match objects().get(handle) {
        Some(Object::Tensor { kind, sizes, .. }) => {
            Some((*kind, sizes.iter().map(|size| u64::try_from(*size).unwrap_or(0)).collect()))
        }
        _ => None,
    }
}

/// Writes the bytes that a batch norm of this input needs. Modes other than [`PERSISTENT`] need none, as
/// recorded.
fn put(mode: c_int, x: usize, to: Out<usize>, bytes: impl FnOnce(&BatchNorm) -> u64) -> c_int {
    if mode != PERSISTENT {
        to.put(0);
        return SUCCESS;
    }
    let Some((kind, sizes)) = tensor(x) else { return BAD_PARAM };
    let Some((images, [channels, places @ ..])) = sizes.split_first() else { return BAD_PARAM };
    if !matches!(kind, FLOAT | HALF) {
        report::report_estimate(
            "what cuDNN takes for a batch norm with channels last is recorded for float32 and float16 alone",
        );
    }
    let rows = places.iter().fold(*images, |rows, place| rows.saturating_mul(*place));
    let norm = BatchNorm { channels: *channels, rows, is_half: kind != FLOAT };
    to.put(usize::try_from(bytes(&norm)).unwrap_or(usize::MAX));
    SUCCESS
}

/// Writes the bytes of the workspace that the loss of these probabilities needs.
fn put_ctc(probabilities: usize, to: Out<usize>) -> c_int {
    let Some((_, sizes)) = tensor(probabilities) else { return BAD_PARAM };
    let [steps, batch, classes] = sizes[..] else { return BAD_PARAM };
    to.put(usize::try_from(ctc(steps, batch, classes)).unwrap_or(usize::MAX));
    SUCCESS
}

entries! {
    fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        _handle: usize, mode: c_int, _operation: c_int, x: usize, _z: usize, _y: usize, _scale: usize, _activation: usize,
        to: Out<usize>,
    ) -> c_int {
        put(mode, x, to, BatchNorm::forward)
    }

    fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        _handle: usize, mode: c_int, _operation: c_int, x: usize, _y: usize, _dy: usize, _dz: usize, _dx: usize, _scale: usize,
        _activation: usize, to: Out<usize>,
    ) -> c_int {
        put(mode, x, to, BatchNorm::backward)
    }

    // Recorded: always 0.
    fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        _handle: usize, _mode: c_int, _operation: c_int, _activation: usize, _x: usize, to: Out<usize>,
    ) -> c_int {
        to.put(0);
        SUCCESS
    }

    fn cudnnGetCTCLossWorkspaceSize_v8(
        _handle: usize, _algorithm: c_int, _loss: usize, probabilities: usize, _gradients: usize, to: Out<usize>,
    ) -> c_int {
        put_ctc(probabilities, to)
    }

    fn cudnnGetCTCLossWorkspaceSize(
        _handle: usize, probabilities: usize, _gradients: usize, _labels: usize, _label_lengths: usize, _input_lengths: usize,
        _algorithm: c_int, _loss: usize, to: Out<usize>,
    ) -> c_int {
        report::report_estimate("what cuDNN takes for a CTC loss with labels of the host is estimated as for labels of the device");
        put_ctc(probabilities, to)
    }
}

computing! {
    cudnnBatchNormalizationForwardTrainingEx cudnnBatchNormalizationForwardInference cudnnBatchNormalizationBackwardEx
    cudnnCTCLoss cudnnCTCLoss_v8
}

#[cfg(test)]
mod tests {
    use super::{
        PERSISTENT, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, cudnnGetCTCLossWorkspaceSize_v8,
    };
    use crate::abi::Out;
    use crate::cudnn::tensors::{Object, create};
    use crate::cudnn::{BAD_PARAM, SUCCESS};

    fn made(kind: i32, sizes: &[i32]) -> usize {
        let mut handle = 0;
        let strides = vec![1; sizes.len()];
        create(Out::of(&mut handle), Object::Tensor { kind, sizes: sizes.to_vec(), strides });
        handle
    }

    #[test]
    fn sizes_follow_from_descriptors() {
        let mut bytes = 7;
        let mut forward = |mode, x| {
            let status = cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                0,
                mode,
                0,
                x,
                0,
                0,
                0,
                0,
                Out::of(&mut bytes),
            );
            (status, bytes)
        };
        let x = made(0, &[2, 8, 20, 20]);
        assert_eq!(forward(1, x), (SUCCESS, 0));
        assert_eq!(forward(PERSISTENT, x), (SUCCESS, 7784));
        assert_eq!(forward(PERSISTENT, 1).0, BAD_PARAM);
        let probabilities = made(0, &[10, 16, 4]);
        assert_eq!(cudnnGetCTCLossWorkspaceSize_v8(0, 0, 0, probabilities, 0, Out::of(&mut bytes)), SUCCESS);
        assert_eq!(bytes, 16 * (160 + 40_880 + 2052));
    }
}
