"""`torch.autograd`."""

import _torch_autograd as _native
from torch._modes import no_grad, enable_grad, inference_mode, set_grad_enabled
from torch.autograd.function import Function
from torch.autograd import graph, function, functional
from torch.autograd import profiler
from torch import _modes
from torch._aliases import alias as _alias

_alias(__name__, ("grad_mode",), _modes)


def _tensors(value):
    from torch import Tensor

    return [value] if isinstance(value, Tensor) else list(value)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    tensors = _tensors(tensors)
    grads = [None] * len(tensors) if grad_tensors is None else _tensors(grad_tensors)
    # A variable of this function, which the traceback of an exception keeps.
    grads = _native.root_gradients(tensors, grads)
    keep = create_graph if retain_graph is None else retain_graph
    _native.backward(tensors, grads, keep, create_graph, [] if inputs is None else _tensors(inputs))


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    outputs, inputs = _tensors(outputs), _tensors(inputs)
    grads = [None] * len(outputs) if grad_outputs is None else _tensors(grad_outputs)
    grads = _native.root_gradients(outputs, grads)
    keep = create_graph if retain_graph is None else retain_graph
    return _native.grad(outputs, inputs, grads, keep, create_graph, bool(allow_unused) or materialize_grads)


class set_detect_anomaly:
    def __init__(self, mode=True, check_nan=True):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        pass


detect_anomaly = set_detect_anomaly


def Variable(data, requires_grad=False):
    return data.requires_grad_(requires_grad) if requires_grad else data


def gradcheck(func, inputs, **options):
    """Compares values, which are not computed here: whether the check passes is not known."""
    import torch

    torch._torch_memory.note_estimate("gradcheck", "it is not run here, and its tensors are not counted")
    return torch._unknown.UnknownComparison()


gradgradcheck = gradcheck

set_multithreading_enabled = _modes.set_multithreading_enabled


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.autograd", name)
