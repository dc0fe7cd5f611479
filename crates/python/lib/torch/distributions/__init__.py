"""`torch.distributions`: the discrete and normal ones that programs use most, in PyTorch's steps."""

import math

import torch
from _refused import Missing as _Missing


class _Lazy:
    """A property that is computed once, when it is first read."""

    def __init__(self, compute):
        self.compute, self.name = compute, compute.__name__

    def __get__(self, instance, owner):
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.compute(instance)
        setattr(instance, self.name, value)
        return value


def _is_all_true(valid):
    """Reads the answer, as PyTorch's checks do. What lies on a GPU is not known here and passes."""
    answer = valid.all()
    return answer.is_cuda or bool(answer)


def _simplex(value):
    return torch.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


def _independent_real(value):
    return (value == value).all(-1)


def _real(value):
    return value == value


def _positive(value):
    return 0.0 < value


def _unit(value):
    return (value >= 0.0) & (value <= 1.0)


def _boolean(value):
    return (value == 0) | (value == 1)


class Distribution:
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    _constraints = {}

    @staticmethod
    def set_default_validate_args(value):
        Distribution._validate_args = value

    def __init__(self, batch_shape=torch.Size(), event_shape=torch.Size(), validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for param, check in self._constraints.items():
                if param not in self.__dict__:
                    continue
                value = getattr(self, param)
                valid = check(value)
                if not _is_all_true(valid):
                    raise ValueError(f"Expected parameter {param} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                                     f"{self!r} to satisfy the constraint, but found invalid values:\n{value}")

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def stddev(self):
        return self.variance.sqrt()

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self.rsample(sample_shape)

    def perplexity(self):
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape=torch.Size()):
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        return torch.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value):
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.size()), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}.")
        valid = self._check_support(value)
        if not _is_all_true(valid):
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                             f"of the distribution {self!r}, but found invalid values:\n{value}")

    def __repr__(self):
        names = [name for name in self._constraints if name in self.__dict__]
        parts = [f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].size()}" for n in names]
        return type(self).__name__ + "(" + ", ".join(parts) + ")"


class Categorical(Distribution):
    has_enumerate_support = True
    _constraints = {"probs": _simplex, "logits": _independent_real}

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = self._param.size()[-1]
        batch_shape = self._param.size()[:-1] if self._param.ndimension() > 1 else torch.Size()
        super().__init__(batch_shape, validate_args=validate_args)

    @_Lazy
    def logits(self):
        eps = torch.finfo(self.probs.dtype).eps
        clamped = self.probs.clamp(min=eps, max=1 - eps)
        return torch.log(clamped)

    @_Lazy
    def probs(self):
        return torch.nn.functional.softmax(self.logits, dim=-1)

    @property
    def param_shape(self):
        return self._param.size()

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def _check_support(self, value):
        return (value % 1 == 0) & (0 <= value) & (value <= self._num_events - 1)

    def sample(self, sample_shape=torch.Size()):
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        probs_2d = self.probs.reshape(-1, self._num_events)
        samples_2d = torch.multinomial(probs_2d, sample_shape.numel(), True).T
        return samples_2d.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = torch.broadcast_tensors(value, self.logits)
        value = value[..., :1]
        return log_pmf.gather(-1, value).squeeze(-1)

    def entropy(self):
        min_real = torch.finfo(self.logits.dtype).min
        logits = torch.clamp(self.logits, min=min_real)
        p_log_p = logits * self.probs
        return -p_log_p.sum(-1)


def _broadcast(values):
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    options = dict(dtype=tensors[0].dtype, device=tensors[0].device) if tensors else dict(dtype=torch.get_default_dtype())
    return torch.broadcast_tensors(*[value if isinstance(value, torch.Tensor) else torch.tensor(value, **options) for value in values])


class Normal(Distribution):
    has_rsample = True
    _constraints = {"loc": _real, "scale": _positive}

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = _broadcast((loc, scale))
        is_number = not isinstance(loc, torch.Tensor) and not isinstance(scale, torch.Tensor)
        super().__init__(torch.Size() if is_number else self.loc.size(), validate_args=validate_args)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def _check_support(self, value):
        return _real(value)

    def sample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        eps = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device).normal_()
        return self.loc + eps * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        var = self.scale ** 2
        log_scale = self.scale.log()
        return -((value - self.loc) ** 2) / (2 * var) - log_scale - math.log(math.sqrt(2 * math.pi))

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)


class Bernoulli(Distribution):
    has_enumerate_support = True
    _constraints = {"probs": _unit, "logits": _real}

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        value = probs if probs is not None else logits
        is_number = not isinstance(value, torch.Tensor)
        if probs is not None:
            (self.probs,) = _broadcast((probs,))
            self._param = self.probs
        else:
            (self.logits,) = _broadcast((logits,))
            self._param = self.logits
        super().__init__(torch.Size() if is_number else self._param.size(), validate_args=validate_args)

    @_Lazy
    def logits(self):
        eps = torch.finfo(self.probs.dtype).eps
        clamped = self.probs.clamp(min=eps, max=1 - eps)
        return torch.log(clamped) - torch.log1p(-clamped)

    @_Lazy
    def probs(self):
        return torch.sigmoid(self.logits)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _check_support(self, value):
        return _boolean(value)

    def sample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


def kl_divergence(p, q):
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        t = p.probs * (p.logits - q.logits)
        t[(q.probs == 0).expand_as(t)] = math.inf
        t[(p.probs == 0).expand_as(t)] = 0
        return t.sum(-1)
    if isinstance(p, Normal) and isinstance(q, Normal):
        var_ratio = (p.scale / q.scale).pow(2)
        t1 = ((p.loc - q.loc) / q.scale).pow(2)
        return 0.5 * (var_ratio + t1 - 1 - var_ratio.log())
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.distributions.{name}", "Categorical, Normal and Bernoulli are here; write other densities out with operators")
