"""Arrays of the host, as far as programs of PyTorch need them: small ones with their values, large ones with their shapes.

Each function gives what numpy gives, or a number that prints as `?`, or is refused in words.
"""

import math as _math

__version__ = "2.5.5"
pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
euler_gamma = 0.5772156649015329

from numpy._types import (
    bool,
    bool_,
    byte,
    character,
    complex64,
    complex128,
    complexfloating,
    double,
    dtype,
    float16,
    float32,
    float64,
    floating,
    generic,
    half,
    inexact,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    integer,
    intp,
    long,
    longlong,
    number,
    object_,
    short,
    signedinteger,
    single,
    str_,
    ubyte,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    uintp,
    ulong,
    ushort,
    unsignedinteger,
)
from numpy._array import broadcast_to, ndarray
from numpy._ufunc import ufunc
from numpy._elementwise import *
from numpy._making import _from_tensor
from numpy._making import *
from numpy import _operators
from numpy._axes import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    around,
    average,
    clip,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    round,
    std,
    sum,
    var,
)
from numpy._without_nan import *
from numpy._orders import *
from numpy._places import *
from numpy._several import *
from numpy._products import *
from numpy._print import array2string, array_repr, array_str, get_printoptions, printoptions, set_printoptions
from numpy._files import frombuffer, genfromtxt, load, loadtxt, save, savetxt, savez, savez_compressed
from numpy._kinds import (
    can_cast,
    errstate,
    finfo,
    geterr,
    iinfo,
    issubdtype,
    min_scalar_type,
    promote_types,
    result_type,
    seterr,
)
from numpy import exceptions, linalg, random, testing, typing
from numpy._shapes import product as _product

True_, False_ = bool(True), bool(False)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("float", "int", "complex", "object", "str"):
        raise AttributeError(
            f"module 'numpy' has no attribute '{name}'.\n`np.{name}` was a deprecated alias for the builtin `{name}`. "
            f"To avoid this error in existing code, use `{name}` by itself."
        )
    if name in (
        "float_",
        "Inf",
        "NaN",
        "infty",
        "product",
        "cumproduct",
        "alltrue",
        "sometrue",
        "trapz",
        "in1d",
        "row_stack",
    ):
        raise AttributeError(f"`np.{name}` was removed in the NumPy 2.0 release, or later.")
    raise AttributeError(f"numpy.{name} is not modeled here: use torch, or numbers and lists")
