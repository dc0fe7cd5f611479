"""Images as far as shapes go: data sets of the right lengths and shapes, whose values are not known."""

__version__ = "0.26.0+cu130"

from torchvision import datasets, transforms, utils, models


def set_image_backend(backend):
    pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"torchvision.{name} is not modeled here; make a tensor of its result's shape")
