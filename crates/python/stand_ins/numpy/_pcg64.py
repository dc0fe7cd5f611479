"""The generator of `default_rng`: numpy's seeds, and PCG64."""

from numpy._offers import refuse

_32, _64, _128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def _words(value):
    """Whole numbers as words of 32 bits."""
    if value is None:
        return []
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _words(item)]
    value = value.__index__()
    if value < 0:
        raise ValueError("expected non-negative integer")
    words = [value & _32]
    while value >> 32:
        value >>= 32
        words.append(value & _32)
    return words


class SeedSequence:
    """Words of good quality out of a seed."""

    def __init__(self, entropy=None, *, spawn_key=(), pool_size=4, n_children_spawned=0):
        if pool_size != 4:
            refuse("random.SeedSequence with pool_size=", "leave the argument out")
        self.entropy, self.spawn_key, self.pool_size, self.n_children_spawned = (
            entropy,
            tuple(spawn_key),
            4,
            n_children_spawned,
        )
        self.is_known = entropy is not None
        words, key = _words(entropy if self.is_known else 0), _words(self.spawn_key)
        if key:
            words += [0] * (4 - len(words))
        self._pool = _mixed(words + key)

    def _generated(self, count):
        """So many words of 32 bits."""
        const, found = 0x8B51F9DD, []
        for i in range(count):
            value = self._pool[i % 4] ^ const
            const = const * 0x58F38DED & _32
            value = value * const & _32
            found.append(value ^ value >> 16)
        return found

    def generate_state(self, n_words, dtype="uint32"):
        from numpy._making import array, full
        from numpy._near import unknown
        from numpy._types import of

        kind = of(dtype)
        if not self.is_known:
            return full(n_words, unknown(kind), kind)
        if kind.name == "uint64":
            words = self._generated(2 * n_words)
            return array([low | high << 32 for low, high in zip(words[::2], words[1::2])], kind)
        return array(self._generated(n_words), kind)

    def spawn(self, n_children):
        first = self.n_children_spawned
        self.n_children_spawned += n_children
        made = [SeedSequence(self.entropy, spawn_key=(*self.spawn_key, first + i)) for i in range(n_children)]
        return made


def _mixed(words):
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


class PCG64:
    """The numbers of one seed."""

    _MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645

    def __init__(self, seed=None):
        self.seed_seq = seed if isinstance(seed, SeedSequence) else SeedSequence(seed)
        self.is_known = self.seed_seq.is_known
        words = self.seed_seq._generated(8)
        a, b, c, d = (low | high << 32 for low, high in zip(words[::2], words[1::2]))
        self._step = ((c << 64 | d) << 1 | 1) & _128
        self._state = self._step + (a << 64 | b) & _128
        self._state = (self._state * self._MULTIPLIER + self._step) & _128
        self._half = None

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

    def interval(self, most):
        """A whole number from 0 to `most`: bits, until they are in the range."""
        if most == 0:
            return 0
        mask, draw = (1 << most.bit_length()) - 1, self.next32 if most <= _32 else self.next64
        while (value := draw() & mask) > most:
            pass
        return value

    @property
    def state(self):
        if not self.is_known:
            from numpy._near import unknown
            from numpy._types import U8

            return {
                "bit_generator": "PCG64",
                "state": {"state": unknown(U8), "inc": unknown(U8)},
                "has_uint32": unknown(U8),
                "uinteger": unknown(U8),
            }
        return {
            "bit_generator": "PCG64",
            "state": {"state": self._state, "inc": self._step},
            "has_uint32": int(self._half is not None),
            "uinteger": self._half or 0,
        }

    @state.setter
    def state(self, value):
        from torch._unknown import UnknownNumber

        if value.get("bit_generator") != "PCG64":
            raise ValueError("state must be for a PCG64 RNG")
        self.is_known = type(value["state"]["state"]) is not UnknownNumber
        if self.is_known:
            self._state, self._step = value["state"]["state"], value["state"]["inc"]
            self._half = value["uinteger"] if value["has_uint32"] else None


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
