"""Objects that take every call and do nothing, for what programs draw and log."""


class Passing:
    def __init__(self, path):
        self._path = path

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Passing(f"{self._path}.{name}")

    def __call__(self, *args, **kwargs):
        return Passing(f"{self._path}()")

    def __getitem__(self, item):
        return Passing(f"{self._path}[]")

    def __setitem__(self, item, value):
        pass

    def __iter__(self):
        # Two objects, since most programs unpack the result of such a call to two names.
        return iter((Passing(f"{self._path}[0]"), Passing(f"{self._path}[1]")))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def __repr__(self):
        return f"<{self._path}>"
