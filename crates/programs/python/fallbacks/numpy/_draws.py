"""`Generator`, `RandomState` and the functions of `numpy.random`, with the same numbers as numpy's."""

import operator
from bisect import bisect_right
from itertools import accumulate

from torch._unknown import UnknownNumber

from numpy._array import MAX_KNOWN, filled, ndarray
from numpy._bits import MT19937, PCG64, bounded, lemire
from numpy._making import arange, array, asarray
from numpy._near import are_special, unknown
from numpy._offers import offer_methods, refuse
from numpy._several import take
from numpy._shapes import product, shape_of
from numpy._types import F4, F8, I8, U4, generic, limits, of
from numpy._values import scalar

# Numbers that are not kept are drawn as well, since the next ones depend on them; not more than these.
_MAX_DRAWN = 1 << 20


class Draws:
    """A generator: `_bits` gives random bits, and they are known or not."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"numpy.random.{name} is not modeled here: use torch's generators")

    def _many(self, size, one, kind):
        if size is None:
            return one() if self._bits.is_known else unknown(kind)
        shape = shape_of(size)
        count = product(shape)
        self._bits.is_known &= count <= _MAX_DRAWN
        values = [one() for _ in range(count)] if self._bits.is_known else [unknown(kind)] * min(count, MAX_KNOWN)
        return filled(shape, kind, values if count <= MAX_KNOWN else None)

    def _floats(self, size, one, *parameters):
        if any(type(p) is UnknownNumber or hasattr(p, "is_near") for p in parameters):
            self._bits.is_known = False
        elif not all(isinstance(p, (int, float, generic)) for p in parameters):
            refuse("random numbers with arrays as parameters", "multiply and add the arrays")
        numbers = [float(p) for p in parameters] if self._bits.is_known else ()
        return self._many(size, lambda: one(*numbers), F8)

    def uniform(self, low=0.0, high=1.0, size=None):
        return self._floats(size, lambda low, high: low + (high - low) * self._bits.next_double(), low, high)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return self._floats(size, lambda loc, scale: loc + scale * self._bits.normal(), loc, scale)

    def standard_normal(self, size=None):
        return self._many(size, self._bits.normal, F8)

    def _integers(self, low, high, size, dtype, endpoint, is_masked):
        kind = of(dtype)
        if any(isinstance(bound, (list, tuple)) or getattr(bound, "ndim", 0) for bound in (low, high)):
            refuse("random.integers between arrays", "draw from each range alone")
        if kind.kind not in "iu":
            refuse(f"random.integers of {kind}", "compare random numbers with 0.5, or use astype")
        low, high = (0, low) if high is None else (low, high)
        low, high = (int(bound) if isinstance(bound, float) else operator.index(bound) for bound in (low, high))
        high = high if endpoint else high - 1
        least, most = limits(kind)
        if low < least or high > most:
            raise ValueError(f"{'low' if low < least else 'high'} is out of bounds for {kind.name}")
        if low > high:
            raise ValueError("low > high" if endpoint else "low >= high")
        draw = bounded(self._bits, 8 * kind.itemsize, high - low, is_masked)
        return self._many(size, lambda: low + draw(), kind)

    def shuffle(self, x):
        if hasattr(x, "is_cuda"):
            refuse("random.shuffle of a tensor", "use x[torch.randperm(len(x))]")
        if isinstance(x, ndarray):
            x[...] = x[self._order(len(x))] if self._bits.is_known else filled(x.shape, x.dtype, None)
        elif self._bits.is_known:
            x[:] = [x[place] for place in self._order(len(x))]
        elif all(isinstance(item, (int, float, generic)) for item in x):
            x[:] = [unknown(I8 if isinstance(item, int) else F8) for item in x]
        else:
            refuse("random.shuffle of a generator without a seed", "give the seed, as numpy.random.seed(0)")

    def _order(self, count):
        """The numbers up to `count` in a random order."""
        order = list(range(count))
        for i in range(count - 1, 0, -1):
            j = self._bits.interval(i)
            order[i], order[j] = order[j], order[i]
        return order

    def permutation(self, x):
        made = array(x)
        if made.ndim == 0:
            count = operator.index(x)
            if count > MAX_KNOWN and self._bits.is_known:
                self._order(count)
            made = arange(count)
            if made._read() is None:
                return made
        self.shuffle(made)
        return made

    def choice(self, a, size=None, replace=True, p=None):
        a = asarray(a)
        count = len(a) if a.ndim else operator.index(a.item())
        shape = () if size is None else shape_of(size)
        wanted = product(shape)
        if count <= 0 and wanted:
            raise ValueError("a must be greater than 0 unless no samples are taken")
        if not replace and wanted > count:
            raise ValueError("Cannot take a larger sample than population when 'replace=False'")
        ends = self._ends(p, count, replace) if p is not None else None
        if not self._bits.is_known:
            kind, shape = (a.dtype, shape + a.shape[1:]) if a.ndim else (I8, shape)
            return filled(shape, kind, None) if shape else unknown(kind) if kind.kind != "U" else UnknownNumber()
        if ends is not None:
            places = [bisect_right(ends, self._bits.next_double()) for _ in range(wanted)]
        else:
            places = self._with(count, wanted) if replace else self._without(count, wanted)
        if a.ndim == 0:
            return places[0] if size is None else filled(shape, I8, places if wanted <= MAX_KNOWN else None)
        return take(a, places[0] if size is None else filled(shape, I8, places), 0)

    def _ends(self, p, count, replace):
        """The running sums of the probabilities."""
        p = asarray(p).astype(F8)
        if not replace:
            refuse("random.choice with p= and replace=False", "draw one number at a time")
        if p.ndim != 1 or p.size != count:
            raise ValueError("'a' and 'p' must have same size")
        if are_special(p._all()):
            self._bits.is_known = False
            return None
        if any(part < 0 for part in p._all()) or not abs(sum(p._all()) - 1.0) <= 1.4901161193847656e-08:
            raise ValueError("probabilities do not sum to 1, or are negative")
        ends = list(accumulate(p._all()))
        return [end / ends[-1] for end in ends]


class Generator(Draws):
    __module__ = "numpy.random._generator"

    def __init__(self, bit_generator):
        if not isinstance(bit_generator, PCG64):
            refuse("random.Generator of other bits than PCG64's", "use numpy.random.default_rng")
        self._bits = bit_generator

    def __str__(self):
        return "Generator(PCG64)"

    def random(self, size=None, dtype=F8):
        if of(dtype) is F8:
            return self._many(size, self._bits.next_double, F8)
        made = self._many(size, lambda: (self._bits.next32() >> 8) * 2.0**-24, F4)
        return scalar(made, F4) if type(made) is float else made

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        made = self._integers(low, high, size, dtype, endpoint, False)
        return scalar(made, of(dtype)) if type(made) is int else made

    def _with(self, count, wanted):
        draw = bounded(self._bits, 64, count - 1, False)
        return [draw() for _ in range(wanted)]

    def _without(self, count, wanted):
        def below(most):
            return lemire(self._bits.next32, 32, most) if most else 0

        if count > 10000 and wanted > count // 50:
            order = list(range(count))
            for i in range(count - 1, max(count - wanted, 1) - 1, -1):
                j = below(i)
                order[i], order[j] = order[j], order[i]
            return order[count - wanted :]
        found = {}
        for j in range(count - wanted, count):
            value = below(j)
            found[j if value in found else value] = None
        found = list(found)
        for i in range(wanted - 1, 0, -1):
            j = below(i)
            found[i], found[j] = found[j], found[i]
        return found


class RandomState(Draws):
    __module__ = "numpy.random.mtrand"

    def __init__(self, seed=None):
        self.seed(seed)

    def __str__(self):
        return "RandomState(MT19937)"

    def seed(self, seed=None):
        if isinstance(seed, (list, tuple, ndarray)):
            refuse("random.seed of several numbers", "give one number")
        self._bits = MT19937(seed)

    def random_sample(self, size=None):
        return self._many(size, self._bits.next_double, F8)

    random = random_sample

    def rand(self, *args):
        return self.random_sample(args or None)

    def randn(self, *args):
        return self.standard_normal(args or None)

    def randint(self, low, high=None, size=None, dtype=int):
        made = self._integers(low, high, size, dtype, False, True)
        return made if dtype is int or type(made) is not int else scalar(made, of(dtype))

    def _with(self, count, wanted):
        return self._integers(0, count, (wanted,), int, False, True)._all()

    def _without(self, count, wanted):
        return self._order(count)[:wanted]

    def get_state(self):
        if not self._bits.is_known:
            return ("MT19937", filled((624,), U4, None), 624, 0, 0.0)
        key, place = self._bits.get()
        return ("MT19937", array(key, U4), place, int(self._bits.spare is not None), self._bits.spare or 0.0)

    def set_state(self, state):
        key = asarray(state[1])._all()
        self._bits = MT19937()
        self._bits.is_known = not are_special(key)
        if self._bits.is_known:
            self._bits.set(key, state[2])
            self._bits.spare = state[4] if state[3] else None


def default_rng(seed=None):
    return seed if isinstance(seed, Generator) else Generator(seed if isinstance(seed, PCG64) else PCG64(seed))


for _class in (Draws, Generator, RandomState):
    offer_methods(_class, "random")
