"""`torch.hub`, which is not modeled."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing

_folder = ["~/.cache/torch/hub"]


def get_dir():
    return _folder[0]


def set_dir(d):
    _folder[0] = str(d)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.hub.{name}", "there is no network here; write the module out")
