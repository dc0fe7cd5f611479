"""`torch.distributions`, with PyTorch's statements in PyTorch's order: the distributions of common programs."""

from torch.distributions import constraints, kl
from torch.distributions.distribution import Distribution
from torch.distributions.bernoulli import Bernoulli
from torch.distributions.categorical import Categorical
from torch.distributions.independent import Independent
from torch.distributions.multivariate_normal import MultivariateNormal
from torch.distributions.normal import Normal
from torch.distributions.uniform import Uniform
from torch.distributions.kl import kl_divergence, register_kl
from _refused import Missing as _Missing
from torch import _names

_names.complete({module.__name__: module for module in (constraints, kl)})


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return _Missing(f"torch.distributions.{name}", _names.advice("distributions"))
