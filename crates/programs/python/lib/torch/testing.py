"""`torch.testing`: values are not computed here, so shapes and types are what is compared."""

import torch


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    from _host import note

    if isinstance(actual, (list, tuple)):
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, check_device=check_device, check_dtype=check_dtype)
        return
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        note("values are not compared here: only shapes, types and devices are")
        if actual.shape != expected.shape:
            raise AssertionError(f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.")
        if check_dtype and actual.dtype != expected.dtype:
            raise AssertionError(f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}.")
        if check_device and actual.device != expected.device:
            raise AssertionError(
                f"The values for attribute 'device' do not match: {actual.device} != {expected.device}."
            )


assert_allclose = assert_close

from torch import _names

__getattr__ = _names.refuses(__name__)
