"""Arrays: between tensors and numpy, be it ours or numpy itself, where it is installed."""

import sys

import torch


def _is_fallback(numpy):
    return hasattr(numpy, "_from_tensor")


def is_array(value):
    """Whether a value is an array of numpy or one of its numbers."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def array_of(tensor):
    """`Tensor.numpy()`: an array over the memory of the tensor."""
    import numpy

    if tensor.is_cuda:
        raise TypeError(
            f"can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if tensor.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    name = str(tensor.dtype).rpartition(".")[2]
    try:
        numpy.dtype(name)
    except TypeError:
        raise TypeError(f"Got unsupported ScalarType {'BFloat16' if name == 'bfloat16' else name}") from None
    if _is_fallback(numpy):
        return numpy._from_tensor(tensor)
    from torch import _numpy_arrays

    return _numpy_arrays.shared(tensor, name)


def tensor_of(array, shares):
    """A tensor of an array: `torch.from_numpy`, which shares the memory, and `torch.tensor`, which copies it."""
    import numpy

    name = getattr(array.dtype, "name", "")
    name = "bool" if name == "bool_" else name
    dtype = getattr(torch, name, None) if name != "object" else None
    if dtype is None or not isinstance(dtype, torch.dtype):
        kind = f"numpy.{name}" if name == "object" else array.dtype.type.__name__
        raise TypeError(
            f"can't convert np.ndarray of type {'numpy.object_' if name == 'object' else 'numpy.' + kind}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    if _is_fallback(numpy):
        from numpy import _tensors

        return _tensors.shared(array, dtype) if shares else _tensors.copied(array, dtype)
    if any(stride < 0 for stride in array.strides) and shares:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    from torch import _numpy_arrays

    if shares and (made := _numpy_arrays.tensor_under(array)) is not None:
        return made
    made = torch.empty(tuple(array.shape), dtype=dtype, device="cpu")
    if array.size <= 65536:
        made._set_values(_numpy_arrays.values_of(array))
    if shares and array.size:
        _numpy_arrays.keep(array, made)
    return made


def unknown_array(shape, name):
    """An array of numbers that nobody knows."""
    import numpy

    if _is_fallback(numpy):
        from numpy import _tensors

        return _tensors.unknown_array(shape, name)
    from torch import _numpy_arrays

    return _numpy_arrays.unknown_array(shape, name)


def flattened(value):
    """The elements of an array as Python's numbers, and unknown ones."""
    numpy = sys.modules["numpy"]
    if _is_fallback(numpy):
        from numpy import _tensors

        return _tensors.values_of(value)
    from torch import _numpy_arrays

    return _numpy_arrays.values_of(value)


class _Loader:
    """Loads numpy itself, and then prepares it for unknown numbers."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        if not _is_fallback(module):
            from torch import _numpy_arrays

            _numpy_arrays.install(module)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class Finder:
    """Finds numpy as Python finds it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "numpy":
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def install():
    """numpy is prepared when it is imported."""
    if "numpy" in sys.modules:
        if not _is_fallback(sys.modules["numpy"]):
            from torch import _numpy_arrays

            _numpy_arrays.install(sys.modules["numpy"])
    elif Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
