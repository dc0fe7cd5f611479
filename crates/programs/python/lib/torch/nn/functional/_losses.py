"""Losses."""

import math
import warnings

import torch
from torch.nn.functional._operators import _need, _reduction, logsigmoid, pairwise_distance


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
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


_cross_entropy, _nll_loss = _need("cross_entropy_loss"), _need("nll_loss_nd")
_mse_loss, _l1_loss, _smooth_l1_loss, _huber_loss = map(_need, ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_bce, _bce_with_logits, _kl_div = map(_need, ("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"))


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    return _cross_entropy(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return _nll_loss(input, target, weight, _reduction(reduction), ignore_index)


def _same_size(input, target):
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
        "incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    return torch.broadcast_tensors(input, target)


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
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    if any(type(value) is float and not 0 <= value <= 1 for value in input.is_cpu and input._known_values() or ()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    return _bce(input, target, weight, _reduction(reduction))


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
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


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    return _need("triplet_margin_loss")(anchor, positive, negative, margin, p, eps, swap, _reduction(reduction))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    return _need("hinge_embedding_loss")(input, target, margin, _reduction(reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return _need("soft_margin_loss")(input, target, _reduction(reduction))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    return _need("multi_margin_loss")(input, target, p, margin, weight, _reduction(reduction))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return _need("multilabel_margin_loss")(input, target, _reduction(reduction))


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


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
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
    return _need("ctc_loss")(
        log_probs, targets, *lengths, blank, _reduction(reduction), zero_infinity, torch.backends.cudnn.enabled
    )
