"""`torch.signal.windows`: each window is a row of points and a few functions of the points."""

import math as _math

import torch

__path__ = []  # Modules below are found, and refused in a sentence.


def _window(name, least=0):
    """A window of `M` points: none or one at the edges, else what the function makes of the options."""

    def decorate(function):
        def window(M, *args, sym=True, dtype=None, layout=None, device=None, requires_grad=False, **own):
            dtype = dtype or torch.get_default_dtype()
            if M < 0:
                raise ValueError(f"{name} requires non-negative window length, got M={M}")
            if dtype not in (torch.float32, torch.float64):
                raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
            options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
            if M <= least:
                return torch.empty((0,), **options) if M == 0 else torch.ones((1,), **options)
            return function(M, sym, options, *args, **own)

        window.__name__ = window.__qualname__ = name
        return window

    return decorate


def _points(M, start, constant, options):
    return torch.linspace(start * constant, (start + (M - 1)) * constant, M, **options)


def _last(M, sym):
    return M if not sym and M > 1 else M - 1


@_window("exponential")
def exponential(M, sym, options, *, center=None, tau=1.0):
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    center = _last(M, sym) / 2.0 if center is None else center
    k = _points(M, -center, 1 / tau, options)
    return torch.exp(-torch.abs(k))


@_window("cosine")
def cosine(M, sym, options):
    k = _points(M, 0.5, _math.pi / (M + 1 if not sym and M > 1 else M), options)
    return torch.sin(k)


@_window("gaussian")
def gaussian(M, sym, options, *, std=1.0):
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    k = _points(M, -_last(M, sym) / 2.0, 1 / (std * _math.sqrt(2)), options)
    return torch.exp(-(k**2))


@_window("kaiser", 1)
def kaiser(M, sym, options, *, beta=12.0):
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    beta = torch.tensor(beta, dtype=options["dtype"], device=options["device"])
    start = -beta
    constant = 2.0 * beta / (M if not sym else M - 1)
    end = torch.minimum(beta, start + (M - 1) * constant)
    k = torch.linspace(start, end, M, **options)
    return torch.i0(torch.sqrt(beta * beta - torch.pow(k, 2))) / torch.i0(beta)


def _shorter(name, of, constant):
    def window(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False, alpha=constant):
        return general_hamming(M, alpha=alpha, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)

    window.__name__ = window.__qualname__ = name
    return window


hamming, hann = _shorter("hamming", "general_hamming", 0.54), _shorter("hann", "general_hamming", 0.5)


def general_hamming(M, *, alpha=0.54, **options):
    return general_cosine(M, a=[alpha, 1.0 - alpha], **options)


def blackman(M, **options):
    return general_cosine(M, a=[0.42, 0.5, 0.08], **options)


def nuttall(M, **options):
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)


@_window("bartlett", 1)
def bartlett(M, sym, options):
    start, constant = -1, 2 / (M if not sym else M - 1)
    k = torch.linspace(start, start + (M - 1) * constant, M, **options)
    return 1 - torch.abs(k)


@_window("general_cosine", 1)
def general_cosine(M, sym, options, *, a):
    if not isinstance(a, (list, tuple)) or not a:
        raise ValueError("Coefficients must be a list/tuple that is not empty")
    constant = 2 * _math.pi / (M if not sym else M - 1)
    k = torch.linspace(0, (M - 1) * constant, M, **options)
    a_i = torch.tensor([(-1) ** i * w for i, w in enumerate(a)], **options)
    i = torch.arange(a_i.shape[0], dtype=a_i.dtype, device=a_i.device)
    return (a_i.unsqueeze(-1) * torch.cos(i.unsqueeze(-1) * k)).sum(0)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.signal.windows", name)
