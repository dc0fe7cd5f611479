"""Functions over nested lists and dictionaries."""


def tree_map(function, tree, *rest):
    if isinstance(tree, (list, tuple)):
        made = [tree_map(function, item) for item in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    if isinstance(tree, dict):
        return {key: tree_map(function, value) for key, value in tree.items()}
    return function(tree)
