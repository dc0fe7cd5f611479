"""Tests of the search for keepers, with objects in the place of tensors: `python keepers.py FOLDER`."""

import importlib.util
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
from blockyard_keepers import put_lines, search as keepers


class Tensor:
    """A tensor with a block of its own; `graph` are the blocks that its graph keeps."""

    count = 0

    def __init__(self, *graph):
        Tensor.count += 1
        self.block, self.graph = Tensor.count, graph


def block_of(value):
    return value.block if isinstance(value, Tensor) else None


def found(module, frames=()):
    """The keepers of at least four blocks: name, function, kind, blocks, blocks of graphs, lines that put."""
    roots = [keepers.Root(name, value, module.__file__) for name, value in list(vars(module).items())]
    for frame in frames:
        code = frame.f_code
        roots += [keepers.Root(name, value, code.co_filename, code) for name, value in keepers.variables(frame)]
    seen = set()

    def graph_of(value):
        blocks = set(getattr(value, "graph", ())) - seen
        seen.update(blocks)
        return blocks

    rows = []
    for keeper in keepers.find(roots, block_of, graph_of):
        if len(keeper.blocks) + len(keeper.of_graphs) >= 4:
            lines = [f"{line.line} {line.action}" for line in put_lines.put_lines(keeper, roots)]
            counts = (len(keeper.blocks), len(keeper.of_graphs))
            rows.append((*keeper.name(), keeper.kind(), *counts, lines))
    return rows


def made(source):
    """A module of this source, which is kept in a file."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    module.Tensor = Tensor
    sys.modules["program"] = module
    spec.loader.exec_module(module)
    return module


def check(source, *expected):
    module = made(source)
    rows = found(module)
    assert rows == list(expected), f"{source}\n{rows}\n{list(expected)}"


LOOP = "for number in range(6):\n"

check("kept = []\n" + LOOP + "    value = Tensor()\n    kept.append(value)\n", ("kept", None, "list", 6, 0, ["4 appends"]))
check("kept = {}\n" + LOOP + "    kept[number] = Tensor()\n", ("kept", None, "dict", 6, 0, ["3 assigns"]))
check(
    "import collections\nkept = collections.deque()\ndef add(value):\n    kept.append(value)\n"
    + LOOP
    + "    add((number, Tensor()))\n",
    ("kept", None, "deque", 6, 0, ["4 appends"]),
)
# Containers in containers: the one that grows.
check(
    "import collections\nkept = collections.defaultdict(list)\n" + LOOP + "    kept['loss'].append(Tensor())\n",
    ("kept['loss']", None, "list", 6, 0, ["4 appends"]),
)
check(
    "kept = {}\n" + LOOP + "    kept.setdefault(number, []).append(Tensor())\n",
    ("kept", None, "dict", 6, 0, ["3 appends"]),
)
# Attributes, with `self` and without, and slots.
METER = "class Meter:\n    {}\n    def __init__(self):\n        self.values = []\n    def add(self, value):\n        self.values.append(value)\n"
for fields in ("pass", "__slots__ = ('values',)"):
    check(
        METER.format(fields) + "meter = Meter()\n" + LOOP + "    meter.add(Tensor())\n",
        ("meter.values", None, "list", 6, 0, ["6 appends"]),
    )
check(
    METER.format("pass") + "meters = {'a': Meter()}\n" + LOOP + "    meters['a'].values += [Tensor()]\n",
    ("meters['a'].values", None, "list", 6, 0, ["6 appends", "9 adds"]),
)
# A closure, whose outer function has ended; a cache; a method that somebody has.
check(
    "def watch():\n    kept = []\n    def hook(value):\n        kept.append(value)\n    return hook\nhook = watch()\n"
    + LOOP
    + "    hook(Tensor())\n",
    ("kept", "watch", "list", 6, 0, ["4 appends"]),
)
check(
    "import functools\n@functools.lru_cache\ndef features(number):\n    return Tensor()\n" + LOOP + "    features(number)\n",
    ("features", None, "attribute", 6, 0, []),
)
check(
    METER.format("pass") + "add = Meter().add\n" + LOOP + "    add(Tensor())\n",
    ("add.method.values", None, "list", 6, 0, ["6 appends"]),
)
# A sum whose graph keeps all, and a list whose tensors' graphs keep more.
check(
    "total = None\nblocks = ()\n" + LOOP + "    blocks += (100 + number,)\n    total = total and Tensor(*blocks) or Tensor(*blocks)\n",
    ("total", None, "graph", 1, 6, ["5 adds up"]),
)
check(
    "kept = []\n" + LOOP + "    kept.append(Tensor(100 + number, 200 + number))\n",
    ("kept", None, "list", 6, 12, ["3 appends"]),
)
# More lines than three can have put, so that none is named; another variable of this name is another.
check(
    "kept = []\n" + LOOP + "    kept.append(Tensor())\n" + "if len(kept) < 3:\n    kept.append(1)\n" * 3,
    ("kept", None, "list", 6, 0, []),
)
check(
    "kept = []\n" + LOOP + "    kept.append(Tensor())\ndef other():\n    kept = []\n    kept.append(1)\ndef third(kept):\n    kept.append(1)\n",
    ("kept", None, "list", 6, 0, ["3 appends"]),
)
# The variable of the last iteration does not take an element from the list; a few fields are no container.
check("value = None\nkept = []\n" + LOOP + "    value = Tensor()\n    kept.append(value)\n", ("kept", None, "list", 6, 0, ["5 appends"]))
check("pair = (Tensor(), Tensor())\n")

# Local variables of a function that runs, whose frame keeps nothing that the function gives up.
module = made(
    "import sys\ndef main(look):\n    kept = []\n    for number in range(6):\n        kept.append(Tensor())\n"
    "    rows = look(sys._getframe())\n    del kept\n    return rows, look.count()\n"
)


class Look:
    def __call__(self, frame):
        return found(module, [frame])

    def count(self):
        import gc

        return sum(isinstance(one, Tensor) for one in gc.get_objects())


rows = module.main(Look())
assert rows[0] == [("kept", "main", "list", 6, 0, ["5 appends"])], rows
assert rows[1] == Look().count(), rows
