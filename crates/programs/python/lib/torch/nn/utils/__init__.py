"""`torch.nn.utils`."""

import functools

import torch
from torch.optim.optimizer import group_by_device_and_dtype
from torch.nn.utils import rnn


def _no_grad(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with torch.no_grad():
            return function(*args, **kwargs)

    return wrapper


@_no_grad
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    norm_type = float(norm_type)
    if len(tensors) == 0:
        return torch.tensor(0.0)
    first_device = tensors[0].device
    norms = []
    for (device_tensors,) in group_by_device_and_dtype([tensors]):
        if foreach is None or foreach:
            norms.extend(torch._foreach_norm(device_tensors, norm_type))
        else:
            norms.extend([torch.linalg.vector_norm(g, norm_type) for g in device_tensors])
    total_norm = torch.linalg.vector_norm(torch.stack([norm.to(first_device) for norm in norms]), norm_type)
    if error_if_nonfinite:
        torch.logical_or(total_norm.isnan(), total_norm.isinf())
    return total_norm


@_no_grad
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
    grads = [p.grad for p in parameters if p.grad is not None]
    max_norm = float(max_norm)
    if len(grads) == 0:
        return
    grouped_grads = group_by_device_and_dtype([grads])
    clip_coef = max_norm / (total_norm + 1e-6)
    clip_coef_clamped = torch.clamp(clip_coef, max=1.0)
    for (device_grads,) in grouped_grads:
        if foreach is None or foreach:
            torch._foreach_mul_(device_grads, clip_coef_clamped.to(device_grads[0].device))
        else:
            clip_coef_clamped_device = clip_coef_clamped.to(device_grads[0].device)
            for g in device_grads:
                g.mul_(clip_coef_clamped_device)


@_no_grad
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


clip_grad_norm = clip_grad_norm_


@_no_grad
def clip_grad_value_(parameters, clip_value, foreach=None):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
    clip_value = float(clip_value)
    grads = [p.grad for p in parameters if p.grad is not None]
    for (device_grads,) in group_by_device_and_dtype([grads]) if grads else ():
        if foreach is None or foreach:
            torch._foreach_clamp_min_(device_grads, -clip_value)
            torch._foreach_clamp_max_(device_grads, clip_value)
        else:
            for grad in device_grads:
                grad.clamp_(min=-clip_value, max=clip_value)


def parameters_to_vector(parameters):
    return torch.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec, parameters):
    pointer = 0
    for param in parameters:
        count = param.numel()
        param.data = vec[pointer : pointer + count].view_as(param).data
        pointer += count


def _convert_weights(module, memory_format, kinds):
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone().contiguous(memory_format=memory_format)
    for child in module.children():
        _convert_weights(child, memory_format, kinds)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    return _convert_weights(module, memory_format, (torch.nn.Conv2d, torch.nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    return _convert_weights(module, memory_format, (torch.nn.Conv3d, torch.nn.ConvTranspose3d))


def skip_init(module_cls, *args, device=None, **kwargs):
    # The module is made with random numbers: on the host they cost no memory of the GPU.
    return module_cls(*args, device=device or "cpu", **kwargs)


def __getattr__(name):
    # These modules import `torch.nn.functional`, which imports this package.
    if name in ("parametrize", "parametrizations", "prune", "stateless"):
        import sys

        __import__(f"torch.nn.utils.{name}")
        return sys.modules[f"torch.nn.utils.{name}"]
    if name in ("weight_norm", "spectral_norm", "remove_weight_norm", "remove_spectral_norm"):
        from torch.nn.utils import _norms

        return getattr(_norms, name)
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.nn.utils", name)
