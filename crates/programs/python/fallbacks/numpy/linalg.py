"""Norms; what numpy leaves to LAPACK is refused."""

import numpy as _np
from numpy._offers import offer, refuse
from numpy._shapes import axis_of


class LinAlgError(ValueError):
    __module__ = "numpy.linalg"


def norm(x, ord=None, axis=None, *, keepdims=False):
    x = _np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    if axis is None and (ord is None or ord in (2, "fro") and x.ndim == (1 if ord == 2 else 2)):
        flat = x.T.ravel() if not x._is_contiguous() and x.T._is_contiguous() else x.ravel()
        result = _np.sqrt(_np.dot(flat, flat))
        return _np.asarray(result).reshape((1,) * x.ndim) if keepdims else result
    if isinstance(axis, tuple) or axis is None and x.ndim != 1 or ord not in (None, 1, 2, _np.inf):
        refuse("linalg.norm of matrices, or with this ord=", "use torch.linalg.norm")
    axis = axis_of(0 if axis is None else axis, x.ndim)
    if ord == 1:
        return _np.sum(_np.abs(x), axis=axis, keepdims=keepdims)
    if ord == _np.inf:
        return _np.max(_np.abs(x), axis=axis, keepdims=keepdims)
    return _np.sqrt(_np.sum(_np.multiply(x, x), axis=axis, keepdims=keepdims))


offer(globals())


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"numpy.linalg.{name} is not modeled here: its digits depend on the machine's library; use torch.linalg.{name}"
    )
