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


class UninitializedParameter(Parameter):
    def __new__(cls, requires_grad=True, device=None, dtype=None):
        raise NotImplementedError("lazy parameters are not modeled here; give the module its sizes")
