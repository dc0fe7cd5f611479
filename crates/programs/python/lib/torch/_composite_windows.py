"""Windows."""

import torch


def _tail(window, periodic):
    return window.narrow(0, 0, window.numel() - 1) if periodic else window


def _windowed(name, make):
    def function(
        window_length, periodic=True, *args, dtype=None, layout=None, device=None, requires_grad=False, **kwargs
    ):
        dtype = dtype or torch.get_default_dtype()
        if window_length <= 1:
            return torch.ones(window_length, dtype=dtype, device=device, requires_grad=requires_grad)
        with torch.no_grad():
            length = window_length + bool(periodic)
            made = _tail(make(torch.arange(length, dtype=dtype, device=device), length, *args, **kwargs), periodic)
        return made.requires_grad_() if requires_grad else made

    function.__name__ = name
    return function


def _hamming(window, length, alpha=0.54, beta=0.46):
    return window.mul_(torch.pi * 2.0 / (length - 1)).cos_().mul_(-beta).add_(alpha)


def _hann(window, length):
    return _hamming(window, length, 0.5, 0.5)


def _bartlett(window, length):
    window.mul_(2.0 / (length - 1))
    half = ((length - 1) >> 1) + 1
    window.narrow(0, half, length - half).mul_(-1).add_(2)
    return window


def _blackman(window, length):
    # What C++ computes on the way lives to the end of the statement.
    window.mul_(torch.pi / (length - 1))
    right = window.mul(2).cos_().mul_(0.5)
    left = window.mul(4).cos_().mul_(0.08)
    difference = left - right
    result = difference + 0.42
    del difference, left, right
    return result


def _kaiser(window, length, beta=12.0):
    return torch.empty_like(window)
