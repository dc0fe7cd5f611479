"""Who keeps the blocks of a program whose blocks become more and more: the search of `blockyard_keepers`, over our tensors."""

import json

import _host
import _torch
from blockyard_keepers import growth, search


class Growth(growth.Growth):
    """The keepers of our tensors."""

    def __init__(self, program):
        super().__init__(lambda file: not program.is_own(file))

    def is_seen(self):
        return _host.is_growing()

    def live_blocks(self):
        return _host.live_blocks()

    def find(self, roots, blocks):
        return search.find(roots, _block, _Graphs().blocks)

    def text(self, error):
        """The keepers as JSON, while the program still holds what it holds at its end; empty where nothing grows."""
        _host.watch_growth(None)
        self.close()
        if not self.is_seen():
            return ""
        self.search(error)
        if not self.found:
            return ""
        return json.dumps({**self.report(), "iteration_ends": _host.iteration_ends()})


def begin(program):
    """Begins to wait for growth; returns the object that has the keepers at the end."""
    found = Growth(program)
    _host.watch_growth(found.search)
    return found


def _block(value):
    """The key of a tensor's block; False for a tensor without one, None for another object."""
    if not issubclass(type(value), _torch.TensorBase):
        return None
    return _host.block_key(value) or False


class _Graphs(growth.Graphs):
    def node(self, tensor):
        return _host.tensor_parts(tensor)[1]

    def parts(self, node):
        return _host.kept_by_node(node)

    def identity(self, node):
        return _host.node_identity(node)
