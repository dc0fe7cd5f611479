//! `out=`: an operator of one kernel writes into a tensor of the caller's.

use crate::error::{not_implemented, runtime};
use crate::{Dtype, Result, Tensor, Value, session};

/// The tensor of `out=` that the running operator's result goes into, resized to the result's shape
/// (`resize_output`). `None` for a call without `out=`.
pub(crate) fn take(shape: &[i64], strides: &[i64], dtype: Dtype) -> Result<Option<Tensor>> {
    let Some(out) = session().current_origin.out.take() else { return Ok(None) };
    let to = out.dtype();
    if (dtype.is_floating() && to.is_integral()) || (dtype.is_complex() && !to.is_complex()) {
        return runtime(format!(
            "result type {} can't be cast to the desired output type {}",
            dtype.scalar_name(),
            to.scalar_name()
        ));
    }
    out.bump_version();
    if *out.shape() == *shape {
        return Ok(Some(out));
    }
    let count = shape.iter().fold(1_i64, |count, size| count.saturating_mul(*size)).max(0) as u64;
    let bytes = count.saturating_mul(to.size());
    if out.offset() != 0 {
        return not_implemented("out= of a view that has another shape than the result is not modeled");
    }
    if out.storage().bytes() < bytes {
        out.storage().resize(bytes)?;
    }
    out.set_geometry(shape, strides, 0);
    Ok(Some(out))
}

/// Runs an operator that writes into `out`.
pub(crate) fn with<'a, T>(
    out: &Tensor,
    mut arguments: impl Iterator<Item = &'a Value>,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let requires = |value: &Value| matches!(value, Value::Tensor(tensor) if tensor.requires_grad());
    if crate::autograd::GradMode::is_enabled() && (out.requires_grad() || arguments.any(requires)) {
        return runtime(format!(
            "{}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires \
             grad.",
            session().operator()
        ));
    }
    let before = session().current_origin.out.replace(Some(out.clone()));
    let result = run();
    session().current_origin.out.replace(before);
    result
}
