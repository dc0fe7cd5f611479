"""Functions that the steps of optimizers share."""

from _torch import operator as _operator

import torch

# `torch.maximum` with `out=` the first of both.
_maximum_ = _operator("maximum_")


def _check(condition, text):
    if not condition:
        raise ValueError(text)


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


def _add_one(state_steps):
    if state_steps[0].is_cpu:
        torch._foreach_add_(state_steps, torch.tensor(1.0, device="cpu"), alpha=1.0)
    else:
        torch._foreach_add_(state_steps, 1)


def _number(step):
    return step.item() if isinstance(step, torch.Tensor) else step
