"""`numpy.random.Generator`, with the same numbers as numpy's."""

from numpy import _ziggurat
from numpy._draws import Draws
from numpy._offers import offer_methods, refuse
from numpy._pcg64 import PCG64, SeedSequence, lemire
from numpy._types import B1, F4, F8, limits, of
from numpy._values import scalar

_32, _64 = (1 << 32) - 1, (1 << 64) - 1


def bounded(bits, kind, most, is_masked):
    """A function that gives whole numbers from 0 to `most`; numbers of 8 and 16 bits come in fours and twos."""
    if most == 0:
        return lambda: 0
    width = kind.itemsize * 8
    if width == 64:
        width = 32 if most <= _32 else 64
    buffer = [0, 0]

    def part():
        if not buffer[1]:
            buffer[:] = bits.next32(), 32 // width - 1
        else:
            buffer[:] = buffer[0] >> width, buffer[1] - 1
        return buffer[0] & ones

    ones = (1 << width) - 1
    draw = bits.next64 if width == 64 else bits.next32 if width == 32 else part
    if most == ones:
        return draw
    if not is_masked:
        return lambda: lemire(draw, width, most)
    mask = (1 << most.bit_length()) - 1

    def masked():
        while (value := draw() & mask) > most:
            pass
        return value

    return masked


def whole_numbers(draws, low, high, size, dtype, endpoint, is_masked):
    import operator

    kind = of(dtype)
    if any(isinstance(bound, (list, tuple)) or getattr(bound, "ndim", 0) for bound in (low, high)):
        refuse("random.integers between arrays", "draw from each range alone")
    if kind.kind not in "iub":
        raise TypeError(f"Unsupported dtype {kind!r} for {'randint' if is_masked else 'integers'}")
    if kind is B1:
        refuse("random.integers of bool", "compare random numbers with 0.5")
    if high is None:
        low, high = 0, low
    low, high = (
        bound if isinstance(bound, int) else int(bound) if isinstance(bound, float) else operator.index(bound)
        for bound in (low, high)
    )
    high = high if endpoint else high - 1
    least, most = limits(kind)
    if low < least:
        raise ValueError(f"low is out of bounds for {kind.name}")
    if high > most:
        raise ValueError(f"high is out of bounds for {kind.name}")
    if low > high:
        raise ValueError(
            ("low > high" if endpoint else "low >= high") if low else ("high < 0" if endpoint else "high <= 0")
        )
    draw = bounded(draws._bits, kind, high - low, is_masked)
    return draws._many(size, lambda: low + draw(), kind), kind


class Generator(Draws):
    __module__ = "numpy.random._generator"
    _NOT_POSITIVE = "a must be a positive integer unless no samples are taken"
    _TOO_MANY = "Cannot take a larger sample than population when replace is False"
    _P, _PROBABILITIES, _SIZES = "p", "Probabilities", "a and p must have same size"
    _NOT_ONE = "Probabilities do not sum to 1. See Notes section of docstring for more information."

    def __init__(self, bit_generator):
        if not isinstance(bit_generator, PCG64):
            refuse("random.Generator of other bits than PCG64's", "use numpy.random.default_rng")
        self._bits = bit_generator

    bit_generator = property(lambda self: self._bits)

    def __repr__(self):
        return f"Generator(PCG64) at 0x{id(self):X}"

    def __str__(self):
        return "Generator(PCG64)"

    def random(self, size=None, dtype=F8, out=None):
        if out is not None:
            refuse("random.Generator.random with out=", "assign the result")
        kind = of(dtype)
        if kind is F4:
            made = self._many(size, lambda: (self._bits.next32() >> 8) * 2.0**-24, F4)
            return scalar(made, F4) if type(made) is float else made
        if kind is not F8:
            raise TypeError(f"Unsupported dtype {kind!r} for random")
        return self._many(size, self._bits.next_double, F8)

    def uniform(self, low=0.0, high=1.0, size=None):
        return self._floats(size, lambda low, high: low + (high - low) * self._bits.next_double(), low, high)

    def standard_normal(self, size=None, dtype=F8, out=None):
        if out is not None or of(dtype) is not F8:
            refuse("random.Generator.standard_normal with out= or float32", "use astype")
        return self._many(size, lambda: _ziggurat.normal(self._bits), F8)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return self._floats(size, lambda loc, scale: loc + scale * _ziggurat.normal(self._bits), loc, scale)

    def standard_exponential(self, size=None, dtype=F8, method="zig", out=None):
        if out is not None or of(dtype) is not F8 or method != "zig":
            refuse("random.Generator.standard_exponential with out=, method= or float32", "use astype")
        return self._many(size, lambda: _ziggurat.exponential(self._bits), F8)

    def exponential(self, scale=1.0, size=None):
        return self._floats(size, lambda scale: scale * _ziggurat.exponential(self._bits), scale)

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        made, kind = whole_numbers(self, low, high, size, dtype, endpoint, False)
        return scalar(made, kind) if type(made) is int else made

    def shuffle(self, x, axis=0):
        self._shuffle(x, axis)

    def permutation(self, x, axis=0):
        return self._permutation(x, axis)

    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        def integers(count, wanted):
            draw = bounded(self._bits, of("int64"), count - 1, False)
            return [draw() for _ in range(wanted)] if self._is_known() else []

        def below(most):
            return lemire(self._bits.next32, 32, most) if most else 0

        def without(count, wanted):
            if not self._is_known():
                return []
            if count > _32:
                refuse("random.Generator.choice of so many", "draw whole numbers")
            if count > 10000 and wanted > count // (50 if shuffle else 20):
                order = list(range(count))
                for i in range(count - 1, max(count - wanted, 1) - 1, -1):
                    j = below(i)
                    order[i], order[j] = order[j], order[i]
                return order[count - wanted :]
            taken, found = set(), []
            for j in range(count - wanted, count):
                value = below(j)
                value = j if value in taken else value
                taken.add(value)
                found.append(value)
            if shuffle:
                for i in range(wanted - 1, 0, -1):
                    j = below(i)
                    found[i], found[j] = found[j], found[i]
            return found

        return self._chosen(a, size, replace, p, axis, integers, without)

    def spawn(self, n_children):
        return [Generator(PCG64(seed)) for seed in self._bits.seed_seq.spawn(n_children)]


def default_rng(seed=None):
    if isinstance(seed, Generator):
        return seed
    if isinstance(seed, PCG64):
        return Generator(seed)
    if hasattr(seed, "_bits"):
        refuse("random.default_rng of a RandomState", "give a number as the seed")
    return Generator(PCG64(seed))


offer_methods(Generator)
__all__ = ["Generator", "PCG64", "SeedSequence", "default_rng"]
