"""Checks of values that a kernel would have computed; each line that should be assumed to pass says so."""

import torch
from torch import nn

x = torch.empty(64, 32, device="cuda").sin()
p = x.softmax(-1)


def is_positive(values):
    return bool((values > 0).all())  # passes


def is_matrix(values):
    if values.dim() != 2:
        return False
    if not (values > 0).all():  # passes
        return False
    return True


@torch.no_grad()
def least(values):
    return values.min().item()  # passes


def check(limit):
    assert is_positive(x)
    if not is_matrix(x):
        raise ValueError
    assert least(x) >= 3
    assert all(values.any().item() for values in (x, p))  # passes
    assert x.mean().item() > 2, "a constant"  # passes
    assert abs(x.mean().item() - 2.5) < 0.1  # passes
    assert torch.allclose(x, p, atol=1e-3)  # passes
    assert torch.equal(x, p)  # passes
    assert (x == p).all()  # passes
    assert x.min() >= 0 and x.max() < limit, f"not in [0, {limit})"  # passes
    assert 0 <= x.argmax() < limit  # passes
    assert all([torch.isfinite(x).all(), (x > 0).all()])  # passes
    torch._assert((x > 0).all(), "positive")  # passes
    torch._assert_async(x.isfinite().all())
    torch.testing.assert_close(x, p)  # passes
    torch.testing.assert_close(x[0, 0], p[0, 0])  # passes
    if not x.sum() < 1:  # passes
        raise ValueError
    if torch.isnan(x).any() or not (y := x > 0).all():  # passes
        raise ValueError(f"{y}")
    close = torch.allclose(x, p)  # passes
    x.add_(1)
    assert close
    with torch.device("cuda"):
        assert (x > 0).all()  # passes
    try:
        assert x.any()  # passes
    except AssertionError:
        print("no")
    nn.functional.gaussian_nll_loss(x, p, p)
    large = torch.empty(5000, 5000, device="cuda").exp()
    torch.distributions.Normal(large, large)  # passes
    torch.distributions.Categorical(p).sample()
    print("passed")


check(7)
print("branches:", bool((x > 0).all()), 1 if x.sum() > 0 else 2)
known = torch.arange(4, device="cuda")
try:
    assert is_matrix(known.view(2, 2)) and is_positive(known)
except AssertionError:
    print("helper")
try:
    assert (known > 2).all()
except AssertionError:
    print("known")
try:
    assert x.shape[0] == 3
except AssertionError:
    print("shape")
try:
    torch.testing.assert_close(known, known + 1)
except AssertionError:
    print("close")
