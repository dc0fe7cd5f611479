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


class AcceleratorError(RuntimeError):
    __module__ = "torch"


_torch.register("OutOfMemoryError", OutOfMemoryError)
_torch.register("AcceleratorError", AcceleratorError)

from torch._tensor import Tensor, Size, UnknownNumber, UntypedStorage
from torch import _percent, return_types
from torch._printing import set_printoptions

from torch._types import (
    _kind_of_type,
    _type_name,
    _type_of,
    _types_of_tensors,
    finfo,
    iinfo,
    result_type,
    typename,
)

newaxis = None
globals().update(_types_of_tensors("cpu", "torch"))


class version:
    hip, rocm, xpu, git_version, debug = None, None, None, "", False


def _take_release():
    """Takes the release of the run that begins: the page loads PyTorch before it has a run."""
    global __version__
    __version__ = version.__version__ = _torch_memory.version()
    version.cuda = f"{__version__[-3:-1]}.{__version__[-1]}"


_take_release()

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


# --- functions, by module

from torch._random_numbers import (
    Generator,
    bernoulli,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    randint,
    randn,
    randperm,
    seed,
    set_rng_state,
)
from torch._sparse import sparse_coo_tensor
from torch._making import (
    _legacy_tensor,
    _to,
    as_tensor,
    asarray,
    empty_like,
    from_numpy,
    scalar_tensor,
    tensor,
)
from torch._functions import (
    allclose,
    unique,
    atleast_1d,
    atleast_2d,
    broadcast_shapes,
    broadcast_tensors,
    einsum,
    equal,
    meshgrid,
    nonzero,
    norm,
    split,
    where,
)


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

        if name in _names.REFUSED_WHEN_USED:
            from _refused import Missing

            return Missing(f"torch.{name}", _names.advice(name))
        _names.refuse("torch", name)
    globals()[name] = operator
    return operator


# Packages, which are looked up here only while they are imported.
_PACKAGES = {"nn", "autograd", "cuda", "optim", "utils", "amp", "backends"}
# Private modules of PyTorch that programs name nevertheless.
_INSIDES = {"_C", "_inductor", "_export", "_functorch", "_logging"}
_LAZY = {
    "_dynamo",
    "_decompositions",
    "distributions",
    "func",
    "functional",
    "multiprocessing",
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
from torch import _numpy as _complete

_complete.install()
from sys import modules as _modules
from torch import _names as _complete

_complete.complete(_modules)
