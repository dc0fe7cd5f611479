"""Convolutions."""

from math import sqrt as _sqrt

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.layers._made import _pair
from torch.nn.module import Module
from torch.nn.parameter import Parameter


class _Conv(Module):
    _dims, _transposed = 2, False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__()
        self._set(locals())

    def _set(self, given, output_padding=0):
        in_channels, out_channels, groups, padding = (
            given[name] for name in ("in_channels", "out_channels", "groups", "padding")
        )
        factory = {"device": given["device"], "dtype": given["dtype"]}
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        count = self._dims
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.padding_mode = given["padding_mode"]
        self.kernel_size, self.stride, self.dilation = (
            _pair(given[name], count) for name in ("kernel_size", "stride", "dilation")
        )
        self.padding = padding if isinstance(padding, str) else _pair(padding, count)
        self.transposed, self.output_padding = self._transposed, _pair(output_padding, count)
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*channels, *self.kernel_size), **factory))
        if given["bias"]:
            self.bias = Parameter(torch.empty(out_channels, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=_sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / _sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        function = (F.conv1d, F.conv2d, F.conv3d)[self._dims - 1]
        if self.padding_mode != "zeros":
            pads = []
            for size in reversed(self.padding):
                pads += [size, size]
            return function(
                F.pad(input, pads, mode=self.padding_mode),
                self.weight,
                self.bias,
                self.stride,
                (0,) * self._dims,
                self.dilation,
                self.groups,
            )
        return function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._dims:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_Conv):
    _dims = 1


class Conv2d(_Conv):
    _dims = 2


class Conv3d(_Conv):
    _dims = 3


class _ConvTranspose(_Conv):
    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        Module.__init__(self)
        self._set(locals(), output_padding)

    def forward(self, input, output_size=None):
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._dims - 1]
        return function(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    _dims = 3
