"""Modules whose names are those of other modules, so that names have PyTorch's paths."""

import sys
from types import ModuleType


def alias(package, names, source):
    """Makes the modules `package.name`, whose names are those of `source`."""
    for name in names:
        module = ModuleType(f"{package}.{name}")

        def get(attribute, source=source):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return getattr(source, attribute)

        module.__getattr__ = get
        module.__path__ = []
        sys.modules[module.__name__] = module
        setattr(sys.modules[package], name, module)
