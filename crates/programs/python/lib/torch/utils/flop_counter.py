"""`torch.utils.flop_counter`, which is not modeled."""

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.utils.flop_counter.{name}", "operations are not counted here")
