"""Handles of hooks."""


class RemovableHandle:
    _next = 0

    def __init__(self, hooks):
        import weakref

        self.id = RemovableHandle._next
        RemovableHandle._next += 1
        self._hooks = hooks

    def remove(self):
        self._hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def unserializable_hook(f):
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    pass
