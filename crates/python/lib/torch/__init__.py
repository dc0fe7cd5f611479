"""`torch`, as far as memory goes: shapes, types and storages; values only for numbers and small tensors of the host."""

import builtins as _builtins
import math as _math

import _torch
import _torch_autograd
import _torch_memory
from _torch import (
    device,
    dtype,
    memory_format,
    dtype_of as _dtype_of,
    format_of as _format_of,
    operator as _operator,
    promote_types,
)

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
for _name in (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "half",
    "float",
    "double",
    "short",
    "int",
    "long",
    "cfloat",
    "cdouble",
):
    globals()[_name] = _dtype_of(_name)
contiguous_format, channels_last, channels_last_3d, preserve_format = map(
    _format_of, ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
)


class layout:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return self._name


strided, sparse_coo, sparse_csr = map(layout, ("torch.strided", "torch.sparse_coo", "torch.sparse_csr"))


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


_torch.register("OutOfMemoryError", OutOfMemoryError)

from torch._tensor import Tensor, Size, UnknownNumber, UntypedStorage
from torch import return_types

newaxis = None
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
        if cls.kind == "cuda" and (_builtins.len(args) != 1 or isinstance(args[0], Size)):
            return empty(args[0] if args and isinstance(args[0], Size) else args, dtype=cls.dtype, device="cuda")
        return _legacy_tensor(cls, args, {}).to(cls.kind, cls.dtype)


def _types_of_tensors(kind, module):
    return {
        name: _TypeOfTensors(name, (), {"dtype": _dtype_of(of), "kind": kind, "__module__": module})
        for name, of in _TYPE_NAMES.items()
    }


globals().update(_types_of_tensors("cpu", "torch"))
__version__ = _torch_memory.version()


class version:
    cuda, hip, rocm, xpu, git_version, debug = f"{__version__[-3:-1]}.{__version__[-1]}", None, None, None, "", False
    __version__ = __version__


import sys as _sys

_sys.modules["torch.version"] = version
_empty, full, zeros, ones = map(_operator, ("empty", "full", "zeros", "ones"))


def empty(*size, memory_format=None, out=None, **options):
    if out is not None:
        raise NotImplementedError("out= of torch.empty is not modeled: assign the result")
    if memory_format is None or memory_format is contiguous_format:
        return _empty(*size, **options)
    shape = size[0] if _builtins.len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    ends_with_channels = _empty(shape[0], *shape[2:], shape[1], **options)
    return ends_with_channels.permute(0, _builtins.len(shape) - 1, *range(1, _builtins.len(shape) - 1))


# --- modes

from torch._modes import (
    no_grad,
    enable_grad,
    inference_mode,
    set_grad_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    autocast,
)


def is_autocast_enabled(device_type="cuda"):
    return _torch_autograd.autocast_dtype() is not None


def get_autocast_dtype(device_type="cuda"):
    return _torch_autograd.autocast_dtype() or (bfloat16 if device_type == "cpu" else float16)


get_autocast_gpu_dtype = get_autocast_dtype
clear_autocast_cache = _torch_autograd.clear_autocast_cache


def get_default_dtype():
    return _torch_memory.default_dtype()


def set_default_dtype(d):
    _torch_memory.set_default_dtype(d)


def set_default_device(device):
    _torch_memory.set_default_device("cpu" if device is None else device)


def get_default_device():
    return empty(0).device


def set_default_tensor_type(t):
    pass


_precision = "highest"


def set_float32_matmul_precision(precision):
    global _precision
    _precision = precision


def get_float32_matmul_precision():
    return _precision


def set_printoptions(**options):
    pass


def set_num_threads(n):
    pass


def get_num_threads():
    return 8


def use_deterministic_algorithms(mode, *, warn_only=False):
    if mode:
        from _host import note

        note("deterministic algorithms may run other kernels than the recorded kernels, whose memory counts here")


def is_tensor(obj):
    return isinstance(obj, Tensor)


def is_storage(obj):
    return isinstance(obj, UntypedStorage)


def is_floating_point(input):
    return input.is_floating_point()


def is_complex(input):
    return input.is_complex()


def is_nonzero(input):
    return bool(input)


def numel(input):
    return input.numel()


# --- random numbers of the host: PyTorch's own, once a seed was set

_new_generator, _seed_generator, _seed_of, _choose_generator, _forget_generator = map(
    _operator, ("_generator", "_generator_seed", "_generator_initial_seed", "_generator_choose", "_generator_forget")
)


def _signed(seed):
    if not -0x8000_0000_0000_0000 <= seed <= 0xFFFF_FFFF_FFFF_FFFF:
        raise RuntimeError("Overflow when unpacking long long")
    return seed - (1 << 64) if seed > 0x7FFF_FFFF_FFFF_FFFF else seed


class Generator:
    def __init__(self, device="cpu"):
        self.device = globals()["device"](device)
        self._number = _new_generator()

    def manual_seed(self, seed):
        _seed_generator(self._number, _signed(_builtins.int(seed)))
        return self

    def initial_seed(self):
        return _seed_of(self._number) & 0xFFFF_FFFF_FFFF_FFFF

    def seed(self):
        # PyTorch takes a number of the system's, which nobody knows.
        with _drawing_from(self):
            _forget_generator()
        return self.initial_seed()

    def get_state(self):
        return empty(5056, dtype=uint8)

    def set_state(self, state):
        with _drawing_from(self):
            _forget_generator()


class _drawing_from:
    def __init__(self, generator):
        self.generator = generator

    def __enter__(self):
        self.before = _choose_generator(self.generator._number)

    def __exit__(self, *exception):
        _choose_generator(self.before)


default_generator = object.__new__(Generator)
default_generator.device, default_generator._number = device("cpu"), 0


def manual_seed(seed):
    return default_generator.manual_seed(seed)


def seed():
    return default_generator.seed()


def initial_seed():
    return default_generator.initial_seed()


def get_rng_state():
    return empty(5056, dtype=uint8)


def set_rng_state(state):
    default_generator.set_state(state)


def _drawn(name):
    """An operator that takes `generator=`."""
    plain = _operator(name)

    def function(*args, generator=None, **kwargs):
        if generator is None:
            return plain(*args, **kwargs)
        with _drawing_from(generator):
            return plain(*args, **kwargs)

    function.__name__ = name
    return function


rand, randn, randperm, bernoulli, multinomial = map(_drawn, ("rand", "randn", "randperm", "bernoulli", "multinomial"))
_normal = _drawn("normal")


def normal(mean, std=1.0, size=None, **options):
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        return _normal(mean, std, size, **options)
    if is_grad_enabled() and _builtins.any(t.requires_grad for t in tensors):
        raise NotImplementedError(
            "torch.normal is modeled for tensors without a gradient; use mean + std * torch.randn_like(mean)"
        )
    with no_grad():
        return _normal_of(mean, std, options.get("generator"))


def _normal_of(mean, std, generator):
    if not isinstance(std, Tensor):
        result = empty_like(mean, memory_format=contiguous_format).normal_(0, std, generator=generator)
        # The sum is made beside the result and then copied.
        return result.copy_(result + mean)
    if std.is_cuda and std.numel() > 0:
        least = std.min()
        is_valid = least.ge(0)
        del is_valid
        del least
    if not isinstance(mean, Tensor):
        result = empty_like(std, memory_format=contiguous_format).normal_(0, 1, generator=generator)
        mean = full((), mean, dtype=result.dtype, device=result.device)
        return result.mul_(std).add_(mean)
    result = empty(broadcast_shapes(mean.shape, std.shape), dtype=mean.dtype, device=mean.device)
    return result.normal_(0, 1, generator=generator).mul_(std).add_(mean)


for _name in ("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "multinomial", "bernoulli"):
    setattr(Tensor, _name, _drawn(_name))


# --- making tensors


def _shape_of(data):
    shape = []
    while isinstance(data, (list, tuple, range)):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    if isinstance(data, Tensor):
        shape.extend(data.shape)
    return shape


def _flatten_into(data, values):
    if isinstance(data, (list, tuple, range)):
        for item in data:
            _flatten_into(item, values)
    elif isinstance(data, Tensor):
        known = data._values()
        values.extend(known if known is not None else [UnknownNumber(data.dtype)] * data.numel())
    elif hasattr(data, "__array_shape__"):
        values.extend([UnknownNumber(float64)] * data.size)
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
    if hasattr(data, "_to_tensor"):
        return data._to_tensor().to(device=device or "cpu", dtype=dtype or data._to_tensor().dtype)
    shape, values = _shape_of(data), []
    _flatten_into(data, values)
    if _builtins.len(values) != Size(shape).numel():
        raise ValueError(f"expected sequence of length {shape[-1]} at dim {_builtins.len(shape) - 1}")
    if dtype is None:
        if _builtins.any(isinstance(v, _builtins.complex) for v in values):
            dtype = complex64
        elif not values or _builtins.any(isinstance(v, _builtins.float) for v in values):
            dtype = get_default_dtype()
            kinds = {v.dtype for v in values if isinstance(v, UnknownNumber)}
            if kinds and all_same(values):
                dtype = kinds.pop()
        elif _builtins.all(isinstance(v, _builtins.bool) for v in values):
            dtype = globals()["bool"]
        else:
            dtype = int64
    elif dtype in (_builtins.float, _builtins.int, _builtins.bool):
        dtype = _type_of(dtype)
    made = empty(shape, dtype=dtype, pin_memory=pin_memory, device="cpu")
    if _builtins.len(values) <= 65536:
        made._set_values(
            [
                v
                if dtype.is_floating_point or dtype.is_complex or isinstance(v, UnknownNumber)
                else _builtins.bool(v)
                if dtype is globals()["bool"]
                else _builtins.int(v)
                for v in values
            ]
        )
    target = device if device is not None else get_default_device()
    if not isinstance(target, _torch.device):
        target = _torch.device(target)
    if target.type != "cpu":
        made = made.to(target)
    return made.requires_grad_() if requires_grad else made


def all_same(values):
    return _builtins.all(isinstance(v, UnknownNumber) for v in values)


def as_tensor(data, dtype=None, device=None):
    if isinstance(data, Tensor):
        return data.to(
            device=device if device is not None else data.device, dtype=dtype if dtype is not None else data.dtype
        )
    return tensor(data, dtype=dtype, device=device)


asarray = as_tensor


def from_numpy(array):
    return array._to_tensor()


def scalar_tensor(value, *, dtype=None, device=None, requires_grad=False):
    return full((), value, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


def _legacy_tensor(cls, args, kwargs):
    if _builtins.len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], Size):
        made = tensor(args[0], dtype=float32)
    elif _builtins.len(args) == 1 and type(args[0]).__module__ == "numpy":
        made = tensor(args[0])
    elif _builtins.len(args) == 1 and isinstance(args[0], Tensor):
        made = args[0].detach()
    elif _builtins.len(args) == 1 and isinstance(args[0], Size):
        made = empty(args[0])
    else:
        made = empty(args)
    return (
        made._as_class(cls, False) if isinstance(cls, type) and issubclass(cls, Tensor) and cls is not Tensor else made
    )


def _type_name(t):
    for name, kind in _TYPE_NAMES.items():
        if _dtype_of(kind) == t.dtype:
            return ("torch.cuda." if t.is_cuda else "torch.") + name
    return str(t.dtype)


def _type_of(kind):
    if isinstance(kind, str):
        return _dtype_of(_TYPE_NAMES[kind.split(".")[-1]])
    if kind is _builtins.float:
        return float32
    if kind is _builtins.int:
        return int64
    if kind is _builtins.bool:
        return globals()["bool"]
    return kind.dtype if isinstance(kind, _TypeOfTensors) else kind


def _kind_of_type(kind):
    """The kind of device that a type names, as the second half of `torch.cuda.FloatTensor`; `None` for plain types."""
    if isinstance(kind, str):
        return "cuda" if ".cuda." in kind else "cpu"
    return kind.kind if isinstance(kind, _TypeOfTensors) else None


_to_operator = _operator("to") or _operator("_to_copy")


def _to(self, args, kwargs):
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    rest = list(args)
    flags = []
    for arg in rest:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, (_torch.device, str)) or (
            isinstance(arg, _builtins.int) and not isinstance(arg, _builtins.bool)
        ):
            device = arg
        elif isinstance(arg, _torch.dtype) or arg in (_builtins.float, _builtins.int, _builtins.bool):
            dtype = arg
        elif isinstance(arg, _builtins.bool):
            flags.append(arg)
    if "other" in kwargs:
        device, dtype = kwargs["other"].device, kwargs["other"].dtype
    non_blocking = kwargs.get("non_blocking", flags[0] if flags else False)
    copy = kwargs.get("copy", flags[1] if _builtins.len(flags) > 1 else False)
    if isinstance(device, _builtins.int):
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
    if not decides and (higher is globals()["bool"] or lower.is_floating_point or lower.is_complex):
        return promote_types(higher, lower)
    return higher


class finfo:
    _TABLE = {
        "float32": (1.1920928955078125e-07, 3.4028234663852886e38, 1.1754943508222875e-38, 32),
        "float64": (2.220446049250313e-16, 1.7976931348623157e308, 2.2250738585072014e-308, 64),
        "float16": (0.0009765625, 65504.0, 6.103515625e-05, 16),
        "bfloat16": (0.0078125, 3.3895313892515355e38, 1.1754943508222875e-38, 16),
    }

    def __init__(self, type=None):
        type = type or get_default_dtype()
        self.dtype = str(type).split(".")[1]
        if self.dtype not in self._TABLE:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        self.eps, self.max, self.tiny, self.bits = self._TABLE[self.dtype]
        self.min, self.smallest_normal, self.resolution = -self.max, self.tiny, 1e-06


class iinfo:
    def __init__(self, type):
        self.bits = type.itemsize * 8
        unsigned = type == uint8
        self.min = 0 if unsigned else -(1 << (self.bits - 1))
        self.max = (1 << self.bits) - 1 if unsigned else (1 << (self.bits - 1)) - 1
        self.dtype = str(type).split(".")[1]


# --- operators whose Python form is more than their schema


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    if dim is None and p in ("fro", 2, 2.0):
        return _operator("linalg_vector_norm")(input, 2, None, keepdim)
    p = 2 if p in ("fro", None) else p
    return _operator("linalg_vector_norm")(input, p, [dim] if isinstance(dim, _builtins.int) else dim, keepdim)


_placeholders = None
_drawn_integers = _drawn("randint")


def randint(*args, **kwargs):
    global _placeholders
    made = _drawn_integers(*args, **kwargs)
    if made.is_cpu and made.numel() <= 4096 and made._values() is None:
        # Without a seed: numbers of the range, so that they can stand in slices; whoever reads one is told that it is not PyTorch's.
        if _placeholders is None:
            from random import Random

            _placeholders = Random(0)
        two = _builtins.len(args) > 1 and isinstance(args[1], _builtins.int)
        low = kwargs.get("low", args[0] if two else 0)
        high = kwargs.get("high", args[1] if two else args[0] if args else 1)
        made._set_values([_placeholders.randrange(low, high) for _ in range(made.numel())])
    return made


def split(tensor, split_size_or_sections, dim=0):
    return tensor.split(split_size_or_sections, dim)


def einsum(equation, *operands):
    if _builtins.len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _operator("einsum")(equation, list(operands))


def meshgrid(*tensors, indexing=None):
    if _builtins.len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    tensors = list(tensors)
    swaps = indexing == "xy" and _builtins.len(tensors) > 1
    if swaps:
        tensors[:2] = tensors[1::-1]
    shape = [t.numel() for t in tensors]
    made = [
        t.reshape([-1 if d == i else 1 for d in range(_builtins.len(tensors))]).expand(shape)
        for i, t in enumerate(tensors)
    ]
    if swaps:
        made = [made[1].transpose(0, 1), made[0].transpose(0, 1)] + [t.transpose(0, 1) for t in made[2:]]
    return tuple(made)


def where(condition, input=None, other=None):
    if input is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        # Two numbers become tensors on the condition's device first.
        input, other = (
            scalar_tensor(value, dtype=_type_of(type(value)), device=condition.device) for value in (input, other)
        )
    elif not isinstance(input, Tensor) or not isinstance(other, Tensor):
        # So does one number, of the type that both have together.
        tensor, value = (input, other) if isinstance(input, Tensor) else (other, input)
        kind = result_type(tensor, value)
        made = scalar_tensor(value, dtype=kind, device=tensor.device)
        input, other = (tensor.to(kind), made) if tensor is input else (made, tensor.to(kind))
        # The caller's condition outlives that number.
        result = _operator("where")(condition, input, other)
        del input, other, made, tensor
        return result
    return _operator("where")(condition, input, other)


def nonzero(input, *, as_tuple=False):
    found = _operator("nonzero")(input)
    return found.unbind(1) if as_tuple else found


def broadcast_tensors(*tensors):
    if _builtins.len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


def broadcast_shapes(*shapes):
    rank = _builtins.max(map(_builtins.len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(tuple(shape))):
            if size != 1:
                result[rank - 1 - i] = size
    return Size(result)


def atleast_1d(t):
    return t if t.dim() else t.reshape(1)


def atleast_2d(t):
    return t if t.dim() >= 2 else t.reshape(1, -1)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _builtins.bool(_operator("allclose")(a, b, rtol, atol, equal_nan))


def equal(a, b):
    return a.shape == b.shape and _builtins.bool((a == b).all())


def compile(model=None, **kwargs):
    from _host import note

    note("torch.compile runs the function without compiling: the memory that a compiler saves or keeps is not modeled")
    return model if model is not None else (lambda m: m)


from torch.serialization import save, load


def _assert(condition, message):
    assert condition, message


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "vmap":
        import torch.func

        return torch.func.vmap
    if name in _LAZY:
        import sys

        __import__("torch." + name)
        return sys.modules["torch." + name]
    operator = _operator(name)
    if operator is None and not name.startswith("_"):
        from torch import _composite

        operator = _operator(_composite.OTHER_NAMES.get(name, "")) or getattr(_composite, name, None)
    if operator is None:
        if name in _PACKAGES or name.startswith("_") and name not in _INSIDES:
            raise AttributeError(f"module 'torch' has no attribute '{name}'")
        from torch import _names

        if name in _names.STAND_INS:
            from _refused import Missing

            return Missing(f"torch.{name}", _names.advice_or_none(name))
        _names.refuse("torch", name)
    globals()[name] = operator
    return operator


# Packages, which are looked up here only while they are imported.
_PACKAGES = {"nn", "autograd", "cuda", "optim", "utils", "amp", "backends"}
# Modules of PyTorch's own insides that programs name all the same.
_INSIDES = {"_C", "_inductor", "_export", "_functorch", "_logging"}
_LAZY = {
    "_dynamo",
    "_decompositions",
    "distributions",
    "fft",
    "func",
    "functional",
    "futures",
    "signal",
    "hub",
    "multiprocessing",
    "onnx",
    "overrides",
    "serialization",
    "special",
    "testing",
    "types",
    "linalg",
    "profiler",
    "jit",
    "distributed",
    "accelerator",
    "compiler",
    "random",
}

from torch import autograd
from torch import nn
from torch import cuda
from torch import optim
from torch import utils
from torch import amp
from torch import backends
from torch import random
from torch import accelerator
from torch import linalg
from torch import jit
from torch import compiler
from torch import profiler

import torch._tensor as _complete

_complete.complete()
from sys import modules as _modules
from torch import _names as _complete

_complete.complete(_modules)
