"""Parameters and buffers of modules."""

import torch


class _ParameterMeta(type(torch.Tensor)):
    def __instancecheck__(self, instance):
        return super().__instancecheck__(instance)


class Parameter(torch.Tensor):
    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        made = data._as_class(cls, requires_grad)
        made._set_category("parameter")
        return made

    def __init__(self, data=None, requires_grad=True):
        pass

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol):
        return type(self), (self.data, self.requires_grad)


class Buffer(torch.Tensor):
    def __new__(cls, data=None, *, persistent=True):
        made = (torch.empty(0) if data is None else data)._as_class(cls, False)
        made.persistent = persistent
        return made

    def __init__(self, *args, **kwargs):
        pass


class UninitializedTensorMixin:
    """A tensor without a shape, which a lazy module makes of its first input."""

    def materialize(self, shape, device=None, dtype=None):
        # The object changes its class to that of a parameter with a shape, so that references to the object stay valid.
        self.data = torch.empty(shape, device=device or self.data.device, dtype=dtype or self.data.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
            "accessing their attributes."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"


def is_lazy(param):
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Parameter.__new__(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad=True, device=None, dtype=None):
        pass


class UninitializedBuffer(UninitializedTensorMixin, torch.Tensor):
    cls_to_become = torch.Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        made = torch.empty(0, device=device, dtype=dtype)._as_class(cls, requires_grad)
        made.persistent = persistent
        return made

    def __init__(self, *args, **kwargs):
        pass


from torch import _names

__getattr__ = _names.refuses(__name__)
