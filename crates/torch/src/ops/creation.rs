//! New tensors.

use crate::arguments::{Unread, arguments};
use crate::error::runtime;
use crate::generator::Draw;
use crate::memory::Category;
use crate::registry::{Entry, in_place, op};
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

arguments! {
    /// The keywords that functions which make a tensor end with.
    struct Keywords {
        dtype: Option<Dtype>,
        device: Option<Device>,
        requires_grad: bool,
        is_pinned: bool,
    }
}

arguments! {
    /// The keywords of functions that make a tensor like another.
    struct LikeKeywords {
        dtype: Option<Dtype>,
        device: Option<Device>,
        format: Option<MemoryFormat>,
        requires_grad: bool,
    }
}

arguments! {
    /// The keywords of methods that make a tensor of the type and the device of another.
    struct NewKeywords {
        dtype: Option<Dtype>,
        device: Option<Device>,
        requires_grad: bool,
    }
}

impl Keywords {
    fn or(self, default: Dtype) -> Options {
        Options {
            dtype: self.dtype.unwrap_or(default),
            device: self.device.unwrap_or(default_device()),
            requires_grad: self.requires_grad,
            is_pinned: self.is_pinned,
        }
    }

    fn or_default(self) -> Options {
        self.or(default_dtype())
    }
}

fn default_device() -> Device {
    crate::session().default_device()
}

fn default_dtype() -> Dtype {
    crate::session().default_dtype()
}

fn made_like(like: &Tensor, keywords: LikeKeywords, value: Option<Scalar>) -> Result<Value> {
    let (dtype, device) = (keywords.dtype.unwrap_or(like.dtype()), keywords.device.unwrap_or(like.device()));
    let tensor = empty_like_on(like, dtype, device, keywords.format.unwrap_or(MemoryFormat::Preserve))?;
    match value {
        Some(value) => set_all(&tensor, value),
        None => tensor.set_values(None),
    }
    finish(tensor, &Options { dtype, device, requires_grad: keywords.requires_grad, is_pinned: false })
}

fn new_like(like: &Tensor, shape: &[i64], keywords: NewKeywords, value: Option<Scalar>) -> Result<Value> {
    let options = Options {
        dtype: keywords.dtype.unwrap_or(like.dtype()),
        device: keywords.device.unwrap_or(like.device()),
        requires_grad: keywords.requires_grad,
        is_pinned: false,
    };
    made(shape, &options, value)
}

fn arange(start: Scalar, end: Scalar, step: Scalar, keywords: Keywords) -> Result<Value> {
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
fn tensor(data: &Value, keywords: Keywords) -> Result<Value> {
    if let Value::Tensor(tensor) = data {
        let (dtype, device) = (keywords.dtype, keywords.device);
        let copy = super::copy::to(&tensor.detach(), dtype, device, true, false, MemoryFormat::Preserve)?;
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
        let own = match value.dtype() {
            Dtype::F64 => default_dtype(),
            other => other,
        };
        Some(found.map_or(own, |found| crate::promote(found, own)))
    });
    let options = keywords.or(found.unwrap_or(default_dtype()));
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

fn drawn_like(like: &Tensor, keywords: LikeKeywords, draw: Draw) -> Result<Value> {
    let made = made_like(like, keywords, None)?;
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
fn draw_(tensor: &Tensor, draw: Draw) -> Result<()> {
    fill_(tensor, None)?;
    fill_drawn(tensor, draw, tensor.dtype() == Dtype::I64);
    Ok(())
}

/// `bernoulli_`, `exponential_`, ...: how many numbers PyTorch draws for these was not looked up.
fn forget_(tensor: &Tensor, _p: Unread) -> Result<()> {
    fill_(tensor, None)?;
    if tensor.device() == Device::Cpu {
        crate::session().generators.forget();
    }
    Ok(())
}

/// `random_`: integers between bounds, or of the whole range.
fn random_(tensor: &Tensor, from: Option<i64>, to: Option<i64>) -> Result<()> {
    match (from, to) {
        (Some(low), Some(high)) => draw_(tensor, integers(low, high)),
        (Some(high), None) => draw_(tensor, integers(0, high)),
        _ if tensor.dtype() == Dtype::I64 => draw_(tensor, Draw::Any),
        _ => forget_(tensor, Unread),
    }
}

const fn integers(low: i64, high: i64) -> Draw {
    Draw::Integer { low, high }
}

/// `randperm` on a GPU sorts random keys; small ones do it in one kernel.
fn randperm(count: i64, keywords: Keywords) -> Result<Value> {
    let options = keywords.or(Dtype::I64);
    if !options.device.is_cuda() {
        let made = made(&[count], &options, None)?;
        if let Value::Tensor(tensor) = &made {
            tensor.set_values(crate::session().generators.permutation(count).as_deref());
        }
        return Ok(made);
    }
    finish(super::sort::randperm(count, options.dtype, options.device)?, &options)
}

fn linspace(_start: Unread, _end: Unread, steps: i64, keywords: Keywords) -> Result<Value> {
    made(&[steps], &keywords.or_default(), None)
}

fn eye(rows: i64, columns: Option<i64>, keywords: Keywords) -> Result<Value> {
    made(&[rows, columns.unwrap_or(rows)], &keywords.or_default(), None)
}

fn fill_(tensor: &Tensor, value: Option<Scalar>) -> Result<()> {
    super::pointwise::change_in_place(tensor)?;
    match value {
        Some(value) => set_all(tensor, value),
        None => tensor.set_values(None),
    }
    record_fill(tensor)
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
    op!(with_options!("empty(int[] size"), |size: &[i64], keywords: Keywords| {
        made(size, &keywords.or_default(), None)
    }),
    op!(with_options!("zeros(int[] size"), |size: &[i64], keywords: Keywords| {
        made(size, &keywords.or_default(), Some(Scalar::Int(0)))
    }),
    op!(with_options!("ones(int[] size"), |size: &[i64], keywords: Keywords| {
        made(size, &keywords.or_default(), Some(Scalar::Int(1)))
    }),
    op!(with_options!("rand(int[] size"), |size: &[i64], keywords: Keywords| {
        drawn(size, &keywords.or_default(), Draw::Uniform)
    }),
    op!(with_options!("randn(int[] size"), |size: &[i64], keywords: Keywords| {
        drawn(size, &keywords.or_default(), NORMAL)
    }),
    op!("complex(Tensor real, Tensor imag)", |real: &Tensor, imag: &Tensor| {
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
        super::pointwise::elementwise(&[real, imag], dtype, None)
    }),
    op!(
        with_options!("full(int[] size, Scalar fill_value"),
        |size: &[i64], value: Scalar, keywords: Keywords| {
            let default = match value.dtype() {
                Dtype::F64 => default_dtype(),
                other => other,
            };
            made(size, &keywords.or(default), Some(value))
        }
    ),
    op!(
        with_options!("randint(int low, int high, int[] size"),
        |low: i64, high: i64, size: &[i64], keywords: Keywords| {
            drawn(size, &keywords.or(Dtype::I64), integers(low, high))
        }
    ),
    op!(with_options!("randint(int high, int[] size"), |high: i64, size: &[i64], keywords: Keywords| {
        drawn(size, &keywords.or(Dtype::I64), integers(0, high))
    }),
    op!(
        with_options!("normal(float mean, float std, int[] size"),
        |mean: f64, std: f64, size: &[i64], keywords: Keywords| {
            drawn(size, &keywords.or_default(), Draw::Normal { mean, std })
        }
    ),
    op!(with_options!("arange(Scalar start, Scalar end, Scalar step"), arange),
    op!(
        with_options!("arange(Scalar start, Scalar end"),
        |start: Scalar, end: Scalar, keywords: Keywords| { arange(start, end, Scalar::Int(1), keywords) }
    ),
    op!(with_options!("arange(Scalar end"), |end: Scalar, keywords: Keywords| {
        arange(Scalar::Int(0), end, Scalar::Int(1), keywords)
    }),
    op!(with_options!("linspace(Scalar start, Scalar end, int steps"), linspace),
    op!(with_options!("logspace(Scalar start, Scalar end, int steps"), linspace),
    op!(with_options!("eye(int n, int? m=None"), eye),
    op!(with_options!("randperm(int n"), randperm),
    op!(with_options!("tensor(Any data"), tensor),
    op!(with_like!("empty_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        made_like(like, keywords, None)
    }),
    op!(with_like!("zeros_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        made_like(like, keywords, Some(Scalar::Int(0)))
    }),
    op!(with_like!("ones_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        made_like(like, keywords, Some(Scalar::Int(1)))
    }),
    op!(with_like!("rand_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        drawn_like(like, keywords, Draw::Uniform)
    }),
    op!(with_like!("randn_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        drawn_like(like, keywords, NORMAL)
    }),
    op!(
        with_like!("full_like(Tensor self, Scalar fill_value"),
        |like: &Tensor, value: Scalar, keywords: LikeKeywords| { made_like(like, keywords, Some(value)) }
    ),
    op!(
        with_like!("randint_like(Tensor self, int low, int high"),
        |like: &Tensor, low: i64, high: i64, keywords: LikeKeywords| {
            drawn_like(like, keywords, integers(low, high))
        }
    ),
    op!(
        with_like!("randint_like(Tensor self, int high"),
        |like: &Tensor, high: i64, keywords: LikeKeywords| { drawn_like(like, keywords, integers(0, high)) }
    ),
    op!(
        with_new!("new_empty(Tensor self, int[] size"),
        |like: &Tensor, size: &[i64], keywords: NewKeywords| { new_like(like, size, keywords, None) }
    ),
    op!(
        with_new!("new_zeros(Tensor self, int[] size"),
        |like: &Tensor, size: &[i64], keywords: NewKeywords| {
            new_like(like, size, keywords, Some(Scalar::Int(0)))
        }
    ),
    op!(
        with_new!("new_ones(Tensor self, int[] size"),
        |like: &Tensor, size: &[i64], keywords: NewKeywords| {
            new_like(like, size, keywords, Some(Scalar::Int(1)))
        }
    ),
    op!(
        with_new!("new_full(Tensor self, int[] size, Scalar fill_value"),
        |like: &Tensor, size: &[i64], value: Scalar, keywords: NewKeywords| {
            new_like(like, size, keywords, Some(value))
        }
    ),
    in_place!("zero_(Tensor self)", |tensor: &Tensor| {
        super::pointwise::change_in_place(tensor)?;
        set_all(tensor, Scalar::Int(0));
        record_constant("ZeroBackward0", tensor)
    }),
    in_place!("fill_(Tensor self, Scalar value)", |tensor: &Tensor, value: Scalar| {
        fill_(tensor, Some(value))
    }),
    in_place!(
        "uniform_(Tensor self, float from=0, float to=1)",
        |tensor: &Tensor, _from: Unread, _to: Unread| { draw_(tensor, Draw::Uniform) }
    ),
    in_place!(
        "normal_(Tensor self, float mean=0, float std=1)",
        |tensor: &Tensor, _mean: Unread, _std: Unread| { draw_(tensor, NORMAL) }
    ),
    in_place!("random_(Tensor self, int? from=None, int? to=None)", random_),
    in_place!("bernoulli_(Tensor self, float p=0.5)", forget_),
    in_place!("exponential_(Tensor self, float lambd=1)", forget_),
    op!("_generator()", || Ok(Value::from(crate::session().generators.make() as i64))),
    op!("_generator_seed(int number, int seed)", |number: i64, seed: i64| {
        crate::session().generators.seed(number.max(0) as usize, seed as u64);
        Ok(Value::None)
    }),
    op!("_generator_initial_seed(int number)", |number: i64| {
        Ok(Value::from(crate::session().generators.initial_seed(number.max(0) as usize) as i64))
    }),
    op!("_generator_choose(int number)", |number: i64| {
        Ok(Value::from(crate::session().generators.choose(number.max(0) as usize) as i64))
    }),
    op!("_generator_forget()", || {
        crate::session().generators.forget();
        Ok(Value::None)
    }),
];
