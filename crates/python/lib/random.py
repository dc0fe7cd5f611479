"""Random numbers: CPython's generator and CPython's way from it to each distribution, so the same seed gives the same numbers."""

from _random import Random as _Generator
from math import acos as _acos
from math import ceil as _ceil
from math import cos as _cos
from math import e as _e
from math import exp as _exp
from math import floor as _floor
from math import log as _log
from math import pi as _pi
from math import sin as _sin
from math import sqrt as _sqrt

NV_MAGICCONST = 4 * _exp(-0.5) / _sqrt(2.0)
LOG4 = _log(4.0)
SG_MAGICCONST = 1.0 + _log(4.5)
TWOPI = 2.0 * _pi


class Random(_Generator):
    def __init__(self, x=None):
        self.gauss_next = None
        self.seed(x)

    def __new__(cls, x=None):
        return super().__new__(cls)

    def seed(self, a=None, version=2):
        if isinstance(a, (str, bytes, bytearray)):
            raise NotImplementedError("random.seed of a text is not modeled: seed with a number")
        if isinstance(a, float):
            a = hash(a)
        super().seed(0 if a is None else a)
        self.gauss_next = None

    def getstate(self):
        return (3, super().getstate(), self.gauss_next)

    def setstate(self, state):
        super().setstate(state[1])
        self.gauss_next = state[2]

    def _randbelow(self, n):
        k = n.bit_length()
        r = self.getrandbits(k)
        while r >= n:
            r = self.getrandbits(k)
        return r

    def randrange(self, start, stop=None, step=1):
        if stop is None:
            if start > 0:
                return self._randbelow(start)
            raise ValueError("empty range for randrange()")
        width = stop - start
        if step == 1:
            if width > 0:
                return start + self._randbelow(width)
            raise ValueError(f"empty range in randrange({start}, {stop})")
        if step == 0:
            raise ValueError("zero step for randrange()")
        n = (width + step + (-1 if step > 0 else 1)) // step
        if n <= 0:
            raise ValueError(f"empty range in randrange({start}, {stop}, {step})")
        return start + step * self._randbelow(n)

    def randint(self, a, b):
        return self.randrange(a, b + 1)

    def choice(self, seq):
        if not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        return seq[self._randbelow(len(seq))]

    def shuffle(self, x):
        for i in reversed(range(1, len(x))):
            j = self._randbelow(i + 1)
            x[i], x[j] = x[j], x[i]

    def sample(self, population, k, *, counts=None):
        n = len(population)
        if counts is not None:
            population = [item for item, count in zip(population, counts) for _ in range(count)]
            n = len(population)
        if not 0 <= k <= n:
            raise ValueError("Sample larger than population or is negative")
        result = [None] * k
        setsize = 21
        if k > 5:
            setsize += 4 ** _ceil(_log(k * 3, 4))
        if n <= setsize:
            pool = list(population)
            for i in range(k):
                j = self._randbelow(n - i)
                result[i] = pool[j]
                pool[j] = pool[n - i - 1]
        else:
            selected = set()
            for i in range(k):
                j = self._randbelow(n)
                while j in selected:
                    j = self._randbelow(n)
                selected.add(j)
                result[i] = population[j]
        return result

    def choices(self, population, weights=None, *, cum_weights=None, k=1):
        n = len(population)
        if cum_weights is None:
            if weights is None:
                return [population[_floor(self.random() * (n + 0.0))] for _ in range(k)]
            cum_weights, total = [], 0
            for weight in weights:
                total += weight
                cum_weights.append(total)
        total = cum_weights[-1] + 0.0
        result = []
        for _ in range(k):
            x, low, high = self.random() * total, 0, n - 1
            while low < high:
                middle = (low + high) // 2
                if x < cum_weights[middle]:
                    high = middle
                else:
                    low = middle + 1
            result.append(population[low])
        return result

    def randbytes(self, n):
        return self.getrandbits(n * 8).to_bytes(n, "little")

    def uniform(self, a, b):
        return a + (b - a) * self.random()

    def triangular(self, low=0.0, high=1.0, mode=None):
        u = self.random()
        try:
            c = 0.5 if mode is None else (mode - low) / (high - low)
        except ZeroDivisionError:
            return low
        if u > c:
            u, c, low, high = 1.0 - u, 1.0 - c, high, low
        return low + (high - low) * _sqrt(u * c)

    def normalvariate(self, mu=0.0, sigma=1.0):
        while True:
            u1 = self.random()
            u2 = 1.0 - self.random()
            z = NV_MAGICCONST * (u1 - 0.5) / u2
            if z * z / 4.0 <= -_log(u2):
                return mu + z * sigma

    def gauss(self, mu=0.0, sigma=1.0):
        z, self.gauss_next = self.gauss_next, None
        if z is None:
            x2pi = self.random() * TWOPI
            g2rad = _sqrt(-2.0 * _log(1.0 - self.random()))
            z = _cos(x2pi) * g2rad
            self.gauss_next = _sin(x2pi) * g2rad
        return mu + z * sigma

    def lognormvariate(self, mu=0.0, sigma=1.0):
        return _exp(self.normalvariate(mu, sigma))

    def expovariate(self, lambd=1.0):
        return -_log(1.0 - self.random()) / lambd

    def paretovariate(self, alpha):
        return (1.0 - self.random()) ** (-1.0 / alpha)

    def gammavariate(self, alpha, beta):
        if alpha <= 0.0 or beta <= 0.0:
            raise ValueError("gammavariate: alpha and beta must be > 0.0")
        if alpha > 1.0:
            ainv = _sqrt(2.0 * alpha - 1.0)
            bbb, ccc = alpha - LOG4, alpha + ainv
            while True:
                u1 = self.random()
                if not 1e-7 < u1 < 0.9999999:
                    continue
                u2 = 1.0 - self.random()
                v = _log(u1 / (1.0 - u1)) / ainv
                x = alpha * _exp(v)
                z = u1 * u1 * u2
                r = bbb + ccc * v - x
                if r + SG_MAGICCONST - 4.5 * z >= 0.0 or r >= _log(z):
                    return x * beta
        if alpha == 1.0:
            return -_log(1.0 - self.random()) * beta
        while True:
            b = (_e + alpha) / _e
            p = b * self.random()
            x = p ** (1.0 / alpha) if p <= 1.0 else -_log((b - p) / alpha)
            u1 = self.random()
            if (p > 1.0 and u1 <= x ** (alpha - 1.0)) or (p <= 1.0 and u1 <= _exp(-x)):
                return x * beta

    def betavariate(self, alpha, beta):
        y = self.gammavariate(alpha, 1.0)
        return y / (y + self.gammavariate(beta, 1.0)) if y else 0.0


_shared = Random()
seed, getstate, setstate, random, getrandbits = (
    _shared.seed,
    _shared.getstate,
    _shared.setstate,
    _shared.random,
    _shared.getrandbits,
)
randrange, randint, choice, shuffle, sample, choices = (
    _shared.randrange,
    _shared.randint,
    _shared.choice,
    _shared.shuffle,
    _shared.sample,
    _shared.choices,
)
uniform, triangular, normalvariate, gauss, lognormvariate = (
    _shared.uniform,
    _shared.triangular,
    _shared.normalvariate,
    _shared.gauss,
    _shared.lognormvariate,
)
expovariate, paretovariate, gammavariate, betavariate, randbytes = (
    _shared.expovariate,
    _shared.paretovariate,
    _shared.gammavariate,
    _shared.betavariate,
    _shared.randbytes,
)
