//! Looking values up among sorted ones.

use crate::arguments::{Operand, Unread};
use crate::autograd::GradModeGuard;
use crate::error::runtime;
use crate::iterator::result_type;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Tensor, Value};

use super::copy::{contiguous, to_dtype};
use super::creation::{empty, wrapped};

/// The values in the GPU's memory: a number goes there as a tensor without dimensions, of the type that
/// numbers of Python have.
fn wanted(values: Operand<'_>, sequence: &Tensor) -> Result<Tensor> {
    match values {
        Operand::Number(number) if sequence.device().is_cuda() => {
            let tensor = empty(&[], wrapped(number).dtype(), sequence.device())?;
            tensor.set_wrapped_number();
            Ok(tensor)
        }
        Operand::Number(number) => Ok(wrapped(number)),
        Operand::Tensor(tensor) => Ok(tensor.clone()),
    }
}

/// `searchsorted_out_cuda`: inputs with gaps, or of another type, are copied for the kernel.
fn search(sequence: &Tensor, values: &Tensor, is_int: bool, sorter: Option<&Tensor>) -> Result<Value> {
    let _no_grad = GradModeGuard::new(false);
    if sequence.dim() != 1 {
        let batch = |tensor: &Tensor| tensor.shape().split_last().map(|(_, batch)| batch.to_vec());
        if sequence.dim() != values.dim() || batch(sequence) != batch(values) {
            return runtime(format!(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries \
                 tensor and input value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
                sequence.shape(),
                values.shape()
            ));
        }
    }
    let result = empty(&values.shape(), if is_int { Dtype::I32 } else { Dtype::I64 }, values.device())?;
    if values.numel() == 0 {
        return Ok(result.into());
    }
    let mut read = contiguous(values)?;
    let mut bounds = contiguous(sequence)?;
    let order = sorter.map(contiguous).transpose()?;
    if values.dtype() != sequence.dtype() {
        let common = result_type(&[sequence, values]);
        read = to_dtype(&read, common)?;
        bounds = to_dtype(&bounds, common)?;
    }
    drop(order);
    drop(bounds);
    drop(read);
    Ok(result.into())
}

fn searchsorted(
    sequence: &Tensor,
    values: Operand<'_>,
    is_int: bool,
    right: bool,
    side: Option<&str>,
    sorter: Option<&Tensor>,
) -> Result<Value> {
    let values = wanted(values, sequence)?;
    if side == Some("left") && right {
        return runtime(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True",
        );
    }
    search(sequence, &values, is_int, sorter)
}

fn bucketize(values: Operand<'_>, boundaries: &Tensor, is_int: bool, _right: Unread) -> Result<Value> {
    if boundaries.dim() != 1 {
        return runtime(format!("boundaries tensor must be 1 dimension, but got dim({})", boundaries.dim()));
    }
    let values = wanted(values, boundaries)?;
    search(boundaries, &values, is_int, None)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "searchsorted(Tensor sorted_sequence, Operand self, *, bool out_int32=False, bool right=False, str? side=None, \
         Tensor? sorter=None)",
        searchsorted,
    ),
    op!("bucketize(Operand self, Tensor boundaries, *, bool out_int32=False, bool right=False)", bucketize),
];
