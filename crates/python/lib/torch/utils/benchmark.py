"""`torch.utils.benchmark`, which is not here."""

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.utils.benchmark.{name}", "use time.perf_counter() and torch.cuda.synchronize()")
