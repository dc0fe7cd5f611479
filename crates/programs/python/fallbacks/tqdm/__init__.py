"""Progress bars: the items pass through, and the bar itself, which tqdm writes to standard error, is not drawn."""

import sys
from numbers import Number

__version__ = "4.67.1"
_KNOWN = frozenset(
    "ncols mininterval maxinterval miniters ascii disable unit unit_scale dynamic_ncols smoothing bar_format initial position postfix "
    "unit_divisor write_bytes lock_args nrows colour delay gui".split()
)


class TqdmKeyError(KeyError):
    pass


class tqdm:
    def __init__(self, iterable=None, desc=None, total=None, leave=True, file=None, **others):
        unknown = {name: value for name, value in others.items() if name not in _KNOWN}
        if unknown:
            raise TqdmKeyError(f"Unknown argument(s): {unknown}")
        if file is not None and file is not sys.stderr:
            from _host import note

            note("a progress bar is not drawn here, also where tqdm would write it to a file or to the output")
        if total is None and iterable is not None:
            try:
                total = len(iterable)
            except (TypeError, AttributeError):
                total = None
        self.iterable, self.desc, self.leave = iterable, desc or "", leave
        self.total = None if total == float("inf") else total
        self.n, self.disable, self.unit = (
            others.get("initial", 0),
            bool(others.get("disable")),
            others.get("unit", "it"),
        )
        self.postfix = None
        if others.get("postfix"):
            self.set_postfix(others["postfix"])

    @property
    def format_dict(self):
        from torch import UnknownNumber

        # The time of a run is not measured here.
        return {
            "n": self.n,
            "total": self.total,
            "elapsed": UnknownNumber(),
            "rate": None,
            "prefix": self.desc,
            "unit": self.unit,
            "postfix": self.postfix,
            "initial": 0,
        }

    def __iter__(self):
        for item in self.iterable:
            yield item
            if not self.disable:
                self.n += 1

    def __len__(self):
        return self.total if self.iterable is None else len(self.iterable)

    def __bool__(self):
        if self.total is not None:
            return self.total > 0
        if self.iterable is None:
            raise TypeError("bool() undefined when iterable == total == None")
        return bool(self.iterable)

    def __contains__(self, item):
        return item in iter(self)

    def __reversed__(self):
        # As tqdm's own: the items come in their order.
        return self.__iter__()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __repr__(self):
        return f"<progress bar {self.desc}, which is not drawn here: ?>"

    def update(self, n=1):
        if not self.disable:
            self.n += n

    def set_description(self, desc=None, refresh=True):
        self.desc = desc + ": " if desc else ""

    def set_description_str(self, desc=None, refresh=True):
        self.desc = desc or ""

    def set_postfix(self, ordered_dict=None, refresh=True, **kwargs):
        parts = dict(ordered_dict or {})
        for key in sorted(kwargs):
            parts[key] = kwargs[key]
        texts = {key: _short(value) if isinstance(value, Number) else str(value) for key, value in parts.items()}
        self.postfix = ", ".join(f"{key}={text.strip()}" for key, text in texts.items())

    def set_postfix_str(self, s="", refresh=True):
        self.postfix = str(s)

    def reset(self, total=None):
        self.n, self.total = 0, total if total is not None else self.total

    def close(self):
        pass

    def refresh(self, nolock=False, lock_args=None):
        return True

    def clear(self, nolock=False):
        pass

    def unpause(self):
        pass

    def display(self, msg=None, pos=None):
        return True

    @classmethod
    def write(cls, s, file=None, end="\n", nolock=False):
        print(s, end=end, file=file)

    @classmethod
    def pandas(cls, *args, **kwargs):
        raise NotImplementedError("tqdm.pandas is not modeled here: use a loop over tqdm(items)")


def _short(number):
    short = f"{number:.3g}".replace("e+0", "e+").replace("e-0", "e-")
    return short if len(short) < len(str(number)) else str(number)


def trange(*args, **kwargs):
    return tqdm(range(*args), **kwargs)


tqdm_notebook, tnrange = tqdm, trange
