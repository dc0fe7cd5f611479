"""Random bits as numpy draws them: PCG64, the generator of `default_rng`, and MT19937, that of `RandomState`."""

import math
import operator
from random import Random

from numpy import _ziggurat

_32, _64, _128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


class Bits:
    """What both generators have. Their bits are known where a seed was given."""

    def interval(self, most):
        """A whole number from 0 to `most`: bits, until they are in the range."""
        if most == 0:
            return 0
        mask, draw = (1 << most.bit_length()) - 1, self.next32 if most <= _32 else self.next64
        while (value := draw() & mask) > most:
            pass
        return value


def _words(value):
    """Whole numbers as words of 32 bits."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _words(item)]
    value = operator.index(value)
    if value < 0:
        raise ValueError("expected non-negative integer")
    words = [value & _32]
    while value >> 32:
        value >>= 32
        words.append(value & _32)
    return words


def _mixed(words):
    """Four words of good quality out of the words of a seed."""
    const = 0x43B0D7E5

    def hashed(value):
        nonlocal const
        value ^= const
        const = const * 0x931E8875 & _32
        value = value * const & _32
        return value ^ value >> 16

    def mix(x, y):
        value = x * 0xCA01F9DD - y * 0x4973F715 & _32
        return value ^ value >> 16

    pool = [hashed(words[i] if i < len(words) else 0) for i in range(4)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mix(pool[target], hashed(pool[source]))
    for word in words[4:]:
        for target in range(4):
            pool[target] = mix(pool[target], hashed(word))
    return pool


class PCG64(Bits):
    """The numbers of one seed."""

    _MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645

    def __init__(self, seed=None):
        self.is_known, self._half = seed is not None, None
        pool, const, words = _mixed(_words(seed if self.is_known else 0)), 0x8B51F9DD, []
        for i in range(8):
            value = pool[i % 4] ^ const
            const = const * 0x58F38DED & _32
            value = value * const & _32
            words.append(value ^ value >> 16)
        a, b, c, d = (low | high << 32 for low, high in zip(words[::2], words[1::2]))
        self._step = ((c << 64 | d) << 1 | 1) & _128
        self._state = self._step + (a << 64 | b) & _128
        self._state = (self._state * self._MULTIPLIER + self._step) & _128

    def next64(self):
        self._state = state = (self._state * self._MULTIPLIER + self._step) & _128
        value, turn = (state >> 64 ^ state) & _64, state >> 122
        return (value >> turn | value << (64 - turn)) & _64

    def next32(self):
        """Half of 64 bits; the other half is kept for the next call."""
        if self._half is not None:
            half, self._half = self._half, None
            return half
        value = self.next64()
        self._half = value >> 32
        return value & _32

    def next_double(self):
        return (self.next64() >> 11) * 2.0**-53

    def normal(self):
        return _ziggurat.normal(self)


class MT19937(Bits):
    """The bits that Python's own generator has as well, begun as numpy begins them."""

    def __init__(self, seed=None):
        self._random, self.spare, self.is_known = Random(0), None, seed is not None
        if not self.is_known:
            return
        word, key = operator.index(seed), []
        if not 0 <= word <= _32:
            raise ValueError("Seed must be between 0 and 2**32 - 1")
        for place in range(624):
            key.append(word)
            word = (1812433253 * (word ^ word >> 30) + place + 1) & _32
        self.set(key, 624)

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


def lemire(draw, bits, most):
    """A whole number from 0 to `most` by the product of the range and `bits` random bits."""
    count, ones = most + 1, (1 << bits) - 1
    product = draw() * count
    left = product & ones
    if left < count:
        threshold = (ones - most) % count
        while left < threshold:
            product = draw() * count
            left = product & ones
    return product >> bits


def bounded(bits, width, most, is_masked):
    """A function that gives whole numbers from 0 to `most`; numbers of 8 and 16 bits come in fours and twos."""
    if most == 0:
        return lambda: 0
    if width == 64:
        width = 32 if most <= _32 else 64
    ones, buffer = (1 << width) - 1, [0, 0]

    def part():
        if not buffer[1]:
            buffer[:] = bits.next32(), 32 // width - 1
        else:
            buffer[:] = buffer[0] >> width, buffer[1] - 1
        return buffer[0] & ones

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
