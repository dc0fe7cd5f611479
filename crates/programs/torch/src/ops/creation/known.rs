//! Tensors of the values that a program gives: `torch.tensor`, `arange`.

use crate::error::runtime;
use crate::{
    Device, Dtype, MemoryFormat, Result, Scalar, Storage, Tensor, TorchError, Value, contiguous_strides,
};

use super::super::copy::to_device;
use super::super::host_values;
use super::{Keywords, Options, default_dtype, empty, finish};

/// `arange`: on the host the values of at most 4,096 elements are known.
pub(super) fn arange(start: Scalar, end: Scalar, step: Scalar, keywords: Keywords) -> Result<Value> {
    let is_float = [start, end, step].iter().any(|value| value.dtype().is_floating());
    let options = keywords.or(if is_float { default_dtype() } else { Dtype::I64 });
    let (Some(first), Some(last), Some(by)) = (start.to_f64(), end.to_f64(), step.to_f64()) else {
        return runtime(
            "the bounds of arange lie on the GPU and are not known here; use numbers in their place",
        );
    };
    if by == 0.0 {
        return runtime("step must be nonzero");
    }
    let count = ((last - first) / by).ceil();
    if count < 0.0 {
        return runtime("upper bound and lower bound inconsistent with step sign");
    }
    // Saturates: a tensor of this many elements is refused.
    let count = count as i64;
    let tensor = empty(&[count], options.dtype, options.device)?;
    if options.device == Device::Cpu && count <= 4096 {
        let values: Vec<Scalar> = (0..count)
            .map(|index| {
                let value = match (start, step) {
                    (Scalar::Int(first), Scalar::Int(by)) => {
                        Scalar::Int(first.wrapping_add(index.wrapping_mul(by)))
                    }
                    _ => Scalar::Float(first + index as f64 * by),
                };
                host_values::cast(value, options.dtype)
            })
            .collect();
        tensor.set_values(Some(&values));
    }
    finish(tensor, &options)
}

/// `torch.tensor`: shape and values from nested lists.
pub(super) fn tensor(data: &Value, keywords: Keywords) -> Result<Value> {
    if let Value::Tensor(tensor) = data {
        let (dtype, device) = (keywords.dtype, keywords.device);
        let copy =
            super::super::copy::to(&tensor.detach(), dtype, device, true, false, MemoryFormat::Preserve)?;
        let options = Options {
            dtype: copy.dtype(),
            device: copy.device(),
            requires_grad: keywords.requires_grad,
            is_pinned: false,
        };
        return finish(copy, &options);
    }
    let mut shape = Vec::new();
    let mut values = Vec::new();
    flatten(data, 0, &mut shape, &mut values)?;
    let found = values.iter().fold(None, |found: Option<Dtype>, value| {
        let input = match value.dtype() {
            Dtype::F64 => default_dtype(),
            other => other,
        };
        Some(found.map_or(input, |found| crate::promote(found, input)))
    });
    let options = keywords.or(found.unwrap_or(default_dtype()));
    let bytes = values.len() as u64 * options.dtype.size();
    let strides = contiguous_strides(&shape);
    let storage = if options.is_pinned { Storage::pinned(bytes)? } else { Storage::on_host(bytes) };
    let host = Tensor::over(storage, &shape, &strides, 0, options.dtype);
    let cast: Vec<Scalar> = values.iter().map(|value| host_values::cast(*value, options.dtype)).collect();
    host.set_values(Some(&cast));
    let tensor = if options.device == Device::Cpu { host } else { to_device(&host, options.device, false)? };
    finish(tensor, &options)
}

fn flatten(data: &Value, depth: usize, shape: &mut Vec<i64>, values: &mut Vec<Scalar>) -> Result<()> {
    match data {
        Value::List(items) => {
            let count = items.len() as i64;
            match shape.get(depth) {
                None => shape.push(count),
                Some(before) if *before != count => {
                    return Err(TorchError::Value(format!(
                        "expected sequence of length {before} at dim {depth} (got {count})"
                    )));
                }
                Some(_) => {}
            }
            items.iter().try_for_each(|item| flatten(item, depth + 1, shape, values))
        }
        Value::Scalar(scalar) => {
            values.push(*scalar);
            Ok(())
        }
        Value::Tensor(tensor) if tensor.numel() == 1 => {
            values.push(crate::schema::known_or_unknown(tensor));
            Ok(())
        }
        other => Err(TorchError::Type(format!(
            "new(): data must be a number or a list, not {}",
            other.type_name()
        ))),
    }
}
