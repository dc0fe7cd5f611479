"""Activations, softmax and dropout."""

from _torch import operator as _operator

import torch
from torch.nn.functional._operators import (
    _alpha_dropout,
    _alpha_dropout_,
    _dropout,
    _feature_alpha_dropout,
    _feature_alpha_dropout_,
    _feature_dropout,
    _feature_dropout_,
    _log_softmax,
    _need,
    _softmax,
)


def _activation(name, inplace_name=None):
    out_of_place, in_place = _need(name), _need(inplace_name or name + "_")

    def function(input, inplace=False):
        return in_place(input) if inplace else out_of_place(input)

    function.__name__ = name
    return function


relu, selu, silu, mish, relu6, hardsigmoid, hardswish = map(
    _activation, ("relu", "selu", "silu", "mish", "relu6", "hardsigmoid", "hardswish")
)
tanh, sigmoid = _need("tanh"), _need("sigmoid")
_leaky_relu, _leaky_relu_, _elu, _elu_ = _need("leaky_relu"), _need("leaky_relu_"), _need("elu"), _need("elu_")
_hardtanh, _hardtanh_, _threshold, _threshold_ = (
    _need("hardtanh"),
    _need("hardtanh_"),
    _need("threshold"),
    _need("threshold_"),
)
_gelu, _softplus, _glu, _prelu, _softshrink, _hardshrink, _celu, _rrelu, _rrelu_ = map(
    _need, ("gelu", "softplus", "glu", "prelu", "softshrink", "hardshrink", "celu", "rrelu", "rrelu_")
)
relu_ = _need("relu_")


def gelu(input, approximate="none"):
    return _gelu(input, approximate=approximate)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return _leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    return _elu_(input, alpha) if inplace else _elu(input, alpha)


def celu(input, alpha=1.0, inplace=False):
    return _celu(input, alpha)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return _hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


def threshold(input, threshold, value, inplace=False):
    return _threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


def softplus(input, beta=1.0, threshold=20.0):
    return _softplus(input, beta, threshold)


def glu(input, dim=-1):
    return _glu(input, dim)


def prelu(input, weight):
    return _prelu(input, weight)


def softshrink(input, lambd=0.5):
    return _softshrink(input, lambd)


def hardshrink(input, lambd=0.5):
    return _hardshrink(input, lambd)


def tanhshrink(input):
    return input - input.tanh()


def softsign(input):
    return input / (input.abs() + 1)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    return _rrelu_(input, lower, upper, training) if inplace else _rrelu(input, lower, upper, training)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    gumbels = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    gumbels = (logits + gumbels) / tau
    y_soft = gumbels.softmax(dim)
    if hard:
        index = y_soft.max(dim, keepdim=True)[1]
        y_hard = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
        return y_hard - y_soft.detach() + y_soft
    return y_soft


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    _check_probability(p)
    return _multiply_by_noise(input, input, p, training) if inplace else _dropout(input, p, training)


def _multiply_by_noise(input, like, p, training):
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(torch.zeros((), dtype=input.dtype, device=input.device))
    return input.mul_(torch.empty_like(like, requires_grad=False).bernoulli_(1 - p).div_(1 - p))


def dropout1d(input, p=0.5, training=True, inplace=False):
    return _feature_dropout_(input, p, training) if inplace else _feature_dropout(input, p, training)


dropout2d = dropout3d = dropout1d


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    _check_probability(p)
    return _alpha_dropout_(input, p, training) if inplace else _alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    _check_probability(p)
    return _feature_alpha_dropout_(input, p, training) if inplace else _feature_alpha_dropout(input, p, training)


def threshold_(input, threshold, value):
    return _operator("threshold_")(input, threshold, value)
