"""Calls a function with a module right after the module was loaded for the first time."""

import sys


def once_loaded(name, function):
    """Calls a function, which raises nothing, with a module once it is loaded."""
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _Loaded(name, function))
    else:
        function(module)


class _Loaded:
    """A library may ask for the place of a module long before it loads the module: so this finder stays until then."""

    def __init__(self, name, function):
        self.name = name
        self.function = function

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        # Later ones alone: another finder of this kind asks this one.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None and spec.loader is not None:
                self._extend(spec.loader)
                return spec
        return None

    def _extend(self, loader):
        load = loader.exec_module

        def exec_module(module):
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            # Another finder of this kind may have done so.
            vars(loader).pop("exec_module", None)
            load(module)
            self.function(module)

        loader.exec_module = exec_module
