"""Errors and warnings of numpy."""

from numpy._shapes import AxisError


class VisibleDeprecationWarning(UserWarning):
    __module__ = "numpy.exceptions"


class ComplexWarning(RuntimeWarning):
    __module__ = "numpy.exceptions"


__all__ = ["AxisError", "ComplexWarning", "VisibleDeprecationWarning"]
