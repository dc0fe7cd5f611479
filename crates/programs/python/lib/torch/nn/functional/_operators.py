"""Operators under the names that the functions of `torch.nn.functional` use."""

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
conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    _need("conv_transpose1d"),
    _need("conv_transpose2d"),
    _need("conv_transpose3d"),
)
scaled_dot_product_attention = _need("scaled_dot_product_attention")
logsigmoid, pixel_shuffle, pixel_unshuffle = _need("log_sigmoid"), _need("pixel_shuffle"), _need("pixel_unshuffle")
cosine_similarity, pairwise_distance = _need("cosine_similarity"), _need("pairwise_distance")
_embedding, _layer_norm, _group_norm, _rms_norm, _batch_norm = map(
    _need, ("embedding", "layer_norm", "group_norm", "rms_norm", "batch_norm")
)
_softmax, _log_softmax = _need("softmax"), _need("log_softmax")
_dropout, _dropout_, _feature_dropout, _feature_dropout_ = map(
    _need, ("dropout", "dropout_", "feature_dropout", "feature_dropout_")
)
_alpha_dropout, _alpha_dropout_, _feature_alpha_dropout, _feature_alpha_dropout_ = map(
    _need, ("alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_")
)
