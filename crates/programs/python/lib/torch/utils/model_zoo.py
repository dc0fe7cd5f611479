"""`torch.utils.model_zoo`, which is not modeled."""

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.utils.model_zoo.{name}", "there is no network here; start from a fresh module")
