"""`torch.distributions.kl`: divergences of pairs of distributions."""

import functools
import math

import torch
from torch.distributions.bernoulli import Bernoulli
from torch.distributions.categorical import Categorical
from torch.distributions.distribution import Distribution
from torch.distributions.independent import Independent
from torch.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from torch.distributions.normal import Normal
from torch.distributions.uniform import Uniform
from torch.distributions.utils import _sum_rightmost

_REGISTRY = {}


def register_kl(type_p, type_q):
    if not (isinstance(type_p, type) and issubclass(type_p, Distribution)):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not (isinstance(type_q, type) and issubclass(type_q, Distribution)):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(fun):
        _REGISTRY[type_p, type_q] = fun
        return fun

    return decorator


def kl_divergence(p, q):
    matches = [pair for pair in _REGISTRY if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not matches:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )

    def order(a, b):
        # The nearer class comes first, by the first distribution and then by the second.
        for x, y in zip(a, b):
            if x is not y:
                return -1 if issubclass(x, y) else 1
        return 0

    return _REGISTRY[min(matches, key=functools.cmp_to_key(order))](p, q)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = torch.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1[q.probs == 0] = math.inf
    t1[p.probs == 0] = 0
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2[q.probs == 1] = math.inf
    t2[p.probs == 1] = 0
    return t1 + t2


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = math.inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(Normal, Normal)
def _normal(p, q):
    var_ratio = (p.scale / q.scale).pow(2)
    t1 = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (var_ratio + t1 - 1 - var_ratio.log())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    q_tril, p_tril = q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril
    half_term1 = q_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) - p_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    n = p.event_shape[0]
    shape = torch.broadcast_shapes(q_tril.shape[:-2], p_tril.shape[:-2]) + (n, n)
    q_scale_tril, p_scale_tril = q_tril.expand(shape), p_tril.expand(shape)
    bmat = torch.linalg.solve_triangular(q_scale_tril, p_scale_tril, upper=False)
    term2 = bmat.reshape(-1, bmat.size(-2) * bmat.size(-1)).pow(2).sum(-1).reshape(bmat.shape[:-2])
    del bmat
    term3 = _batch_mahalanobis(q_tril, q.loc - p.loc)
    return half_term1 + 0.5 * (term2 + term3 - n)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = math.inf
    return result


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    result = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(result, p.reinterpreted_batch_ndims)


@register_kl(Normal, Uniform)
def _normal_uniform(p, q):
    # The first one has values where the second has none.
    return torch.full_like(p.loc, math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p, q):
    common_term = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / common_term).log()
    t2 = (common_term).pow(2) / 12
    t3 = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return t1 + 0.5 * (t2 + t3) / q.scale.pow(2)
