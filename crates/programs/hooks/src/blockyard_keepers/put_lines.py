"""The lines of the program that put tensors into a keeper, by the text of the program."""

import ast
import collections
import functools
import linecache
import types

# Methods of containers that add elements, and what the line then does.
_ADDING = {
    **dict.fromkeys(("append", "appendleft", "extend", "extendleft", "insert"), "appends"),
    **dict.fromkeys(("add", "update", "setdefault", "put", "put_nowait", "push"), "adds"),
}
# Methods that give an element.
_GETTING = ("setdefault", "get", "__getitem__")
_MAX_LINES = 3

Line = collections.namedtuple("Line", "file line action")


def put_lines(keeper, roots):
    """The lines that can have put tensors into the keeper; none where more than three can."""
    names = collections.defaultdict(list)
    for root in roots:
        names[id(root.value)].append(root)
    path = keeper.node.path()
    files = {root.file for node in path for root in names[id(node.value)]}
    files |= {file for node in path for file in _files_of_class(node.value)}
    files |= {node.parent.value.__code__.co_filename for node in path if node.edge.kind == "closure"}
    lines = [line for file in files for line in _Search(keeper, names, file).lines()]
    # One line may do two things: `kept.setdefault(key, []).append(value)` appends.
    lines.sort(key=lambda line: line.action == "adds", reverse=True)
    found = set({line[:2]: line for line in lines}.values())
    if any(line.action == "adds up" for line in found):
        found = {line for line in found if line.action == "adds up"}
    return sorted(found) if len(found) <= _MAX_LINES else []


def _class_of(value):
    return value if isinstance(value, type) else type(value)


def _files_of_class(value):
    import sys

    found = []
    for base in _class_of(value).__mro__:
        module = sys.modules.get(base.__module__)
        file = getattr(module, "__file__", None)
        if file and base.__module__ != "builtins":
            found.append(file)
    return found


@functools.cache
def _tree(file):
    # A program in the page is in no file: Python's cache of lines has its text.
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


class _Search:
    """The search in one file: a walk with the classes and functions around each statement."""

    def __init__(self, keeper, names, file):
        self.keeper, self.names, self.file = keeper, names, file

    def lines(self):
        for statement, around in _statements(_tree(self.file), ()):
            for expression, line, action in _puts(statement, self.keeper.is_container):
                if self._is_it(expression, self.keeper.node, around) or self._is_element(expression, around):
                    yield Line(self.file, line, action)

    def _is_element(self, expression, around):
        """Whether it is an element of the container, which is a container by itself: `cache[key].append(...)`."""
        inside = _inside(expression)
        return self.keeper.is_container and inside is not None and self._is_it(inside, self.keeper.node, around)

    def _is_it(self, expression, node, around):
        """Whether the expression is the node's object in this place of the program."""
        if isinstance(expression, ast.Name):
            return any(
                self._is_seen(root, around) for root in self.names[id(node.value)] if root.name == expression.id
            ) or (node.edge == ("closure", expression.id) and _has_function(around, node.parent.value.__code__))
        if node.parent is None:
            return False
        if isinstance(expression, ast.Attribute):
            if node.edge != ("attribute", expression.attr):
                return False
            base = expression.value
            return self._is_it(base, node.parent, around) or self._is_self(base, node.parent.value, around)
        inside = _inside(expression)
        return inside is not None and node.edge.kind == "item" and self._is_it(inside, node.parent, around)

    def _is_seen(self, root, around):
        """Whether the variable is the one that its name means here."""
        if root.file != self.file:
            return False
        if root.function is not None:
            return _has_function(around, root.function)
        return not any(
            root.name in _own_names(function) for function in around if not isinstance(function, ast.ClassDef)
        )

    def _is_self(self, expression, value, around):
        """Whether the expression is `self` in a method of the object's class, which this file has."""
        classes = [one for one in around if isinstance(one, ast.ClassDef)]
        if not isinstance(expression, ast.Name) or not classes:
            return False
        methods = around[around.index(classes[-1]) + 1 :]
        if not methods or not methods[0].args.args or methods[0].args.args[0].arg != expression.id:
            return False
        bases = [base for base in _class_of(value).__mro__ if self.file in _files_of_class(base)]
        return classes[-1].name in {base.__name__ for base in bases}


def _inside(expression):
    """The container of which the expression is an element."""
    if isinstance(expression, ast.Subscript):
        return expression.value
    if (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr in _GETTING
    ):
        return expression.func.value
    return None


def _statements(node, around):
    """All nodes of a tree, with the classes and functions around each, the outermost first."""
    for child in ast.iter_child_nodes(node):
        yield child, around
        inner = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda))
        yield from _statements(child, (*around, child) if inner else around)


def _puts(node, is_container):
    """Expressions into which a node of the program puts something, with the line and what it does."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
        if is_container:
            yield node.func.value, node.lineno, _ADDING[node.func.attr]
        return
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in [part for whole in targets for part in _parts(whole)]:
            if is_container and isinstance(target, ast.Subscript):
                yield target.value, node.lineno, "assigns"
            elif not is_container and not isinstance(node.value, ast.Constant):
                text = ast.dump(target).replace("Store()", "Load()")
                is_sum = any(ast.dump(part) == text for part in ast.walk(node.value) if isinstance(part, type(target)))
                yield target, node.lineno, "adds up" if is_sum else "assigns"
    elif isinstance(node, ast.AugAssign):
        if is_container and isinstance(node.target, ast.Subscript):
            yield node.target.value, node.lineno, "adds"
        yield node.target, node.lineno, "adds" if is_container else "adds up"


def _parts(target):
    """The targets of an assignment to several."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [part for element in target.elts for part in _parts(element)]
    return [target.value if isinstance(target, ast.Starred) else target]


def _has_function(around, code):
    """Whether one of these is the function with this code. A function's code begins at its first decorator."""
    for one in around:
        first = min([one.lineno, *(decorator.lineno for decorator in getattr(one, "decorator_list", ()))])
        name = getattr(one, "name", "<lambda>")
        if isinstance(code, types.CodeType) and (first, name) == (code.co_firstlineno, code.co_name):
            return True
    return False


@functools.cache
def _own_names(function):
    """The names that are local variables of a function."""
    arguments = function.args
    names = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None}
    outside = set()
    for node, around in _statements(function, ()):
        if around:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outside.update(node.names)
    return names - outside
