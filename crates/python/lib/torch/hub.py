"""`torch.hub`, which is not here."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.hub.{name}", "there is no network here; write the module out")
