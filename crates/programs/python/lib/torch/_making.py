"""Tensors made of numbers and of other tensors."""

import _torch
from _torch import operator as _operator
from _torch import promote_types

from torch import _numpy, complex64, empty, float32, full, get_default_device, get_default_dtype, int64
from torch._tensor import Size, Tensor, UnknownNumber
from torch._types import _bool, _type_of


def _shape_of(data):
    shape = []
    while isinstance(data, (list, tuple, range)):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    if isinstance(data, Tensor) or _numpy.is_array(data):
        shape.extend(data.shape)
    return shape


def _check_numbers(data, shape, level=0):
    """Refuses what is not a number, and lists of two lengths, in the words of `torch.tensor`."""
    if isinstance(data, str):
        if not level:
            raise TypeError("new(): invalid data type 'str'")
        raise ValueError("too many dimensions 'str'")
    if isinstance(data, (list, tuple, range)):
        if level == len(shape):
            raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
        if len(data) != shape[level]:
            raise ValueError(f"expected sequence of length {shape[level]} at dim {level} (got {len(data)})")
        if not isinstance(data, range):
            for item in data:
                _check_numbers(item, shape, level + 1)
    elif isinstance(data, Tensor):
        if level and data.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
    elif _numpy.is_array(data):
        return
    elif data is None or type(data) is object:
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    elif level < len(shape):
        raise TypeError("not a sequence")


def _dtype_of_arrays(data):
    """The type that the arrays and the numbers of numpy in a list give a tensor; `None` where there are none."""
    found = None
    for item in data:
        if isinstance(item, (list, tuple)):
            dtype = _dtype_of_arrays(item)
        else:
            dtype = _numpy.tensor_of(item, False).dtype if _numpy.is_array(item) else None
        if dtype is not None:
            found = dtype if found is None else promote_types(found, dtype)
    return found


def _flatten_into(data, values):
    if isinstance(data, (list, tuple, range)):
        for item in data:
            _flatten_into(item, values)
    elif isinstance(data, Tensor):
        known = data._known_values()
        values.extend(known if known is not None else [UnknownNumber(data.dtype)] * data.numel())
    elif _numpy.is_array(data):
        values.extend(_numpy.flattened(data))
    else:
        values.append(data)


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    if isinstance(data, Tensor):
        made = data.detach().clone()
        if dtype is not None or device is not None:
            made = made.to(
                device=device if device is not None else made.device, dtype=dtype if dtype is not None else made.dtype
            )
        return made.requires_grad_() if requires_grad else made
    if _numpy.is_array(data):
        made = _numpy.tensor_of(data, False)
        made = made.to(device=device if device is not None else get_default_device(), dtype=dtype or made.dtype)
        return made.requires_grad_() if requires_grad else made
    shape, values = _shape_of(data), []
    _check_numbers(data, shape)
    if dtype is None and isinstance(data, (list, tuple)):
        dtype = _dtype_of_arrays(data)
    _flatten_into(data, values)
    if len(values) != Size(shape).numel():
        raise ValueError(f"expected sequence of length {shape[-1]} at dim {len(shape) - 1}")
    if dtype is None:
        if any(isinstance(v, complex) for v in values):
            dtype = complex64
        elif not values or any(isinstance(v, float) for v in values):
            dtype = get_default_dtype()
            kinds = {v.dtype for v in values if isinstance(v, UnknownNumber)}
            if kinds and _are_unknown(values):
                dtype = kinds.pop()
        elif all(isinstance(v, bool) for v in values):
            dtype = _bool
        else:
            dtype = int64
    elif dtype in (float, int, bool):
        dtype = _type_of(dtype)
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made = empty(shape, dtype=dtype, pin_memory=pin_memory, device="cpu")
    if len(values) <= 65536:
        made._set_values(
            [
                v
                if dtype.is_floating_point or dtype.is_complex or isinstance(v, UnknownNumber)
                else bool(v)
                if dtype is _bool
                else int(v)
                for v in values
            ]
        )
    target = device if device is not None else get_default_device()
    if not isinstance(target, _torch.device):
        target = _torch.device(target)
    if target.type != "cpu":
        made = made.to(target)
    return made.requires_grad_() if requires_grad else made


def _are_unknown(values):
    return all(isinstance(v, UnknownNumber) for v in values)


def as_tensor(data, dtype=None, device=None):
    if _numpy.is_array(data) and hasattr(data, "flags"):
        data = _numpy.tensor_of(data, True)
    if isinstance(data, Tensor):
        return data.to(
            device=device if device is not None else data.device, dtype=dtype if dtype is not None else data.dtype
        )
    return tensor(data, dtype=dtype, device=device)


asarray = as_tensor


def from_numpy(array):
    if not _numpy.is_array(array) or not hasattr(array, "flags"):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return _numpy.tensor_of(array, True)


def scalar_tensor(value, *, dtype=None, device=None, requires_grad=False):
    return full((), value, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


def _legacy_tensor(cls, args, kwargs):
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], Size):
        made = tensor(args[0], dtype=float32)
    elif len(args) == 1 and _numpy.is_array(args[0]) and args[0].ndim:
        made = tensor(args[0], dtype=float32)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        made = args[0].detach()
    elif len(args) == 1 and isinstance(args[0], Size):
        made = empty(args[0])
    else:
        made = empty(args)
    return (
        made._as_class(cls, False) if isinstance(cls, type) and issubclass(cls, Tensor) and cls is not Tensor else made
    )


_to_operator = _operator("to") or _operator("_to_copy")


def _to(self, args, kwargs):
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    rest = list(args)
    flags = []
    for arg in rest:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, (_torch.device, str)) or (isinstance(arg, int) and not isinstance(arg, bool)):
            device = arg
        elif isinstance(arg, _torch.dtype) or arg in (float, int, bool):
            dtype = arg
        elif isinstance(arg, bool):
            flags.append(arg)
    if "other" in kwargs:
        device, dtype = kwargs["other"].device, kwargs["other"].dtype
    non_blocking = kwargs.get("non_blocking", flags[0] if flags else False)
    copy = kwargs.get("copy", flags[1] if len(flags) > 1 else False)
    if isinstance(device, int):
        device = _torch.device("cuda", device)
    keywords = {}
    if kwargs.get("memory_format") is not None:
        keywords["memory_format"] = kwargs["memory_format"]
    del rest, args, kwargs, flags
    return _to_operator(
        self,
        device=device,
        dtype=_type_of(dtype) if dtype is not None else None,
        non_blocking=non_blocking,
        copy=copy,
        **keywords,
    )


def empty_like(input, **kwargs):
    return _operator("empty_like")(input, **kwargs)
