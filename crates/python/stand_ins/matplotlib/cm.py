"""Plots: the calls pass, and nothing is drawn."""

from matplotlib import _Passing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Passing(f"matplotlib.cm.{name}")
