"""Plots: the calls pass, and nothing is drawn."""

from matplotlib import _names_of

__getattr__ = _names_of("matplotlib.patches")
