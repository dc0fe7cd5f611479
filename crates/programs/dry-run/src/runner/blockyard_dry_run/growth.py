"""Finds who keeps the blocks of a program whose blocks become more and more.

The library for CUDA sees the growth, and asks for a search at each doubling of the count of allocations. A program whose
blocks do not grow is never searched.
"""

import functools
import json
import os
import sys

from blockyard_keepers import growth, search

from blockyard_dry_run import places, values

# The most requests that ran out of memory after which keepers are searched.
_MAX_OOMS = 3


class Growth(growth.Growth):
    """The keepers of PyTorch's own tensors."""

    def __init__(self):
        super().__init__(places.is_library)
        self.process = os.getpid()
        self.library = None
        self.ooms = 0
        # Whether the last search was made where a request ran out of memory.
        self.is_at_oom = False

    def install(self, torch):
        """Begins to wait for growth. PyTorch is loaded."""
        self.library = values.library()
        if self.library is None:
            return
        import ctypes

        self.library.blockyard_growth_watch.argtypes = [ctypes.py_object]
        self.library.blockyard_growth_blocks.restype = ctypes.c_char_p
        self.library.blockyard_growth_watch(self.search)
        torch.cuda._lazy_call(lambda: torch._C._cuda_attach_out_of_memory_observer(self.on_oom))

    def is_seen(self):
        return self.library is not None and os.getpid() == self.process and bool(self.library.blockyard_growth_seen())

    def on_oom(self, *_request):
        """Searches once a request has run out of memory. PyTorch's allocator holds no lock then."""
        self.ooms += 1
        if self.ooms <= _MAX_OOMS and self.is_seen():
            self.search()
            self.is_at_oom = True

    def finish(self, error, exception):
        """The keepers for the report, by the last search of each.

        `error` is the name of the exception that ended the program.
        """
        if self.is_seen() and not (self.is_at_oom and error == "OutOfMemoryError"):
            self.search(exception)
        return self.report()

    def search(self, exception=None):
        self.is_at_oom = False
        super().search(exception)

    def live_blocks(self):
        return json.loads(self.library.blockyard_growth_blocks())

    def find(self, roots, blocks):
        torch = sys.modules["torch"]
        graphs = _Graphs(torch, blocks)
        with torch._C.DisableTorchFunction():
            return search.find(roots, lambda value: _block(torch, value, blocks), graphs.blocks)


def _block(torch, value, blocks):
    """The address of a tensor's block; False for a tensor without one, None for another object."""
    try:
        if not issubclass(type(value), torch.Tensor):
            return None
        if value.device.type != "cuda" or value.layout != torch.strided:
            return False
        address = value.untyped_storage().data_ptr()
    except Exception:
        # A class whose own class forbids the question, or a tensor of a subclass that has no storage.
        return None
    return address if address in blocks else False


class _Graphs(growth.Graphs):
    def __init__(self, torch, blocks):
        super().__init__()
        self.torch, self.known = torch, blocks

    def node(self, tensor):
        return getattr(tensor, "grad_fn", None)

    def parts(self, node):
        return self._saved(node), [following for following, _ in node.next_functions]

    def _saved(self, node):
        """The blocks that a node saved. No hook is called: what a hook packed is looked at as it is."""
        for name in _saved_names(type(node)):
            try:
                saved = getattr(node, name)
            except RuntimeError:
                # It was freed by backward.
                continue
            for value in saved if isinstance(saved, (tuple, list)) else (saved,):
                block = _block(self.torch, getattr(value, "data", None), self.known)
                if block:
                    yield block


@functools.cache
def _saved_names(kind):
    return [name for name in dir(kind) if name.startswith("_raw_saved_")]
