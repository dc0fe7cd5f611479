"""numpy's random numbers: the same as numpy's where a seed was set, and numbers that print as `?` where none was."""

from numpy._draws import PCG64, Generator, RandomState, default_rng

_rand = mtrand = RandomState()
__all__ = ["Generator", "PCG64", "RandomState", "default_rng"]


def __getattr__(name):
    return getattr(_rand, name)
