"""When keepers are searched: at the end, and where a function ends whose variables keep blocks."""

import gc
import os
import sys
import threading

from blockyard_keepers import put_lines, search

# The most functions at whose end keepers are searched.
_MAX_RETURNS = 8
# One search visits at most this many nodes of graphs.
_MAX_NODES = 500_000
# Fewer blocks than this are not a growth.
_MIN_BLOCKS = 4


class Growth:
    """The keepers that the last search found. A subclass knows the tensors.

    `is_library(file)` says whether code of a file is not the program's.
    """

    def __init__(self, is_library):
        self.is_library = is_library
        self.found = []
        self.returns = 0
        self.tool = None

    def is_seen(self):
        """Whether blocks were seen to become more."""
        raise NotImplementedError

    def live_blocks(self):
        """The live blocks: `blocks` are `[key, bytes, device, number, line]` each, where `number` counts the allocations of
        the device before it, and `line` counts from 1 in `lines`, or is 0; `made` are `[device, allocations]` each."""
        raise NotImplementedError

    def find(self, roots, blocks):
        """The keepers of those of the blocks, by key, that the variables `roots` reach."""
        raise NotImplementedError

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
        live = self.live_blocks()
        blocks = {block[0]: block[1:] for block in live["blocks"]}
        frames = self._frames(exception)
        roots = [*self._globals(), *_locals(frames)]
        found = self.find(roots, blocks)
        here = {frame.f_code for frame in frames}
        # The variables of a function that has ended are as they were at the last search before its end.
        self.found = [row for row in self.found if row["code"] is not None and row["code"] not in here]
        for keeper in found:
            if len(keeper.blocks) + len(keeper.of_graphs) < _MIN_BLOCKS:
                continue
            row = _row(keeper, roots, blocks, live)
            self.found.append(row)
            if row["code"] is not None and exception is None and _is_spread(row, live):
                self._watch_end(row["code"])

    def _watch_end(self, code):
        """Searches once more where a function that keeps blocks ends: after that its variables do not exist any more."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None or self.returns >= _MAX_RETURNS:
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

    def close(self):
        """Gives Python's monitoring back, after the program has ended."""
        if self.tool is not None:
            sys.monitoring.free_tool_id(self.tool)
            self.tool = None

    def _frames(self, exception):
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
                if not self.is_library(frame.f_code.co_filename):
                    running.append(frame)
                frame = frame.f_back
            found += reversed(running)
        return [
            frame
            for place, frame in enumerate(found)
            if frame not in found[:place] and not self.is_library(frame.f_code.co_filename)
        ]

    def _globals(self):
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and not self.is_library(file):
                for name, value in list(vars(module).items()):
                    yield search.Root(name, value, file)

    def report(self):
        """The rows without what only this process needs. Rows of one search share their lines."""
        lines = {}
        rows = []
        for row in self.found:
            places_of = [lines.setdefault((line["file"], line["line"]), len(lines) + 1) for line in row["lines"]]
            blocks = [
                [device, number, size, places_of[line - 1] if line else 0, bool(is_graph)]
                for device, number, size, line, is_graph in _blocks(row)
            ]
            kept = ("name", "function", "kind", "is_in_module_call", "put_at")
            rows.append({**{key: row[key] for key in kept}, "blocks": blocks, "made": _by_device(row["made"])})
        return {
            "rows": rows,
            "lines": [{"file": file, "line": line} for file, line in lines],
            "made": _by_device(self.live_blocks()["made"]) if rows else [],
        }


def _by_device(made):
    counts = dict(made)
    return [counts.get(device, 0) for device in range(max(counts, default=-1) + 1)]


def _locals(frames):
    for frame in frames:
        code = frame.f_code
        # The variables of a module are global.
        if code.co_flags & 1:
            is_in_call = _is_in_module_call(frame)
            for name, value in search.variables(frame):
                yield search.Root(name, value, code.co_filename, code, is_in_call)


def _is_in_module_call(frame):
    while frame is not None:
        code = frame.f_code
        files = ("torch/nn/modules/module.py", "torch/nn/module.py")
        if code.co_name == "_call_impl" and code.co_filename.replace("\\", "/").endswith(files):
            return True
        frame = frame.f_back
    return False


class Graphs:
    """The blocks that the graphs of tensors keep for backward. A node of a graph is looked at once.

    A subclass gives the node that made a tensor, what tells a node from others, and the parts of a node.
    """

    def __init__(self):
        self.seen = set()
        # The objects of nodes stay, so that no other has the number of one.
        self.kept = []

    def node(self, tensor):
        """The node that made a tensor, or None."""
        raise NotImplementedError

    def parts(self, node):
        """The blocks that a node saved, and the nodes that follow."""
        raise NotImplementedError

    def identity(self, node):
        return id(node)

    def blocks(self, tensor):
        found, nodes = set(), [self.node(tensor)]
        while nodes and len(self.kept) < _MAX_NODES:
            node = nodes.pop()
            if node is None or self.identity(node) in self.seen:
                continue
            self.seen.add(self.identity(node))
            self.kept.append(node)
            saved, following = self.parts(node)
            found.update(saved)
            nodes += following
        return found


def _row(keeper, roots, blocks, live):
    """A keeper for the report: `blocks` has the device, number, bytes and line of each block, and whether a graph keeps it.

    They are one list of numbers: a row stays while the program runs, and more lists would move its garbage collections.
    """
    name, function = keeper.name()
    root = keeper.node.root
    rows = [(block, False) for block in keeper.blocks] + [(block, True) for block in keeper.of_graphs]
    order = (1, 2, 0, 3)
    return {
        "name": name,
        "function": function,
        "kind": keeper.kind(),
        "code": root.function,
        "is_in_module_call": root.is_in_module_call,
        "put_at": [line._asdict() for line in put_lines.put_lines(keeper, roots)],
        "blocks": [number for block, is_graph in rows for number in (*(blocks[block][at] for at in order), is_graph)],
        "lines": live["lines"],
        "made": live["made"],
    }


def _blocks(row):
    numbers = iter(row["blocks"])
    return zip(*[numbers] * 5)


def _is_spread(row, live):
    """Whether the blocks were made over most of the time since the first of them, and not at once."""
    for device, made in live["made"]:
        numbers = [number for on, number, *_ in _blocks(row) if on == device]
        if len(numbers) >= _MIN_BLOCKS:
            first = min(numbers)
            parts = {(number - first) * 8 // max(made - first, 1) for number in numbers}
            if len(parts) > 4:
                return True
    return False
