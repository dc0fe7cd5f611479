"""`torch.save` and `torch.load`, over files that are kept in memory until the program ends.

Nothing is written: values are not computed here, and a file of the same name may hold a real checkpoint.
"""

import os
import weakref

import torch

_files = {}
# The states in streams of bytes, such as `io.BytesIO`.
_streams = weakref.WeakKeyDictionary()


def _place(f):
    return os.path.normpath(os.fspath(f))


def _store(f, stored):
    from _host import note

    note("torch.save keeps the state in memory until the program ends; no file is written")
    if not _files:
        _show_files()
    _files[_place(f)] = stored


def _show_files():
    """Lets a program find, measure and remove the files that it saved. How large they are is not known."""
    stat, remove, rename = os.stat, os.remove, os.replace

    def is_saved(path):
        return isinstance(path, (str, os.PathLike)) and _place(path) in _files

    def stat_saved(path, *arguments, **options):
        if not is_saved(path):
            return stat(path, *arguments, **options)
        size = torch.UnknownNumber(torch.int64)
        return os.stat_result((0o100644, 0, 0, 1, 0, 0, size, 0, 0, 0))

    def remove_saved(path, *arguments, **options):
        return _files.pop(_place(path)) and None if is_saved(path) else remove(path, *arguments, **options)

    def rename_saved(path, new, *arguments, **options):
        if not is_saved(path):
            return rename(path, new, *arguments, **options)
        _files[_place(new)] = _files.pop(_place(path))

    os.stat, os.remove, os.unlink, os.rename, os.replace = (
        stat_saved,
        remove_saved,
        remove_saved,
        rename_saved,
        rename_saved,
    )


def _stored(f):
    try:
        return _files[_place(f)]
    except KeyError:
        from _host import note

        note("torch.load finds no files here but those that the program saved itself; start from a fresh module")
        raise FileNotFoundError(2, "No such file or directory", os.fspath(f)) from None


def _to_host(value, seen):
    """A copy of an object as a file has it. The tensors of a GPU are copied through the host and allocate nothing on the GPU."""
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, torch.Tensor):
        made = _Stored(value)
    elif isinstance(value, dict):
        made = type(value)() if type(value) is not dict and not hasattr(value, "default_factory") else {}
        for key, item in value.items():
            made[key] = _to_host(item, seen)
    elif isinstance(value, tuple):
        items = [_to_host(item, seen) for item in value]
        made = type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    elif isinstance(value, list):
        made = [_to_host(item, seen) for item in value]
    elif isinstance(value, torch.nn.Module):
        made = _StoredModule(value)
    elif value is None or isinstance(value, (int, float, str, bytes, bool)):
        return value
    else:
        import copy

        made = copy.deepcopy(value)
    seen[id(value)] = made
    return made


class _Stored:
    """A tensor in a file."""

    def __init__(self, tensor):
        self.device, self.requires_grad = tensor.device, tensor.requires_grad
        self.is_parameter = isinstance(tensor, torch.nn.Parameter)
        with torch.no_grad():
            self.data = tensor.detach().cpu() if tensor.is_cuda else tensor.detach().clone()

    def load(self, place):
        device = place(self.device)
        with torch.no_grad():
            made = self.data.clone() if device.type == "cpu" else self.data.to(device)
        if self.is_parameter:
            return torch.nn.Parameter(made, self.requires_grad)
        return made.requires_grad_() if self.requires_grad else made


class _StoredModule:
    """A whole module in a file: a copy in which stored tensors are in the places of its tensors."""

    def __init__(self, module):
        import copy

        tensors = [*module.parameters(), *module.buffers()]
        # A copy on the GPU would take memory there that saving does not take.
        self.stored = [_Stored(tensor) for tensor in tensors]
        self.module = copy.deepcopy(module, {id(t): stored for t, stored in zip(tensors, self.stored)})

    def load(self, place):
        import copy

        return copy.deepcopy(self.module, {id(stored): stored.load(place) for stored in self.stored})


def _refuse_module(module):
    import pickle

    name = f"{type(module).__module__}.{type(module).__qualname__}"
    raise pickle.UnpicklingError(
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n\t(1) In PyTorch 2.6, we changed "
        "the default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running "
        "`torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
        "execution. Do it only if you got the file from a trusted source.\n\t(2) Alternatively, to load with "
        "`weights_only=True` please check the recommended steps in the following error message.\n\tWeightsUnpickler "
        f"error: Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context "
        "manager to allowlist this global if you trust this class/function.\n\nCheck the documentation of torch.load to "
        "learn more about types accepted by default with weights_only "
        "https://pytorch.org/docs/stable/generated/torch.load.html."
    )


def _from_host(value, place, weights_only):
    if isinstance(value, _StoredModule) and weights_only:
        _refuse_module(value.module)
    if isinstance(value, (_Stored, _StoredModule)):
        return value.load(place)
    if isinstance(value, dict):
        made = type(value)()
        for key, item in value.items():
            made[key] = _from_host(item, place, weights_only)
        return made
    if isinstance(value, tuple):
        items = [_from_host(item, place, weights_only) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return [_from_host(item, place, weights_only) for item in value] if isinstance(value, list) else value


def save(obj, f, pickle_module=None, pickle_protocol=2, **kwargs):
    stored = _to_host(obj, {})
    if not hasattr(f, "write"):
        _store(f, stored)
    elif hasattr(f, "name"):
        _store(f.name, stored)
    else:
        _streams[f] = stored
        if hasattr(f, "has_state"):
            f.has_state = f.is_at_end = True


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **kwargs):
    stored = _streams[f] if hasattr(f, "read") and f in _streams else _stored(f.name if hasattr(f, "read") else f)

    def place(device):
        if map_location is None:
            return device
        if isinstance(map_location, dict):
            return torch.device(map_location.get(str(device), device))
        return device if callable(map_location) and not isinstance(map_location, str) else torch.device(map_location)

    return _from_host(stored, place, weights_only)


def add_safe_globals(globals):
    pass


class safe_globals:
    def __init__(self, globals):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass
