"""A program's code, in which an element with an unknown index is unknown itself.

`values[index]` becomes a call where the index is computed: Python looks into its own lists and dictionaries without asking
the index. Under Python 3.10, so does `text % values` of a text in quotes.
"""

import ast
import builtins
import operator
import sys
import warnings

import _host

_ITEM, _PERCENT = "__blockyard_item__", "__blockyard_percent__"
_HAS_PERCENT = sys.version_info < (3, 11)


def _call(name, node, *arguments):
    return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [*arguments], []), node))


class _Calls(ast.NodeTransformer):
    def visit_Subscript(self, node):
        self.generic_visit(node)
        is_computed = not isinstance(node.slice, (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp))
        return _call(_ITEM, node, node.value, node.slice) if is_computed and isinstance(node.ctx, ast.Load) else node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        is_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if not (_HAS_PERCENT and is_text and isinstance(node.op, ast.Mod)):
            return node
        return _call(_PERCENT, node, node.left, node.right)

    # Annotations may be kept as text.

    def visit_arg(self, node):
        return node

    def visit_AnnAssign(self, node):
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node):
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node

    visit_AsyncFunctionDef = visit_FunctionDef


def rewritten(source, file):
    """The program for `compile`."""
    compile(source, file, "exec", dont_inherit=True)
    setattr(builtins, _ITEM, _host.item)
    setattr(builtins, _PERCENT, operator.mod)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _Calls().visit(ast.parse(source, file))
            compile(tree, file, "exec", dont_inherit=True)
            return tree
    except RecursionError:
        return source


def depending(source, lines):
    """The lines that print what depends on an assumption at one of these lines, each with the line of the assumption.

    The source is parsed again: the program that runs has calls in the place of elements.
    """
    nodes = list(ast.walk(ast.parse(source)))
    compound = [node for node in nodes if isinstance(node, (ast.If, ast.While))]
    simple = [node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    own = {id(name) for node in nodes if isinstance(node, ast.comprehension) for name in ast.walk(node.target)}
    names, printing = {}, {}

    def note(node, line):
        """What a statement writes and prints depends on the assumption."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and id(inner) not in own:
                names.setdefault(inner.id, line)
            elif isinstance(inner, (ast.Attribute, ast.Subscript)) and (
                isinstance(inner.ctx, ast.Store)
                or isinstance(inner, ast.Attribute)
                and inner.attr in ("append", "update")
            ):
                root = inner
                while isinstance(root, (ast.Attribute, ast.Subscript)):
                    root = root.value
                if isinstance(root, ast.Name) and root.id != "self":
                    names.setdefault(root.id, line)
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "print":
                printing.setdefault(inner.lineno, line)
            elif isinstance(inner, (ast.Break, ast.Return)):
                for loop in nodes:
                    if isinstance(loop, ast.For) and loop.lineno < inner.lineno <= loop.end_lineno:
                        note(loop.target, line)

    def reads(node):
        found = (
            names.get(inner.id)
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
        )
        return min((line for line in found if line is not None), default=None)

    def assumed(node):
        return next((line for line in lines if node.lineno <= line <= node.end_lineno), None)

    before = None
    while before != (len(names), len(printing)):
        before = len(names), len(printing)
        for node in compound:
            line = assumed(node.test) or reads(node.test)
            for inner in [*node.body, *node.orelse] if line is not None else ():
                note(inner, line)
        for node in simple:
            line = assumed(node) or reads(node)
            if line is not None:
                note(node, line)
    return printing
