"""Transforms of parts of a tensor."""

import torch
from torch.distributions import constraints
from torch.distributions._base import _sum_rightmost
from torch.distributions._transform import Transform


class CatTransform(Transform):
    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths, self.dim = [1] * len(self.transforms) if lengths is None else list(lengths), dim

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = constraints.dependent_property()(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = constraints.dependent_property()(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def _again(self, cache_size):
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _slices(self, x):
        start = 0
        for transform, length in zip(self.transforms, self.lengths):
            yield transform, x.narrow(self.dim, start, length)
            start += length

    def _call(self, x):
        return torch.cat([transform(part) for transform, part in self._slices(x)], dim=self.dim)

    def _inverse(self, y):
        return torch.cat([transform.inv(part) for transform, part in self._slices(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for (transform, xslice), (_, yslice) in zip(self._slices(x), self._slices(y)):
            term = transform.log_abs_det_jacobian(xslice, yslice)
            terms.append(_sum_rightmost(term, max(self.event_dim - transform.event_dim, 0)))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return torch.cat(terms, dim=dim) if dim < 0 else sum(terms)


class StackTransform(Transform):
    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq), dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = constraints.dependent_property()(
        lambda self: constraints.stack([t.domain for t in self.transforms], self.dim)
    )
    codomain = constraints.dependent_property()(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )

    def _again(self, cache_size):
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, z):
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _call(self, x):
        return torch.stack([transform(part) for part, transform in zip(self._slice(x), self.transforms)], dim=self.dim)

    def _inverse(self, y):
        return torch.stack(
            [transform.inv(part) for part, transform in zip(self._slice(y), self.transforms)], dim=self.dim
        )

    def log_abs_det_jacobian(self, x, y):
        ys, xs = self._slice(y), self._slice(x)
        terms = [transform.log_abs_det_jacobian(a, b) for a, b, transform in zip(xs, ys, self.transforms)]
        return torch.stack(terms, dim=self.dim)
