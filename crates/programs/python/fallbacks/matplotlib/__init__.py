"""Plots: the calls pass, and nothing is drawn, which a note says where a plot would be seen."""

from _passing import Passing as _Passing

__version__ = "3.10.0"
# Functions that show or write a plot.
_SEEN = ("show", "savefig", "save", "imsave")


class _Plot(_Passing):
    """Whatever a plot consists of."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Plot(f"{self._path}.{name}")

    def __call__(self, *args, **kwargs):
        name = self._path.rpartition(".")[2]
        if name in _SEEN:
            from _host import note

            note("plots are not drawn here: the calls pass, and no plot is shown or written")
        if name in ("imread", "get_fignums", "fignum_exists", "ginput"):
            raise NotImplementedError(
                f"{self._path} is not modeled here: plots are not drawn, and there are no files of images"
            )
        if name in ("plot", "semilogx", "semilogy", "loglog"):
            return [_Plot(f"{self._path}()[0]")]
        if name in ("hist", "errorbar"):
            return tuple(_Plot(f"{self._path}()[{i}]") for i in range(3))
        return _Plot(f"{self._path}()")

    def __getitem__(self, item):
        return _Plot(f"{self._path}[]")

    def __iter__(self):
        # Two objects, since most programs unpack the result of such a call to two names.
        return iter((_Plot(f"{self._path}[0]"), _Plot(f"{self._path}[1]")))


class _Settings(dict):
    """`rcParams`: a program may change all settings."""

    def __missing__(self, name):
        return _Plot(f"matplotlib.rcParams[{name!r}]")


rcParams = _Settings()


def use(backend, *, force=True):
    pass


def rc(group, **kwargs):
    pass


def _names_of(module):
    """The `__getattr__` of a module: it has every name."""

    def get(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Plot(f"{module}.{name}")

    return get


__getattr__ = _names_of("matplotlib")
