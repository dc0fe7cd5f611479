"""`numpy.random.RandomState` and the functions of `numpy.random`, with the same numbers as numpy's."""

import math
import operator
from random import Random as _Random

from numpy._draws import Draws
from numpy._generator import whole_numbers
from numpy._near import about
from numpy._offers import offer_methods, refuse
from numpy._types import F8
from numpy._values import scalar

_32 = (1 << 32) - 1


class _Twister:
    """MT19937, which Python has as well, begun as numpy begins it."""

    def __init__(self, seed=None):
        self._random, self.spare = _Random(0), None
        self.is_known = seed is not None
        if self.is_known:
            self._begin(seed)

    def _begin(self, seed):
        if hasattr(seed, "tolist"):
            seed = seed.tolist()
        if isinstance(seed, (list, tuple, range)):
            key = self._by_list([operator.index(one) & _32 for one in seed])
        else:
            try:
                seed = operator.index(seed)
            except TypeError:
                raise TypeError(
                    f"Cannot cast array data from dtype('{type(seed).__name__}64') to dtype('int64') according to the rule 'safe'"
                ) from None
            if not 0 <= seed <= _32:
                raise ValueError("Seed must be between 0 and 2**32 - 1")
            key = self._by_word(seed)
        self.set(key, 624)

    @staticmethod
    def _by_word(word):
        key = []
        for place in range(624):
            key.append(word)
            word = (1812433253 * (word ^ word >> 30) + place + 1) & _32
        return key

    def _by_list(self, words):
        if not words:
            raise ValueError("Seed must be non-empty")
        key, i, j = self._by_word(19650218), 1, 0
        for _ in range(max(624, len(words))):
            key[i] = ((key[i] ^ (key[i - 1] ^ key[i - 1] >> 30) * 1664525) + words[j] + j) & _32
            i, j = i + 1, (j + 1) % len(words)
            if i >= 624:
                key[0], i = key[623], 1
        for _ in range(623):
            key[i] = ((key[i] ^ (key[i - 1] ^ key[i - 1] >> 30) * 1566083941) - i) & _32
            i += 1
            if i >= 624:
                key[0], i = key[623], 1
        key[0] = 0x80000000
        return key

    def set(self, key, place):
        self._random.setstate((3, (*key, place), None))

    def get(self):
        *key, place = self._random.getstate()[1]
        return key, place

    def next32(self):
        return self._random.getrandbits(32)

    def next64(self):
        return self.next32() << 32 | self.next32()

    def next_double(self):
        return self._random.random()

    def interval(self, most):
        if most == 0:
            return 0
        mask, draw = (1 << most.bit_length()) - 1, self.next32 if most <= _32 else self.next64
        while (value := draw() & mask) > most:
            pass
        return value

    def normal(self):
        """Two numbers at a time, of which the second is kept."""
        if self.spare is not None:
            spare, self.spare = self.spare, None
            return spare
        while True:
            x, y = 2.0 * self.next_double() - 1.0, 2.0 * self.next_double() - 1.0
            square = x * x + y * y
            if 0.0 < square < 1.0:
                break
        factor = math.sqrt(-2.0 * math.log(square) / square)
        self.spare = factor * x
        return factor * y


class RandomState(Draws):
    __module__ = "numpy.random.mtrand"
    _NOT_POSITIVE = "a must be greater than 0 unless no samples are taken"
    _TOO_MANY = "Cannot take a larger sample than population when 'replace=False'"
    _P, _PROBABILITIES, _SIZES, _NOT_ONE = (
        "'p'",
        "probabilities",
        "'a' and 'p' must have same size",
        "probabilities do not sum to 1",
    )

    def __init__(self, seed=None):
        self._bits = _Twister(seed)

    def __repr__(self):
        return f"RandomState(MT19937) at 0x{id(self):X}"

    def __str__(self):
        return "RandomState(MT19937)"

    def seed(self, seed=None):
        self._bits = _Twister(seed)

    def random_sample(self, size=None):
        return self._many(size, self._bits.next_double, F8)

    def random(self, size=None):
        return self.random_sample(size)

    def ranf(self, size=None):
        return self.random_sample(size)

    def sample(self, size=None):
        return self.random_sample(size)

    def rand(self, *args):
        return self.random_sample(args or None)

    def uniform(self, low=0.0, high=1.0, size=None):
        return self._floats(size, lambda low, high: low + (high - low) * self._bits.next_double(), low, high)

    def standard_normal(self, size=None):
        return self._many(size, self._bits.normal, F8)

    def randn(self, *args):
        return self.standard_normal(args or None)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return self._floats(size, lambda loc, scale: loc + scale * self._bits.normal(), loc, scale)

    def standard_exponential(self, size=None):
        return self._many(size, lambda: about(-math.log1p(-self._bits.next_double()), F8, 2), F8)

    def exponential(self, scale=1.0, size=None):
        if scale != 1.0:
            refuse("random.exponential with scale=", "multiply the numbers of exponential()")
        return self.standard_exponential(size)

    def randint(self, low, high=None, size=None, dtype=int):
        made, kind = whole_numbers(self, low, high, size, dtype, False, True)
        return made if dtype is int or type(made) is not int else scalar(made, kind)

    def random_integers(self, low, high=None, size=None):
        refuse("random.random_integers", "use numpy.random.randint")

    def shuffle(self, x):
        self._shuffle(x, 0)

    def permutation(self, x):
        return self._permutation(x)

    def choice(self, a, size=None, replace=True, p=None):
        def integers(count, wanted):
            made, _ = whole_numbers(self, 0, count, (wanted,), int, False, True)
            return made.tolist() if self._is_known() else []

        def without(count, wanted):
            return self._order(count)[:wanted] if self._is_known() else []

        if getattr(a, "ndim", 0) > 1 or isinstance(a, (list, tuple)) and a and isinstance(a[0], (list, tuple)):
            raise ValueError("a must be 1-dimensional")
        return self._chosen(a, size, replace, p, 0, integers, without)

    def get_state(self, legacy=True):
        from numpy._making import array, full
        from numpy._near import unknown
        from numpy._types import U4

        if not legacy:
            refuse("random.get_state with legacy=False", "leave the argument out")
        if not self._bits.is_known:
            return ("MT19937", full(624, unknown(U4), U4), 624, 0, 0.0)
        key, place = self._bits.get()
        return ("MT19937", array(key, "uint32"), place, int(self._bits.spare is not None), self._bits.spare or 0.0)

    def set_state(self, state):
        from numpy._near import are_special

        key = state[1]._all() if hasattr(state[1], "_all") else list(state[1])
        self._bits = _Twister()
        self._bits.is_known = not are_special(key)
        if self._bits.is_known:
            self._bits.set(key, state[2])
            self._bits.spare = state[4] if len(state) > 3 and state[3] else None


offer_methods(RandomState)
