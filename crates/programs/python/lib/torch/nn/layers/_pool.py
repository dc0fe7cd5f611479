"""Modules for pooling, padding and other changes of the size of an image."""

from torch.nn import functional as F
from torch.nn.layers._made import _pair, _simple
from torch.nn.module import Module


def _pool(name, function, has_dilation=True):
    class Made(Module):
        def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
            super().__init__()
            self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
            self.padding, self.dilation = padding, dilation
            self.return_indices, self.ceil_mode = return_indices, ceil_mode

        def forward(self, input):
            return function(
                input,
                self.kernel_size,
                self.stride,
                self.padding,
                self.dilation,
                ceil_mode=self.ceil_mode,
                return_indices=self.return_indices,
            )

        def extra_repr(self):
            return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"

    Made.__name__ = Made.__qualname__ = name
    return Made


def _average(name, get):
    class Made(Module):
        def __init__(
            self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
        ):
            super().__init__()
            self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
            self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad

        def forward(self, input):
            return get()(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

        def extra_repr(self):
            return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    Made.__name__ = Made.__qualname__ = name
    return Made


def _adaptive(name, function):
    class Made(Module):
        def __init__(self, output_size, return_indices=False):
            super().__init__()
            self.output_size = output_size

        def forward(self, input):
            return function(input, self.output_size)

        def extra_repr(self):
            return f"output_size={self.output_size}"

    Made.__name__ = Made.__qualname__ = name
    return Made


MaxPool1d, MaxPool2d, MaxPool3d = (
    _pool("MaxPool1d", F.max_pool1d),
    _pool("MaxPool2d", F.max_pool2d),
    _pool("MaxPool3d", F.max_pool3d),
)
AvgPool1d, AvgPool2d, AvgPool3d = (
    _average("AvgPool1d", lambda: F.avg_pool1d),
    _average("AvgPool2d", lambda: F.avg_pool2d),
    _average("AvgPool3d", lambda: F.avg_pool3d),
)
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    _adaptive("AdaptiveAvgPool1d", F.adaptive_avg_pool1d),
    _adaptive("AdaptiveAvgPool2d", F.adaptive_avg_pool2d),
    _adaptive("AdaptiveAvgPool3d", F.adaptive_avg_pool3d),
)
AdaptiveMaxPool2d = _adaptive("AdaptiveMaxPool2d", F.adaptive_max_pool2d)
PixelShuffle = _simple(
    "PixelShuffle",
    lambda self, x: F.pixel_shuffle(x, self.upscale_factor),
    "upscale_factor",
    (1,),
    lambda self: f"upscale_factor={self.upscale_factor}",
)
PixelUnshuffle = _simple(
    "PixelUnshuffle", lambda self, x: F.pixel_unshuffle(x, self.downscale_factor), "downscale_factor", (1,)
)


def _padding(dims, mode, *, zero=False):
    """The modules that pad `dims` dimensions: `nn.ReflectionPad2d` and the others."""
    name = f"{'Zero' if zero else {'constant': 'Constant', 'reflect': 'Reflection', 'replicate': 'Replication', 'circular': 'Circular'}[mode]}Pad{dims}d"

    class Made(Module):
        def __init__(self, padding, value=0.0):
            super().__init__()
            self.padding, self.value = _pair(padding, 2 * dims), value

        def forward(self, input):
            return (
                F.pad(input, self.padding, mode, self.value) if mode == "constant" else F.pad(input, self.padding, mode)
            )

        def extra_repr(self):
            return (
                f"padding={self.padding}, value={self.value}" if mode == "constant" and not zero else f"{self.padding}"
            )

    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "torch.nn"
    return Made


ConstantPad1d, ConstantPad2d, ConstantPad3d = (_padding(dims, "constant") for dims in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_padding(dims, "constant", zero=True) for dims in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_padding(dims, "reflect") for dims in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_padding(dims, "replicate") for dims in (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = (_padding(dims, "circular") for dims in (1, 2, 3))
Upsample = _simple(
    "Upsample",
    lambda self, x: F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners),
    "size, scale_factor, mode, align_corners",
    (None, None, "nearest", None),
    lambda self: (
        f"scale_factor={float(self.scale_factor)}, mode={self.mode!r}"
        if self.scale_factor is not None
        else f"size={self.size}, mode={self.mode!r}"
    ),
)
UpsamplingNearest2d = Upsample


class UpsamplingBilinear2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


def _lp_pool(name, function):
    class Made(Module):
        def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
            super().__init__()
            self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

        def forward(self, input):
            return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

        def extra_repr(self):
            return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"

    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "torch.nn"
    return Made


LPPool1d, LPPool2d, LPPool3d = (_lp_pool(f"LPPool{dims}d", getattr(F, f"lp_pool{dims}d")) for dims in (1, 2, 3))
Unfold = _simple(
    "Unfold",
    lambda self, x: F.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride),
    "kernel_size, dilation, padding, stride",
    (1, 1, 0, 1),
)
