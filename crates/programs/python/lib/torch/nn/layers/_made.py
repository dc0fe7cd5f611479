"""Modules that are made from a function."""

from torch.nn.module import Module


def _pair(value, count=2):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def _simple(name, function, arguments="", defaults=(), shown=None):
    """A module that calls one function with its own attributes."""
    names = [part.strip() for part in arguments.split(",") if part.strip()]

    class Made(Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            for key, default in zip(names, defaults):
                setattr(self, key, default)
            for key, value in zip(names, args):
                setattr(self, key, value)
            for key, value in kwargs.items():
                if key not in names:
                    raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{key}'")
                setattr(self, key, value)

        def forward(self, input):
            return function(self, input)

        def extra_repr(self):
            return shown(self) if shown else ""

    Made.__name__ = Made.__qualname__ = name
    Made.forward.__qualname__ = f"{name}.forward"
    Made.__module__ = "torch.nn"
    return Made


def _inplace(self):
    return "inplace=True" if self.inplace else ""


def _join(*parts):
    return ", ".join(part for part in parts if part)
