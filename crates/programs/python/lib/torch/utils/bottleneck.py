"""`torch.utils.bottleneck`, which is not modeled."""

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.utils.bottleneck.{name}", "nothing is measured here")
