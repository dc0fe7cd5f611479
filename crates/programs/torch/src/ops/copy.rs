//! Copies: between devices, types and orders of elements.

use crate::arguments::arguments;
use crate::autograd::{Context, Gradients, nodes, record};
use crate::error::runtime;
use crate::iterator;
use crate::memory::Category;
use crate::registry::{Entry, in_place, op};
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Storage, Tensor, Value, session};

use super::creation::{empty_like_on, zeros_like};
use super::host_values;
use super::views::expand;

/// `at::empty_strided`.
pub(crate) fn empty_strided(shape: &[i64], strides: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
    let bytes = crate::limits::storage_bytes(shape, strides, dtype, device)?;
    Ok(Tensor::over(Storage::new(device, bytes, Category::Temporary)?, shape, strides, 0, dtype))
}

fn grad_of(grads: &[Option<Tensor>]) -> Result<&Tensor> {
    grads
        .first()
        .and_then(Option::as_ref)
        .ok_or_else(|| crate::TorchError::Runtime("a gradient is missing".to_owned()))
}

fn pass_through(_: &Context<'_>, grads: &[Option<Tensor>]) -> Result<Gradients> {
    Ok(vec![Some(grad_of(grads)?.clone())])
}

/// `clone`.
pub(crate) fn clone(tensor: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    let copy = empty_like_on(tensor, tensor.dtype(), tensor.device(), format)?;
    copy_below(&copy, tensor, false)?;
    record(nodes::CloneBackward0, &[tensor], &[&copy], &[], pass_through)?;
    Ok(copy)
}

/// `contiguous`.
pub(crate) fn contiguous(tensor: &Tensor) -> Result<Tensor> {
    contiguous_in(tensor, MemoryFormat::Contiguous)
}

/// `contiguous(memory_format)`: the tensor itself where it has the order already, or a copy.
pub(crate) fn contiguous_in(tensor: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    if tensor.is_contiguous_in(format) { Ok(tensor.clone()) } else { clone(tensor, format) }
}

/// `Tensor.to` with a type, a device and its keywords.
pub(crate) fn to(
    tensor: &Tensor,
    dtype: Option<Dtype>,
    device: Option<Device>,
    copies: bool,
    non_blocking: bool,
    format: MemoryFormat,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(tensor.dtype());
    let device = device.unwrap_or(tensor.device());
    let is_same_order = format == MemoryFormat::Preserve || tensor.suggested_format() == format;
    if dtype == tensor.dtype() && device == tensor.device() && !copies && is_same_order {
        return Ok(tensor.clone());
    }
    to_copy(tensor, dtype, device, non_blocking, format)
}

/// `_to_copy`.
fn to_copy(
    tensor: &Tensor,
    dtype: Dtype,
    device: Device,
    non_blocking: bool,
    format: MemoryFormat,
) -> Result<Tensor> {
    let copy = empty_like_on(tensor, dtype, device, format)?;
    if tensor.is_wrapped_number() {
        copy.set_wrapped_number();
    }
    copy_below(&copy, tensor, non_blocking)?;
    if copy.storage().category() == Category::Temporary && !tensor.device().is_cuda() {
        copy.storage().set_category(Category::Input);
    }
    let (from_dtype, from_device) = (tensor.dtype(), tensor.device());
    record(nodes::ToCopyBackward0, &[tensor], &[&copy], &[], move |_, grads| {
        Ok(vec![Some(to(
            grad_of(grads)?,
            Some(from_dtype),
            Some(from_device),
            false,
            false,
            MemoryFormat::Preserve,
        )?)])
    })?;
    Ok(copy)
}

/// `to(dtype)`.
pub(crate) fn to_dtype(tensor: &Tensor, dtype: Dtype) -> Result<Tensor> {
    to(tensor, Some(dtype), None, false, false, MemoryFormat::Preserve)
}

/// `to(device)`.
pub(crate) fn to_device(tensor: &Tensor, device: Device, non_blocking: bool) -> Result<Tensor> {
    to(tensor, None, Some(device), false, non_blocking, MemoryFormat::Preserve)
}

/// `copy_`, which gets a node.
pub(crate) fn copy_in_place(to: &Tensor, from: &Tensor) -> Result<()> {
    copy_in_place_with(to, from, false)
}

/// `copy_` with its argument `non_blocking`.
pub(crate) fn copy_in_place_with(to: &Tensor, from: &Tensor, non_blocking: bool) -> Result<()> {
    super::pointwise::change_in_place(to)?;
    if iterator::broadcast(&[&to.shape(), &from.shape()])? != *to.shape() {
        return runtime(format!(
            "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension 0.  Target \
             sizes: {:?}.  Tensor sizes: {:?}",
            to.size(0),
            from.size(0),
            to.shape(),
            from.shape()
        ));
    }
    copy_below(to, from, non_blocking)?;
    let (dtype, device) = (from.dtype(), from.device());
    record("CopyBackwards", &[to, from], &[to], &[], move |ctx, grads| {
        let grad = grad_of(grads)?;
        let to_grad = ctx.gradient(0, || zeros_like(grad))?;
        let from_grad = ctx.gradient(1, || {
            self::to(grad, Some(dtype), Some(device), false, false, MemoryFormat::Preserve)
        })?;
        Ok(vec![to_grad, from_grad])
    })
}

/// The kernel of `copy_`, with the temporaries that copies across devices take.
pub(crate) fn copy_below(to: &Tensor, from: &Tensor, non_blocking: bool) -> Result<()> {
    let _no_grad = crate::autograd::GradModeGuard::new(false);
    if to.numel() == 0 {
        return Ok(());
    }
    host_values::apply(Some(host_values::same), &[from], to);
    if needs_temporaries(to, from) {
        return copy_through_temporaries(to, from, non_blocking);
    }
    if let (Device::Cuda(_), Device::Cpu) = (to.device(), from.device()) {
        return Ok(());
    }
    if let (Device::Cpu, Device::Cuda(index)) = (to.device(), from.device())
        && !non_blocking
    {
        let session = session();
        let device = session.device(index)?;
        device.synchronize_stream(device.current_stream());
    }
    Ok(())
}

fn needs_temporaries(to: &Tensor, from: &Tensor) -> bool {
    if to.device() == from.device() || (!to.device().is_cuda() && !from.device().is_cuda()) {
        return false;
    }
    if to.device().is_cuda() && from.device().is_cuda() {
        return false;
    }
    let is_plain = to.shape() == from.shape()
        && ((to.is_contiguous() && from.is_contiguous())
            || (to.strides() == from.strides() && to.is_non_overlapping_and_dense()));
    !(to.dtype() == from.dtype() && is_plain)
}

fn copy_through_temporaries(to: &Tensor, from: &Tensor, non_blocking: bool) -> Result<()> {
    let target;
    let source;
    if to.device().is_cuda() || non_blocking {
        target = if to.is_contiguous() {
            to.clone()
        } else {
            empty_like_on(to, to.dtype(), to.device(), MemoryFormat::Contiguous)?
        };
        source = contiguous(&expand(&to_dtype(from, to.dtype())?, &to.shape())?)?;
    } else {
        target = if to.is_contiguous() && to.dtype() == from.dtype() {
            to.clone()
        } else {
            empty_like_on(to, from.dtype(), to.device(), MemoryFormat::Contiguous)?
        };
        source = contiguous(&expand(from, &to.shape())?)?;
    }
    copy_below(&target, &source, non_blocking)?;
    if !target.is_same(to) {
        copy_below(to, &target, non_blocking)?;
    }
    drop(source);
    Ok(())
}

/// `Tensor.item`: known for small tensors of the host, unknown for others.
fn item(tensor: &Tensor) -> Result<Value> {
    if tensor.numel() != 1 {
        return runtime(format!("a Tensor with {} elements cannot be converted to Scalar", tensor.numel()));
    }
    if let Device::Cuda(index) = tensor.device() {
        let session = session();
        // The value goes through pinned memory of the host, and the stream is waited for.
        let pinned = Storage::pinned(tensor.dtype().size())?;
        let device = session.device(index)?;
        device.synchronize_stream(device.current_stream());
        drop(pinned);
    }
    Ok(crate::schema::known_or_unknown(tensor).into())
}

fn pin_memory(tensor: &Tensor) -> Result<Tensor> {
    if tensor.storage().is_pinned() {
        return Ok(tensor.clone());
    }
    if tensor.device() != Device::Cpu {
        return runtime(format!(
            "cannot pin 'torch.cuda.{}Tensor' only dense CPU tensors can be pinned",
            tensor.dtype().scalar_name()
        ));
    }
    let shape = tensor.shape();
    let pinned = Tensor::over(
        Storage::pinned(tensor.nbytes())?,
        &shape,
        &crate::contiguous_strides(&shape),
        0,
        tensor.dtype(),
    );
    copy_below(&pinned, tensor, false)?;
    Ok(pinned)
}

fn cast(tensor: &Tensor, memory_format: Option<MemoryFormat>, dtype: Dtype) -> Result<Value> {
    let format = memory_format.unwrap_or(MemoryFormat::Preserve);
    Ok(to(tensor, Some(dtype), None, false, false, format)?.into())
}

fn cuda(tensor: &Tensor, device: Option<Device>, non_blocking: bool) -> Result<Value> {
    let device = device.unwrap_or_else(|| Device::Cuda(session().current_device()));
    Ok(to(tensor, None, Some(device), false, non_blocking, MemoryFormat::Preserve)?.into())
}

arguments! {
    /// The keywords that each form of `to` ends with.
    #[derive(Clone, Copy)]
    struct ToKeywords {
        non_blocking: bool,
        copies: bool,
        format: Option<MemoryFormat>,
    }
}

fn to_by(
    tensor: &Tensor,
    dtype: Option<Dtype>,
    device: Option<Device>,
    keywords: ToKeywords,
) -> Result<Tensor> {
    let format = keywords.format.unwrap_or(MemoryFormat::Preserve);
    to(tensor, dtype, device, keywords.copies, keywords.non_blocking, format)
}

fn type_as(tensor: &Tensor, other: &Tensor) -> Result<Tensor> {
    to(tensor, Some(other.dtype()), Some(other.device()), false, false, MemoryFormat::Preserve)
}

fn tolist(tensor: &Tensor) -> Result<Value> {
    let values = if let Some(values) = tensor.values() {
        values
    } else {
        if tensor.device().is_cuda() {
            to_device(tensor, Device::Cpu, false)?;
        }
        vec![Scalar::Unknown(tensor.dtype()); tensor.numel().max(0) as usize]
    };
    Ok(nest(&values, &tensor.shape()))
}

fn nest(values: &[Scalar], shape: &[i64]) -> Value {
    match shape.split_first() {
        None => values.first().copied().map_or(Value::None, Value::from),
        Some((count, rest)) => {
            let width = crate::numel(rest).max(0) as usize;
            Value::List(
                (0..(*count).max(0) as usize)
                    .map(|index| {
                        nest(values.get(index * width..(index + 1) * width).unwrap_or_default(), rest)
                    })
                    .collect(),
            )
        }
    }
}

fn record_stream(tensor: &Tensor, s: i64) -> Result<Value> {
    let stream = blockyard_record::StreamId::new(s.max(0) as u64);
    tensor.storage().with_block(|block| block.record_stream(stream)).unwrap_or(Ok(()))?;
    Ok(Value::None)
}

macro_rules! casts {
    ($($name:literal $dtype:ident,)*) => {
        &[$(op!(concat!($name, "(Tensor self, MemoryFormat? memory_format=None)"), |tensor: &Tensor, memory_format: Option<MemoryFormat>| cast(tensor, memory_format, Dtype::$dtype)),)*]
    };
}

/// `Tensor.float()` and its like.
pub(crate) const CASTS: &[Entry] = casts! {
    "float" F32, "double" F64, "half" F16, "bfloat16" BF16, "long" I64, "int" I32, "short" I16, "char" I8, "byte" U8,
    "bool" Bool, "cfloat" C64,
};

macro_rules! to_schema {
    ($middle:literal) => {
        concat!(
            "to(Tensor self, ",
            $middle,
            ", bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)"
        )
    };
}

pub(crate) const TABLE: &[Entry] = &[
    op!("clone(Tensor self, *, MemoryFormat memory_format=preserve)", clone).composed(&[nodes::CloneBackward0]).copies_or_fills(),
    op!("contiguous(Tensor self, MemoryFormat memory_format=contiguous)", contiguous_in).copies_or_fills(),
    op!(
        to_schema!("Device device, ScalarType? dtype=None"),
        |tensor: &Tensor, device: Device, dtype: Option<Dtype>, keywords: ToKeywords| {
            to_by(tensor, dtype, Some(device), keywords)
        }
    ).copies_or_fills(),
    op!(to_schema!("ScalarType dtype"), |tensor: &Tensor, dtype: Dtype, keywords: ToKeywords| {
        to_by(tensor, Some(dtype), None, keywords)
    }).copies_or_fills(),
    op!(to_schema!("Tensor other"), |tensor: &Tensor, other: &Tensor, keywords: ToKeywords| {
        to_by(tensor, Some(other.dtype()), Some(other.device()), keywords)
    }).copies_or_fills(),
    op!(
        "to(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool non_blocking=False, bool copy=False, \
         MemoryFormat? memory_format=None)",
        to_by
    ).composed(&[nodes::ToCopyBackward0]).copies_or_fills(),
    op!("type_as(Tensor self, Tensor other)", type_as),
    op!("cuda(Tensor self, Device? device=None, bool non_blocking=False)", cuda).copies_or_fills(),
    op!("cpu(Tensor self)", |tensor: &Tensor| to_device(tensor, Device::Cpu, false)),
    op!("pin_memory(Tensor self)", pin_memory),
    in_place!("copy_(Tensor self, Operand src, bool non_blocking=False)", copy_in_place_with).copies_or_fills(),
    op!("item(Tensor self)", item),
    op!("tolist(Tensor self)", tolist),
    op!("record_stream(Tensor self, int s)", record_stream),
    op!("detach(Tensor self)", |tensor: &Tensor| Ok(tensor.detach())),
    in_place!("detach_(Tensor self)", |tensor: &Tensor| tensor.detach_in_place()),
    in_place!(
        "requires_grad_(Tensor self, bool requires_grad=True)",
        |tensor: &Tensor, requires_grad: bool| tensor.set_requires_grad(requires_grad)
    ),
];
