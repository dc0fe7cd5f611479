"""What is offered of numpy: every other function and argument is refused in words."""

import functools


def refuse(what, instead="use torch, or numbers and lists"):
    raise NotImplementedError(f"numpy.{what} is not modeled here: {instead}")


def refuse_unknown(what):
    raise ValueError(
        f"numpy.{what} needs values that lie on the GPU or are random, which are not computed here; use numbers in their place"
    )


def offered(function, name=None, takes_tensors=True):
    """The function, whose other keywords are refused and not ignored."""
    code, name = function.__code__, name or function.__name__
    names = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    most = code.co_argcount if not code.co_flags & 4 else None
    if code.co_flags & 8:  # It takes any keyword and reads them itself.
        return function

    @functools.wraps(function)
    def call(*arguments, **keywords):
        if not keywords.keys() <= names or most is not None and len(arguments) > most:
            unknown = next((f"{key}=" for key in keywords if key not in names), "so many arguments")
            refuse(f"{name} with {unknown}", "leave the argument out, or write the function out")
        if not takes_tensors and arguments and hasattr(arguments[0], "is_cuda"):
            raise TypeError(f"numpy.{name} of a tensor is not modeled here: use torch.{name}, or pass tensor.numpy()")
        return function(*arguments, **keywords)

    return call


def offer(module, skipped=(), takes_tensors=True):
    """Makes all public functions of a module refuse what they do not know; its `__all__` names them."""
    names = module["__all__"] = []
    for name, value in list(module.items()):
        if (
            type(value).__name__ == "function"
            and not name.startswith("_")
            and name not in skipped
            and value.__module__ == module["__name__"]
        ):
            module[name] = offered(value, name, takes_tensors)
            names.append(name)


def offer_methods(cls, prefix=None):
    for name, value in list(vars(cls).items()):
        if type(value).__name__ == "function" and not name.startswith("_"):
            setattr(cls, name, offered(value, f"{prefix or cls.__name__}.{name}"))
