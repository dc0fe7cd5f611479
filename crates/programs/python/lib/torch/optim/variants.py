"""More optimizers: PyTorch's steps in PyTorch's order, over lists of tensors at once."""

import torch
from torch.optim._steps import (
    _add_one,
    _decayed,
    _number,
    _refuse_sparse,
    _run_closure,
    _settings,
    _state_of,
    _use_foreach,
    _zeros,
)
from torch.optim.optimizer import Optimizer, group_by_device_and_dtype


class _Listed(Optimizer):
    """An optimizer whose state is lists of tensors, with one for each parameter, and whose step runs over these lists."""

    _names = ()

    def _start(self, p, group):
        raise NotImplementedError

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, columns = [], [], [[] for _ in self._names]
            for p in group["params"]:
                if p.grad is None:
                    continue
                _refuse_sparse(p.grad, type(self).__name__)
                params.append(p)
                grads.append(p.grad)
                state = self.state[p]
                if len(state) == 0:
                    self._start(p, group, state)
                for column, name in zip(columns, self._names):
                    column.append(state.get(name))
            if not params:
                continue
            if not self._is_listed(params, group):
                torch._torch_memory.note_estimate(type(self).__name__, "its steps one by one rest on no recording")
            if group.get("capturable"):
                raise NotImplementedError(f"{type(self).__name__}(capturable=True) is not modeled here")
            for lists in group_by_device_and_dtype([params, grads, *columns]):
                self._step(group, *lists)
        return loss

    def _is_listed(self, params, group):
        return _use_foreach(params, group["foreach"])


def _follow(group, grads, means, squares):
    """Updates the running means of the gradients and of their squares by one step."""
    first, second = group["betas"]
    torch._foreach_lerp_(means, grads, 1 - first)
    torch._foreach_mul_(squares, second)
    torch._foreach_addcmul_(squares, grads, grads, 1 - second)


def _scales(steps):
    """The factor 1 for each tensor: PyTorch computes the factors from the values of weights, which are not known here."""
    return [1.0 for _ in steps]


class NAdam(_Listed):
    _names = ("exp_avg", "exp_avg_sq", "mu_product", "step")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        names = (
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
        )
        super().__init__(params, _settings(locals(), names))

    def _start(self, p, group, state):
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["mu_product"] = torch.tensor(1.0, dtype=torch.float32)
        state["exp_avg"], state["exp_avg_sq"] = _zeros(p), _zeros(p)

    def _step(self, group, params, grads, means, squares, products, steps):
        _add_one(steps)
        grads = _decayed(group, params, grads)
        _follow(group, grads, means, squares)
        roots = torch._foreach_sqrt(squares)
        for product, step in zip(products, steps):
            # The momentum of this step, which grows towards the first beta.
            product.mul_(group["betas"][0] * (1 - 0.96 ** (_number(step) * group["momentum_decay"]) / 2))
        torch._foreach_div_(roots, _scales(steps))
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_addcdiv_(params, grads, roots, _scales(steps))
        torch._foreach_addcdiv_(params, means, roots, _scales(steps))


class RAdam(_Listed):
    _names = ("exp_avg", "exp_avg_sq", "step")

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        names = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
        super().__init__(params, _settings(locals(), names))

    def _start(self, p, group, state):
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"], state["exp_avg_sq"] = _zeros(p), _zeros(p)

    def _step(self, group, params, grads, means, squares, steps):
        _add_one(steps)
        grads = _decayed(group, params, grads)
        _follow(group, grads, means, squares)
        del grads
        rates = torch._foreach_sqrt(squares)
        torch._foreach_add_(rates, group["eps"])
        torch._foreach_div_(rates, _scales(steps))
        torch._foreach_reciprocal_(rates)
        torch._foreach_add_(rates, _scales(steps))
        torch._foreach_addcmul_(params, means, rates)


class Adamax(_Listed):
    _names = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        names = "lr betas eps weight_decay foreach maximize differentiable capturable"
        super().__init__(params, _settings(locals(), names))

    def _start(self, p, group, state):
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"], state["exp_inf"] = _zeros(p), _zeros(p)

    def _step(self, group, params, grads, means, largest, steps):
        first, second = group["betas"]
        is_plain = not group["maximize"] and group["weight_decay"] == 0
        _add_one(steps)
        grads = _decayed(group, params, grads)
        torch._foreach_lerp_(means, grads, 1 - first)
        torch._foreach_mul_(largest, second)
        # The program's own gradients stay as they are.
        if is_plain:
            grads = torch._foreach_abs(grads)
        else:
            torch._foreach_abs_(grads)
        torch._foreach_add_(grads, group["eps"])
        torch._foreach_maximum_(largest, grads)
        torch._foreach_addcdiv_(params, means, largest, _scales(steps))


class ASGD(_Listed):
    _names = ("ax", "mu", "eta", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        names = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        super().__init__(params, _settings(locals(), names))

    def _start(self, p, group, state):
        state["step"] = torch.zeros((), device=p.device, dtype=torch.float32)
        state["eta"] = torch.as_tensor(group["lr"], device=p.device, dtype=torch.float32).clone().detach()
        state["mu"] = torch.ones((), device=p.device, dtype=torch.float32)
        state["ax"] = _zeros(p)

    def _step(self, group, params, grads, axs, mus, etas, steps):
        lr, lambd, alpha = group["lr"], group["lambd"], group["alpha"]
        device = params[0].device
        if group["maximize"]:
            grads = torch._foreach_neg(grads)
        _add_one(steps)
        if group["weight_decay"] != 0:
            if group["maximize"]:
                torch._foreach_add_(grads, params, alpha=group["weight_decay"])
                pulled = grads
            else:
                pulled = torch._foreach_add(grads, params, alpha=group["weight_decay"])
            torch._foreach_add_(pulled, params, alpha=lambd)
        else:
            pulled = torch._foreach_add(grads, params, alpha=lambd)
        torch._foreach_addcmul_(params, pulled, etas, value=-1)
        del pulled
        pulled = torch._foreach_sub(params, axs)
        torch._foreach_addcmul_(axs, pulled, mus)
        del pulled
        next_etas = [torch.as_tensor(lr / ((1 + lambd * lr * step) ** alpha), device=device) for step in steps]
        # The number is 1 / max(1, step - t0), which lies on the GPU.
        next_mus = [torch.as_tensor(1.0, device=device) for _ in steps]
        torch._foreach_copy_(etas, next_etas)
        torch._foreach_copy_(mus, next_mus)


class Rprop(_Listed):
    _names = ("prev", "step_size", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        super().__init__(params, _settings(locals(), "lr etas step_sizes foreach maximize differentiable capturable"))

    def _start(self, p, group, state):
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["prev"] = _zeros(p)
        state["step_size"] = _state_of(torch.full_like(p.grad, group["lr"]))

    def _step(self, group, params, grads, prevs, step_sizes, steps):
        shrink, grow = group["etas"]
        _add_one(steps)
        signs = list(torch._foreach_mul(grads, prevs))
        if group["maximize"]:
            torch._foreach_neg_(signs)
        torch._foreach_copy_(prevs, grads)
        if group["maximize"]:
            torch._foreach_neg_(prevs)
        grads = prevs
        torch._foreach_sign_(signs)
        for sign in signs:
            sign[sign.gt(0)] = grow
            sign[sign.lt(0)] = shrink
            sign[sign.eq(0)] = 1
        torch._foreach_mul_(step_sizes, signs)
        for step_size in step_sizes:
            step_size.clamp_(*group["step_sizes"])
        grads = list(grads)
        for i in range(len(grads)):
            grads[i].copy_(torch.where(signs[i].eq(shrink), 0, grads[i]))
        del signs
        directions = [grad.sign() for grad in grads]
        torch._foreach_addcmul_(params, directions, step_sizes, value=-1)


class Adafactor(_Listed):
    _names = ("row_var", "col_var", "variance", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        super().__init__(params, _settings(locals(), "lr beta2_decay eps d weight_decay foreach maximize"))

    def _is_listed(self, params, group):
        return not group["foreach"]

    def _start(self, p, group, state):
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        if p.grad.dim() > 1:
            row_shape, col_shape = list(p.grad.shape), list(p.grad.shape)
            row_shape[-1] = col_shape[-2] = 1
            state["row_var"], state["col_var"] = (
                _state_of(p.grad.new_zeros(row_shape)),
                _state_of(p.grad.new_zeros(col_shape)),
            )
        else:
            state["variance"] = _zeros(p.grad)

    def _step(self, group, params, grads, row_vars, col_vars, variances, steps):
        lr, least = group["lr"], group["eps"][0]
        for i, param in enumerate(params):
            grad = grads[i] if not group["maximize"] else -grads[i]
            step, row_var, col_var, variance = steps[i], row_vars[i], col_vars[i], variances[i]
            if least is None:
                least = torch.finfo(param.dtype).eps
            step += 1
            count = _number(step)
            rate = count ** group["beta2_decay"]
            # PyTorch reads two norms, which scale the step.
            param.norm(2).item()
            if group["weight_decay"] != 0:
                param.mul_(1 - lr * group["weight_decay"])
            if grad.dim() > 1:
                rows = torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1))
                row_var.lerp_(rows, rate)
                columns = torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2))
                col_var.lerp_(columns, rate)
                estimate = row_var @ col_var
                estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=least))
            else:
                square = grad * grad
                variance.lerp_(square, rate)
                estimate = variance.clone()
            update = estimate.clamp_(min=least * least).rsqrt_()
            update.mul_(grad)
            update.norm(2).item()
            param.add_(update, alpha=-lr)
