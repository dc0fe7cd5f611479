//! New tensors.

mod known;
mod random;

use crate::arguments::{Unread, arguments};
use crate::autograd::nodes;
use crate::error::runtime;
use crate::generator::Draw;
use crate::memory::Category;
use crate::registry::{Entry, in_place, op};
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Storage, Tensor, Value, contiguous_strides};

use super::copy::empty_strided;
use super::host_values;
use known::{arange, tensor};
use random::{NORMAL, draw_, drawn, drawn_like, forget_, integers, random_, randperm};

/// `at::empty`.
pub(crate) fn empty(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    empty_strided(shape, &contiguous_strides(shape), dtype, device)
}

/// `at::full`: on the host the values are known.
pub(crate) fn full(shape: &[i64], value: Scalar, dtype: Dtype, device: Device) -> Result<Tensor> {
    let tensor = empty(shape, dtype, device)?;
    set_all(&tensor, value);
    Ok(tensor)
}

/// Sets the known values of a small tensor of the host.
pub(crate) fn set_all(tensor: &Tensor, value: Scalar) {
    if tensor.device() == Device::Cpu && tensor.numel() <= 4096 {
        let values = vec![host_values::cast(value, tensor.dtype()); tensor.numel().max(0) as usize];
        tensor.set_values(Some(&values));
    } else {
        tensor.set_values(None);
    }
}

/// `ones`.
pub(crate) fn ones(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    full(shape, Scalar::Int(1), dtype, device)
}

/// `zeros` into which another kernel writes: only a number is known to be zero.
pub(crate) fn zeros(shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    if shape.is_empty() { full(shape, Scalar::Int(0), dtype, device) } else { empty(shape, dtype, device) }
}

/// `at::empty_like` with `preserve_format`.
pub(crate) fn empty_like(like: &Tensor) -> Result<Tensor> {
    empty_like_as(like, like.dtype(), MemoryFormat::Preserve)
}

/// `at::empty_like` with another type or order.
pub(crate) fn empty_like_as(like: &Tensor, dtype: Dtype, format: MemoryFormat) -> Result<Tensor> {
    empty_like_on(like, dtype, like.device(), format)
}

/// `at::empty_like` with another type, device or order.
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

/// `zeros_like`, as [`zeros`].
pub(crate) fn zeros_like(like: &Tensor) -> Result<Tensor> {
    let tensor = empty_like(like)?;
    if like.dim() == 0 {
        set_all(&tensor, Scalar::Int(0));
    }
    Ok(tensor)
}

/// `ones_like`.
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
        Err(_) => Tensor::over(Storage::on_host(dtype.size()), &[], &[], 0, dtype),
    }
}

/// The keywords of a new tensor, with defaults filled in (`TensorOptions`).
struct Options {
    dtype: Dtype,
    device: Device,
    requires_grad: bool,
    is_pinned: bool,
}

fn make_tensor(shape: &[i64], options: &Options, value: Option<Scalar>) -> Result<Value> {
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
        if !tensor.dtype().is_differentiable() {
            return runtime("Only Tensors of floating point and complex dtype can require gradients");
        }
        tensor.set_requires_grad(true)?;
        tensor.storage().set_category(Category::Parameter);
    }
    Ok(tensor.into())
}

arguments! {
    /// The keywords that functions which make a tensor end with.
    #[derive(Clone, Copy)]
    struct Keywords {
        dtype: Option<Dtype>,
        device: Option<Device>,
        requires_grad: bool,
        is_pinned: bool,
    }
}

arguments! {
    /// The keywords of functions that make a tensor like another.
    #[derive(Clone, Copy)]
    struct LikeKeywords {
        dtype: Option<Dtype>,
        device: Option<Device>,
        format: Option<MemoryFormat>,
        requires_grad: bool,
    }
}

arguments! {
    /// The keywords of methods that make a tensor of the type and the device of another.
    #[derive(Clone, Copy)]
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
    make_tensor(shape, &options, value)
}

fn linspace(_start: Unread, _end: Unread, steps: i64, keywords: Keywords) -> Result<Value> {
    make_tensor(&[steps], &keywords.or_default(), None)
}

fn eye(rows: i64, columns: Option<i64>, keywords: Keywords) -> Result<Value> {
    let columns = columns.unwrap_or(rows);
    let made = make_tensor(&[rows, columns], &keywords.or_default(), Some(Scalar::Int(0)))?;
    if let Value::Tensor(tensor) = &made
        && let Some(mut values) = tensor.values()
    {
        for (index, value) in values.iter_mut().enumerate() {
            if index as i64 / columns == index as i64 % columns {
                *value = host_values::cast(Scalar::Int(1), tensor.dtype());
            }
        }
        tensor.set_values(Some(&values));
    }
    Ok(made)
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
    record_constant(nodes::FillBackward2, tensor)
}

fn record_constant(node: &'static str, tensor: &Tensor) -> Result<()> {
    crate::autograd::record(node, &[tensor], &[tensor], &[], |_, grads| {
        Ok(vec![grads.first().and_then(Option::as_ref).map(zeros_like).transpose()?])
    })
}

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
        make_tensor(size, &keywords.or_default(), None)
    })
    .copies_or_fills(),
    op!(with_options!("zeros(int[] size"), |size: &[i64], keywords: Keywords| {
        if size.iter().any(|size| *size < 0) {
            return crate::error::runtime("zeros: Dimension size must be non-negative.");
        }
        make_tensor(size, &keywords.or_default(), Some(Scalar::Int(0)))
    })
    .copies_or_fills(),
    op!(with_options!("ones(int[] size"), |size: &[i64], keywords: Keywords| {
        make_tensor(size, &keywords.or_default(), Some(Scalar::Int(1)))
    })
    .copies_or_fills(),
    op!(with_options!("rand(int[] size"), |size: &[i64], keywords: Keywords| {
        drawn(size, &keywords.or_default(), Draw::Uniform)
    })
    .copies_or_fills(),
    op!(with_options!("randn(int[] size"), |size: &[i64], keywords: Keywords| {
        drawn(size, &keywords.or_default(), NORMAL)
    })
    .copies_or_fills(),
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
            make_tensor(size, &keywords.or(default), Some(value))
        }
    )
    .copies_or_fills(),
    op!(
        with_options!("randint(int low, int high, int[] size"),
        |low: i64, high: i64, size: &[i64], keywords: Keywords| {
            drawn(size, &keywords.or(Dtype::I64), integers(low, high))
        }
    )
    .copies_or_fills(),
    op!(with_options!("randint(int high, int[] size"), |high: i64, size: &[i64], keywords: Keywords| {
        drawn(size, &keywords.or(Dtype::I64), integers(0, high))
    })
    .copies_or_fills(),
    op!(
        with_options!("normal(float mean, float std, int[] size"),
        |mean: f64, std: f64, size: &[i64], keywords: Keywords| {
            drawn(size, &keywords.or_default(), Draw::Normal { mean, std })
        }
    ),
    op!(with_options!("arange(Scalar start, Scalar end, Scalar step"), arange).copies_or_fills(),
    op!(
        with_options!("arange(Scalar start, Scalar end"),
        |start: Scalar, end: Scalar, keywords: Keywords| { arange(start, end, Scalar::Int(1), keywords) }
    )
    .copies_or_fills(),
    op!(with_options!("arange(Scalar end"), |end: Scalar, keywords: Keywords| {
        arange(Scalar::Int(0), end, Scalar::Int(1), keywords)
    })
    .copies_or_fills(),
    op!(with_options!("linspace(Scalar start, Scalar end, int steps"), linspace),
    op!(with_options!("logspace(Scalar start, Scalar end, int steps"), linspace),
    op!(with_options!("eye(int n, int? m=None"), eye),
    op!(with_options!("randperm(int n"), randperm),
    op!(with_options!("tensor(Any data"), tensor).copies_or_fills(),
    op!(with_like!("empty_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        made_like(like, keywords, None)
    })
    .copies_or_fills(),
    op!(with_like!("zeros_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        made_like(like, keywords, Some(Scalar::Int(0)))
    })
    .copies_or_fills(),
    op!(with_like!("ones_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        made_like(like, keywords, Some(Scalar::Int(1)))
    })
    .copies_or_fills(),
    op!(with_like!("rand_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        drawn_like(like, keywords, Draw::Uniform)
    })
    .copies_or_fills(),
    op!(with_like!("randn_like(Tensor self"), |like: &Tensor, keywords: LikeKeywords| {
        drawn_like(like, keywords, NORMAL)
    })
    .copies_or_fills(),
    op!(
        with_like!("full_like(Tensor self, Scalar fill_value"),
        |like: &Tensor, value: Scalar, keywords: LikeKeywords| { made_like(like, keywords, Some(value)) }
    )
    .copies_or_fills(),
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
        record_constant(nodes::ZeroBackward0, tensor)
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
