"""Progress bars: the items pass through, and the bar itself, which tqdm writes to standard error, is not drawn."""


class tqdm:
    def __init__(
        self,
        iterable=None,
        desc=None,
        total=None,
        leave=True,
        file=None,
        ncols=None,
        disable=False,
        unit="it",
        initial=0,
        **kwargs,
    ):
        if total is None and iterable is not None:
            try:
                total = len(iterable)
            except TypeError:
                pass
        self.iterable, self.desc, self.total, self.n, self.disable, self.leave = (
            iterable,
            desc or "",
            total,
            initial,
            disable,
            leave,
        )
        self.postfix, self.unit = None, unit
        self.format_dict = {"elapsed": 0.0, "rate": None, "n": initial, "total": total}

    def __iter__(self):
        for item in self.iterable:
            yield item
            self.n += 1

    def __len__(self):
        return self.total if self.iterable is None else len(self.iterable)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def update(self, n=1):
        self.n += n

    def set_description(self, desc=None, refresh=True):
        self.desc = desc or ""

    set_description_str = set_description

    def set_postfix(self, ordered_dict=None, refresh=True, **kwargs):
        self.postfix = ", ".join(f"{key}={value}" for key, value in {**(ordered_dict or {}), **kwargs}.items())

    def set_postfix_str(self, s="", refresh=True):
        self.postfix = s

    def reset(self, total=None):
        self.n, self.total = 0, total if total is not None else self.total

    def close(self):
        pass

    refresh = clear = unpause = display = close

    @classmethod
    def write(cls, s, file=None, end="\n", nolock=False):
        print(s, end=end, file=file)

    @classmethod
    def pandas(cls, *args, **kwargs):
        pass


def trange(*args, **kwargs):
    return tqdm(range(*args), **kwargs)


tqdm_notebook, tnrange = tqdm, trange
