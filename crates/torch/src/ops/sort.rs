//! Sorting, and what CUB takes for it.

use crate::{Device, Dtype, Result, Tensor};

use super::creation::empty;

/// `randperm` on a GPU.
pub(crate) fn randperm(count: i64, dtype: Dtype, device: Device) -> Result<Tensor> {
    empty(&[count], dtype, device)
}
