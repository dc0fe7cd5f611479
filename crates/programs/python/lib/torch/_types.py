"""Types of elements and of tensors: their names, their limits, and which one two of them become."""

from _torch import dtype_of as _dtype_of
from _torch import promote_types

import torch
from torch._tensor import Size, Tensor

_bool = _dtype_of("bool")

_TYPE_NAMES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "BoolTensor": "bool",
}


class _TypeOfTensors(type):
    """`torch.FloatTensor` and the others, which make tensors and name a type and a kind of device."""

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype == cls.dtype and value.device.type == cls.kind

    def __call__(cls, *args):
        if cls.kind == "cuda" and (len(args) != 1 or isinstance(args[0], Size)):
            return torch.empty(args[0] if args and isinstance(args[0], Size) else args, dtype=cls.dtype, device="cuda")
        return torch._legacy_tensor(cls, args, {}).to(cls.kind, cls.dtype)


def _types_of_tensors(kind, module):
    return {
        name: _TypeOfTensors(name, (), {"dtype": _dtype_of(of), "kind": kind, "__module__": module})
        for name, of in _TYPE_NAMES.items()
    }


def _type_name(t):
    for name, kind in _TYPE_NAMES.items():
        if _dtype_of(kind) == t.dtype:
            return ("torch.cuda." if t.is_cuda else "torch.") + name
    return str(t.dtype)


def _type_of(kind):
    if isinstance(kind, str):
        return _dtype_of(_TYPE_NAMES[kind.split(".")[-1]])
    if kind is float:
        return torch.float32
    if kind is int:
        return torch.int64
    if kind is bool:
        return _bool
    return kind.dtype if isinstance(kind, _TypeOfTensors) else kind


def _kind_of_type(kind):
    """The kind of device that a type names, as the second half of `torch.cuda.FloatTensor`; `None` for plain types."""
    if isinstance(kind, str):
        return "cuda" if ".cuda." in kind else "cpu"
    return kind.kind if isinstance(kind, _TypeOfTensors) else None


def typename(obj):
    return _type_name(obj) if isinstance(obj, Tensor) else type(obj).__module__ + "." + type(obj).__name__


def result_type(a, b):
    # A number decides less than a tensor without dimensions, and that less than one with dimensions.
    def kind(x):
        return x.dtype if isinstance(x, Tensor) else _type_of(type(x))

    def rank(x):
        return (2 if x.dim() > 0 else 1) if isinstance(x, Tensor) else 0

    if rank(a) == rank(b):
        return promote_types(kind(a), kind(b))
    higher, lower = (kind(a), kind(b)) if rank(a) > rank(b) else (kind(b), kind(a))
    decides = higher.is_complex or higher.is_floating_point
    if not decides and (higher is _bool or lower.is_floating_point or lower.is_complex):
        return promote_types(higher, lower)
    return higher


class finfo:
    __module__ = "torch"
    _TABLE = {
        "float32": (1.1920928955078125e-07, 3.4028234663852886e38, 1.1754943508222875e-38, 32, 1e-06),
        "float64": (2.220446049250313e-16, 1.7976931348623157e308, 2.2250738585072014e-308, 64, 1e-15),
        "float16": (0.0009765625, 65504.0, 6.103515625e-05, 16, 0.001),
        "bfloat16": (0.0078125, 3.3895313892515355e38, 1.1754943508222875e-38, 16, 0.01),
    }

    def __init__(self, type=None):
        type = type or torch.get_default_dtype()
        self.dtype = str(type).split(".")[1]
        if self.dtype not in self._TABLE:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        self.eps, self.max, self.tiny, self.bits, self.resolution = self._TABLE[self.dtype]
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return "finfo(" + "".join(f"{name}={getattr(self, name):g}, " for name in names) + f"dtype={self.dtype})"


class iinfo:
    __module__ = "torch"

    def __init__(self, type):
        self.bits = type.itemsize * 8
        unsigned = type == torch.uint8
        self.min = 0 if unsigned else -(1 << (self.bits - 1))
        self.max = (1 << self.bits) - 1 if unsigned else (1 << (self.bits - 1)) - 1
        self.dtype = str(type).split(".")[1]

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
