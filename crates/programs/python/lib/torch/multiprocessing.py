"""`torch.multiprocessing`, which is not modeled."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("set_start_method", "set_sharing_strategy", "freeze_support"):
        return lambda *args, **kwargs: None
    return _Missing(f"torch.multiprocessing.{name}", "a program here is one process; leave out the workers")
