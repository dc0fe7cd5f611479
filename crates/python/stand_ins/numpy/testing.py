"""Assertions about arrays. An assertion about numbers that nobody knows is taken to hold, with a note."""

import numpy as _np
from numpy._near import are_special
from numpy._offers import offer


def _note_unknown():
    from _host import note

    note("the assertion depends on values that are not computed; it is assumed to hold")


def _assert(found, text, err_msg):
    if are_special([found]):
        _note_unknown()
    elif not found:
        raise AssertionError(f"{text}\n{err_msg}".rstrip())


def _assert_shapes(actual, desired, text):
    if actual.shape != desired.shape and actual.ndim and desired.ndim:
        raise AssertionError(f"{text}\n(shapes {actual.shape}, {desired.shape} mismatch)")


def assert_allclose(actual, desired, rtol=1e-07, atol=0, equal_nan=True, err_msg=""):
    a, b = _np.asarray(actual), _np.asarray(desired)
    text = f"Not equal to tolerance rtol={rtol:g}, atol={atol:g}"
    _assert_shapes(a, b, text)
    _assert(_np.allclose(a, b, rtol, atol, equal_nan), text, err_msg)


def assert_array_equal(actual, desired, err_msg=""):
    a, b = _np.asarray(actual), _np.asarray(desired)
    _assert_shapes(a, b, "Arrays are not equal")
    _assert(_np.all(a == b), "Arrays are not equal", err_msg)


def assert_equal(actual, desired, err_msg=""):
    assert_array_equal(actual, desired, err_msg)


def assert_almost_equal(actual, desired, decimal=7, err_msg=""):
    a, b = _np.asarray(actual), _np.asarray(desired)
    text = f"Arrays are not almost equal to {decimal} decimals"
    _assert(_np.all(_np.abs(b - a) < 1.5 * 10.0**-decimal), text, err_msg)


assert_array_almost_equal = assert_almost_equal
offer(globals())


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"numpy.testing.{name} is not modeled here: use assert")
