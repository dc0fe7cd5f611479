"""Modules that take the sizes of their parameters from the first input."""

import torch
from torch.nn import layers as _layers
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyLinear"] + [
    f"Lazy{kind}{dims}d" for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm") for dims in (1, 2, 3)
]


class LazyModuleMixin:
    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs):
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        return any(is_lazy(t) for t in [*self._parameters.values(), *self._buffers.values()])

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self._size() != 0:
            super().reset_parameters()

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(module).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, _layers.Linear):
    cls_to_become = _layers.Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _size(self):
        return self.in_features

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            with torch.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    def __init__(
        self,
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
        **more,
    ):
        super().__init__(
            0,
            0,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=False,
            padding_mode=padding_mode,
            **more,
        )
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _size(self):
        return self.in_channels

    def initialize_parameters(self, input, *args, **kwargs):
        if self.has_uninitialized_params():
            with torch.no_grad():
                dims = len(self.kernel_size)
                if input.dim() not in (dims + 1, dims + 2):
                    raise RuntimeError(
                        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {type(self).__name__}, but got input of "
                        f"size: {list(input.shape)}"
                    )
                self.in_channels = input.shape[-dims - 1]
                if self.in_channels % self.groups != 0:
                    raise ValueError("in_channels must be divisible by groups")
                sides = (
                    (self.in_channels, self.out_channels // self.groups)
                    if self.transposed
                    else (self.out_channels, self.in_channels // self.groups)
                )
                self.weight.materialize((*sides, *self.kernel_size))
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()


class _LazyConvTranspose(_LazyConv):
    def __init__(
        self,
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
        super().__init__(
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
            output_padding=output_padding,
        )


class _LazyNorm(LazyModuleMixin):
    def __init__(self, eps=1e-5, momentum=0.1, affine=None, track_running_stats=None, device=None, dtype=None):
        affine = self._default if affine is None else affine
        track_running_stats = self._default if track_running_stats is None else track_running_stats
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = torch.tensor(
                0, dtype=torch.long, device=device if not isinstance(device, str) or device != "meta" else None
            )

    def _size(self):
        return self.num_features

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.num_features = input.shape[1] if input.dim() > self._unbatched else input.shape[0]
            if self.affine:
                self.weight.materialize((self.num_features,))
                self.bias.materialize((self.num_features,))
            if self.track_running_stats:
                self.running_mean.materialize((self.num_features,))
                self.running_var.materialize((self.num_features,))
            self.reset_parameters()


for _dims in (1, 2, 3):
    for _kind, _mixin, _more in (
        ("Conv", _LazyConv, {}),
        ("ConvTranspose", _LazyConvTranspose, {}),
        ("BatchNorm", _LazyNorm, {"_default": True, "_unbatched": 0}),
        ("InstanceNorm", _LazyNorm, {"_default": False, "_unbatched": _dims + 1}),
    ):
        _own = getattr(_layers, f"{_kind}{_dims}d")
        globals()[f"Lazy{_kind}{_dims}d"] = type(
            f"Lazy{_kind}{_dims}d", (_mixin, _own), {"cls_to_become": _own, "__module__": "torch.nn", **_more}
        )
