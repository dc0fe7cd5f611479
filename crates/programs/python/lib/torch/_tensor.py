"""`torch.Tensor`: the native tensor with what Python adds to it."""

import sys
from collections import OrderedDict

import _torch_autograd
from _host import note as _note
from _torch import Operator, TensorBase
from _torch import format_of as _format_of
from _torch import operator as _operator
from _torch import operator_names as _operator_names
from _torch import register as _register

from torch._storage import GradFn, UntypedStorage, _function_of
from torch._tensor_functions import (
    _SPECIAL,
    _floor_divide,
    _getitem,
    _index,
    _matmul,
    _need,
    _operator_item,
    _pow,
    _remainder,
    _rsub,
    _setitem,
    _split,
    _unflatten,
)
from torch._unknown import Size, UnknownNumber, _item

_contiguous_format = _format_of("contiguous_format")


def _of_torch(name):
    """The function of this name in `torch`, as a method."""
    return lambda *arguments, **options: getattr(sys.modules["torch"], name)(*arguments, **options)


class Tensor(TensorBase):
    def __new__(cls, *args, **kwargs):
        import torch

        return torch._legacy_tensor(cls, args, kwargs)

    def __init__(self, *args, **kwargs):
        pass

    __module__ = "torch"
    __hash__ = TensorBase.__hash__

    # --- shape

    @property
    def T(self):
        return self.t() if self.dim() == 2 else self.permute(list(reversed(range(self.dim()))))

    @property
    def mT(self):
        if self.dim() == 0:
            return self.permute([])  # An alias: a number has no rows.
        return self.transpose(-2, -1)

    H = mH = mT

    def size(self, dim=None):
        shape = self.shape
        if dim is None:
            return shape
        rank = len(shape)
        if not -max(rank, 1) <= dim < max(rank, 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
            )
        return shape[dim]

    def ndimension(self):
        return self.dim()

    def nelement(self):
        return self.numel()

    @property
    def itemsize(self):
        return self.element_size()

    @property
    def nbytes(self):
        return self.numel() * self.element_size()

    is_quantized = is_mps = is_xpu = is_sparse_csr = is_mkldnn = is_vulkan = is_xla = is_mtia = is_maia = is_ipu = (
        is_nested
    ) = property(lambda self: False)
    name = volatile = property(lambda self: None)

    @property
    def layout(self):
        import torch

        return torch.sparse_coo if self.is_sparse else torch.strided

    @property
    def names(self):
        return (None,) * self.dim()

    def is_contiguous(self, memory_format=_contiguous_format):
        return self._is_contiguous(memory_format)

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return self.dtype.is_complex

    def is_signed(self):
        return self.dtype.is_signed

    def get_device(self):
        index = self.device.index
        return -1 if index is None else index

    def _take(self, result):
        """Writes a result into `out` on the host, whose memory is not counted."""
        if self.shape != result.shape:
            self.data = result
            return self
        return self.copy_(result)

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            import torch

            return torch._type_name(self)
        import torch

        kind = torch._kind_of_type(dtype)
        moves = kind is not None and kind != self.device.type
        return self.to(kind, torch._type_of(dtype)) if moves else self.to(torch._type_of(dtype))

    def type_as(self, other):
        return self.to(device=other.device, dtype=other.dtype)

    def to(self, *args, **kwargs):
        import torch

        return torch._to(self, args, kwargs)

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        import torch

        if device is None:
            device = self.device if self.is_cuda else torch.device("cuda", torch.cuda.current_device())
        elif isinstance(device, int):
            device = torch.device("cuda", device)
        return self.to(device, non_blocking=non_blocking)

    def cpu(self, memory_format=None):
        import torch

        return self.to(torch.device("cpu"))

    def numpy(self, *, force=False):
        from torch import _numpy

        return _numpy.array_of(self.detach().cpu() if force else self)

    def __array__(self, dtype=None, copy=None):
        made = self.numpy()
        return made if dtype is None else made.astype(dtype)

    __array_priority__ = 1000

    def __array_wrap__(self, array, context=None, return_scalar=False):
        import torch

        return torch.tensor(array.astype("uint8") if array.dtype == bool else array)

    def untyped_storage(self):
        return UntypedStorage(self)

    def storage(self):
        return UntypedStorage(self)

    def record_stream(self, stream):
        _need("record_stream")(self, stream.cuda_stream)

    def share_memory_(self):
        return self

    # --- values

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        _note_placeholders(self)
        return _operator_item(self)

    def tolist(self):
        _note_placeholders(self)
        values = self._known_values()
        if values is None:
            values = [UnknownNumber(self.dtype) for _ in range(self.numel())]
        for size in reversed(self.shape[1:]):
            values = (
                [values[i : i + size] for i in range(0, len(values), size)]
                if size
                else [[] for _ in range(self.shape[0])]
            )
        return values if self.dim() else values[0]

    def _number(self, what):
        if self.numel() != 1:
            if what != "bool":
                raise ValueError("only one element tensors can be converted to Python scalars")
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous"
                if self.numel()
                else "Boolean value of Tensor with no values is ambiguous"
            )
        return self.item()

    def __bool__(self):
        return self._number("bool").__bool__()

    def _bool(self):
        return bool(self._number("bool"))

    def __int__(self):
        return int(self._number("int"))

    def __float__(self):
        return float(self._number("float"))

    def __index__(self):
        value = self._number("int") if self.numel() == 1 else 0.0
        if isinstance(value, float) and not isinstance(value, UnknownNumber):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return value.__index__()

    def __complex__(self):
        return complex(self._number("complex"))

    def __len__(self):
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element):
        return bool((self == element).any())

    def __format__(self, spec):
        if self.dim() == 0:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents=None):
        import torch._printing

        return torch._printing.text(self)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
                "the moment.  If you were attempting to deepcopy a module, this may be because of a "
                "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        import torch

        with torch.no_grad():
            storages = memo.setdefault("torch", {})
            key = self._storage_ptr()
            storage = storages.get(key)
            if storage is None:
                storage = storages[key] = self._storage_copy()
            # PyTorch makes an empty tensor first, whose memory goes when it is set to the copied storage.
            result = self.new_empty([])
            result = storage._seen_as(self)._as_class(type(self), self.requires_grad)
            if self.grad is not None:
                result.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = result
        return result

    # --- autograd

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        import torch.autograd

        torch.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    @property
    def grad_fn(self):
        node = self._node()
        return None if node is None else _function_of(node)

    def requires_grad_(self, requires_grad=True):
        self.requires_grad = requires_grad
        return self

    def detach_(self):
        _torch_autograd.detach_in_place(self)
        return self

    def retain_grad(self):
        _torch_autograd.retain_grad(self)

    def register_hook(self, hook):
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._backward_hooks is None:
            self._backward_hooks = OrderedDict()
        from torch.utils.hooks import RemovableHandle

        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        return handle

    def register_post_accumulate_grad_hook(self, hook):
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_accumulate_grad_hooks is None:
            self._post_accumulate_grad_hooks = OrderedDict()
        from torch.utils.hooks import RemovableHandle

        handle = RemovableHandle(self._post_accumulate_grad_hooks)
        self._post_accumulate_grad_hooks[handle.id] = hook
        return handle

    # --- operators

    def __getitem__(self, index):
        return _getitem(
            self, _index(index) if type(index) in (list, tuple) or type(index).__module__ == "numpy" else index
        )

    def __setitem__(self, index, value):
        _setitem(
            self, _index(index) if type(index) in (list, tuple) or type(index).__module__ == "numpy" else index, value
        )

    def __rsub__(self, other):
        return _rsub(self, other)

    def __rpow__(self, other):
        return _pow(other, self)

    def __rtruediv__(self, other):
        return self.reciprocal() * other

    def __rfloordiv__(self, other):
        return _floor_divide(other, self)

    def __rmod__(self, other):
        return _remainder(other, self)

    def __rmatmul__(self, other):
        return _matmul(other, self)

    def __pos__(self):
        return self

    def split(self, split_size, dim=0):
        return _split(self, split_size, dim)

    def unflatten(self, dim, sizes):
        return _unflatten(self, dim, sizes)

    def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
        import torch

        return torch.norm(self, p, dim, keepdim, dtype=dtype)

    def stft(self, *args, **kwargs):
        raise NotImplementedError(
            "Tensor.stft is not modeled here; remove the call or put a tensor of its shape in its place"
        )

    def apply_(self, function):
        raise NotImplementedError("Tensor.apply_ is not modeled here; use an operator over the whole tensor")

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        import torch

        return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)

    def where(self, condition, other):
        import torch

        return torch.where(condition, self, other)

    equal, allclose, unique = map(_of_torch, ("equal", "allclose", "unique"))

    def is_shared(self):
        return False

    def is_nonzero(self):
        return bool(self)

    def has_names(self):
        return False

    def is_set_to(self, tensor):
        return (self._storage_ptr(), self.shape, self.stride(), self.storage_offset()) == (
            tensor._storage_ptr(),
            tensor.shape,
            tensor.stride(),
            tensor.storage_offset(),
        )

    def dim_order(self):
        return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))

    def polygamma(self, n):
        import torch

        return torch.polygamma(n, self)

    def as_subclass(self, cls):
        return (
            self._as_class(cls, self.requires_grad)
            if not self.requires_grad or self.is_leaf
            else self.detach()._as_class(cls, False)
        )

    def set_(self, source=None, storage_offset=0, size=None, stride=None):
        if not isinstance(source, Tensor):
            raise NotImplementedError("Tensor.set_ is modeled for tensors: assign the tensor again")
        self.data = source
        return self

    def as_strided_(self, size, stride, storage_offset=None):
        self._set_geometry(list(size), list(stride), storage_offset)
        return self

    @property
    def retains_grad(self):
        return False


def _note_placeholders(tensor):
    from torch import _random_numbers

    if _random_numbers._placeholders is not None and tensor.is_cpu:
        _note("random integers of the host are placeholders here: a number read from them is not PyTorch's")


for _name in _operator_names():
    _made = _operator(_name)
    if (
        _made.is_method
        and not _name.startswith("_")
        and _name not in Tensor.__dict__
        and not hasattr(TensorBase, _name)
    ):
        setattr(Tensor, _name, _made)


for _special, _name in _SPECIAL.items():
    _made = _operator(_name)
    if _made is not None:
        setattr(Tensor, _special, _made.special())


Tensor.__hash__ = TensorBase.__hash__


def complete():
    """Adds methods under other names, methods that are functions of this package, and refusals of all others, as attributes."""
    from torch import _composite, _names, _public, _sparse

    for name in _sparse.METHODS:
        setattr(Tensor, name, getattr(_sparse, name))
    for name, other in _composite.OTHER_NAMES.items():
        made = _operator(name) or _operator(other)
        if made is not None and made.is_method and not hasattr(Tensor, name):
            setattr(Tensor, name, made)
    for name in _composite.METHODS:
        if not hasattr(Tensor, name):
            setattr(Tensor, name, getattr(_composite, name))
    Tensor.real = property(_composite.real)
    for name in _public.NAMES["torch.Tensor"].split():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, _names.refused_method(name))


_register("Tensor", Tensor)
_register("Size", Size)
_register("UnknownNumber", UnknownNumber)
_register("item", _item)
