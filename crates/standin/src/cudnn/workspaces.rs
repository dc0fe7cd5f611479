//! What cuDNN takes beside the operands.

use crate::cudnn::backend::Convolution;
use crate::cudnn::recurrent::{Layer, Sequence};

/// Bytes, and why they are an estimate.
pub(super) fn of_convolution(_convolution: &Convolution) -> (u64, Option<&'static str>) {
    (0, Some("cuDNN's workspace of a convolution is not recorded and is taken to be 0 bytes"))
}

/// Bytes of workspace and reserve of a recurrent layer, and why they are an estimate.
pub(super) fn of_layer(
    _layer: &Layer,
    _sequence: &Sequence,
    _is_training: bool,
) -> ([u64; 2], Option<&'static str>) {
    ([0, 0], Some("cuDNN's workspace of a recurrent layer is not recorded and is taken to be 0 bytes"))
}
