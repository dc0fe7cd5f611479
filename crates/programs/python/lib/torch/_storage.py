"""The storage and the backward function of a tensor, as Python's objects."""

import functools


class GradFn:
    """A node of the backward graph; while a program holds a node, the graph that the node leads to is alive."""

    def __init__(self, node):
        self._node = node

    def name(self):
        name = self._node.name()
        return "torch::autograd::" + name if name == "AccumulateGrad" else name

    def _sequence_nr(self):
        return self._node.sequence()

    @property
    def next_functions(self):
        return tuple((None, 0) if edge is None else (_function_of(edge[0]), edge[1]) for edge in self._node.edges())

    def __eq__(self, other):
        return (
            isinstance(other, GradFn)
            and self._node.sequence() == other._node.sequence()
            and self.name() == other.name()
        )

    def __hash__(self):
        return hash((self._node.sequence(), self.name()))

    def __getattr__(self, name):
        if name.startswith("_saved_"):
            return getattr(self._node, name)
        raise AttributeError(
            f"{name} of a node of the backward graph is not modeled here: its name, next_functions, saved tensors and hooks of "
            "tensors are"
        )

    def __repr__(self):
        return f"<{self._node.name()} object at {id(self):#x}>"


@functools.cache
def _class_of(name):
    """The class of the nodes of this name, which programs print."""
    return type(name, (GradFn,), {"__module__": "builtins"})


def _function_of(node):
    """The object of a node: the context of a `torch.autograd.Function`, which keeps no node, or a `GradFn`."""
    context = node.context()
    return _class_of(node.name())(node) if context is None else context


class UntypedStorage:
    def __init__(self, tensor):
        self._tensor = tensor

    def nbytes(self):
        return self._tensor._storage_bytes()

    size = __len__ = nbytes

    def data_ptr(self):
        return self._tensor._storage_ptr()

    def resize_(self, size):
        self._tensor._resize_storage(size)
        return self

    @property
    def device(self):
        return self._tensor.device

    is_cuda = property(lambda self: self._tensor.is_cuda)
