"""Norms; what numpy leaves to LAPACK is refused."""

import numpy as _np
from numpy._offers import offer, refuse
from numpy._shapes import AxisError


class LinAlgError(ValueError):
    __module__ = "numpy.linalg"


def norm(x, ord=None, axis=None, keepdims=False):
    x = _np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    if axis is not None and not x.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension 0")
    if axis is None and (ord is None or ord in (2, "fro") and x.ndim == (1 if ord == 2 else 2)):
        flat = x.T.ravel() if not x._is_contiguous() and x.T._is_contiguous() else x.ravel()
        result = _np.sqrt(_np.dot(flat, flat))
        return _np.asarray(result).reshape((1,) * x.ndim) if keepdims else result
    if axis is None:
        if x.ndim != 1:
            refuse("linalg.norm of matrices with ord=", "use the default, or torch.linalg.norm")
        axis = 0
    if isinstance(axis, tuple):
        if len(axis) != 2 or ord not in (None, "fro"):
            refuse("linalg.norm with two axes and ord=", "use torch.linalg.norm")
        return _np.sqrt(_np.sum(_np.multiply(x, x), axis=axis, keepdims=keepdims))
    if ord is None or ord == 2:
        return _np.sqrt(_np.add.reduce(_np.multiply(x, x), axis=axis, keepdims=keepdims))
    if ord == 1:
        return _np.add.reduce(_np.abs(x), axis=axis, keepdims=keepdims)
    if ord in (_np.inf, -_np.inf):
        return (_np.max if ord > 0 else _np.min)(_np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return _np.sum((x != 0).astype(x.dtype), axis=axis, keepdims=keepdims)
    refuse(f"linalg.norm with ord={ord}", "use torch.linalg.norm")


def matrix_transpose(x, /):
    return _np.matrix_transpose(x)


offer(globals())


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"numpy.linalg.{name} is not modeled here: its digits depend on the machine's library; use torch.linalg.{name}"
    )
