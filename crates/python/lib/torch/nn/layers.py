"""The modules that compute."""

import math
import numbers

import torch
from torch.nn import functional as F, init
from torch.nn.module import Module
from torch.nn.containers import ModuleList
from torch.nn.parameter import Parameter


def _pair(value, count=2):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    pass


class Bilinear(Module):
    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(torch.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


# --- activations

def _simple(name, function, arguments="", defaults=(), shown=None):
    """A module that calls one function with its own attributes."""
    names = [part.strip() for part in arguments.split(",") if part.strip()]

    class Made(Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            for key, default in zip(names, defaults):
                setattr(self, key, default)
            for key, value in zip(names, args):
                setattr(self, key, value)
            for key, value in kwargs.items():
                if key not in names:
                    raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{key}'")
                setattr(self, key, value)

        def forward(self, input):
            return function(self, input)

        def extra_repr(self):
            return shown(self) if shown else ""
    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "torch.nn"
    return Made


def _inplace(self):
    return "inplace=True" if self.inplace else ""


def _join(*parts):
    return ", ".join(part for part in parts if part)


ReLU = _simple("ReLU", lambda self, x: F.relu(x, inplace=self.inplace), "inplace", (False,), _inplace)
SELU = _simple("SELU", lambda self, x: F.selu(x, self.inplace), "inplace", (False,), _inplace)
SiLU = _simple("SiLU", lambda self, x: F.silu(x, inplace=self.inplace), "inplace", (False,), _inplace)
Mish = _simple("Mish", lambda self, x: F.mish(x, inplace=self.inplace), "inplace", (False,), _inplace)
Hardswish = _simple("Hardswish", lambda self, x: F.hardswish(x, self.inplace), "inplace", (False,))
Hardsigmoid = _simple("Hardsigmoid", lambda self, x: F.hardsigmoid(x, self.inplace), "inplace", (False,))
Tanh = _simple("Tanh", lambda self, x: torch.tanh(x))
Sigmoid = _simple("Sigmoid", lambda self, x: torch.sigmoid(x))
LogSigmoid = _simple("LogSigmoid", lambda self, x: F.logsigmoid(x))
Softsign = _simple("Softsign", lambda self, x: F.softsign(x))
Tanhshrink = _simple("Tanhshrink", lambda self, x: F.tanhshrink(x))
GELU = _simple("GELU", lambda self, x: F.gelu(x, approximate=self.approximate), "approximate", ("none",), lambda self: f"approximate={self.approximate!r}")
LeakyReLU = _simple("LeakyReLU", lambda self, x: F.leaky_relu(x, self.negative_slope, self.inplace), "negative_slope, inplace", (0.01, False),
                    lambda self: _join(f"negative_slope={self.negative_slope}", _inplace(self)))
ELU = _simple("ELU", lambda self, x: F.elu(x, self.alpha, self.inplace), "alpha, inplace", (1.0, False),
              lambda self: _join(f"alpha={self.alpha}", _inplace(self)))
CELU = _simple("CELU", lambda self, x: F.celu(x, self.alpha, self.inplace), "alpha, inplace", (1.0, False),
               lambda self: _join(f"alpha={self.alpha}", _inplace(self)))
Hardtanh = _simple("Hardtanh", lambda self, x: F.hardtanh(x, self.min_val, self.max_val, self.inplace), "min_val, max_val, inplace", (-1.0, 1.0, False),
                   lambda self: _join(f"min_val={self.min_val}", f"max_val={self.max_val}", _inplace(self)))


class ReLU6(Hardtanh):
    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return _inplace(self)


Threshold = _simple("Threshold", lambda self, x: F.threshold(x, self.threshold, self.value, self.inplace), "threshold, value, inplace", (0.0, 0.0, False),
                    lambda self: _join(f"threshold={self.threshold}, value={self.value}", _inplace(self)))
Softplus = _simple("Softplus", lambda self, x: F.softplus(x, self.beta, self.threshold), "beta, threshold", (1.0, 20.0),
                   lambda self: f"beta={self.beta}, threshold={self.threshold}")
Softshrink = _simple("Softshrink", lambda self, x: F.softshrink(x, self.lambd), "lambd", (0.5,), lambda self: str(self.lambd))
Hardshrink = _simple("Hardshrink", lambda self, x: F.hardshrink(x, self.lambd), "lambd", (0.5,), lambda self: str(self.lambd))
GLU = _simple("GLU", lambda self, x: F.glu(x, self.dim), "dim", (-1,), lambda self: f"dim={self.dim}")
Softmax = _simple("Softmax", lambda self, x: F.softmax(x, self.dim, _stacklevel=5), "dim", (None,), lambda self: f"dim={self.dim}")
LogSoftmax = _simple("LogSoftmax", lambda self, x: F.log_softmax(x, self.dim, _stacklevel=5), "dim", (None,), lambda self: f"dim={self.dim}")
Softmin = _simple("Softmin", lambda self, x: F.softmin(x, self.dim), "dim", (None,), lambda self: f"dim={self.dim}")
Softmax2d = _simple("Softmax2d", lambda self, x: F.softmax(x, -3))


class PReLU(Module):
    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(torch.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


# --- dropout

class _Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    def forward(self, input):
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout1d):
    pass


class Dropout3d(Dropout1d):
    pass


class AlphaDropout(_Dropout):
    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


# --- embedding

class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False,
                 _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        if max_norm is not None or sparse:
            raise NotImplementedError("max_norm and sparse of nn.Embedding are not modeled here; leave them out")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = padding_idx, None, norm_type, scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = Parameter(torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype), requires_grad=not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self):
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, **kwargs):
        rows, cols = embeddings.shape
        return cls(rows, cols, padding_idx, _weight=embeddings, _freeze=freeze)

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text + (f", padding_idx={self.padding_idx}" if self.padding_idx is not None else "")


# --- convolutions

class _Conv(Module):
    _dims, _transposed = 2, False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
                 device=None, dtype=None):
        super().__init__()
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, device, dtype)

    def _set(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, device, dtype):
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        count = self._dims
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = _pair(kernel_size, count), _pair(stride, count), _pair(dilation, count)
        self.padding = padding if isinstance(padding, str) else _pair(padding, count)
        self.transposed, self.output_padding = self._transposed, _pair(output_padding, count)
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        function = (F.conv1d, F.conv2d, F.conv3d)[self._dims - 1]
        if self.padding_mode != "zeros":
            pads = []
            for size in reversed(self.padding):
                pads += [size, size]
            return function(F.pad(input, pads, mode=self.padding_mode), self.weight, self.bias, self.stride, (0,) * self._dims, self.dilation, self.groups)
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

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
                 padding_mode="zeros", device=None, dtype=None):
        Module.__init__(self)
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, device, dtype)

    def forward(self, input, output_size=None):
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._dims - 1]
        return function(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    _dims = 3


# --- norms

class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))
            else:
                self.register_parameter("bias", None)
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))
            init.ones_(self.weight)
        else:
            self.register_parameter("weight", None)

    def reset_parameters(self):
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        if affine:
            self.weight = Parameter(torch.empty(num_channels, device=device, dtype=dtype))
            self.bias = Parameter(torch.empty(num_channels, device=device, dtype=dtype))
            init.ones_(self.weight)
            init.zeros_(self.bias)
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _NormBase(Module):
    _dims = ()

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats = num_features, eps, momentum, affine, track_running_stats
        if affine:
            self.weight = Parameter(torch.empty(num_features, device=device, dtype=dtype))
            self.bias = Parameter(torch.empty(num_features, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check_input_dim(self, input):
        if self._dims and input.dim() not in self._dims:
            expected = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_NormBase):
    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        training = self.training or (self.running_mean is None and self.running_var is None)
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if keeps else None, self.running_var if keeps else None, self.weight, self.bias, training,
                            factor, self.eps)


class BatchNorm1d(_BatchNorm):
    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        return module


class _InstanceNorm(_NormBase):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input):
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                               self.training or not self.track_running_stats, self.momentum if self.momentum is not None else 0.0, self.eps)


class InstanceNorm1d(_InstanceNorm):
    pass


class InstanceNorm2d(_InstanceNorm):
    pass


class InstanceNorm3d(_InstanceNorm):
    pass


# --- pooling and images

def _pool(name, function, has_dilation=True):
    class Made(Module):
        def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
            super().__init__()
            self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
            self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

        def forward(self, input):
            return function(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices)

        def extra_repr(self):
            return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"
    Made.__name__ = Made.__qualname__ = name
    return Made


def _average(name, get):
    class Made(Module):
        def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
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


MaxPool1d, MaxPool2d, MaxPool3d = _pool("MaxPool1d", F.max_pool1d), _pool("MaxPool2d", F.max_pool2d), _pool("MaxPool3d", F.max_pool3d)
AvgPool1d, AvgPool2d, AvgPool3d = (_average("AvgPool1d", lambda: F.avg_pool1d), _average("AvgPool2d", lambda: F.avg_pool2d),
                                   _average("AvgPool3d", lambda: F.avg_pool3d))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (_adaptive("AdaptiveAvgPool1d", F.adaptive_avg_pool1d),
                                                          _adaptive("AdaptiveAvgPool2d", F.adaptive_avg_pool2d),
                                                          _adaptive("AdaptiveAvgPool3d", F.adaptive_avg_pool3d))
AdaptiveMaxPool2d = _adaptive("AdaptiveMaxPool2d", F.adaptive_max_pool2d)
PixelShuffle = _simple("PixelShuffle", lambda self, x: F.pixel_shuffle(x, self.upscale_factor), "upscale_factor", (1,),
                       lambda self: f"upscale_factor={self.upscale_factor}")
PixelUnshuffle = _simple("PixelUnshuffle", lambda self, x: F.pixel_unshuffle(x, self.downscale_factor), "downscale_factor", (1,))
def _padding(dims, mode, *, zero=False):
    """The modules that pad `dims` dimensions: `nn.ReflectionPad2d` and the others."""
    name = f"{'Zero' if zero else {'constant': 'Constant', 'reflect': 'Reflection', 'replicate': 'Replication', 'circular': 'Circular'}[mode]}Pad{dims}d"

    class Made(Module):
        def __init__(self, padding, value=0.0):
            super().__init__()
            self.padding, self.value = _pair(padding, 2 * dims), value

        def forward(self, input):
            return F.pad(input, self.padding, mode, self.value) if mode == "constant" else F.pad(input, self.padding, mode)

        def extra_repr(self):
            return f"padding={self.padding}, value={self.value}" if mode == "constant" and not zero else f"{self.padding}"
    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "torch.nn"
    return Made


ConstantPad1d, ConstantPad2d, ConstantPad3d = (_padding(dims, "constant") for dims in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_padding(dims, "constant", zero=True) for dims in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_padding(dims, "reflect") for dims in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_padding(dims, "replicate") for dims in (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = (_padding(dims, "circular") for dims in (1, 2, 3))
Upsample = _simple("Upsample", lambda self, x: F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners),
                   "size, scale_factor, mode, align_corners", (None, None, "nearest", None),
                   lambda self: f"scale_factor={float(self.scale_factor)}, mode={self.mode!r}" if self.scale_factor is not None else f"size={self.size}, mode={self.mode!r}")
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
RReLU = _simple("RReLU", lambda self, x: F.rrelu(x, self.lower, self.upper, self.training, self.inplace), "lower, upper, inplace",
                (1.0 / 8, 1.0 / 3, False), lambda self: _join(f"lower={self.lower}, upper={self.upper}", _inplace(self)))
Unfold = _simple("Unfold", lambda self, x: F.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride),
                 "kernel_size, dilation, padding, stride", (1, 1, 0, 1))
CosineSimilarity = type("CosineSimilarity", (Module,), {
    "__init__": lambda self, dim=1, eps=1e-8: (Module.__init__(self), self.__dict__.update(dim=dim, eps=eps), None)[-1],
    "forward": lambda self, x1, x2: F.cosine_similarity(x1, x2, self.dim, self.eps)})


# --- losses

def _loss(name, function, extra="", defaults=()):
    names = [part.strip() for part in extra.split(",") if part.strip()]

    class Made(Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            weight = kwargs.pop("weight", args[0] if args and "weight" in names else None)
            for key in ("size_average", "reduce"):
                kwargs.pop(key, None)
            self.reduction = kwargs.pop("reduction", "mean")
            for key, default in zip(names, defaults):
                if key not in ("weight", "pos_weight"):
                    setattr(self, key, kwargs.pop(key, default))
            if "weight" in names:
                self.register_buffer("weight", weight)
            if "pos_weight" in names:
                self.register_buffer("pos_weight", kwargs.pop("pos_weight", None))
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")

        def forward(self, input, target):
            return function(self, input, target)
    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "torch.nn"
    return Made


CrossEntropyLoss = _loss("CrossEntropyLoss", lambda self, input, target: F.cross_entropy(
    input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction, label_smoothing=self.label_smoothing),
    "weight, ignore_index, label_smoothing", (None, -100, 0.0))
NLLLoss = _loss("NLLLoss", lambda self, input, target: F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction),
                "weight, ignore_index", (None, -100))
MSELoss = _loss("MSELoss", lambda self, input, target: F.mse_loss(input, target, reduction=self.reduction))
L1Loss = _loss("L1Loss", lambda self, input, target: F.l1_loss(input, target, reduction=self.reduction))
SmoothL1Loss = _loss("SmoothL1Loss", lambda self, input, target: F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta), "beta", (1.0,))
HuberLoss = _loss("HuberLoss", lambda self, input, target: F.huber_loss(input, target, reduction=self.reduction, delta=self.delta), "delta", (1.0,))
BCELoss = _loss("BCELoss", lambda self, input, target: F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction), "weight", (None,))
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", lambda self, input, target: F.binary_cross_entropy_with_logits(
    input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction), "weight, pos_weight", (None, None))
KLDivLoss = _loss("KLDivLoss", lambda self, input, target: F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target), "log_target", (False,))


SoftMarginLoss = _loss("SoftMarginLoss", lambda self, input, target: F.soft_margin_loss(input, target, reduction=self.reduction))
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", lambda self, input, target: F.multilabel_soft_margin_loss(
    input, target, self.weight, reduction=self.reduction), "weight", (None,))
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", lambda self, input, target: F.hinge_embedding_loss(
    input, target, margin=self.margin, reduction=self.reduction), "margin", (1.0,))


PoissonNLLLoss = _loss("PoissonNLLLoss", lambda self, log_input, target: F.poisson_nll_loss(
    log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction), "log_input, full, eps", (True, False, 1e-8))
MultiMarginLoss = _loss("MultiMarginLoss", lambda self, input, target: F.multi_margin_loss(
    input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction), "p, margin, weight", (1, 1.0, None))
NLLLoss2d = NLLLoss


class GaussianNLLLoss(Module):
    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__()
        self.full, self.eps, self.reduction = full, eps, reduction

    def forward(self, input, target, var):
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Module):
    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__()
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin, self.swap, self.reduction = margin, swap, reduction

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap, reduction=self.reduction)


class PairwiseDistance(Module):
    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class LocalResponseNorm(Module):
    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CosineEmbeddingLoss(Module):
    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction

    def forward(self, input1, input2, target):
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(Module):
    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.margin, self.p, self.eps, self.swap, self.reduction = margin, p, eps, swap, reduction

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap, reduction=self.reduction)


class MarginRankingLoss(Module):
    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction

    def forward(self, input1, input2, target):
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


# --- attention

class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
                 batch_first=False, device=None, dtype=None):
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise NotImplementedError("add_bias_kv and add_zero_attn of nn.MultiheadAttention are not modeled here; leave them out")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim if kdim is not None else embed_dim, vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        factory = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(torch.empty((3 * embed_dim, embed_dim), **factory))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(torch.empty((embed_dim, embed_dim), **factory))
            self.k_proj_weight = Parameter(torch.empty((embed_dim, self.kdim), **factory))
            self.v_proj_weight = Parameter(torch.empty((embed_dim, self.vdim), **factory))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(torch.empty(3 * embed_dim, **factory))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        is_batched = query.dim() == 3
        key_padding_mask = F._canonical_mask(key_padding_mask, query.dtype)
        attn_mask = F._canonical_mask(attn_mask, query.dtype)
        if self._takes_fast_path(query, key, value):
            if attn_mask is None:
                return F._native_multi_head_attention(query, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
                                                      self.out_proj.weight, self.out_proj.bias, need_weights, average_attn_weights, key_padding_mask)
            torch._torch_memory.mark_estimated("MultiheadAttention", "evaluation with attn_mask takes a path of its own, which was not modeled")
        if self.batch_first and is_batched:
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query, key = (x.transpose(1, 0) for x in (query, key))
                    value = key
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        attn_output, attn_output_weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask, use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        if self.batch_first and is_batched:
            return attn_output.transpose(1, 0), attn_output_weights
        return attn_output, attn_output_weights

    def _takes_fast_path(self, query, key, value):
        if self.training or query.dim() != 3 or query is not key or key is not value or not query.is_cuda or not self.batch_first:
            return False
        if self.in_proj_weight is None or self.in_proj_bias is None or query.dtype != self.in_proj_weight.dtype or self.num_heads % 2 != 0:
            return False
        tensors = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        return not torch.is_autocast_enabled() and not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))


def _activation_of(activation):
    return {"relu": F.relu, "gelu": F.gelu}[activation] if isinstance(activation, str) else activation


class TransformerEncoderLayer(Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation_of(activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        src_key_padding_mask = F._canonical_mask(src_key_padding_mask, src.dtype)
        src_mask = F._canonical_mask(src_mask, src.dtype)
        if self._can_be_fused(src, src_mask, src_key_padding_mask):
            attention = self.self_attn
            fused = torch._torch.operator("_transformer_encoder_layer_fwd")
            if fused is not None:
                return fused(src, attention.embed_dim, attention.num_heads, attention.in_proj_weight, attention.in_proj_bias,
                             attention.out_proj.weight, attention.out_proj.bias, self.activation is F.gelu, self.norm_first, self.norm1.eps,
                             self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias, self.linear1.weight, self.linear1.bias,
                             self.linear2.weight, self.linear2.bias)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal=is_causal)
            x = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal))
            x = self.norm2(x + self._ff_block(x))
        return x

    def _can_be_fused(self, src, mask, padding):
        return (not self.training and src.dim() == 3 and self.self_attn.batch_first and self.self_attn.in_proj_bias is not None
                and mask is None and padding is None and self.activation in (F.relu, F.gelu) and src.is_cuda
                and (not torch.is_grad_enabled() or not any(p.requires_grad for p in self.parameters())))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _ff_block(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)


class TransformerDecoderLayer(Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation = _activation_of(activation)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False,
                memory_is_causal=False):
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            x = x + self._ff_block(self.norm3(x))
        else:
            x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
            x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
            x = self.norm3(x + self._ff_block(x))
        return x

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0]
        return self.dropout1(x)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        x = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout3(x)


def _clones(module, count):
    import copy
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _detect_is_causal_mask(mask, is_causal, size):
    """Whether the mask is the causal one; PyTorch compares values, which are not known here: a float mask of that shape is taken for it."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    comparison = torch.triu(torch.full((size, size), float("-inf"), device=mask.device, dtype=mask.dtype), diagonal=1) \
        if mask.dtype.is_floating_point else None
    if comparison is None or mask.size() != comparison.size():
        return False
    (mask == comparison).all()
    torch._torch_memory.mark_estimated("TransformerEncoder", "whether a mask is causal depends on its values; one of this shape is taken for it")
    return True


class TransformerEncoder(Module):
    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = _clones(encoder_layer, num_layers), num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        src_key_padding_mask = F._canonical_mask(src_key_padding_mask, src.dtype)
        mask = F._canonical_mask(mask, src.dtype)
        output = src
        first = self.layers[0].self_attn if len(self.layers) else None
        length = src.size(1 if first is not None and first.batch_first else 0)
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        for mod in self.layers:
            output = mod(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        return self.norm(output) if self.norm is not None else output


class TransformerDecoder(Module):
    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _clones(decoder_layer, num_layers), num_layers, norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None,
                memory_is_causal=False):
        output = tgt
        length = tgt.size(1 if len(self.layers) and self.layers[0].self_attn.batch_first else 0)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        for mod in self.layers:
            output = mod(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                         memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
        return self.norm(output) if self.norm is not None else output


class Transformer(Module):
    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation="relu",
                 custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, LayerNorm(d_model, layer_norm_eps))
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, LayerNorm(d_model, layer_norm_eps))
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        return torch.triu(torch.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


# --- recurrent networks

class RNNBase(Module):
    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
                 device=None, dtype=None):
        super().__init__()
        if proj_size:
            raise NotImplementedError("proj_size of nn.LSTM is not modeled here; put a Linear behind the LSTM")
        self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias = mode, input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, float(dropout), bidirectional, proj_size
        gates = {"LSTM": 4, "GRU": 3}.get(mode, 1) * hidden_size
        directions = 2 if bidirectional else 1
        self._flat_weights_names = []
        for layer in range(num_layers):
            for direction in range(directions):
                width = input_size if layer == 0 else hidden_size * directions
                suffix = "_reverse" if direction == 1 else ""
                shapes = [("weight_ih_l", (gates, width)), ("weight_hh_l", (gates, hidden_size))]
                if bias:
                    shapes += [("bias_ih_l", (gates,)), ("bias_hh_l", (gates,))]
                for name, shape in shapes:
                    full = f"{name}{layer}{suffix}"
                    setattr(self, full, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                    self._flat_weights_names.append(full)
        self.flatten_parameters()
        self.reset_parameters()

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -stdv, stdv)

    def flatten_parameters(self):
        weights = self._flat_weights
        if not all(w.is_cuda for w in weights):
            return
        mode = {"LSTM": 2, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 0}[self.mode]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(weights, 4 if self.bias else 2, self.input_size, mode, self.hidden_size, self.proj_size, self.num_layers,
                                            self.batch_first, bool(self.bidirectional))

    def _apply(self, fn, recurse=True):
        made = super()._apply(fn, recurse)
        self.flatten_parameters()
        return made

    def _zeros(self, input, batch):
        directions = 2 if self.bidirectional else 1
        shape = (self.num_layers * directions, self.hidden_size) if batch is None else (self.num_layers * directions, batch, self.hidden_size)
        return torch.zeros(*shape, dtype=input.dtype, device=input.device)

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)
        return hx.index_select(1, permutation)

    def _forward_packed(self, packed, hx):
        input, batch_sizes, sorted_indices, unsorted_indices = packed
        max_batch_size = int(batch_sizes[0])
        if hx is None:
            hx = self._zeros(input, max_batch_size)
            if self.mode == "LSTM":
                hx = (hx, self._zeros(input, max_batch_size))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        function = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}[self.mode]
        result = function(input, batch_sizes, list(hx) if self.mode == "LSTM" else hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
                          self.training, self.bidirectional)
        output = result[0]
        hidden = tuple(result[1:]) if self.mode == "LSTM" else result[1]
        return type(packed)(output, batch_sizes, sorted_indices, unsorted_indices), self.permute_hidden(hidden, unsorted_indices)

    def forward(self, input, hx=None):
        if isinstance(input, tuple):
            return self._forward_packed(input, hx)
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
        batch = input.size(0) if self.batch_first else input.size(1)
        if self.mode == "LSTM":
            if hx is None:
                h_zeros = self._zeros(input, batch)
                c_zeros = self._zeros(input, batch)
                hx = (h_zeros, c_zeros)
            elif not is_batched:
                hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
            result = torch.lstm(input, list(hx), self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                                self.batch_first)
            output, hidden = result[0], tuple(result[1:])
        else:
            if hx is None:
                hx = self._zeros(input, batch)
            elif not is_batched:
                hx = hx.unsqueeze(1)
            function = {"GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}[self.mode]
            result = function(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
            output, hidden = result[0], result[1]
        if not is_batched:
            output = output.squeeze(batch_dim)
            hidden = tuple(h.squeeze(1) for h in hidden) if isinstance(hidden, tuple) else hidden.squeeze(1)
        return output, hidden

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class LSTM(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)


class RNN(RNNBase):
    def __init__(self, *args, nonlinearity="tanh", **kwargs):
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__("RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU", *args, **kwargs)
        self.nonlinearity = nonlinearity


class RNNCellBase(Module):
    _gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = self._gates * hidden_size
        self.weight_ih = Parameter(torch.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((gates, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(torch.empty(gates, device=device, dtype=dtype))
            self.bias_hh = Parameter(torch.empty(gates, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        stdv = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -stdv, stdv)

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _state(self, input, hx):
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device) if hx is None else hx


class RNNCell(RNNCellBase):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        function = torch.rnn_tanh_cell if self.nonlinearity == "tanh" else torch.rnn_relu_cell
        return function(input, self._state(input, hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class LSTMCell(RNNCellBase):
    _gates = 4

    def forward(self, input, hx=None):
        if hx is None:
            zeros = self._state(input, None)
            hx = (zeros, zeros)
        return torch.lstm_cell(input, list(hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(RNNCellBase):
    _gates = 3

    def forward(self, input, hx=None):
        return torch.gru_cell(input, self._state(input, hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class DataParallel(Module):
    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        from _host import note
        note("DataParallel runs its module on one device here")
        self.module = module

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
