"""Averages of weights."""

import itertools
import math
from copy import deepcopy

import torch
from torch.nn import Module
from torch.nn.layers import _BatchNorm
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import group_by_device_and_dtype


def get_ema_multi_avg_fn(decay=0.999):
    _check(decay)

    @torch.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        if torch.is_floating_point(ema_param_list[0]):
            torch._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
        else:
            for p_ema, p_model in zip(ema_param_list, current_param_list):
                p_ema.copy_(p_ema * decay + p_model * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    @torch.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        if torch.is_floating_point(averaged_param_list[0]):
            torch._foreach_lerp_(averaged_param_list, current_param_list, _number(1 / (num_averaged + 1)))
            return
        diffs = torch._foreach_sub(current_param_list, averaged_param_list)
        if isinstance(num_averaged, torch.Tensor):
            torch._foreach_addcdiv_(averaged_param_list, diffs, [num_averaged + 1] * len(averaged_param_list))
        else:
            torch._foreach_add_(averaged_param_list, diffs, alpha=1.0 / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay=0.999):
    _check(decay)

    @torch.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    @torch.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _check(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _number(weight):
    # PyTorch reads a tensor without dimensions where it wants a number.
    return weight.item() if isinstance(weight, torch.Tensor) else weight


class AveragedModel(Module):
    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
        # The buffer's number, for a buffer on the GPU.
        self._updates = 0

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _holds(self, condition, here):
        return here if self.n_averaged.is_cuda else bool(condition)

    def update_parameters(self, model):
        mine = (
            itertools.chain(self.module.parameters(), self.module.buffers()) if self.use_buffers else self.parameters()
        )
        other = itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()
        averaged, current = [], []
        is_first = self._holds(self.n_averaged == 0, self._updates == 0)
        for p_averaged, p_model in zip(mine, other):
            p_model_ = p_model.detach().to(p_averaged.device)
            averaged.append(p_averaged.detach())
            current.append(p_model_)
            if is_first:
                p_averaged.detach().copy_(p_model_)
        if self._holds(self.n_averaged > 0, self._updates > 0):
            self._average(averaged, current)
        if not self.use_buffers:
            for b_swa, b_model in zip(self.module.buffers(), model.buffers()):
                b_swa.detach().copy_(b_model.detach().to(b_swa.device))
        self.n_averaged += 1
        self._updates += 1

    def _average(self, averaged, current):
        if self.multi_avg_fn is None and self.avg_fn is not None:
            for p_averaged, p_model in zip(averaged, current):
                n_averaged = self.n_averaged.to(p_averaged.device)
                p_averaged.detach().copy_(self.avg_fn(p_averaged.detach(), p_model, n_averaged))
            return
        for mine, other in group_by_device_and_dtype([averaged, current]):
            device = mine[0].device
            if self.multi_avg_fn:
                self.multi_avg_fn(mine, other, self.n_averaged.to(device))
            elif device.type == "cuda":
                get_swa_multi_avg_fn()(mine, other, self.n_averaged.to(device))
            else:
                avg_fn = get_swa_avg_fn()
                n_averaged = self.n_averaged.to(device)
                for p_averaged, p_model in zip(mine, other):
                    p_averaged.copy_(avg_fn(p_averaged, p_model, n_averaged))


@torch.no_grad()
def update_bn(loader, model, device=None):
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for input in loader:
        if isinstance(input, (list, tuple)):
            input = input[0]
        if device is not None:
            input = input.to(device)
        model(input)
    for module in momenta:
        module.momentum = momenta[module]
    model.train(was_training)


class SWALR(LRScheduler):
    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ValueError(
                f"swa_lr must have the same length as optimizer.param_groups. swa_lr has {len(rates)} values, param_groups has {len(groups)}."
            )
        for rate, group in zip(rates, groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epochs):
        done = max(0, min(1, epochs / max(1, self.anneal_epochs)))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self):
        # What the counter was at the step before: PyTorch counts from the constructor's own step.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        start = [
            group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            for group in self.optimizer.param_groups
        ]
        return [group["swa_lr"] * now + rate * (1 - now) for group, rate in zip(self.optimizer.param_groups, start)]
