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


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous:
        torch._torch_memory.note_estimate("make_tensor", "its elements with gaps were not checked")
    result = torch.empty(shape, device=device, dtype=dtype)
    result = (
        result.uniform_(low or -9, high or 9)
        if dtype.is_floating_point
        else result.random_(int(low or 0), int(high or 9) or 1)
    )
    return result.requires_grad_(requires_grad) if requires_grad else result
