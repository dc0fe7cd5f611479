"""What numpy's two generators have in common: shapes of results, numbers that nobody knows, choices and orders."""

import operator

from torch._unknown import UnknownNumber

from numpy._array import MOST, filled, ndarray
from numpy._making import arange, array, asarray
from numpy._near import about, unknown
from numpy._offers import refuse
from numpy._shapes import broadcast, product, shape_of
from numpy._types import F8, I8, generic
from numpy._values import scalar

# Numbers that are not kept are drawn as well, since the next ones depend on them; not more than these.
_MOST_DRAWN = 1 << 20
# Their algorithms are long: the numbers are not known, and neither are those that the generator gives later.
_UNKNOWN_WHOLE = "binomial geometric hypergeometric logseries negative_binomial poisson zipf"
_UNKNOWN_FLOAT = (
    "beta chisquare f gamma gumbel laplace logistic lognormal noncentral_chisquare noncentral_f pareto power rayleigh "
    "standard_cauchy standard_gamma standard_t triangular vonmises wald weibull"
)
_HOW_MANY = {"standard_cauchy": 0, "chisquare": 1, "geometric": 1, "logseries": 1, "poisson": 1, "zipf": 1, "pareto": 1, "power": 1,
             "rayleigh": 1, "standard_gamma": 1, "standard_t": 1, "weibull": 1, "hypergeometric": 3, "noncentral_f": 3, "triangular": 3}  # fmt: skip


class Draws:
    """A generator: `_bits` gives random bits, and they are known or not."""

    def _is_known(self):
        return self._bits.is_known

    def _floats(self, size, one, *parameters):
        """Numbers of a shape; a parameter may be an array."""
        if any(isinstance(p, (list, tuple)) or isinstance(p, ndarray) and p.ndim for p in parameters):
            arrays = [asarray(p) for p in parameters]
            shape = broadcast(*(a.shape for a in arrays)) if size is None else shape_of(size)
            from numpy._array import broadcast_to

            rows = list(zip(*(broadcast_to(a.astype(F8), shape)._all() for a in arrays)))
            if not self._is_known() or any(type(v) is not float for row in rows for v in row):
                self._bits.is_known = False
                return filled(shape, F8, [unknown(F8)] * len(rows))
            return filled(shape, F8, [one(*row) for row in rows])
        if any(type(p) is UnknownNumber or hasattr(p, "is_near") for p in parameters):
            for _ in range(1 if size is None else product(shape_of(size))):
                one(*(0.5 for _ in parameters))
            return unknown(F8) if size is None else filled(shape_of(size), F8, [unknown(F8)] * product(shape_of(size)))
        numbers = [float(p) for p in parameters]
        return self._many(size, lambda: one(*numbers), F8)

    def _many(self, size, one, kind):
        if size is None:
            return one() if self._is_known() else unknown(kind)
        shape = shape_of(size)
        count = product(shape)
        if not self._is_known() or count > _MOST_DRAWN:
            self._bits.is_known = False
            return filled(shape, kind, [unknown(kind)] * count if count <= MOST else None)
        values = [one() for _ in range(count)]
        return filled(shape, kind, values if count <= MOST else None)

    def _order(self, count, last=1):
        """The numbers up to `count` in a random order."""
        order = list(range(count))
        for i in range(count - 1, last - 1, -1):
            j = self._bits.interval(i)
            order[i], order[j] = order[j], order[i]
        return order

    def _shuffle(self, x, axis):
        if isinstance(x, ndarray):
            from numpy._shapes import axis_of

            axis = axis_of(axis, x.ndim)
            if not self._is_known():
                x[...] = filled(x.shape, x.dtype, None)
                return
            order = self._order(x.shape[axis])
            x[...] = x.swapaxes(0, axis)[order].swapaxes(0, axis)
            return
        if axis != 0:
            raise NotImplementedError("Axis argument is only supported on ndarray objects")
        if hasattr(x, "is_cuda"):
            refuse("random.shuffle of a tensor", "use x[torch.randperm(len(x))]")
        if not self._is_known():
            if not all(isinstance(item, (int, float, generic)) for item in x):
                self._refuse_unknown("shuffle")
            for i in range(len(x)):
                x[i] = unknown(I8 if isinstance(x[i], int) else F8)
            return
        for i in range(len(x) - 1, 0, -1):
            j = self._bits.interval(i)
            x[i], x[j] = x[j], x[i]

    def _refuse_unknown(self, what):
        refuse(
            f"random.{what} of a generator without a seed",
            "give the seed of the generator, as numpy.random.seed(0) or default_rng(0)",
        )

    def _permutation(self, x, axis=0):
        if isinstance(x, int) or isinstance(x, generic) and x.dtype.kind in "iu":
            count = operator.index(x)
            if count > MOST and self._is_known() and count <= _MOST_DRAWN:
                self._order(count)
                return filled((count,), I8, None)
            made = arange(count)
        else:
            made = array(x)
        if made.ndim == 0:
            raise IndexError("x must be an integer or at least 1-dimensional")
        self._shuffle(made, axis)
        return made

    def _chosen(self, a, size, replace, p, axis, integers, without):
        a = asarray(a)
        if a.ndim == 0:
            count = operator.index(a.item())
            if count <= 0 and product(shape_of(size if size is not None else ())):
                raise ValueError(self._NOT_POSITIVE)
        else:
            count = a.shape[axis]
            if count == 0:
                raise ValueError("a cannot be empty unless no samples are taken")
        shape = () if size is None else shape_of(size)
        wanted = product(shape)
        if p is not None:
            places = self._weighted(p, count, wanted, replace)
        elif replace:
            places = integers(count, wanted)
        else:
            if wanted > count:
                raise ValueError(self._TOO_MANY)
            places = without(count, wanted)
        if not self._is_known():
            kind = a.dtype if a.ndim else I8
            rest = a.shape[:axis] + shape + a.shape[axis + 1 :] if a.ndim else shape
            if not rest:
                return unknown(kind) if kind.kind in "fiub" else UnknownNumber()
            return filled(rest, kind, [unknown(kind)] * product(rest) if product(rest) <= MOST else None)
        if a.ndim == 0:
            return places[0] if size is None else filled(shape, I8, places if wanted <= MOST else None)
        from numpy._several import take

        if size is None:
            return take(a, places[0], axis)
        return take(a, filled(shape, I8, places), axis)

    def _weighted(self, p, count, wanted, replace):
        from bisect import bisect_right

        p = asarray(p).astype(F8)
        if p.ndim != 1:
            raise ValueError(f"{self._P} must be 1-dimensional")
        if p.size != count:
            raise ValueError(self._SIZES)
        parts = p._all()
        if any(type(part) is not float for part in parts):
            self._bits.is_known = False
            return []
        total = sum(parts)
        if total != total:
            raise ValueError(f"{self._PROBABILITIES} contain NaN")
        if any(part < 0 for part in parts):
            raise ValueError(f"{self._PROBABILITIES} are not non-negative")
        if abs(total - 1.0) > 1.4901161193847656e-08:
            raise ValueError(self._NOT_ONE)
        if not self._is_known():
            return []

        def sums():
            found, total = [], 0.0
            for k, part in enumerate(parts):
                total = part if k == 0 else total + part
                found.append(total)
            return [one / total for one in found]

        if replace:
            ends = sums()
            return [bisect_right(ends, self._bits.next_double()) for _ in range(wanted)]
        if sum(part > 0 for part in parts) < wanted:
            raise ValueError("Fewer non-zero entries in p than size")
        found, parts = [], list(parts)
        while len(found) < wanted:
            draws = [self._bits.next_double() for _ in range(wanted - len(found))]
            for place in found:
                parts[place] = 0.0
            ends = sums()
            found += list(dict.fromkeys(bisect_right(ends, draw) for draw in draws))
        return found


def _unknown_draw(name, kind):
    count = _HOW_MANY.get(name, 2)

    def draw(self, *arguments, size=None, **parameters):
        from _host import note

        note(
            f"numpy.random.{name} is not computed here: its numbers are not known, and neither are later ones of this generator"
        )
        self._bits.is_known = False
        size = arguments[count] if len(arguments) > count else size
        given = [*arguments[:count], *parameters.values()]
        if size is None and any(isinstance(one, (list, tuple, ndarray)) for one in given):
            size = broadcast(*(asarray(one).shape for one in given))
        return self._many(size, None, kind)

    draw.__name__ = name
    return draw


for _kind, _names in ((I8, _UNKNOWN_WHOLE), (F8, _UNKNOWN_FLOAT)):
    for _name in _names.split():
        setattr(Draws, _name, _unknown_draw(_name, _kind))


def _refused(name):
    def draw(self, *arguments, **keywords):
        refuse(f"random.{name}", "write it with numpy.random.normal or numpy.random.choice")

    return draw


for _name in ("dirichlet", "multinomial", "multivariate_normal", "multivariate_hypergeometric", "bytes", "permuted"):
    setattr(Draws, _name, _refused(_name))
__all__ = ["Draws", "about", "scalar"]
