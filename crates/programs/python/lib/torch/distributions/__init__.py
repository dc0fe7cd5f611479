"""`torch.distributions`, with PyTorch's statements in PyTorch's order."""

from torch.distributions import constraints, transforms
from torch.distributions._base import Distribution, ExponentialFamily
from torch.distributions._discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from torch.distributions._continuous import (
    Beta,
    Cauchy,
    Chi2,
    Dirichlet,
    Exponential,
    FisherSnedecor,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
    VonMises,
)
from torch.distributions._matrices import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal
from torch.distributions._mixtures import MixtureSameFamily, RelaxedBernoulli, RelaxedOneHotCategorical
from torch.distributions._transformed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Independent,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    TransformedDistribution,
    Weibull,
)
from torch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from torch.distributions.kl import kl_divergence, register_kl
from torch.distributions import kl, _base, _discrete, _continuous, _matrices, _mixed_kl, _mixtures, _transformed
from torch.distributions._registry import biject_to, transform_to
from torch._aliases import alias as _alias
from _refused import Missing as _Missing

# `from torch.distributions.normal import Normal`, by the files that PyTorch has them in.
_alias(__name__, ("distribution", "exp_family", "utils"), _base)
_alias(
    __name__,
    (
        "bernoulli",
        "binomial",
        "categorical",
        "geometric",
        "multinomial",
        "negative_binomial",
        "one_hot_categorical",
        "poisson",
    ),
    _discrete,
)
_alias(
    __name__,
    (
        "beta",
        "cauchy",
        "chi2",
        "dirichlet",
        "exponential",
        "fishersnedecor",
        "gamma",
        "laplace",
        "normal",
        "studentT",
        "uniform",
        "von_mises",
    ),
    _continuous,
)
_alias(__name__, ("lkj_cholesky", "lowrank_multivariate_normal", "multivariate_normal"), _matrices)
_alias(
    __name__,
    (
        "gumbel",
        "half_cauchy",
        "half_normal",
        "independent",
        "inverse_gamma",
        "kumaraswamy",
        "log_normal",
        "logistic_normal",
        "pareto",
        "transformed_distribution",
        "weibull",
    ),
    _transformed,
)
_alias(__name__, ("mixture_same_family", "relaxed_bernoulli", "relaxed_categorical"), _mixtures)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return _Missing(f"torch.distributions.{name}", "write its density out with operators")
