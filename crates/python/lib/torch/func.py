"""`torch.func`: a module's call with other parameters. Function transforms are not here."""

__path__ = []  # Modules below are found, and refused in a sentence.

import contextlib as _contextlib

from _refused import Missing as _Missing


def _owner(module, name):
    *path, last = name.split(".")
    for part in path:
        module = module._modules[part]
    return module, last


@_contextlib.contextmanager
def _replaced(module, tensors):
    before = []
    try:
        for name, tensor in tensors.items():
            owner, last = _owner(module, name)
            table = owner._parameters if last in owner._parameters else owner._buffers
            if last not in table:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
            before.append((table, last, table[last]))
            table[last] = tensor
        yield
    finally:
        for table, last, tensor in reversed(before):
            table[last] = tensor


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    given = parameter_and_buffer_dicts
    given = (given,) if isinstance(given, dict) else given
    names = [name for each in given for name in each]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    tensors = {name: value for each in given for name, value in each.items()}
    known = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    if strict and set(tensors) != set(known):
        missing, unexpected = sorted(set(known) - set(tensors)), sorted(set(tensors) - set(known))
        raise RuntimeError(f"Missing key(s): {missing}; unexpected key(s): {unexpected}.")
    if tie_weights:
        for name, tensor in list(tensors.items()):
            for other, value in known.items():
                if value is known.get(name) and other not in tensors:
                    tensors[other] = tensor
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, tensors):
        return module(*args, **(kwargs or {}))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.func.{name}", "function transforms are not modeled; use torch.autograd.grad, and write the loop or the batch "
                    "dimension out")
