"""`torch.nn.utils.prune`: masks that a hook multiplies a parameter with before each call."""

import torch
from torch.nn.parameter import Parameter


class BasePruningMethod:
    PRUNING_TYPE = "unstructured"

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t, default_mask):
        raise NotImplementedError("compute_mask")

    def apply_mask(self, module):
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        pruned_tensor = mask.to(dtype=orig.dtype) * orig
        return pruned_tensor

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                raise NotImplementedError("pruning a parameter twice is not modeled here; call remove() before")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        orig = getattr(module, name)
        importance_scores = orig if importance_scores is None else importance_scores
        module.register_parameter(name + "_orig", orig)
        del module._parameters[name]
        default_mask = torch.ones_like(orig)
        mask = method.compute_mask(importance_scores, default_mask=default_mask)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        importance_scores = t if importance_scores is None else importance_scores
        default_mask = default_mask if default_mask is not None else torch.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module):
        weight = self.apply_mask(module)
        orig = module._parameters[self._tensor_name + "_orig"]
        orig.data = weight.data
        delattr(module, self._tensor_name)
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, orig)


class Identity(BasePruningMethod):
    def compute_mask(self, t, default_mask):
        return default_mask


def _count(amount, size):
    return round(amount * size) if isinstance(amount, float) else amount


class RandomUnstructured(BasePruningMethod):
    def __init__(self, amount):
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count != 0:
            prob = torch.rand_like(t)
            topk = torch.topk(prob.view(-1), k=count)
            mask.view(-1)[topk.indices] = 0
        return mask


class L1Unstructured(BasePruningMethod):
    def __init__(self, amount):
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count != 0:
            topk = torch.topk(torch.abs(t).view(-1), k=count, largest=False)
            mask.view(-1)[topk.indices] = 0
        return mask


class CustomFromMask(BasePruningMethod):
    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module, name):
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    for k, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[k]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    return any(
        isinstance(hook, BasePruningMethod)
        for _, submodule in module.named_modules()
        for hook in submodule._forward_pre_hooks.values()
    )


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.nn.utils.prune", name)


def _structured_mask(t, dim, indices):
    mask = torch.zeros_like(t)
    places = [slice(None)] * t.dim()
    places[dim] = indices
    mask[tuple(places)] = 1
    return mask


class RandomStructured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.shape[self.dim])
        if count == 0:
            return default_mask
        prob = torch.rand(t.shape[self.dim])
        threshold = torch.kthvalue(prob, k=count).values
        mask = _structured_mask(t, self.dim, prob > threshold)
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class LnStructured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t, default_mask):
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        norm = torch.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != self.dim % t.dim()])
        topk = torch.topk(norm, k=size - count, largest=True)
        if count == 0:
            return default_mask
        mask = _structured_mask(t, self.dim, topk.indices)
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


def random_structured(module, name, amount, dim):
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    torch._torch_memory.note_estimate(
        "prune.global_unstructured", "which elements were pruned before depends on values; none are assumed"
    )
    parameters, scores = list(parameters), importance_scores or {}
    vector = torch.nn.utils.parameters_to_vector
    importance = vector([scores.get(pair, getattr(*pair)) for pair in parameters])
    default_mask = vector(
        [getattr(module, name + "_mask", torch.ones_like(getattr(module, name))) for module, name in parameters]
    )
    final_mask = pruning_method(**kwargs).compute_mask(importance, default_mask)
    pointer = 0
    for module, name in parameters:
        count = getattr(module, name).numel()
        custom_from_mask(module, name, mask=final_mask[pointer : pointer + count].view_as(getattr(module, name)))
        pointer += count
