"""`torch.futures`, which is not here."""

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.futures.{name}", "a program here is one process")
