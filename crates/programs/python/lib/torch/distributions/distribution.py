"""What all distributions share: shapes and checks."""

import torch
from torch.distributions import constraints
from torch.distributions.utils import lazy_property


class Distribution:
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    # The parameters that `expand` expands.
    _expanded = ()

    @staticmethod
    def set_default_validate_args(value):
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=torch.Size(), event_shape=torch.Size(), validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for param, constraint in self.arg_constraints.items():
                if param not in self.__dict__ and isinstance(getattr(type(self), param), lazy_property):
                    continue
                value = getattr(self, param)
                valid = constraint.check(value)
                if constraints._is_wrong(valid):
                    raise ValueError(
                        f"Expected parameter {param} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                        f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                    )

    def _none(self, *args):
        raise NotImplementedError

    arg_constraints = support = mean = variance = property(_none)
    mode = property(_none)
    rsample = log_prob = cdf = icdf = enumerate_support = entropy = _none

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def stddev(self):
        return self.variance.sqrt()

    @property
    def param_shape(self):
        return self._param.size()

    def expand(self, batch_shape, _instance=None):
        new = type(self).__new__(type(self)) if _instance is None else _instance
        batch_shape = torch.Size(batch_shape)
        for name in self._expanded:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape))
        if "_param" in self.__dict__:
            new._param = new.__dict__.get("probs", new.__dict__.get("logits"))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n):
        return self.sample(torch.Size((n,)))

    def perplexity(self):
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape=torch.Size()):
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        return torch.Size(sample_shape + self._batch_shape + self._event_shape)

    def _check(self, value):
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value):
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        size = value.size()
        if size[len(size) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {size} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(size), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {size} vs {expected}.")
        support = self.support
        valid = support.check(value)
        if constraints._is_wrong(valid):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self):
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = [
            f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].size()}" for n in names
        ]
        return type(self).__name__ + "(" + ", ".join(parts) + ")"
