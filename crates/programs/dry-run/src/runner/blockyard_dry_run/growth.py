"""Finds who keeps the blocks of a program whose blocks become more and more.

The library for CUDA sees the growth, and asks for a search at each doubling of the count of allocations. A program whose
blocks do not grow is never searched.
"""

import functools
import gc
import json
import os
import sys
import threading

from blockyard_dry_run import keepers, places, put_lines, values

# The most requests that ran out of memory after which keepers are searched.
_MOST_OOMS = 3
# The most functions at whose end keepers are searched.
_MOST_RETURNS = 8
# The most nodes of graphs that one search looks at.
_MOST_NODES = 500_000
# Fewer blocks than this are no growth.
_FEWEST_BLOCKS = 4


class Growth:
    """The keepers that the last search found."""

    def __init__(self):
        self.process = os.getpid()
        self.library = None
        self.found = []
        self.ooms = self.returns = 0
        # Whether the last search was made where a request ran out of memory.
        self.is_at_oom = False
        self.tool = None

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
        if self.ooms <= _MOST_OOMS and self.is_seen():
            self.search()
            self.is_at_oom = True

    def finish(self, error, exception):
        """The keepers for the report, by the last search of each.

        `error` is the name of the exception that ended the program.
        """
        if self.is_seen() and not (self.is_at_oom and error == "OutOfMemoryError"):
            self.search(exception)
        return self.found

    def search(self, exception=None):
        """Finds the keepers as the program is now. A fault here must not reach the program."""
        collects = gc.isenabled()
        gc.disable()
        try:
            self._search(exception)
        except Exception as fault:
            if os.environ.get("STANDIN_DEBUG"):
                print(f"keepers were not found: {fault!r}", file=sys.stderr)
        finally:
            if collects:
                gc.enable()

    def _search(self, exception):
        self.is_at_oom = False
        torch = sys.modules["torch"]
        told = json.loads(self.library.blockyard_growth_blocks())
        blocks = {block[0]: block[1:] for block in told["blocks"]}
        frames = _frames(exception)
        roots = [*_globals(), *_locals(frames)]
        graphs = _Graphs(torch, blocks)
        with torch._C.DisableTorchFunction():
            found = keepers.find(roots, lambda value: _block(torch, value, blocks), graphs.blocks)
        here = {frame.f_code for frame in frames}
        # The variables of a function that has ended are as they were at the last search before its end.
        self.found = [row for row in self.found if row["code"] is not None and row["code"] not in here]
        for keeper in found:
            if len(keeper.blocks) + len(keeper.of_graphs) < _FEWEST_BLOCKS:
                continue
            row = _row(keeper, roots, blocks, told)
            self.found.append(row)
            if row["code"] is not None and exception is None and _is_spread(row, told):
                self._watch_end(row["code"])

    def _watch_end(self, code):
        """Searches once more where a function that keeps blocks ends: after that its variables do not exist any more."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None or self.returns >= _MOST_RETURNS:
            return
        if self.tool is None:
            self.tool = next((tool for tool in (4, 3) if monitoring.get_tool(tool) is None), None)
            if self.tool is None:
                return
            monitoring.use_tool_id(self.tool, "blockyard")
            monitoring.register_callback(self.tool, monitoring.events.PY_RETURN, self._on_return)
        if not monitoring.get_local_events(self.tool, code):
            monitoring.set_local_events(self.tool, code, monitoring.events.PY_RETURN)

    def _on_return(self, code, _offset, _value):
        self.returns += 1
        sys.monitoring.set_local_events(self.tool, code, 0)
        if self.is_seen() and threading.get_ident() == threading.main_thread().ident:
            self.search()


def _frames(exception):
    """The frames of the program's own functions: those in which an exception was raised, and those that run.

    A frame of the search itself must not be kept: its variables would live until the next garbage collection, with
    tensors of the program.
    """
    found = []
    trace = getattr(exception, "__traceback__", None)
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    # The search may interrupt the main thread anywhere: it takes no lock of Python's library.
    for ident in list(sys._current_frames()):
        running = []
        frame = sys._getframe(1) if ident == threading.get_ident() else sys._current_frames().get(ident)
        while frame is not None:
            if not places.is_library(frame.f_code.co_filename):
                running.append(frame)
            frame = frame.f_back
        found += reversed(running)
    return [
        frame
        for place, frame in enumerate(found)
        if frame not in found[:place] and not places.is_library(frame.f_code.co_filename)
    ]


def _globals():
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not places.is_library(file):
            for name, value in list(vars(module).items()):
                yield keepers.Root(name, value, file)


def _locals(frames):
    for frame in frames:
        code = frame.f_code
        # Code of a module has no local variables of its own.
        if code.co_flags & 1:
            is_in_call = _is_in_module_call(frame)
            for name, value in keepers.variables(frame):
                yield keepers.Root(name, value, code.co_filename, code, is_in_call)


def _is_in_module_call(frame):
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_call_impl" and code.co_filename.endswith("torch/nn/modules/module.py"):
            return True
        frame = frame.f_back
    return False


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


class _Graphs:
    """The blocks that the graphs of tensors keep for backward. A node of a graph is looked at once."""

    def __init__(self, torch, blocks):
        self.torch, self.known = torch, blocks
        self.seen = set()
        # The objects of nodes stay, so that no other has the number of one.
        self.kept = []

    def blocks(self, tensor):
        found, nodes = set(), [getattr(tensor, "grad_fn", None)]
        while nodes and len(self.kept) < _MOST_NODES:
            node = nodes.pop()
            if node is None or id(node) in self.seen:
                continue
            self.seen.add(id(node))
            self.kept.append(node)
            found.update(self._saved(node))
            nodes += [following for following, _ in node.next_functions]
        return found

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


def _row(keeper, roots, blocks, told):
    """A keeper for the report: `blocks` are `[device, number, bytes, line, whether a graph keeps it]` each."""
    name, function = keeper.name()
    root = keeper.node.root
    rows = [(block, False) for block in keeper.blocks] + [(block, True) for block in keeper.of_graphs]
    return {
        "name": name,
        "function": function,
        "kind": keeper.kind(),
        "code": root.function,
        "is_in_module_call": root.is_in_module_call,
        "put_at": [line._asdict() for line in put_lines.put_lines(keeper, roots)],
        "blocks": [[*(blocks[block][place] for place in (1, 2, 0, 3)), is_graph] for block, is_graph in rows],
        "lines": told["lines"],
        "made": told["made"],
    }


def _is_spread(row, told):
    """Whether the blocks were made over most of the time since the first of them, and not at once."""
    for device, made in told["made"]:
        numbers = [number for on, number, *_ in row["blocks"] if on == device]
        if len(numbers) >= _FEWEST_BLOCKS:
            first = min(numbers)
            parts = {(number - first) * 8 // max(made - first, 1) for number in numbers}
            if len(parts) > 4:
                return True
    return False


def for_report(found):
    """The rows without what only this process needs. Rows of one search share their lines."""
    lines = {}
    rows = []
    for row in found:
        places_of = [lines.setdefault((line["file"], line["line"]), len(lines) + 1) for line in row["lines"]]
        blocks = [[*block[:3], places_of[block[3] - 1] if block[3] else 0, block[4]] for block in row["blocks"]]
        counts = dict(row["made"])
        made = [counts.get(device, 0) for device in range(max(counts, default=-1) + 1)]
        kept = ("name", "function", "kind", "is_in_module_call", "put_at")
        rows.append({**{key: row[key] for key in kept}, "blocks": blocks, "made": made})
    return {"rows": rows, "lines": [{"file": file, "line": line} for file, line in lines]}
