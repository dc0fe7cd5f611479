"""The optimizers: PyTorch's steps in PyTorch's order, over lists of tensors at once on a GPU, one by one on the host."""

import torch
from torch.optim._steps import (
    _add_one,
    _check,
    _decayed,
    _number,
    _refuse_sparse,
    _run_closure,
    _settings,
    _state_of,
    _use_foreach,
    _zeros,
)
from torch.optim.adam import Adam, AdamW, _fused_adam, _multi_tensor_adam, _single_tensor_adam
from torch.optim.optimizer import Optimizer, group_by_device_and_dtype, required


class SGD(Optimizer):
    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        _check(isinstance(lr, torch.Tensor) or lr >= 0.0, f"Invalid learning rate: {lr}")
        _check(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        _check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        _check(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        names = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        super().__init__(params, _settings(locals(), names))

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, momentum_buffer_list = [], [], []
            for p in group["params"]:
                if p.grad is not None:
                    params.append(p)
                    grads.append(p.grad)
                    if group["momentum"] != 0:
                        momentum_buffer_list.append(self.state[p].get("momentum_buffer"))
            function = (
                _fused_sgd
                if group["fused"]
                else _multi_tensor_sgd
                if _use_foreach(params, group["foreach"])
                else _single_tensor_sgd
            )
            function(params, grads, momentum_buffer_list, group)
            if group["momentum"] != 0:
                for p, momentum_buffer in zip(params, momentum_buffer_list):
                    self.state[p]["momentum_buffer"] = momentum_buffer
        return loss


def _single_tensor_sgd(params, grads, momentum_buffer_list, group):
    for i, param in enumerate(params):
        grad = grads[i] if not group["maximize"] else -grads[i]
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        if group["momentum"] != 0:
            buf = momentum_buffer_list[i]
            if buf is None:
                buf = _state_of(grad.detach().clone())
                momentum_buffer_list[i] = buf
            else:
                buf.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            if group["nesterov"]:
                grad = grad.add(buf, alpha=group["momentum"])
            else:
                grad = buf
        param.add_(grad, alpha=-group["lr"])


def _multi_tensor_sgd(params, grads, momentum_buffer_list, group):
    if len(params) == 0:
        return
    momentum = group["momentum"]
    positions = list(range(len(params)))
    for device_params, device_grads, device_buffers, indices in group_by_device_and_dtype(
        [params, grads, momentum_buffer_list, positions]
    ):
        device_grads = _decayed(group, device_params, device_grads)
        if momentum != 0:
            bufs = []
            all_states_with_momentum_buffer = True
            for i in range(len(device_buffers)):
                if device_buffers[i] is None:
                    all_states_with_momentum_buffer = False
                    break
                bufs.append(device_buffers[i])
            if all_states_with_momentum_buffer:
                torch._foreach_mul_(bufs, momentum)
                torch._foreach_add_(bufs, device_grads, alpha=1 - group["dampening"])
            else:
                bufs = []
                for i, device_grad in enumerate(device_grads):
                    if device_buffers[i] is None:
                        buf = device_buffers[i] = momentum_buffer_list[indices[i]] = _state_of(
                            device_grad.detach().clone()
                        )
                    else:
                        buf = device_buffers[i]
                        buf.mul_(momentum).add_(device_grad, alpha=1 - group["dampening"])
                    bufs.append(buf)
                del device_grad
            if group["nesterov"]:
                torch._foreach_add_(device_grads, bufs, alpha=momentum)
            else:
                device_grads = bufs
        torch._foreach_add_(device_params, device_grads, alpha=-group["lr"])


def _fused_sgd(params, grads, momentum_buffer_list, group):
    if not params:
        return
    if any(grad.is_sparse for grad in grads):
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    no_buffer = group["momentum"] == 0
    is_first = not no_buffer and all(buffer is None for buffer in momentum_buffer_list)
    if is_first:
        for i, g in enumerate(grads):
            momentum_buffer_list[i] = _state_of(torch.empty_like(g))
    torch._fused_sgd_(
        params,
        grads,
        [] if no_buffer else momentum_buffer_list,
        weight_decay=group["weight_decay"],
        momentum=group["momentum"],
        lr=group["lr"],
        dampening=group["dampening"],
        nesterov=group["nesterov"],
        maximize=group["maximize"],
        is_first_step=is_first,
    )


class RMSprop(Optimizer):
    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        names = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        super().__init__(params, _settings(locals(), names))

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps = [], [], [], [], [], []
            for p in group["params"]:
                if p.grad is None:
                    continue
                _refuse_sparse(p.grad, type(self).__name__)
                params.append(p)
                grads.append(p.grad)
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = torch.zeros((), dtype=torch.float32)
                    state["square_avg"] = _zeros(p)
                    if group["momentum"] > 0:
                        state["momentum_buffer"] = _zeros(p)
                    if group["centered"]:
                        state["grad_avg"] = _zeros(p)
                square_avgs.append(state["square_avg"])
                state_steps.append(state["step"])
                if group["momentum"] > 0:
                    momentum_buffer_list.append(state["momentum_buffer"])
                if group["centered"]:
                    grad_avgs.append(state["grad_avg"])
            function = _multi_tensor_rmsprop if _use_foreach(params, group["foreach"]) else _single_tensor_rmsprop
            function(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, group)
        return loss


def _single_tensor_rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, group):
    lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
    for i, param in enumerate(params):
        step = state_steps[i]
        grad = grads[i] if not group["maximize"] else -grads[i]
        square_avg = square_avgs[i]
        step += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            grad_avg = grad_avgs[i]
            grad_avg.lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = avg.add_(eps)
        if group["momentum"] > 0:
            buf = momentum_buffer_list[i]
            buf.mul_(group["momentum"]).addcdiv_(grad, avg)
            param.add_(buf, alpha=-lr)
        else:
            param.addcdiv_(grad, avg, value=-lr)


def _multi_tensor_rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, group):
    if len(params) == 0:
        return
    lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
    for (
        grouped_params,
        grouped_grads,
        grouped_square_avgs,
        grouped_grad_avgs,
        grouped_momentum_buffer_list,
        grouped_state_steps,
    ) in group_by_device_and_dtype([params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps]):
        _add_one(grouped_state_steps)
        grouped_grads = _decayed(group, grouped_params, grouped_grads)
        torch._foreach_mul_(grouped_square_avgs, alpha)
        torch._foreach_addcmul_(grouped_square_avgs, grouped_grads, grouped_grads, value=1 - alpha)
        if group["centered"]:
            torch._foreach_lerp_(grouped_grad_avgs, grouped_grads, 1 - alpha)
            avg = torch._foreach_addcmul(grouped_square_avgs, grouped_grad_avgs, grouped_grad_avgs, value=-1)
            torch._foreach_sqrt_(avg)
            torch._foreach_add_(avg, eps)
        else:
            avg = torch._foreach_sqrt(grouped_square_avgs)
            torch._foreach_add_(avg, eps)
        if group["momentum"] > 0:
            torch._foreach_mul_(grouped_momentum_buffer_list, group["momentum"])
            torch._foreach_addcdiv_(grouped_momentum_buffer_list, grouped_grads, avg)
            torch._foreach_add_(grouped_params, grouped_momentum_buffer_list, alpha=-lr)
        else:
            torch._foreach_addcdiv_(grouped_params, grouped_grads, avg, value=-lr)


class Adagrad(Optimizer):
    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        names = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
        super().__init__(params, _settings(locals(), names))
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = torch.tensor(0.0, dtype=torch.float32)
                state["sum"] = _state_of(
                    torch.full_like(p, initial_accumulator_value, memory_format=torch.preserve_format)
                )

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, state_sums, state_steps = [], [], [], []
            for p in group["params"]:
                if p.grad is not None:
                    params.append(p)
                    grads.append(p.grad)
                    state = self.state[p]
                    state_sums.append(state["sum"])
                    state_steps.append(state["step"])
            function = _multi_tensor_adagrad if _use_foreach(params, group["foreach"]) else _single_tensor_adagrad
            function(params, grads, state_sums, state_steps, group)
        return loss


def _single_tensor_adagrad(params, grads, state_sums, state_steps, group):
    for param, grad, state_sum, step_t in zip(params, grads, state_sums, state_steps):
        step_t += 1
        step = _number(step_t)
        grad = grad if not group["maximize"] else -grad
        if group["weight_decay"] != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=group["weight_decay"])
        clr = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        if grad.is_sparse:
            grad = grad.coalesce()
            indices = grad._indices()
            values = grad._values()
            state_sum.add_(torch.sparse_coo_tensor(indices, values.pow(2), grad.size()))
            std = state_sum.sparse_mask(grad)
            std_values = std._values().sqrt_().add_(group["eps"])
            param.add_(torch.sparse_coo_tensor(indices, values / std_values, grad.size()), alpha=-clr)
            continue
        state_sum.addcmul_(grad, grad, value=1)
        std = state_sum.sqrt().add_(group["eps"])
        param.addcdiv_(grad, std, value=-clr)


def _multi_tensor_adagrad(params, grads, state_sums, state_steps, group):
    if len(params) == 0:
        return
    weight_decay, maximize = group["weight_decay"], group["maximize"]
    for device_params, device_grads, device_state_sums, device_state_steps in group_by_device_and_dtype(
        [params, grads, state_sums, state_steps]
    ):
        if any(grad.is_sparse for grad in device_grads):
            _single_tensor_adagrad(device_params, device_grads, device_state_sums, device_state_steps, group)
            continue
        _add_one(device_state_steps)
        device_grads = _decayed(group, device_params, device_grads)
        minus_clr = [-group["lr"] / (1 + (_number(step) - 1) * group["lr_decay"]) for step in device_state_steps]
        torch._foreach_addcmul_(device_state_sums, device_grads, device_grads, value=1)
        std = torch._foreach_sqrt(device_state_sums)
        torch._foreach_add_(std, group["eps"])
        if weight_decay != 0 or maximize:
            torch._foreach_mul_(device_grads, minus_clr)
            numerator = device_grads
        else:
            numerator = torch._foreach_mul(device_grads, minus_clr)
        torch._foreach_addcdiv_(device_params, numerator, std)


class Adadelta(Optimizer):
    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        names = "lr rho eps weight_decay maximize capturable foreach differentiable"
        super().__init__(params, _settings(locals(), names))

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, square_avgs, acc_deltas, state_steps = [], [], [], [], []
            for p in group["params"]:
                if p.grad is None:
                    continue
                _refuse_sparse(p.grad, type(self).__name__)
                params.append(p)
                grads.append(p.grad)
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = torch.zeros((), dtype=torch.float32)
                    state["square_avg"] = _zeros(p)
                    state["acc_delta"] = _zeros(p)
                square_avgs.append(state["square_avg"])
                acc_deltas.append(state["acc_delta"])
                state_steps.append(state["step"])
            function = _multi_tensor_adadelta if _use_foreach(params, group["foreach"]) else _single_tensor_adadelta
            function(params, grads, square_avgs, acc_deltas, state_steps, group)
        return loss


def _single_tensor_adadelta(params, grads, square_avgs, acc_deltas, state_steps, group):
    rho, eps = group["rho"], group["eps"]
    for param, grad, square_avg, acc_delta, step in zip(params, grads, square_avgs, acc_deltas, state_steps):
        step += 1
        grad = grad if not group["maximize"] else -grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        delta.div_(std).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-group["lr"])


def _multi_tensor_adadelta(params, grads, square_avgs, acc_deltas, state_steps, group):
    if len(params) == 0:
        return
    lr, rho, eps = group["lr"], group["rho"], group["eps"]
    for (
        device_params,
        device_grads,
        device_square_avgs,
        device_acc_deltas,
        device_state_steps,
    ) in group_by_device_and_dtype([params, grads, square_avgs, acc_deltas, state_steps]):
        _add_one(device_state_steps)
        device_grads = _decayed(group, device_params, device_grads)
        torch._foreach_mul_(device_square_avgs, rho)
        torch._foreach_addcmul_(device_square_avgs, device_grads, device_grads, value=1 - rho)
        std = torch._foreach_add(device_square_avgs, eps)
        torch._foreach_sqrt_(std)
        deltas = torch._foreach_add(device_acc_deltas, eps)
        torch._foreach_sqrt_(deltas)
        torch._foreach_div_(deltas, std)
        torch._foreach_mul_(deltas, device_grads)
        torch._foreach_mul_(device_acc_deltas, rho)
        torch._foreach_addcmul_(device_acc_deltas, deltas, deltas, value=1 - rho)
        torch._foreach_add_(device_params, deltas, alpha=-lr)
