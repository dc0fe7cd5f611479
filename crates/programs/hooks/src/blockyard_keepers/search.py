"""Who keeps blocks of memory: the variables, containers and attributes of the program that lead to tensors.

Nothing here needs PyTorch: the caller says what a tensor is, and which blocks it and its graph have.
"""

import collections
import functools
import gc
import sys
import types

_LISTS = (list, tuple, set, frozenset, collections.deque)
_GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
# A container keeps a tensor for each of its elements; fewer elements are fields.
_MIN_ELEMENTS = 3
# The most objects that are looked at: a program with more has its keepers found in part.
_MAX_OBJECTS = 2_000_000
_MAX_SHOWN = 24

# How a value is found in the object that has it, and the name of its place there.
Edge = collections.namedtuple("Edge", "kind label")


class Root:
    """A variable of the program. `function` is the code of the function whose local variable it is, else None."""

    def __init__(self, name, value, file, function=None, is_in_module_call=False):
        self.name, self.value, self.file, self.function = name, value, file, function
        # Whether the function runs inside of a call of a `torch.nn.Module`.
        self.is_in_module_call = is_in_module_call

    @property
    def edge(self):
        return Edge("global" if self.function is None else "local", self.name)


class Node:
    """An object, and how it was reached."""

    __slots__ = ("value", "parent", "edge", "root")

    def __init__(self, value, parent, edge, root):
        self.value, self.parent, self.edge, self.root = value, parent, edge, root

    def path(self):
        """The nodes from the variable to this one."""
        nodes = []
        node = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


class Keeper:
    """An object that keeps blocks; `of_graphs` are those that the graphs of its tensors keep for backward."""

    def __init__(self, node, is_container):
        self.node, self.is_container = node, is_container
        self.blocks, self.of_graphs = [], []

    def kind(self):
        if self.is_container:
            value = self.node.value
            names = ((dict, "dict"), (collections.deque, "deque"), ((set, frozenset), "set"), (_LISTS, "list"))
            return next((name for kind, name in names if isinstance(value, kind)), "attribute")
        if len(self.of_graphs) > len(self.blocks):
            return "graph"
        kind = self.node.edge.kind
        return kind if kind in ("local", "global", "closure") else "attribute"

    def name(self):
        """The expression that reaches it, and the function whose variable begins the expression, or None."""
        root = self.node.root
        text, function = root.name, root.function and _qualname(root.function)
        for node in self.node.path()[1:]:
            kind, label = node.edge
            if kind == "closure":
                # The variable is one of the function around it, which has ended.
                text, function = label, node.parent.value.__qualname__.rpartition(".<locals>.")[0] or None
            elif kind == "attribute":
                text += "" if label in ("_modules", "_parameters", "_buffers") else f".{label}"
            elif kind == "item":
                text += f"[{label!r}]" if isinstance(label, (str, int)) and len(repr(label)) < _MAX_SHOWN else "[...]"
        return text, function


def find(roots, blocks_of, graph_of):
    """The keepers of the blocks that the variables `roots` reach.

    `blocks_of(value)` is None for all but a tensor, and the block of a tensor, or False where it has none.
    `graph_of(value)` are the blocks that the graph of a tensor keeps; each graph is given once.
    """
    elements, others = _tensors(roots, blocks_of)
    owners, graphs = {}, {}
    # An element of a container before a variable: the variable has the tensor of the last iteration.
    for node, block in elements + others:
        owners.setdefault(block, node)
    for node, _ in elements + others:
        for block in graph_of(node.value):
            if block not in owners:
                graphs.setdefault(block, node)
    children = collections.defaultdict(set)
    for node in [*owners.values(), *graphs.values()]:
        while node.parent is not None:
            children[id(node.parent)].add(id(node))
            node = node.parent
    keepers = {}
    for found, is_graph in ((owners, False), (graphs, True)):
        for block, node in found.items():
            keeper, is_container = _keeper(node, children)
            entry = keepers.setdefault(id(keeper), Keeper(keeper, is_container))
            (entry.of_graphs if is_graph else entry.blocks).append(block)
    return list(keepers.values())


def _keeper(node, children):
    """The node above with the most elements, or the node itself."""
    best, most = None, _MIN_ELEMENTS - 1
    above = node.parent
    while above is not None:
        count = len(children[id(above)])
        if count > most:
            best, most = above, count
        above = above.parent
    return (node, False) if best is None else (best, True)


def _tensors(roots, blocks_of):
    """Nodes of tensors with their blocks: elements of containers, and others; the nearest to a variable first."""
    nodes, seen, elements, others = [], set(), [], []
    as_element = set()

    def add(value, parent, edge, root):
        block = blocks_of(value)
        if block is None:
            if id(value) not in seen and _leads_on(value):
                seen.add(id(value))
                nodes.append(Node(value, parent, edge, root))
            return
        known = as_element if edge.kind == "item" else seen
        if id(value) not in known:
            known.add(id(value))
            (elements if edge.kind == "item" else others).append((Node(value, parent, edge, root), block))

    for root in roots:
        add(root.value, None, root.edge, root)
    # The list grows meanwhile.
    for node in nodes:
        if len(nodes) > _MAX_OBJECTS:
            break
        for edge, value in _children(node.value):
            add(value, node, edge, node.root)
    return (
        [(node, block) for node, block in elements if block],
        [(node, block) for node, block in others if block],
    )


def _leads_on(value):
    return gc.is_tracked(value) and not isinstance(
        value, (types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType)
    )


def _children(value):
    """What an object has, with no code of the program called."""
    kind = type(value)
    if issubclass(kind, dict):
        for key, item in list(dict.items(value)):
            yield Edge("item", key), item
    elif issubclass(kind, _LISTS):
        base = next(base for base in _LISTS if issubclass(kind, base))
        for place, item in enumerate(list(base.__iter__(value))):
            yield Edge("item", place), item
    elif kind is types.FunctionType:
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                yield Edge("closure", name), cell.cell_contents
            except ValueError:
                # A variable that has no value yet.
                continue
    elif issubclass(kind, type):
        if kind is type:
            for name, item in list(vars(value).items()):
                yield Edge("attribute", name), item
        return
    elif issubclass(kind, _GENERATORS):
        frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None)
        if frame is not None:
            for name, item in variables(frame):
                yield Edge("attribute", name), item
        return
    fields = _fields(value)
    for name, item in fields:
        yield Edge("attribute", name), item
    if not fields and not issubclass(kind, (dict, *_LISTS)) and kind is not types.FunctionType:
        # An object of C: `functools.lru_cache`, `functools.partial`, a method.
        edge = "item" if kind is functools._lru_cache_wrapper else "attribute"
        for place, item in enumerate(gc.get_referents(value)):
            yield Edge(edge, place if edge == "item" else kind.__name__), item
    elif kind is functools._lru_cache_wrapper:
        for place, item in enumerate(gc.get_referents(value)):
            yield Edge("item", place), item


def _fields(value):
    """The attributes that an object has by itself: those of its dictionary and its slots."""
    try:
        found = list(object.__getattribute__(value, "__dict__").items())
    except (AttributeError, TypeError):
        found = []
    for base in type(value).__mro__:
        for name, member in vars(base).items() if "__slots__" in vars(base) else ():
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found.append((name, member.__get__(value)))
                except AttributeError:
                    continue
    return found


def _qualname(code):
    """The name of a function; with its class since Python 3.11."""
    return getattr(code, "co_qualname", code.co_name)


def variables(frame):
    """The local variables of a function's frame. Before Python 3.13, `frame.f_locals` is a copy that keeps the values until
    the function ends."""
    code = frame.f_code
    if (3, 12) <= sys.version_info < (3, 13):
        return _variables_of_312(frame, code.co_varnames + code.co_cellvars)
    names = frame.f_locals
    found = [(name, names[name]) for name in code.co_varnames + code.co_cellvars if name in names]
    # The copy is the frame's alone, unless the program itself asked for it.
    if type(names) is dict and code.co_flags & 1 and sys.getrefcount(names) == 3:
        names.clear()
    return found


if (3, 12) <= sys.version_info < (3, 13):
    # Now, because an import in the middle of a program moves its garbage collections.
    import ctypes


def _variables_of_312(frame, names):
    read = ctypes.pythonapi.PyFrame_GetVar
    read.restype, read.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.py_object)
    found = []
    for name in names:
        try:
            found.append((name, read(frame, name)))
        except NameError:
            continue
    return found
