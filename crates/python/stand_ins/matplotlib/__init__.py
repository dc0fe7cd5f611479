"""Plots: the calls pass, and nothing is drawn."""

from _passing import Passing as _Passing

__version__ = "3.10.0"
rcParams = {}


def use(backend, **kwargs):
    pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Passing(f"matplotlib.{name}")
