"""Pooling, padding and other operators that change the size of an image."""

import math

import torch
from torch.nn.functional._activations import relu
from torch.nn.functional._operators import _need, _pair


def _pool(name):
    function = _need(name)
    return function


_max_pool1d, _max_pool2d, _max_pool3d = _need("max_pool1d"), _need("max_pool2d"), _need("max_pool3d")
avg_pool1d, avg_pool2d, avg_pool3d = _need("avg_pool1d"), _need("avg_pool2d"), _need("avg_pool3d")
_adaptive_max_pool2d = _need("adaptive_max_pool2d")


def _max_pool(function, with_indices):
    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        stride = [] if stride is None else stride
        if return_indices:
            return _need(with_indices)(input, kernel_size, stride, padding, dilation, ceil_mode)
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    return pool


max_pool1d = _max_pool(_max_pool1d, "max_pool1d_with_indices")
max_pool2d = _max_pool(_max_pool2d, "max_pool2d_with_indices")
max_pool3d = _max_pool(_max_pool3d, "max_pool3d_with_indices")


def _sizes(output_size, input, count):
    sizes = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * count
    return [input.size(i - count) if size is None else size for i, size in enumerate(sizes)]


def adaptive_avg_pool1d(input, output_size):
    return _need("adaptive_avg_pool1d")(input, _sizes(output_size, input, 1))


def adaptive_avg_pool2d(input, output_size):
    return _need("adaptive_avg_pool2d")(input, _sizes(output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    return _need("adaptive_avg_pool3d")(input, _sizes(output_size, input, 3))


def adaptive_max_pool2d(input, output_size, return_indices=False):
    found = _adaptive_max_pool2d(input, _sizes(output_size, input, 2))
    return found if return_indices else found[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    found = _need("adaptive_max_pool3d")(input, _sizes(output_size, input, 3))
    return found if return_indices else found[0]


def adaptive_max_pool1d(input, output_size, return_indices=False):
    size = output_size[0] if isinstance(output_size, (tuple, list)) else output_size
    values, indices = _adaptive_max_pool2d(input.unsqueeze(-2), [1, size])
    values, indices = values.squeeze(-2), indices.squeeze(-2)
    return (values, indices) if return_indices else values


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    count, size = len(kernel_size), input.size()
    default = [(size[-count + d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(count)]
    if output_size is None:
        return default
    output_size = list(output_size)
    if len(output_size) == count + 2:
        output_size = output_size[2:]
    if len(output_size) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d in range(count):
        least, most = default[d] - stride[d], default[d] + stride[d]
        if not least < output_size[d] < most:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {least} and {most})')
    return output_size


def _max_unpool(count):
    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel_size = _pair(kernel_size, count)
        stride = _pair(stride, count) if stride is not None else kernel_size
        padding = _pair(padding, count)
        size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
        if count == 1:
            return _need("max_unpool2d")(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
        if count == 2:
            return _need("max_unpool2d")(input, indices, size)
        return _need("max_unpool3d")(input, indices, size, stride, padding)

    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))


def pad(input, pad, mode="constant", value=None):
    if mode == "constant":
        return _need("constant_pad_nd")(input, list(pad), 0 if value is None else value)
    if mode == "circular":
        return _pad_circular(input, list(pad))
    kinds = {"reflect": "reflection_pad", "replicate": "replication_pad"}
    if mode not in kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return _need(f"{kinds[mode]}{len(pad) // 2}d")(input, list(pad))


def _pad_circular(input, padding):
    """`_pad_circular`: one new tensor, and copies between its parts."""
    shape, count = list(input.shape), len(padding) // 2
    out_shape = list(shape)
    sides = [(count - i + len(shape) - count - 1, padding[2 * i], padding[2 * i + 1]) for i in range(count)]
    for dim, left, right in sides:
        out_shape[dim] += left + right
    out = input.new_empty(out_shape)
    to, part = out, input
    for dim, left, right in sides:
        to = to.narrow(dim, max(left, 0), out_shape[dim] - max(right, 0) - max(left, 0))
        part = part.narrow(dim, max(-left, 0), shape[dim] - max(-right, 0) - max(-left, 0))
    to.copy_(part)
    del to, part
    for dim, left, right in sides:
        if left > 0:
            out.narrow(dim, 0, left).copy_(out.narrow(dim, out_shape[dim] - left - max(right, 0), left))
        if right > 0:
            out.narrow(dim, out_shape[dim] - right, right).copy_(out.narrow(dim, max(left, 0), right))
    if input.is_cuda:
        torch._torch_memory.note_estimate("_pad_circular", "no recording has padding around the edge")
    return out


def _lp_pool(pool, input, norm_type, cells, kernel_size, stride, ceil_mode):
    out = pool(input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    return (torch.sign(out) * relu(torch.abs(out))).mul(cells).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(
        avg_pool1d,
        input,
        norm_type,
        kernel_size if isinstance(kernel_size, int) else kernel_size[0],
        kernel_size,
        stride,
        ceil_mode,
    )


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(avg_pool2d, input, norm_type, math.prod(_pair(kernel_size)), kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(avg_pool3d, input, norm_type, math.prod(_pair(kernel_size, 3)), kernel_size, stride, ceil_mode)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return _need("im2col")(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return _need("col2im")(
        input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    )


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    count = input.dim() - 2
    if size is None:
        factors = _pair(scale_factor, count)
        output = [int(math.floor(float(input.size(i + 2)) * float(factor))) for i, factor in enumerate(factors)]
    else:
        factors, output = [None] * count, _pair(size, count)
    if antialias:
        raise NotImplementedError("antialias of interpolate is not modeled here; leave it out")
    if mode in ("nearest", "nearest-exact"):
        return _need(f"upsample_nearest{count}d" if mode == "nearest" else f"_upsample_nearest_exact{count}d")(
            input, output, *factors
        )
    name = {
        "linear": "upsample_linear1d",
        "bilinear": "upsample_bilinear2d",
        "bicubic": "upsample_bicubic2d",
        "trilinear": "upsample_trilinear3d",
    }.get(mode)
    if name is None:
        return {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}[count](input, output)
    return _need(name)(input, output, bool(align_corners), *factors)


upsample = interpolate


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return _need("grid_sampler")(
        input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners), torch.backends.cudnn.enabled
    )


def affine_grid(theta, size, align_corners=None):
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    spatial = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != spatial or theta.shape[-1] != spatial + 1:
        raise ValueError(
            f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    return _need("affine_grid_generator")(theta, list(size), bool(align_corners))


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    return adaptive_max_pool3d(input, output_size, True)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def channel_shuffle(input, groups):
    return torch.channel_shuffle(input, groups)


def native_channel_shuffle(input, groups):
    return torch.native_channel_shuffle(input, groups)
