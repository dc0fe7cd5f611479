"""Hooks around the tensors that operators save."""

import _torch_autograd as _native


class saved_tensors_hooks:
    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _native.push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args):
        _native.pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    def __init__(self, pin_memory=False, device_type="cuda"):
        import torch

        def pack_to_cpu(tensor):
            if not pin_memory:
                return (tensor.device, tensor.cpu())
            packed = torch.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=True)
            packed.copy_(tensor)
            return (tensor.device, packed)

        def unpack_from_cpu(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


class disable_saved_tensors_hooks:
    def __init__(self, error_message):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *args):
        pass


def __getattr__(name):
    if name == "Node":
        from torch._tensor import GradFn

        return GradFn
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.autograd.graph", name)


from collections import namedtuple as _namedtuple

GradientEdge = _namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])


def get_gradient_edge(tensor):
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    if node is None:
        node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return GradientEdge(node, tensor.output_nr)


def increment_version(tensor):
    for each in [tensor] if not isinstance(tensor, (tuple, list)) else tensor:
        each.data.add_(0)


class _Handle:
    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    tensors = [t for t in tensors if t.requires_grad]
    grads, seen = [None] * len(tensors), []

    def hook_of(index):
        def hook(grad):
            if mode == "any":
                if not seen:
                    seen.append(index)
                    fn(grad)
                return
            grads[index] = grad
            seen.append(index)
            if len(seen) == len(tensors):
                given = list(grads)
                grads[:], seen[:] = [None] * len(tensors), []
                fn(given)

        return hook

    return _Handle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


def set_warn_on_accumulate_grad_stream_mismatch(enabled):
    pass
