"""numpy's random numbers: the same as numpy's where a seed was set, and numbers that print as `?` where none was."""

from numpy._generator import PCG64, Generator, SeedSequence, default_rng
from numpy._legacy import RandomState

_rand = mtrand = RandomState()
__all__ = ["Generator", "PCG64", "RandomState", "SeedSequence", "default_rng"]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    if name in ("MT19937", "Philox", "SFC64", "PCG64DXSM", "BitGenerator"):
        raise AttributeError(f"numpy.random.{name} is not modeled here: use numpy.random.default_rng")
    if not hasattr(_rand, name):
        raise AttributeError(f"numpy.random.{name} is not modeled here: use torch's generators")
    return getattr(_rand, name)
