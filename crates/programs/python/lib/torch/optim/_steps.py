"""Functions that the steps of optimizers share."""

from _torch import operator as _operator

import torch

# `torch.maximum` with `out=` the first of both.
_maximum_ = _operator("maximum_")


def _check(condition, text):
    if not condition:
        raise ValueError(text)


def _settings(given, names):
    """The settings of a group: of the arguments of a constructor (`locals()`) these, in PyTorch's order."""
    return {name: given[name] for name in names.split()}


def _refuse_sparse(grad, name, instead=""):
    if grad.is_sparse:
        raise RuntimeError(f"{name} does not support sparse gradients{instead}")


def _use_foreach(params, foreach, differentiable=False):
    if foreach is not None:
        return foreach
    return not differentiable and all(p.is_cuda and type(p) in (torch.Tensor, torch.nn.Parameter) for p in params)


def _run_closure(closure):
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def _state_of(tensor):
    tensor._set_category("optimizer_state")
    return tensor


def _zeros(p):
    return _state_of(torch.zeros_like(p, memory_format=torch.preserve_format))


def _decayed(group, params, grads):
    """The gradients with the weights' decay, and changed signs for maximize; decay apart from them is taken off the weights."""
    decay = group["weight_decay"]
    if group["maximize"]:
        grads = torch._foreach_neg(grads)
    if decay == 0:
        return grads
    if group.get("decoupled_weight_decay"):
        torch._foreach_mul_(params, 1 - group["lr"] * decay)
        return grads
    if group["maximize"]:
        torch._foreach_add_(grads, params, alpha=decay)
        return grads
    return torch._foreach_add(grads, params, alpha=decay)


def _add_one(state_steps):
    if state_steps[0].is_cpu:
        torch._foreach_add_(state_steps, torch.tensor(1.0, device="cpu"), alpha=1.0)
    else:
        torch._foreach_add_(state_steps, 1)


def _number(step):
    return step.item() if isinstance(step, torch.Tensor) else step
