"""Plots: the calls pass, and nothing is drawn."""

from matplotlib import _names_of, _Plot, rcParams


class _Axes(list):
    """Axes in a grid, as arrays of them are used."""

    @property
    def shape(self):
        return (len(self), len(self[0])) if self and isinstance(self[0], list) else (len(self),)

    size = property(lambda self: len(self.flatten()))

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
    rows = [_Axes(_Plot("axes") for _ in range(ncols)) for _ in range(nrows)]
    if nrows == 1 and squeeze:
        return _Plot("figure"), rows[0] if ncols > 1 else rows[0][0]
    if ncols == 1 and squeeze:
        return _Plot("figure"), _Axes(row[0] for row in rows)
    return _Plot("figure"), _Axes(rows)


__getattr__ = _names_of("matplotlib.pyplot")
