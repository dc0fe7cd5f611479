"""Why memory is alive: the names of the program that lead to it, and the nodes of the backward graph that saved it.

The search goes breadth first from the program's names and from those of the calls that run, so that the shortest name of each
tensor is found first. It is made at one step, just before the next step begins: by then, the objects that a line made have
their names.

The search runs no code of the program and keeps nothing: it remembers objects by their addresses.
"""

import collections
import contextlib
import gc
import sys
import types

import _host
import _torch

# The most reasons that are kept for each block.
_MAX_REASONS = 4
# The flag of code whose variables are not a dictionary.
_OPTIMIZED = 1
_FRAMES = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
_fields_of_class = type.__dict__["__dict__"].__get__

# A reason in words. `kind` is "name" where names of the program lead to the memory, and "saved" where a node saved it in the
# backward graph of `graph_of`.
Reason = collections.namedtuple("Reason", "text kind graph_of", defaults=(None, None))

_VALUE = Reason("a value of the line that runs, without a name")
_CYCLE = Reason("a cycle of Python references that nothing else holds, until the garbage collector runs")
_AUTOCAST = Reason("the cache of torch.autocast, until its outermost block ends")


class _Name(collections.namedtuple("_Name", "text place")):
    """An expression that leads to an object, and the function in which the expression is valid."""

    def then(self, more):
        return _Name(self.text + more, self.place)

    def __str__(self):
        return self.text + self.place


class _Search:
    """A search in progress."""

    def __init__(self, program):
        self._program = program
        # What was found and not looked through yet: the function that looks, the object or node, its shortest name.
        self._queue = collections.deque()
        # The addresses of the objects and of the nodes that were found.
        self._objects, self._nodes = set(), set()
        # The shortest name of each tensor that was found, by the tensor's identity.
        self._names = {}
        # The reason of all tensors that are found from now on, in place of a name.
        self._nameless = None
        # The reasons so far, by the block's number.
        self.reasons = {}

    def run(self):
        while self._queue:
            visit, found, name = self._queue.popleft()
            visit(found, name)

    def add_globals(self, names):
        if id(names) in self._objects:
            return
        self._objects.add(id(names))
        for key, value in dict.items(names):
            if issubclass(type(key), str) and not key.startswith("__"):
                self._arrive(value, _Name(key, ""))

    def add_exception(self, error):
        """The names of the calls that an exception ended."""
        entry = error.__traceback__ if error is not None else None
        while entry is not None:
            if self._program.is_own(entry.tb_frame.f_code.co_filename):
                self._add_frame(entry.tb_frame, True)
            entry = entry.tb_next

    def add_calls(self):
        """The names of the calls that run, the program's own first."""
        calls = _calls()
        for is_own in (True, False):
            for frame in calls:
                if self._program.is_own(frame.f_code.co_filename) == is_own:
                    if is_own:
                        self.add_globals(frame.f_globals)
                    self._add_frame(frame, is_own)

    def _add_frame(self, frame, is_own):
        names, code = frame.f_locals, frame.f_code
        if names is frame.f_globals:
            return
        owner = "" if is_own else "PyTorch's "
        # The variables of a comprehension of the module are not in the module.
        place = "" if code.co_name == "<module>" else f" in {owner}{getattr(code, 'co_qualname', code.co_name)}"
        for name, value in names.items():
            self._arrive(value, _Name(name, place))
        # Before Python 3.13, they are a copy that the frame keeps, unless the program itself asked for it.
        if type(names) is dict and code.co_flags & _OPTIMIZED and sys.getrefcount(names) == 3:
            names.clear()

    def add_unnamed(self):
        """Tensors that no name leads to: Python works with them, or only a cycle of references holds them."""
        objects = gc.get_objects()
        dead = _unreachable(objects)
        for reason, name in ((_VALUE, "a value of the line that runs"), (_CYCLE, "a cycle of references")):
            self._nameless = reason
            for found in objects:
                if issubclass(type(found), _torch.TensorBase) and (id(found) in dead) == (reason is _CYCLE):
                    # A tensor of a backward graph keeps its object: references of `objects`, `found`, the call and the tensor.
                    if _host.is_held_without_object(found) and sys.getrefcount(found) <= 4:
                        continue
                    identity = _host.tensor_identity(found)
                    if identity is not None and identity[0] not in self._names:
                        self._arrive(found, _Name(name, ""))
            self.run()
        self._nameless = None

    def add_library(self):
        """Memory that no object of Python holds."""
        for number in _host.autocast_blocks():
            self._add(number, _AUTOCAST)
        for number, library in _host.library_blocks():
            self.reasons.setdefault(number, []).append(Reason(f"{library} keeps it until the process ends"))

    def _add(self, number, reason):
        if number is not None:
            reasons = self.reasons.setdefault(number, [])
            if len(reasons) < _MAX_REASONS and reason not in reasons:
                reasons.append(reason)

    def _arrive(self, found, name):
        # What the garbage collector does not look at leads to no tensor.
        if not gc.is_tracked(found):
            return
        kind = type(found)
        if issubclass(kind, _torch.TensorBase):
            self._arrive_tensor(found, name)
        elif kind is _torch.Node:
            # The program has an object of `lib/torch` around the node.
            self._arrive_node(found, _Name(name.text.removesuffix("._node"), name.place))
        if id(found) not in self._objects and self._is_searched(found, kind):
            self._objects.add(id(found))
            self._queue.append((self._visit, found, name))

    def _is_searched(self, found, kind):
        """Of modules and classes, the program's own alone."""
        if issubclass(kind, type):
            module = _fields(found, kind).get("__module__")
            found = sys.modules.get(module) if type(module) is str else None
        elif not issubclass(kind, types.ModuleType):
            return kind is not types.CodeType
        file = _fields(found, type(found)).get("__file__")
        return type(file) is str and self._program.is_own(file)

    def _arrive_tensor(self, tensor, name):
        found = _host.tensor_identity(tensor)
        if found is None:
            return
        identity, number = found
        self._add(number, self._nameless or Reason(str(name), "name"))
        if identity not in self._names:
            self._names[identity] = name
            self._queue.append((self._visit_tensor, tensor, name))

    def _visit_tensor(self, tensor, name):
        grad, node = _host.tensor_parts(tensor)
        if grad is not None:
            self._arrive_tensor(grad, name.then(".grad"))
        if node is not None:
            self._arrive_node(node, name)

    def _arrive_node(self, node, graph_of):
        identity = _host.node_identity(node)
        if identity not in self._nodes:
            self._nodes.add(identity)
            self._queue.append((self._visit_node, node, graph_of))

    def _visit_node(self, node, graph_of):
        parts = _host.node_parts(node)
        node, graph = parts["name"], f"the backward graph of {graph_of}"
        for member, number, packed in parts["saved"]:
            if packed is not None:
                text = f"the value that a hook packed for {node} in the backward graph"
                self._arrive(packed, _Name(text, f" of {graph_of}"))
            else:
                as_member = f" as {member}" if member else ""
                self._add(number, Reason(f"saved{as_member} by {node}, in {graph}", "saved", str(graph_of)))
        self._add(parts["leaf"], Reason(f"a leaf of {graph}"))
        if parts["context"] is not None:
            # The attributes of a `torch.autograd.Function`'s context may be tensors.
            self._arrive(parts["context"], _Name("ctx", f" of {node}, in {graph}"))
        for edge in parts["edges"]:
            self._arrive_node(edge, graph_of)

    def _visit(self, found, name):
        kind = type(found)
        if kind is types.FunctionType:
            return self._visit_closure(found, name)
        frame = found if kind is types.FrameType else getattr(found, _FRAMES[kind]) if kind in _FRAMES else None
        if frame is not None:
            return self._add_frame(frame, True)
        fields = _fields(found, kind)
        self._visit_fields(fields, name)
        if issubclass(kind, dict):
            self._visit_entries(found, name)
        elif issubclass(kind, (list, tuple)):
            items = list.__iter__(found) if issubclass(kind, list) else tuple.__iter__(found)
            for index, child in enumerate(items):
                if gc.is_tracked(child):
                    self._arrive(child, name.then(f"[{index}]"))
        elif not issubclass(kind, (type, types.ModuleType)):
            named = {id(fields), *map(id, fields.values())}
            for child in gc.get_referents(found):
                if id(child) not in named:
                    self._arrive(child, name)

    def _visit_fields(self, fields, name):
        """The attributes of an instance; those of `nn.Module` in the way in which programs write them."""
        for key, value in fields.items():
            # Each module has the dictionary `__builtins__`.
            if not gc.is_tracked(value) or not issubclass(type(key), str) or key == "__builtins__":
                continue
            if key in ("_parameters", "_buffers", "_modules") and issubclass(type(value), dict):
                for member, child in dict.items(value):
                    if issubclass(type(member), str):
                        self._arrive(child, name.then(f"[{member}]" if member.isdecimal() else f".{member}"))
            else:
                self._arrive(value, name.then(f".{key}"))

    def _visit_entries(self, entries, name):
        for key, value in dict.items(entries):
            if not gc.is_tracked(value):
                continue
            if issubclass(type(key), str):
                shown = f"'{str.__str__(key)}'"
            elif issubclass(type(key), int):
                shown = int.__repr__(key)
            else:
                # A dictionary by tensors: an optimizer's state.
                identity = _host.tensor_identity(key) if issubclass(type(key), _torch.TensorBase) else None
                known = self._names.get(identity[0]) if identity is not None else None
                shown = known.text if known is not None else "..."
            self._arrive(value, name.then(f"[{shown}]"))

    def _visit_closure(self, function, name):
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            for value in gc.get_referents(cell):
                self._arrive(value, _Name(variable, f" in the closure of {name}"))


def _fields(found, kind):
    """The attributes of an object, without asking its class."""
    if issubclass(kind, type):
        return _fields_of_class(found)
    try:
        fields = object.__getattribute__(found, "__dict__")
    except AttributeError:
        return {}
    return fields if issubclass(type(fields), dict) else {}


def _calls():
    """The frames that run, the innermost first, from the program's main module to the search."""
    calls, frame = [], sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "_run":
        if frame.f_globals.get("__name__") != __name__:
            calls.append(frame)
        frame = frame.f_back
    return calls


def _unreachable(objects):
    """The addresses of the objects that only each other refer to, as the garbage collector finds them: from the number of
    references to each object, those of other objects of the list are taken away."""
    # Nothing but the list refers to the last object, so its count is that of the references of this function.
    objects.append([])
    outer = {id(found): sys.getrefcount(found) for found in objects}
    own = outer[id(objects.pop())]
    for address in outer:
        outer[address] -= own
    for found in objects:
        for other in gc.get_referents(found):
            if id(other) in outer:
                outer[id(other)] -= 1
    alive = [found for found in objects if outer[id(found)] > 0]
    while alive:
        for other in gc.get_referents(alive.pop()):
            if outer.get(id(other), 1) <= 0:
                outer[id(other)] = 1
                alive.append(other)
    return {address for address, count in outer.items() if count <= 0}


@contextlib.contextmanager
def _without_collector():
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _reasons_at_end(program, main, error):
    with _without_collector():
        search = _Search(program)
        search.add_globals(main.__dict__)
        search.add_exception(error)
        search.run()
        return search.reasons


def cause(program, main, error):
    """The line and the text of a remark, where a list is the cause that the program ran out of memory; else `None`."""
    import torch
    from _kept_graphs import describe

    if not isinstance(error, torch.OutOfMemoryError):
        return None
    return describe(_reasons_at_end(program, main, error), program.file)


def names_at_end(program, main, error):
    """The shortest name that the program has at its end for each block of the first GPU, by the block's number. A block that
    only a backward graph keeps has no name."""
    names = {}
    if _host.is_recorded():
        for number, reasons in _reasons_at_end(program, main, error).items():
            for reason in reasons:
                if reason.kind == "name":
                    names.setdefault(number, reason.text)
    return names


# The step at which somebody asks, and the function that gets the reasons; `None` after the function was called.
_request = None


def report_at(program, step, report):
    """Calls `report` with the step and why memory is alive then, by the block's number, once the recording has this many
    steps."""
    global _request

    def look(is_free):
        search = _Search(program)
        search.add_calls()
        _report(search, is_free)

    _request = step, report
    _host.call_before_step(step, look)


def report_at_end(program, main, error):
    """Reports at the program's end, if the step has not come before."""
    search = _Search(program)
    search.add_globals(main.__dict__)
    search.add_exception(error)
    _report(search, False)


def _report(search, is_free):
    global _request
    if _request is None:
        return
    (step, report), _request = _request, None
    with _without_collector():
        search.run()
        # While memory is freed, an object may be on its way out.
        if not is_free:
            search.add_unnamed()
        search.add_library()
    report(step, {number: [reason.text for reason in reasons] for number, reasons in search.reasons.items()})
