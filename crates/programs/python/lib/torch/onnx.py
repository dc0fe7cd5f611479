"""`torch.onnx`, which is not modeled."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.onnx.{name}", "files are not written here; leave the export out")
