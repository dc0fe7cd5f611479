"""Who holds device memory at the end of an iteration."""

import gc
import warnings


def holders(torch, devices):
    """Rows of a holder and its bytes, which add up to the peak of the iteration.

    `devices` are the peaks as `Peaks.end_step` returns them. Each allocated block counts once, whole, for the first
    holder that has a tensor in it. A block in which Python sees no tensor is held by PyTorch itself. The last row has
    the bytes of the peak that are freed at the end of the iteration.
    """
    blocks = {}
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks[block["address"]] = block["size"]
    rows = []
    for what, tensors in _classes(torch):
        count = 0
        for tensor in tensors:
            count += blocks.pop(_address(torch, tensor), 0)
        rows.append({"what": what, "bytes": count})
    kept = "no tensor that Python sees: kept by autograd, cuBLAS workspaces, caches"
    rows.append({"what": kept, "bytes": sum(blocks.values())})
    beyond = sum(device["peak_allocated"] - device["allocated"] for device in devices)
    rows.append({"what": "freed between the peak and the end of the step: activations, temporaries", "bytes": beyond})
    return [row for row in rows if row["bytes"]]


def _address(torch, tensor):
    try:
        if tensor.device.type != "cuda" or tensor.layout != torch.strided:
            return None
        return tensor.untyped_storage().data_ptr()
    except Exception:
        # A tensor of a subclass that wraps other tensors and has no storage.
        return None


def _classes(torch):
    """Names and tensors, from the surest to the least."""
    tensors, modules, optimizers = [], [], []
    for thing in gc.get_objects():
        kind = type(thing)
        try:
            if issubclass(kind, torch.Tensor):
                tensors.append(thing)
            elif issubclass(kind, torch.nn.Module):
                modules.append(thing)
            elif issubclass(kind, torch.optim.Optimizer):
                optimizers.append(thing)
        except TypeError:
            # A class whose own class forbids the question.
            continue
    parameters = [tensor for tensor in tensors if issubclass(type(tensor), torch.nn.Parameter)]
    parameters += [tensor for module in modules for tensor in _values(module, "_parameters")]
    parameters += _tensors(torch, [group.get("params") for optimizer in optimizers for group in optimizer.param_groups])
    buffers = [tensor for module in modules for tensor in _values(module, "_buffers")]
    states = _tensors(torch, [value for optimizer in optimizers for value in optimizer.state.values()])
    return [
        ("parameters", _local(parameters)),
        ("gradients", _local(_gradients(tensors))),
        ("optimizer states", _local(states)),
        ("buffers", _local(buffers)),
        ("other tensors of the program", tensors),
    ]


def _values(module, name):
    """Tensors in a dictionary of a module, which a class may lack before its `__init__`."""
    return [value for value in module.__dict__.get(name, {}).values() if value is not None]


def _gradients(tensors):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]


def _tensors(torch, value):
    """All tensors in nested lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return _tensors(torch, list(value.values()))
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(torch, item)]
    return []


def _local(tensors):
    """The part of a distributed tensor that lies on this device."""
    return [getattr(tensor, "_local_tensor", tensor) for tensor in tensors]
