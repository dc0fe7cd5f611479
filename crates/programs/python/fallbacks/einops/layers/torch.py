"""Patterns as modules."""

import torch

from einops import _apply


class Rearrange(torch.nn.Module):
    def __init__(self, pattern, **axes_lengths):
        super().__init__()
        self.pattern, self.axes_lengths = pattern, axes_lengths

    def __repr__(self):
        return (
            f"Rearrange({self.pattern!r}"
            + "".join(f", {axis}={length}" for axis, length in self.axes_lengths.items())
            + ")"
        )

    def forward(self, input):
        return _apply(input, self.pattern, "rearrange", self.axes_lengths)


class Reduce(torch.nn.Module):
    def __init__(self, pattern, reduction, **axes_lengths):
        super().__init__()
        self.pattern, self.reduction, self.axes_lengths = pattern, reduction, axes_lengths

    def __repr__(self):
        return (
            f"Reduce({self.pattern!r}, {self.reduction!r}"
            + "".join(f", {axis}={length}" for axis, length in self.axes_lengths.items())
            + ")"
        )

    def forward(self, input):
        return _apply(input, self.pattern, self.reduction, self.axes_lengths)


def __getattr__(name):
    if name == "EinMix":
        raise NotImplementedError(
            "einops.layers.torch.EinMix is not modeled here: use torch.einsum with a torch.nn.Parameter"
        )
    raise AttributeError(name)
