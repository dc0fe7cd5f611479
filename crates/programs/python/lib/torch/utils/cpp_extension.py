"""`torch.utils.cpp_extension`, which is not modeled."""

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.utils.cpp_extension.{name}", "no native code runs here; use operators of torch")
