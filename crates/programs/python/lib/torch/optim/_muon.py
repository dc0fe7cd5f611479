"""The optimizer Muon: momentum whose matrices are made orthogonal by products."""

import math

import torch
from torch.optim._steps import _check, _refuse_sparse, _run_closure, _settings, _state_of
from torch.optim.optimizer import Optimizer


class Muon(Optimizer):
    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        _check(not isinstance(lr, torch.Tensor) or lr.numel() == 1, "Tensor lr must be 1-element")
        _check(0.0 <= lr, f"Learning rate should be >= 0 but is: {lr}")
        _check(0.0 <= momentum, f"momentum should be >= 0 but is: {momentum}")
        _check(0.0 <= weight_decay, f"weight decay should be >= 0 but is: {weight_decay}")
        _check(
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            f"Adjust learning rate function {adjust_lr_fn} is not supported",
        )
        names = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        super().__init__(params, _settings(locals(), names))
        for group in self.param_groups:
            for p in group["params"]:
                _check(
                    p.ndim == 2,
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}",
                )

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, buffers = [], [], []
            for p in group["params"]:
                if p.grad is None:
                    continue
                _refuse_sparse(p.grad, "Muon")
                params.append(p)
                grads.append(p.grad)
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = _state_of(torch.zeros_like(p.grad, memory_format=torch.preserve_format))
                buffers.append(state["momentum_buffer"])
            _single_tensor_muon(params, grads, buffers, group)
        return loss


def _single_tensor_muon(params, grads, buffers, group):
    lr, momentum = group["lr"], group["momentum"]
    if isinstance(lr, torch.Tensor):
        lr = lr.item()
    for i, param in enumerate(params):
        grad = grads[i]
        buf = buffers[i]
        buf.lerp_(grad, 1 - momentum)
        update = grad.lerp(buf, momentum) if group["nesterov"] else buf
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rate = _adjusted(lr, group["adjust_lr_fn"], param.shape)
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update, alpha=-rate)


def _orthogonal(grad, coefficients, steps, eps):
    """A polynomial of the matrix whose singular values are about one."""
    _check(steps < 100, "Number of steps must be less than 100 for computational efficiency")
    _check(len(coefficients) == 3, "Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    made = grad.bfloat16()
    if grad.size(0) > grad.size(1):
        made = made.T
    made.div_(made.norm().clamp(min=eps))
    for _ in range(steps):
        gram = made @ made.T
        update = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        made = torch.addmm(made, update, made, beta=a)
    if grad.size(0) > grad.size(1):
        made = made.T
    return made


def _adjusted(lr, function, shape):
    rows, columns = shape[:2]
    if function == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr * math.sqrt(max(1, rows / columns))
