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


load, save = (
    _Missing(f"torch.jit.{name}", "files of scripts are not read or written; keep the module itself")
    for name in ("load", "save")
)
script_method, script_if_tracing = ignore, ignore


def annotate(the_type, the_value):
    return the_value


def isinstance(obj, target_type):
    import builtins

    return builtins.isinstance(obj, target_type)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    return mod


def optimize_for_inference(mod, other_methods=None):
    return mod


def trace_module(mod, inputs, *args, **kwargs):
    return mod


def interface(obj):
    return obj


def fork(func, *args, **kwargs):
    return Future(func(*args, **kwargs))


def wait(future):
    return future.wait()


class Future:
    """A future whose result exists already: the work of another thread is done at once."""

    def __init__(self, value=None, *, devices=None):
        self._value = value

    def wait(self):
        return self._value

    value = wait

    def done(self):
        return True

    def set_result(self, result):
        self._value = result

    def then(self, callback):
        return Future(callback(self))

    def add_done_callback(self, callback):
        callback(self)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "ScriptModule":
        from torch.nn import Module

        return Module
    from torch import _names

    _names.refuse("torch.jit", name)
