//! New tensors.

use crate::error::runtime;
use crate::generator::Draw;
use crate::memory::Category;
use crate::registry::{Entry, op};
use crate::schema::Args;
use crate::{
    Device, Dtype, MemoryFormat, Result, Scalar, Storage, Tensor, TorchError, Value, contiguous_strides,
};

use super::copy::{empty_strided, to_device};
use super::exact;

/// `at::empty`.
pub(crate) fn empty(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    empty_strided(shape, &contiguous_strides(shape), dtype, device)
}

/// `at::zeros`, on the host with known values.
pub(crate) fn full(shape: &[i64], value: Scalar, dtype: Dtype, device: Device) -> Result<Tensor> {
    let tensor = empty(shape, dtype, device)?;
    set_all(&tensor, value);
    Ok(tensor)
}

pub(crate) fn set_all(tensor: &Tensor, value: Scalar) {
    if tensor.device() == Device::Cpu && tensor.numel() <= 4096 {
        let values = vec![exact::cast(value, tensor.dtype()); tensor.numel().max(0) as usize];
        tensor.set_values(Some(&values));
    } else {
        tensor.set_values(None);
    }
}

pub(crate) fn ones(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    full(shape, Scalar::Int(1), dtype, device)
}

pub(crate) fn zeros(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    full(shape, Scalar::Int(0), dtype, device)
}

/// `at::empty_like` with `preserve_format`.
pub(crate) fn empty_like(like: &Tensor) -> Result<Tensor> {
    empty_like_as(like, like.dtype(), MemoryFormat::Preserve)
}

/// `at::empty_like` with another type or order.
pub(crate) fn empty_like_as(like: &Tensor, dtype: Dtype, format: MemoryFormat) -> Result<Tensor> {
    empty_like_on(like, dtype, like.device(), format)
}

pub(crate) fn empty_like_on(
    like: &Tensor,
    dtype: Dtype,
    device: Device,
    format: MemoryFormat,
) -> Result<Tensor> {
    let shape = like.shape();
    let strides = match format {
        MemoryFormat::Preserve if like.is_non_overlapping_and_dense() => like.strides().to_vec(),
        MemoryFormat::Preserve => crate::iterator::output_strides(&[like], &shape),
        MemoryFormat::Contiguous => contiguous_strides(&shape),
        MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => crate::channels_last_strides(&shape),
    };
    empty_strided(&shape, &strides, dtype, device)
}

pub(crate) fn zeros_like(like: &Tensor) -> Result<Tensor> {
    let tensor = empty_like(like)?;
    set_all(&tensor, Scalar::Int(0));
    Ok(tensor)
}

pub(crate) fn ones_like(like: &Tensor) -> Result<Tensor> {
    let tensor = empty_like(like)?;
    set_all(&tensor, Scalar::Int(1));
    Ok(tensor)
}

/// `wrapped_scalar_tensor`: a Python number as a tensor that does not decide types.
pub(crate) fn wrapped(scalar: Scalar) -> Tensor {
    let tensor = host_scalar(scalar, scalar.dtype());
    tensor.set_wrapped_number();
    tensor
}

/// A tensor of the host without dimensions.
pub(crate) fn host_scalar(scalar: Scalar, dtype: Dtype) -> Tensor {
    // Host memory is not counted, so this cannot fail for lack of it.
    match empty(&[], dtype, Device::Cpu) {
        Ok(tensor) => {
            tensor.set_values(Some(&[scalar]));
            tensor
        }
        Err(_) => Tensor::over(Storage::of_host(dtype.size()), &[], &[], 0, dtype),
    }
}

struct Options {
    dtype: Dtype,
    device: Device,
    requires_grad: bool,
    is_pinned: bool,
}

fn made(shape: &[i64], options: &Options, value: Option<Scalar>) -> Result<Value> {
    let tensor = if options.is_pinned {
        let bytes =
            crate::limits::storage_bytes(shape, &contiguous_strides(shape), options.dtype, Device::Cpu)?;
        Tensor::over(Storage::pinned(bytes)?, shape, &contiguous_strides(shape), 0, options.dtype)
    } else {
        empty(shape, options.dtype, options.device)?
    };
    match value {
        Some(value) => set_all(&tensor, value),
        None => tensor.set_values(None),
    }
    finish(tensor, options)
}

fn finish(tensor: Tensor, options: &Options) -> Result<Value> {
    tensor.storage().set_category(Category::Input);
    if options.requires_grad {
        tensor.set_requires_grad(true)?;
        tensor.storage().set_category(Category::Parameter);
    }
    Ok(tensor.into())
}

/// The four keywords that each of these functions ends with.
fn options(args: &Args, at: usize, default: Dtype) -> Result<Options> {
    Ok(Options {
        dtype: args.dtype_opt(at)?.unwrap_or(default),
        device: args.device_opt(at + 1)?.unwrap_or(default_device()),
        requires_grad: args.bool(at + 2)?,
        is_pinned: args.bool(at + 3)?,
    })
}

fn default_device() -> Device {
    crate::session().default_device()
}

fn default_dtype() -> Dtype {
    crate::session().default_dtype()
}

fn like_options(args: &Args, at: usize, like: &Tensor) -> Result<(Dtype, Device, MemoryFormat, bool)> {
    Ok((
        args.dtype_opt(at)?.unwrap_or(like.dtype()),
        args.device_opt(at + 1)?.unwrap_or(like.device()),
        args.format_opt(at + 2)?.unwrap_or(MemoryFormat::Preserve),
        args.bool(at + 3)?,
    ))
}

fn made_like(args: &Args, at: usize, value: Option<Scalar>) -> Result<Value> {
    let like = args.t(0)?;
    let (dtype, device, format, requires_grad) = like_options(args, at, &like)?;
    let tensor = empty_like_on(&like, dtype, device, format)?;
    match value {
        Some(value) => set_all(&tensor, value),
        None => tensor.set_values(None),
    }
    finish(tensor, &Options { dtype, device, requires_grad, is_pinned: false })
}

fn new_like(args: &Args, at: usize, value: Option<Scalar>) -> Result<Value> {
    let like = args.t(0)?;
    let shape = args.ints(1)?;
    let options = Options {
        dtype: args.dtype_opt(at)?.unwrap_or(like.dtype()),
        device: args.device_opt(at + 1)?.unwrap_or(like.device()),
        requires_grad: args.bool(at + 2)?,
        is_pinned: false,
    };
    made(&shape, &options, value)
}

fn arange(args: &Args, start: Scalar, end: Scalar, step: Scalar, at: usize) -> Result<Value> {
    let is_float = [start, end, step].iter().any(|value| value.dtype().is_floating());
    let options = options(args, at, if is_float { default_dtype() } else { Dtype::I64 })?;
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
    // Saturates: a tensor of so many elements is refused.
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
                exact::cast(value, options.dtype)
            })
            .collect();
        tensor.set_values(Some(&values));
    }
    finish(tensor, &options)
}

/// `torch.tensor`: shape and values from nested lists.
fn tensor(args: &Args) -> Result<Value> {
    let data = args.value(0)?.clone();
    if let Value::Tensor(tensor) = &data {
        let copy = super::copy::to(
            &tensor.detach(),
            args.dtype_opt(1)?,
            args.device_opt(2)?,
            true,
            false,
            MemoryFormat::Preserve,
        )?;
        let options = Options {
            dtype: copy.dtype(),
            device: copy.device(),
            requires_grad: args.bool(3)?,
            is_pinned: false,
        };
        return finish(copy, &options);
    }
    let mut shape = Vec::new();
    let mut values = Vec::new();
    flatten(&data, 0, &mut shape, &mut values)?;
    let found = values.iter().fold(None, |found: Option<Dtype>, value| {
        let own = match value.dtype() {
            Dtype::F64 => default_dtype(),
            other => other,
        };
        Some(found.map_or(own, |found| crate::promote(found, own)))
    });
    let options = options(args, 1, found.unwrap_or(default_dtype()))?;
    let bytes = values.len() as u64 * options.dtype.size();
    let strides = contiguous_strides(&shape);
    let storage = if options.is_pinned { Storage::pinned(bytes)? } else { Storage::of_host(bytes) };
    let host = Tensor::over(storage, &shape, &strides, 0, options.dtype);
    let cast: Vec<Scalar> = values.iter().map(|value| exact::cast(*value, options.dtype)).collect();
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

/// A new tensor of random numbers: known where it is small and on the host.
fn drawn(shape: &[i64], options: &Options, draw: Draw) -> Result<Value> {
    let made = made(shape, options, None)?;
    if let Value::Tensor(tensor) = &made {
        fill_drawn(tensor, draw, true);
    }
    Ok(made)
}

fn drawn_like(args: &Args, at: usize, draw: Draw) -> Result<Value> {
    let made = made_like(args, at, None)?;
    if let Value::Tensor(tensor) = &made {
        fill_drawn(tensor, draw, true);
    }
    Ok(made)
}

/// The host's generator moves on by what the tensor takes, and the tensor gets its values if they are kept.
pub(crate) fn fill_drawn(tensor: &Tensor, draw: Draw, keeps: bool) {
    if tensor.device() != Device::Cpu {
        return;
    }
    let dtype = tensor.dtype();
    // Types of 16 bits round the numbers of the kernel.
    let keeps = keeps && !dtype.is_reduced_float();
    let values = crate::session().generators.draw(draw, tensor.numel(), dtype, keeps);
    let values: Option<Vec<Scalar>> =
        values.map(|values| values.into_iter().map(|value| exact::cast(value, dtype)).collect());
    tensor.set_values(values.as_deref());
}

/// An operator in place that draws: weights' values are not kept.
fn draw_(args: &Args, draw: Draw) -> Result<Value> {
    let filled = fill_(args, None)?;
    if let Value::Tensor(tensor) = &filled {
        fill_drawn(tensor, draw, tensor.dtype() == Dtype::I64);
    }
    Ok(filled)
}

/// `bernoulli_`, `exponential_`, ...: how many numbers PyTorch draws for these was not looked up.
fn forget_(args: &Args) -> Result<Value> {
    let filled = fill_(args, None)?;
    if matches!(&filled, Value::Tensor(tensor) if tensor.device() == Device::Cpu) {
        crate::session().generators.forget();
    }
    Ok(filled)
}

const fn integers(low: i64, high: i64) -> Draw {
    Draw::Integer { low, high }
}

/// `randperm` on a GPU sorts random keys; small ones do it in one kernel.
fn randperm(args: &Args) -> Result<Value> {
    let count = args.int(0)?;
    let options = options(args, 1, Dtype::I64)?;
    if !options.device.is_cuda() {
        let made = made(&[count], &options, None)?;
        if let Value::Tensor(tensor) = &made {
            tensor.set_values(crate::session().generators.permutation(count).as_deref());
        }
        return Ok(made);
    }
    finish(super::sort::randperm(count, options.dtype, options.device)?, &options)
}

fn linspace(args: &Args) -> Result<Value> {
    let options = options(args, 3, default_dtype())?;
    made(&[args.int(2)?], &options, None)
}

fn eye(args: &Args) -> Result<Value> {
    let rows = args.int(0)?;
    let options = options(args, 2, default_dtype())?;
    made(&[rows, args.int_opt(1)?.unwrap_or(rows)], &options, None)
}

fn fill_(args: &Args, value: Option<Scalar>) -> Result<Value> {
    let tensor = args.t(0)?;
    super::pointwise::change_in_place(&tensor)?;
    match value {
        Some(value) => set_all(&tensor, value),
        None => tensor.set_values(None),
    }
    record_fill(&tensor)?;
    Ok(tensor.into())
}

/// The history of a tensor that was filled: nothing of its gradient comes through.
pub(crate) fn record_fill(tensor: &Tensor) -> Result<()> {
    record_constant("FillBackward2", tensor)
}

fn record_constant(node: &'static str, tensor: &Tensor) -> Result<()> {
    crate::autograd::record(node, &[tensor], &[tensor], &[], |_, grads| {
        Ok(vec![grads.first().and_then(Option::as_ref).map(zeros_like).transpose()?])
    })
}

const NORMAL: Draw = Draw::Normal { mean: 0.0, std: 1.0 };

macro_rules! with_options {
    ($text:literal) => {
        concat!($text, ", *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False, bool pin_memory=False)")
    };
}

macro_rules! with_like {
    ($text:literal) => {
        concat!(
            $text,
            ", *, ScalarType? dtype=None, Device? device=None, MemoryFormat? memory_format=None, bool requires_grad=False)"
        )
    };
}

macro_rules! with_new {
    ($text:literal) => {
        concat!($text, ", *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False)")
    };
}

pub(crate) const TABLE: &[Entry] = &[
    op(with_options!("empty(int[] size"), |a| made(&a.ints(0)?, &options(a, 1, default_dtype())?, None)),
    op(with_options!("zeros(int[] size"), |a| {
        made(&a.ints(0)?, &options(a, 1, default_dtype())?, Some(Scalar::Int(0)))
    }),
    op(with_options!("ones(int[] size"), |a| {
        made(&a.ints(0)?, &options(a, 1, default_dtype())?, Some(Scalar::Int(1)))
    }),
    op(with_options!("rand(int[] size"), |a| {
        drawn(&a.ints(0)?, &options(a, 1, default_dtype())?, Draw::Uniform)
    }),
    op(with_options!("randn(int[] size"), |a| drawn(&a.ints(0)?, &options(a, 1, default_dtype())?, NORMAL)),
    op("complex(Tensor real, Tensor imag)", |a| {
        let (real, imag) = (a.t(0)?, a.t(1)?);
        let dtype = match real.dtype() {
            Dtype::F32 => Dtype::C64,
            Dtype::F64 => Dtype::C128,
            other => {
                return runtime(format!(
                    "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
                    other.scalar_name(),
                    imag.dtype().scalar_name()
                ));
            }
        };
        if real.requires_grad() || imag.requires_grad() {
            return crate::error::not_implemented("gradients of torch.complex are not modeled");
        }
        Ok(super::pointwise::elementwise(&[&real, &imag], dtype, None)?.into())
    }),
    op(with_options!("full(int[] size, Scalar fill_value"), |a| {
        let value = a.scalar(1)?;
        let default = match value.dtype() {
            Dtype::F64 => default_dtype(),
            other => other,
        };
        made(&a.ints(0)?, &options(a, 2, default)?, Some(value))
    }),
    op(with_options!("randint(int low, int high, int[] size"), |a| {
        drawn(&a.ints(2)?, &options(a, 3, Dtype::I64)?, integers(a.int(0)?, a.int(1)?))
    }),
    op(with_options!("randint(int high, int[] size"), |a| {
        drawn(&a.ints(1)?, &options(a, 2, Dtype::I64)?, integers(0, a.int(0)?))
    }),
    op(with_options!("normal(float mean, float std, int[] size"), |a| {
        drawn(
            &a.ints(2)?,
            &options(a, 3, default_dtype())?,
            Draw::Normal { mean: a.float(0)?, std: a.float(1)? },
        )
    }),
    op(with_options!("arange(Scalar start, Scalar end, Scalar step"), |a| {
        arange(a, a.scalar(0)?, a.scalar(1)?, a.scalar(2)?, 3)
    }),
    op(with_options!("arange(Scalar start, Scalar end"), |a| {
        arange(a, a.scalar(0)?, a.scalar(1)?, Scalar::Int(1), 2)
    }),
    op(with_options!("arange(Scalar end"), |a| arange(a, Scalar::Int(0), a.scalar(0)?, Scalar::Int(1), 1)),
    op(with_options!("linspace(Scalar start, Scalar end, int steps"), linspace),
    op(with_options!("logspace(Scalar start, Scalar end, int steps"), linspace),
    op(with_options!("eye(int n, int? m=None"), eye),
    op(with_options!("randperm(int n"), randperm),
    op(with_options!("tensor(Any data"), tensor),
    op(with_like!("empty_like(Tensor self"), |a| made_like(a, 1, None)),
    op(with_like!("zeros_like(Tensor self"), |a| made_like(a, 1, Some(Scalar::Int(0)))),
    op(with_like!("ones_like(Tensor self"), |a| made_like(a, 1, Some(Scalar::Int(1)))),
    op(with_like!("rand_like(Tensor self"), |a| drawn_like(a, 1, Draw::Uniform)),
    op(with_like!("randn_like(Tensor self"), |a| drawn_like(a, 1, NORMAL)),
    op(with_like!("full_like(Tensor self, Scalar fill_value"), |a| made_like(a, 2, Some(a.scalar(1)?))),
    op(with_like!("randint_like(Tensor self, int low, int high"), |a| {
        drawn_like(a, 3, integers(a.int(1)?, a.int(2)?))
    }),
    op(with_like!("randint_like(Tensor self, int high"), |a| drawn_like(a, 2, integers(0, a.int(1)?))),
    op(with_new!("new_empty(Tensor self, int[] size"), |a| new_like(a, 2, None)),
    op(with_new!("new_zeros(Tensor self, int[] size"), |a| new_like(a, 2, Some(Scalar::Int(0)))),
    op(with_new!("new_ones(Tensor self, int[] size"), |a| new_like(a, 2, Some(Scalar::Int(1)))),
    op(with_new!("new_full(Tensor self, int[] size, Scalar fill_value"), |a| {
        new_like(a, 3, Some(a.scalar(2)?))
    }),
    op("zero_(Tensor self)", |a| {
        let tensor = a.t(0)?;
        super::pointwise::change_in_place(&tensor)?;
        set_all(&tensor, Scalar::Int(0));
        record_constant("ZeroBackward0", &tensor)?;
        Ok(tensor.into())
    }),
    op("fill_(Tensor self, Scalar value)", |a| fill_(a, Some(a.scalar(1)?))),
    op("uniform_(Tensor self, float from=0, float to=1)", |a| draw_(a, Draw::Uniform)),
    op("normal_(Tensor self, float mean=0, float std=1)", |a| draw_(a, NORMAL)),
    op("random_(Tensor self, int? from=None, int? to=None)", |a| match (a.int_opt(1)?, a.int_opt(2)?) {
        (Some(low), Some(high)) => draw_(a, integers(low, high)),
        (Some(high), None) => draw_(a, integers(0, high)),
        _ if a.t(0)?.dtype() == Dtype::I64 => draw_(a, Draw::Any),
        _ => forget_(a),
    }),
    op("bernoulli_(Tensor self, float p=0.5)", forget_),
    op("exponential_(Tensor self, float lambd=1)", forget_),
    op("_generator()", |_| Ok(Value::from(crate::session().generators.make() as i64))),
    op("_generator_seed(int number, int seed)", |a| {
        crate::session().generators.seed(a.int(0)?.max(0) as usize, a.int(1)? as u64);
        Ok(Value::None)
    }),
    op("_generator_initial_seed(int number)", |a| {
        Ok(Value::from(crate::session().generators.initial_seed(a.int(0)?.max(0) as usize) as i64))
    }),
    op("_generator_choose(int number)", |a| {
        Ok(Value::from(crate::session().generators.choose(a.int(0)?.max(0) as usize) as i64))
    }),
    op("_generator_forget()", |_| {
        crate::session().generators.forget();
        Ok(Value::None)
    }),
];
