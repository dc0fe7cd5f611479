"""Plots: the calls pass, and nothing is drawn."""

from _passing import Passing as _Passing

rcParams = {}


class _Axes(list):
    """Axes in a grid, as arrays of them are used."""

    @property
    def flat(self):
        return self.flatten()

    def flatten(self):
        return _Axes(one for item in self for one in (item if isinstance(item, list) else [item]))

    ravel = flatten

    def __getitem__(self, index):
        if isinstance(index, tuple):
            value = self
            for part in index:
                value = list.__getitem__(value, part)
            return value
        return list.__getitem__(self, index)


def subplots(nrows=1, ncols=1, *, squeeze=True, **kwargs):
    rows = [_Axes(_Passing("axes") for _ in range(ncols)) for _ in range(nrows)]
    if nrows == 1 and squeeze:
        return _Passing("figure"), rows[0] if ncols > 1 else rows[0][0]
    if ncols == 1 and squeeze:
        return _Passing("figure"), _Axes(row[0] for row in rows)
    return _Passing("figure"), _Axes(rows)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Passing(f"matplotlib.pyplot.{name}")
