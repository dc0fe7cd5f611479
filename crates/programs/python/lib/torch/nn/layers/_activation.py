"""Activations and dropout."""

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.layers._made import _inplace, _join, _simple
from torch.nn.module import Module
from torch.nn.parameter import Parameter

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
GELU = _simple(
    "GELU",
    lambda self, x: F.gelu(x, approximate=self.approximate),
    "approximate",
    ("none",),
    lambda self: f"approximate={self.approximate!r}",
)
LeakyReLU = _simple(
    "LeakyReLU",
    lambda self, x: F.leaky_relu(x, self.negative_slope, self.inplace),
    "negative_slope, inplace",
    (0.01, False),
    lambda self: _join(f"negative_slope={self.negative_slope}", _inplace(self)),
)
ELU = _simple(
    "ELU",
    lambda self, x: F.elu(x, self.alpha, self.inplace),
    "alpha, inplace",
    (1.0, False),
    lambda self: _join(f"alpha={self.alpha}", _inplace(self)),
)
CELU = _simple(
    "CELU",
    lambda self, x: F.celu(x, self.alpha, self.inplace),
    "alpha, inplace",
    (1.0, False),
    lambda self: _join(f"alpha={self.alpha}", _inplace(self)),
)
Hardtanh = _simple(
    "Hardtanh",
    lambda self, x: F.hardtanh(x, self.min_val, self.max_val, self.inplace),
    "min_val, max_val, inplace",
    (-1.0, 1.0, False),
    lambda self: _join(f"min_val={self.min_val}", f"max_val={self.max_val}", _inplace(self)),
)


class ReLU6(Hardtanh):
    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return _inplace(self)


Threshold = _simple(
    "Threshold",
    lambda self, x: F.threshold(x, self.threshold, self.value, self.inplace),
    "threshold, value, inplace",
    (0.0, 0.0, False),
    lambda self: _join(f"threshold={self.threshold}, value={self.value}", _inplace(self)),
)
Softplus = _simple(
    "Softplus",
    lambda self, x: F.softplus(x, self.beta, self.threshold),
    "beta, threshold",
    (1.0, 20.0),
    lambda self: f"beta={self.beta}, threshold={self.threshold}",
)
Softshrink = _simple(
    "Softshrink", lambda self, x: F.softshrink(x, self.lambd), "lambd", (0.5,), lambda self: str(self.lambd)
)
Hardshrink = _simple(
    "Hardshrink", lambda self, x: F.hardshrink(x, self.lambd), "lambd", (0.5,), lambda self: str(self.lambd)
)
GLU = _simple("GLU", lambda self, x: F.glu(x, self.dim), "dim", (-1,), lambda self: f"dim={self.dim}")
Softmax = _simple(
    "Softmax", lambda self, x: F.softmax(x, self.dim, _stacklevel=5), "dim", (None,), lambda self: f"dim={self.dim}"
)
LogSoftmax = _simple(
    "LogSoftmax",
    lambda self, x: F.log_softmax(x, self.dim, _stacklevel=5),
    "dim",
    (None,),
    lambda self: f"dim={self.dim}",
)
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


RReLU = _simple(
    "RReLU",
    lambda self, x: F.rrelu(x, self.lower, self.upper, self.training, self.inplace),
    "lower, upper, inplace",
    (1.0 / 8, 1.0 / 3, False),
    lambda self: _join(f"lower={self.lower}, upper={self.upper}", _inplace(self)),
)
