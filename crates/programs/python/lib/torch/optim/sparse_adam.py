"""`SparseAdam`: the moments and the weights of the rows that have a gradient."""

import math

import torch
from torch.optim._steps import _check, _run_closure, _state_of
from torch.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        _check(0.0 < lr, f"Invalid learning rate: {lr}")
        _check(0.0 < eps, f"Invalid epsilon value: {eps}")
        _check(0.0 <= betas[0] < 1.0, f"Invalid beta parameter at index 0: {betas[0]}")
        _check(0.0 <= betas[1] < 1.0, f"Invalid beta parameter at index 1: {betas[1]}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, p in enumerate(group["params"])
            if p.is_sparse
        ]
        _check(not sparse, f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    def step(self, closure=None):
        loss = _run_closure(closure)
        for group in self.param_groups:
            params, grads, exp_avgs, exp_avg_sqs, steps = [], [], [], [], []
            for p in group["params"]:
                if p.grad is not None:
                    params.append(p)
                    if not p.grad.is_sparse:
                        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                    grads.append(p.grad)
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        for name in ("exp_avg", "exp_avg_sq"):
                            state[name] = _state_of(torch.zeros_like(p, memory_format=torch.preserve_format))
                    exp_avgs.append(state["exp_avg"])
                    exp_avg_sqs.append(state["exp_avg_sq"])
                    state["step"] += 1
                    steps.append(state["step"])
            _sparse_adam(params, grads, exp_avgs, exp_avg_sqs, steps, group)
        return loss


def _sparse_adam(params, grads, exp_avgs, exp_avg_sqs, steps, group):
    # In this order they go at the end: the indices last, which a function of PyTorch's keeps.
    old_values = old_sq_values = numer = denom = grad_values = grad = grad_indices = None
    beta1, beta2 = group["betas"]
    for i, param in enumerate(params):
        grad = grads[i]
        grad = grad if not group["maximize"] else -grad
        grad = grad.coalesce()
        grad_indices = grad._indices()
        grad_values = grad._values()
        if grad_values.numel() == 0:
            continue
        size = grad.size()
        exp_avg, exp_avg_sq = exp_avgs[i], exp_avg_sqs[i]
        # The moments of before, at the places of the gradient, move towards the gradient and its square.
        old_values = exp_avg.sparse_mask(grad)._values()
        update = grad_values.sub(old_values).mul_(1 - beta1)
        exp_avg.add_(torch.sparse_coo_tensor(grad_indices, update, size))
        old_sq_values = exp_avg_sq.sparse_mask(grad)._values()
        sq_update = grad_values.pow(2).sub_(old_sq_values).mul_(1 - beta2)
        exp_avg_sq.add_(torch.sparse_coo_tensor(grad_indices, sq_update, size))
        numer = update.add_(old_values)
        sq_update.add_(old_sq_values)
        denom = sq_update.sqrt_().add_(group["eps"])
        del update, sq_update
        step_size = group["lr"] * math.sqrt(1 - beta2 ** steps[i]) / (1 - beta1 ** steps[i])
        param.add_(torch.sparse_coo_tensor(grad_indices, -step_size * numer.div_(denom), size))
