"""`torch.nn.functional`."""

import math

import torch
from _torch import operator as _operator


def _need(name):
    made = _operator(name)
    if made is not None:
        return made

    def missing(*args, **kwargs):
        raise NotImplementedError(f"the operator {name} is not modeled here")
    return missing


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2, "batchmean": 2, "elementwise_mean": 1}


def _reduction(name):
    if name not in _REDUCTIONS:
        raise ValueError(f"{name} is not a valid value for reduction")
    return _REDUCTIONS[name]


def _pair(value, count=2):
    return list(value) if isinstance(value, (tuple, list)) else [value] * count


linear, bilinear = _need("linear"), _need("bilinear")
conv1d, conv2d, conv3d = _need("conv1d"), _need("conv2d"), _need("conv3d")
conv_transpose1d, conv_transpose2d, conv_transpose3d = _need("conv_transpose1d"), _need("conv_transpose2d"), _need("conv_transpose3d")
scaled_dot_product_attention = _need("scaled_dot_product_attention")
logsigmoid, pixel_shuffle, pixel_unshuffle = _need("log_sigmoid"), _need("pixel_shuffle"), _need("pixel_unshuffle")
cosine_similarity, pairwise_distance = _need("cosine_similarity"), _need("pairwise_distance")
_embedding, _layer_norm, _group_norm, _rms_norm, _batch_norm = map(_need, ("embedding", "layer_norm", "group_norm", "rms_norm", "batch_norm"))
_softmax, _log_softmax = _need("softmax"), _need("log_softmax")
_dropout, _dropout_, _feature_dropout, _feature_dropout_ = map(_need, ("dropout", "dropout_", "feature_dropout", "feature_dropout_"))
_alpha_dropout, _alpha_dropout_, _feature_alpha_dropout, _feature_alpha_dropout_ = map(
    _need, ("alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"))


def _activation(name, inplace_name=None):
    out_of_place, in_place = _need(name), _need(inplace_name or name + "_")

    def function(input, inplace=False):
        return in_place(input) if inplace else out_of_place(input)
    function.__name__ = name
    return function


relu, selu, silu, mish, relu6, hardsigmoid, hardswish = map(_activation, ("relu", "selu", "silu", "mish", "relu6", "hardsigmoid", "hardswish"))
tanh, sigmoid = _need("tanh"), _need("sigmoid")
_leaky_relu, _leaky_relu_, _elu, _elu_ = _need("leaky_relu"), _need("leaky_relu_"), _need("elu"), _need("elu_")
_hardtanh, _hardtanh_, _threshold, _threshold_ = _need("hardtanh"), _need("hardtanh_"), _need("threshold"), _need("threshold_")
_gelu, _softplus, _glu, _prelu, _softshrink, _hardshrink, _celu, _rrelu, _rrelu_ = map(
    _need, ("gelu", "softplus", "glu", "prelu", "softshrink", "hardshrink", "celu", "rrelu", "rrelu_"))
relu_ = _need("relu_")


def gelu(input, approximate="none"):
    return _gelu(input, approximate=approximate)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return _leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    return _elu_(input, alpha) if inplace else _elu(input, alpha)


def celu(input, alpha=1.0, inplace=False):
    return _celu(input, alpha)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return _hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


def threshold(input, threshold, value, inplace=False):
    return _threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


def softplus(input, beta=1.0, threshold=20.0):
    return _softplus(input, beta, threshold)


def glu(input, dim=-1):
    return _glu(input, dim)


def prelu(input, weight):
    return _prelu(input, weight)


def softshrink(input, lambd=0.5):
    return _softshrink(input, lambd)


def hardshrink(input, lambd=0.5):
    return _hardshrink(input, lambd)


def tanhshrink(input):
    return input - input.tanh()


def softsign(input):
    return input / (input.abs() + 1)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    return _rrelu_(input, lower, upper, training) if inplace else _rrelu(input, lower, upper, training)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    gumbels = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    gumbels = (logits + gumbels) / tau
    y_soft = gumbels.softmax(dim)
    if hard:
        index = y_soft.max(dim, keepdim=True)[1]
        y_hard = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
        return y_hard - y_soft.detach() + y_soft
    return y_soft


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    _check_probability(p)
    return _multiply_by_noise(input, input, p, training) if inplace else _dropout(input, p, training)


def _multiply_by_noise(input, like, p, training):
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(torch.zeros((), dtype=input.dtype, device=input.device))
    return input.mul_(torch.empty_like(like, requires_grad=False).bernoulli_(1 - p).div_(1 - p))


def dropout1d(input, p=0.5, training=True, inplace=False):
    return _feature_dropout_(input, p, training) if inplace else _feature_dropout(input, p, training)


dropout2d = dropout3d = dropout1d


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    _check_probability(p)
    return _alpha_dropout_(input, p, training) if inplace else _alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    _check_probability(p)
    return _feature_alpha_dropout_(input, p, training) if inplace else _feature_alpha_dropout(input, p, training)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx = weight.size(0) + padding_idx
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape as "
                         f"the input ({input.shape})")
    if max_norm is not None:
        raise NotImplementedError("max_norm of embedding_bag is not modeled here; leave it out")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                             f"However, found offsets of type {type(offsets)}")
        offsets = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError(f"max mode does not support {'scaling the gradient by the frequency' if scale_grad_by_freq else 'sparse weights'}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                                  f"(got mode='{mode}'). Please open a feature request on GitHub.")
    ret, _, _, _ = _need("embedding_bag")(weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse, per_sample_weights,
                                          include_last_offset, padding_idx)
    return ret


def one_hot(tensor, num_classes=-1):
    return _need("one_hot")(tensor, num_classes)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    return _layer_norm(input, list(normalized_shape), weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return _rms_norm(input, list(normalized_shape), weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    return _group_norm(input, num_groups, weight, bias, eps)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    if training:
        count = input.numel() // input.size(1) if input.size(1) else 0
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, torch.backends.cudnn.enabled)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05):
    return _need("instance_norm")(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, torch.backends.cudnn.enabled)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    div = input.mul(input)
    if dim == 3:
        div = div.unsqueeze(1)
        div = pad(div, (0, 0, size // 2, (size - 1) // 2))
        div = avg_pool2d(div, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        div = div.view(sizes[0], 1, sizes[1], sizes[2], -1)
        div = pad(div, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        div = avg_pool3d(div, (size, 1, 1), stride=1).squeeze(1)
        div = div.view(sizes)
    div = div.mul(alpha).add(k).pow(beta)
    return input / div


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    if out is None:
        denom = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
        return input / denom
    denom = input.norm(p, dim, keepdim=True).clamp_min_(eps).expand_as(input)
    # What is written into `out` takes no memory.
    return out.mul_(1)


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
        raise ValueError(f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length of "
                         f"'{len(output_size)}'")
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
        torch._torch_memory.mark_estimated("_pad_circular", "no recording has padding around the edge")
    return out


def _lp_pool(pool, input, norm_type, cells, kernel_size, stride, ceil_mode):
    out = pool(input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    return (torch.sign(out) * relu(torch.abs(out))).mul(cells).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(avg_pool1d, input, norm_type, kernel_size if isinstance(kernel_size, int) else kernel_size[0], kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(avg_pool2d, input, norm_type, math.prod(_pair(kernel_size)), kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(avg_pool3d, input, norm_type, math.prod(_pair(kernel_size, 3)), kernel_size, stride, ceil_mode)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    distance_function = distance_function if distance_function is not None else pairwise_distance
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dist_pos = distance_function(anchor, positive)
    dist_neg = distance_function(anchor, negative)
    if swap:
        dist_swap = distance_function(positive, negative)
        dist_neg = torch.minimum(dist_neg, dist_swap)
    loss = torch.clamp_min(margin + dist_pos - dist_neg, 0)
    if reduction == "sum":
        return torch.sum(loss)
    return torch.mean(loss) if reduction == "mean" else loss


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return _need("im2col")(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return _need("col2im")(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    count = input.dim() - 2
    if size is None:
        factors = _pair(scale_factor, count)
        output = [int(math.floor(float(input.size(i + 2)) * float(factor))) for i, factor in enumerate(factors)]
    else:
        factors, output = [None] * count, _pair(size, count)
    if antialias:
        raise NotImplementedError("antialias of interpolate is not modeled here; leave it out")
    if mode in ("nearest", "nearest-exact"):
        return _need(f"upsample_nearest{count}d" if mode == "nearest" else f"_upsample_nearest_exact{count}d")(input, output, *factors)
    name = {"linear": "upsample_linear1d", "bilinear": "upsample_bilinear2d", "bicubic": "upsample_bicubic2d",
            "trilinear": "upsample_trilinear3d"}.get(mode)
    if name is None:
        return {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}[count](input, output)
    return _need(name)(input, output, bool(align_corners), *factors)


upsample = interpolate


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in paddings:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")
    return _need("grid_sampler")(input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners),
                                 torch.backends.cudnn.enabled)


def affine_grid(theta, size, align_corners=None):
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                                  f"{size}.")
    spatial = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != spatial or theta.shape[-1] != spatial + 1:
        raise ValueError(f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} for size {size}. Got "
                         f"{theta.shape}.")
    return _need("affine_grid_generator")(theta, list(size), bool(align_corners))


# --- losses

_cross_entropy, _nll_loss = _need("cross_entropy_loss"), _need("nll_loss_nd")
_mse_loss, _l1_loss, _smooth_l1_loss, _huber_loss = map(_need, ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_bce, _bce_with_logits, _kl_div = map(_need, ("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"))


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    return _cross_entropy(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return _nll_loss(input, target, weight, _reduction(reduction), ignore_index)


def _same_size(input, target):
    return (input, target) if input.shape == target.shape else torch.broadcast_tensors(input, target)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    expanded_input, expanded_target = _same_size(input, target)
    return _mse_loss(expanded_input, expanded_target, _reduction(reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    expanded_input, expanded_target = _same_size(input, target)
    return _l1_loss(expanded_input, expanded_target, _reduction(reduction))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    expanded_input, expanded_target = _same_size(input, target)
    if beta == 0.0:
        return _l1_loss(expanded_input, expanded_target, _reduction(reduction))
    return _smooth_l1_loss(expanded_input, expanded_target, _reduction(reduction), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    expanded_input, expanded_target = _same_size(input, target)
    return _huber_loss(expanded_input, expanded_target, _reduction(reduction), delta)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
                         "Please ensure they have the same size.")
    return _bce(input, target, weight, _reduction(reduction))


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _bce_with_logits(input, target, weight, pos_weight, _reduction(reduction))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    reduced = _kl_div(input, target, _reduction(reduction), log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        reduced = reduced / input.size()[0]
    return reduced


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    return _need("cosine_embedding_loss")(input1, input2, target, margin, _reduction(reduction))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    return _need("margin_ranking_loss")(input1, input2, target, margin, _reduction(reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    return _need("triplet_margin_loss")(anchor, positive, negative, margin, p, eps, swap, _reduction(reduction))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    return _need("hinge_embedding_loss")(input, target, margin, _reduction(reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return _need("soft_margin_loss")(input, target, _reduction(reduction))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    return _need("multi_margin_loss")(input, target, p, margin, weight, _reduction(reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    class_dim = input.dim() - 1
    C = input.size(class_dim)
    loss = loss.sum(dim=class_dim) / C
    if reduction == "none":
        ret = loss
    elif reduction == "mean":
        ret = loss.mean()
    elif reduction == "sum":
        ret = loss.sum()
    else:
        raise ValueError(reduction + " is not valid")
    return ret


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    return _need("poisson_nll_loss")(input, target, log_input, full, eps, _reduction(reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    else:
        torch.any(var < 0)  # PyTorch reads the answer; no number of a GPU is known here.
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = torch.unsqueeze(var, -1)
        elif input.ndim != var.ndim:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    lengths = [list(given) if isinstance(given, (tuple, list)) else given for given in (input_lengths, target_lengths)]
    return _need("ctc_loss")(log_probs, targets, *lengths, blank, _reduction(reduction), zero_infinity, torch.backends.cudnn.enabled)


# --- attention

_native_multi_head_attention = _need("_native_multi_head_attention")

def _in_projection_packed(q, k, v, w, b):
    E = q.size(-1)
    if k is v:
        if q is k:
            proj = linear(q, w, b)
            proj = proj.unflatten(-1, (3, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return proj[0], proj[1], proj[2]
        w_q, w_kv = w.split([E, E * 2])
        b_q, b_kv = (None, None) if b is None else b.split([E, E * 2])
        q_proj = linear(q, w_q, b_q)
        kv_proj = linear(k, w_kv, b_kv)
        kv_proj = kv_proj.unflatten(-1, (2, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return q_proj, kv_proj[0], kv_proj[1]
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _canonical_mask(mask, target_type):
    if mask is not None and not mask.dtype.is_floating_point:
        mask = torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
    return mask


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
                                 dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
                                 attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
                                 static_k=None, static_v=None, average_attn_weights=True, is_causal=False):
    is_batched = query.dim() == 3
    if not is_batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len, _, _ = key.shape
    key_padding_mask = _canonical_mask(key_padding_mask, query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, query.dtype)
        if key_padding_mask is not None:
            is_causal = False
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if not use_separate_proj_weight:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    else:
        b_q, b_k, b_v = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = linear(query, q_proj_weight, b_q), linear(key, k_proj_weight, b_k), linear(value, v_proj_weight, b_v)
    if attn_mask is not None and attn_mask.dim() == 2:
        attn_mask = attn_mask.unsqueeze(0)
    q = q.view(tgt_len, bsz * num_heads, head_dim).transpose(0, 1)
    k = k.view(k.shape[0], bsz * num_heads, head_dim).transpose(0, 1)
    v = v.view(v.shape[0], bsz * num_heads, head_dim).transpose(0, 1)
    src_len = k.size(1)
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1).reshape(bsz * num_heads, 1, src_len)
        attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
    if not training:
        dropout_p = 0.0
    if need_weights:
        _B, _Nt, E = q.shape
        q_scaled = q * math.sqrt(1.0 / float(E))
        if attn_mask is not None:
            attn_output_weights = torch.baddbmm(attn_mask, q_scaled, k.transpose(-2, -1))
        else:
            attn_output_weights = torch.bmm(q_scaled, k.transpose(-2, -1))
        attn_output_weights = softmax(attn_output_weights, dim=-1)
        if dropout_p > 0.0:
            attn_output_weights = dropout(attn_output_weights, p=dropout_p)
        attn_output = torch.bmm(attn_output_weights, v)
        attn_output = attn_output.transpose(0, 1).contiguous().view(tgt_len * bsz, embed_dim)
        attn_output = linear(attn_output, out_proj_weight, out_proj_bias)
        attn_output = attn_output.view(tgt_len, bsz, attn_output.size(1))
        attn_output_weights = attn_output_weights.view(bsz, num_heads, tgt_len, src_len)
        if average_attn_weights:
            attn_output_weights = attn_output_weights.mean(dim=1)
        if not is_batched:
            attn_output, attn_output_weights = attn_output.squeeze(1), attn_output_weights.squeeze(0)
        return attn_output, attn_output_weights
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(bsz, num_heads, -1, src_len)
    q = q.view(bsz, num_heads, tgt_len, head_dim)
    k = k.view(bsz, num_heads, src_len, head_dim)
    v = v.view(bsz, num_heads, src_len, head_dim)
    attn_output = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    attn_output = attn_output.permute(2, 0, 1, 3).contiguous().view(bsz * tgt_len, embed_dim)
    attn_output = linear(attn_output, out_proj_weight, out_proj_bias)
    attn_output = attn_output.view(tgt_len, bsz, attn_output.size(1))
    if not is_batched:
        attn_output = attn_output.squeeze(1)
    return attn_output, None


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


native_channel_shuffle = channel_shuffle


def threshold_(input, threshold, value):
    return _operator("threshold_")(input, threshold, value)


def has_torch_function(*args):
    return False


has_torch_function_unary = has_torch_function_variadic = has_torch_function


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    made = _operator(name)
    if made is None:
        from torch import _names
        _names.refuse("torch.nn.functional", name)
    return made
