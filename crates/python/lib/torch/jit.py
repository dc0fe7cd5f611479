"""`torch.jit`: functions run as they are."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing


def script(obj, *args, **kwargs):
    return obj


def trace(func, *args, **kwargs):
    return func


def is_scripting():
    return False


is_tracing = is_scripting


def ignore(drop=False, **kwargs):
    return drop if callable(drop) else (lambda f: f)


unused = export = ignore
Final = type("Final", (), {"__class_getitem__": classmethod(lambda cls, item: cls)})


load, save = (_Missing(f"torch.jit.{name}", "files of scripts are not read or written; keep the module itself") for name in ("load", "save"))
script_method, script_if_tracing = ignore, ignore


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "ScriptModule":
        from torch.nn import Module
        return Module
    from torch import _names
    _names.refuse("torch.jit", name)
