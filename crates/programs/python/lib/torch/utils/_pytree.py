"""Functions over nested lists and dictionaries."""

from typing import Any


class TreeSpec:
    """The structure of a tree: the class of a node, what makes such a node again, and the structures of its children."""

    def __init__(self, type, context, children):
        self.type, self.context, self.children = type, context, children
        self.num_leaves = 1 if type is None else sum([child.num_leaves for child in children])

    def unflatten(self, leaves):
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if self.type is None:
            return leaves[0]
        start, children = 0, []
        for child in self.children:
            end = start + child.num_leaves
            children.append(child.unflatten(leaves[start:end]))
            start = end
        if self.type is dict:
            return dict(zip(self.context, children))
        return self.type(*children) if self.context else self.type(children)


_LEAF = TreeSpec(None, None, [])


def _children(node):
    if isinstance(node, (list, tuple)):
        return type(node), hasattr(node, "_fields"), list(node) if isinstance(node, tuple) else node
    if isinstance(node, dict):
        return dict, list(node), list(node.values())
    return None


def tree_flatten(tree, is_leaf=None):
    # As in PyTorch, the function calls itself: each call leaves a cycle of references, which counts for Python's garbage
    # collector, as the list of the annotation and each call of `list` do.
    def helper(node, leaves: list[Any]) -> TreeSpec:
        parts = None if is_leaf is not None and is_leaf(node) else _children(node)
        if parts is None:
            leaves.append(node)
            return _LEAF
        kind, context, children = parts
        return TreeSpec(kind, context, [helper(child, leaves) for child in children])

    leaves = []
    return leaves, helper(tree, leaves)


def tree_map(function, tree, *rest, is_leaf=None):
    leaves, structure = tree_flatten(tree, is_leaf)
    arguments = [leaves] + [tree_flatten(other)[0] for other in rest]
    return structure.unflatten(map(function, *arguments))
