"""`torch.jit`: functions run as they are."""


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
