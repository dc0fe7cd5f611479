//! `einsum`.

use crate::error::not_implemented;
use crate::{Result, Tensor};

pub(crate) fn einsum(equation: &str, _operands: &[Tensor]) -> Result<Tensor> {
    not_implemented(format!("einsum(\"{equation}\") is not there; write it with permute, reshape and bmm"))
}
