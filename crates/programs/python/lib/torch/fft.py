"""`torch.fft`, of which only shifts and frequencies are modeled."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing


def fftshift(input, dim=None):
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return input.roll([input.shape[d] // 2 for d in dims], dims)


def ifftshift(input, dim=None):
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return input.roll([(input.shape[d] + 1) // 2 for d in dims], dims)


def fftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False):
    import torch

    with torch.no_grad():
        made = torch.arange(n, dtype=dtype or torch.get_default_dtype(), device=device)
        made.narrow(0, (n + 1) // 2, n // 2).copy_(torch.arange(-(n // 2), 0, dtype=made.dtype, device=device))
        made.mul_(1.0 / (n * d))
    return made.requires_grad_() if requires_grad else made


def rfftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False):
    import torch

    with torch.no_grad():
        made = torch.arange(n // 2 + 1, dtype=dtype or torch.get_default_dtype(), device=device).mul_(1.0 / (n * d))
    return made.requires_grad_() if requires_grad else made


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(
        f"torch.fft.{name}",
        "Fourier transforms are not modeled: put a tensor of the result's shape in their place, or run the program with `blockyard dry-run`",
    )
