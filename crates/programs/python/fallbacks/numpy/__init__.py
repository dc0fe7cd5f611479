"""Arrays of the host, as far as programs of PyTorch need them: small ones with their values, large ones with their shapes.

Each function gives what numpy gives, or a number that prints as `?`, or is refused in words.
"""

import math as _math

__version__ = "2.5.5"
pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None

from numpy._types import *
from numpy._types import FALSE as False_, TRUE as True_
from numpy._array import broadcast_to, ndarray
from numpy._ufunc import ufunc
from numpy._elementwise import *
from numpy._making import *
from numpy._making import _from_tensor
from numpy._axes import *
from numpy._orders import *
from numpy._several import *
from numpy._products import *
from numpy import _operators
from numpy._print import array2string, set_printoptions
from numpy._files import frombuffer, load, save
from numpy._kinds import errstate, finfo, iinfo, issubdtype, seterr
from numpy import linalg, random, typing
from numpy._offers import offer_methods as _offer_methods

_offer_methods(ndarray)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("float", "int", "complex", "object", "str"):
        raise AttributeError(
            f"module 'numpy' has no attribute '{name}'.\n`np.{name}` was a deprecated alias for the builtin `{name}`. "
            f"To avoid this error in existing code, use `{name}` by itself."
        )
    raise AttributeError(f"numpy.{name} is not modeled here: use torch, or numbers and lists")
