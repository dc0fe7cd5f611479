"""NumPy's first generator, with the same numbers as NumPy's; the numbers of `default_rng` are not known."""

import math as _math
from _random import Random as _Twister

import numpy as _np


class RandomState:
    def __init__(self, seed=None):
        self.seed(0 if seed is None else seed)
        self._is_known = seed is not None

    def seed(self, seed=None):
        self._twister, self._spare, self._is_known = _Twister(), None, seed is not None
        self._twister.seed_word(int(seed or 0))

    def _many(self, size, one, kind=_np.float64):
        if size is None:
            return one() if self._is_known else self._placeholder(one)
        made = _np.ndarray(size, kind)
        # Drawn even where it is not kept, since the next draw depends on it; not more than a program can mean.
        if self._is_known and made.size <= 1 << 20:
            values = [one() for _ in range(made.size)]
            made._values = values if made.size <= _np._MOST else None
        else:
            self._is_known = False
            if kind is not _np.float64 and made.size <= _np._MOST:
                made._values = [self._placeholder(one) for _ in range(made.size)]
        return made

    def _placeholder(self, one):
        from _host import note

        note("numpy's generator was not seeded: its numbers here are not those of a real run")
        return one()

    def _below(self, most):
        """A whole number from 0 to `most`."""
        mask = (1 << most.bit_length()) - 1
        bits = 32 if most <= 0xFFFFFFFF else 64
        while True:
            value = self._twister.getrandbits(32)
            if bits == 64:
                value = value << 32 | self._twister.getrandbits(32)
            if value & mask <= most:
                return value & mask

    def _normal(self):
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        while True:
            x, y = 2.0 * self._twister.random() - 1.0, 2.0 * self._twister.random() - 1.0
            square = x * x + y * y
            if square < 1.0 and square != 0.0:
                break
        factor = _math.sqrt(-2.0 * _math.log(square) / square)
        self._spare = factor * x
        return factor * y

    def random_sample(self, size=None):
        return self._many(size, self._twister.random)

    random = ranf = sample = random_sample

    def rand(self, *shape):
        return self.random_sample(shape or None)

    def uniform(self, low=0.0, high=1.0, size=None):
        return self._many(size, lambda: low + (high - low) * self._twister.random())

    def standard_normal(self, size=None):
        return self._many(size, self._normal)

    def randn(self, *shape):
        return self.standard_normal(shape or None)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return self._many(size, lambda: loc + scale * self._normal())

    def randint(self, low, high=None, size=None, dtype=int):
        low, high = (0, low) if high is None else (low, high)
        if high <= low:
            raise ValueError("low >= high")
        return self._many(size, lambda: low + (self._below(high - 1 - low) if high - 1 > low else 0), _np.int64)

    def shuffle(self, x):
        for i in range(len(x) - 1, 0, -1):
            j = self._below(i)
            x[i], x[j] = x[j], x[i]

    def permutation(self, x):
        x = _np.arange(x) if isinstance(x, int) else _np.array(x)
        self.shuffle(x)
        return x

    def choice(self, a, size=None, replace=True, p=None):
        items = range(a) if isinstance(a, int) else a
        count = 1 if size is None else _np._product(size) if isinstance(size, tuple) else size
        if p is not None:
            sums, total = [], 0.0
            for part in p:
                total += part
                sums.append(total)
            places = [
                next((i for i, s in enumerate(sums) if self._twister.random() < s / total), len(sums) - 1)
                for _ in range(count)
            ]
        elif replace:
            places = [self._below(len(items) - 1) if len(items) > 1 else 0 for _ in range(count)]
        else:
            places = [int(i) for i in self.permutation(len(items))[:count]]
        chosen = [items[i] for i in places]
        return chosen[0] if size is None else _np.array(chosen).reshape(size)

    def get_state(self, legacy=True):
        return ("MT19937", self._twister.getstate(), 0, 0, self._spare)

    def set_state(self, state):
        self._twister.setstate(state[1])
        self._spare = state[4]


_shared = RandomState()
(
    seed,
    rand,
    randn,
    randint,
    random,
    random_sample,
    ranf,
    sample,
    uniform,
    normal,
    standard_normal,
    shuffle,
    permutation,
    choice,
    get_state,
    set_state,
) = (
    getattr(_shared, name)
    for name in (
        "seed",
        "rand",
        "randn",
        "randint",
        "random",
        "random_sample",
        "ranf",
        "sample",
        "uniform",
        "normal",
        "standard_normal",
        "shuffle",
        "permutation",
        "choice",
        "get_state",
        "set_state",
    )
)


class Generator(RandomState):
    """The generator of `default_rng`, whose algorithm is another one: every drawn number is a placeholder."""

    def __init__(self, seed=None):
        super().__init__(0)
        self._is_known = False

    def integers(self, low, high=None, size=None, dtype=int, endpoint=False):
        low, high = (0, low) if high is None else (low, high)
        return self.randint(low, high + bool(endpoint), size)


def default_rng(seed=None):
    return Generator(seed)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"numpy.random.{name} is not modeled here; use torch's generators")
