"""Arrays and their numbers as text, as numpy prints them."""

import math

from torch._unknown import UnknownNumber

from numpy._near import NearNumber
from numpy._offers import offered
from numpy._shapes import strides_of
from numpy._types import B1, F2, F4, F8, I8
from numpy._values import half, rounded

_OPTIONS = {"edgeitems": 3, "threshold": 1000, "precision": 8, "suppress": False, "linewidth": 75}


@offered
def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None):
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
        "suppress": suppress,
    }
    _OPTIONS.update((name, value) for name, value in given.items() if value is not None)


def shortest(value, kind):
    """The fewest digits that name a float of this type, as Python writes them."""
    if kind is F8 or value != value or math.isinf(value):
        return repr(value)
    digits = 9 if kind is F4 else 5
    back = (lambda text: rounded([float(text)], F4)[0]) if kind is F4 else (lambda text: half(float(text)))
    for count in range(digits):
        text = f"{value:.{count}e}"
        if back(text) == value:
            return text
    return f"{value:.{digits}e}"


def _digits(value, kind):
    """Sign, digits and the exponent of the first digit."""
    text = shortest(abs(value), kind)
    mantissa, _, exponent = text.partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    exponent = int(exponent or 0) + len(whole) - 1 - (len(whole + part) - len((whole + part).lstrip("0")))
    digits = digits.rstrip("0")
    return "-" if math.copysign(1, value) < 0 else "", digits or "0", exponent if digits else 0


def _positional(value, kind, precision):
    """A float without an exponent, with at most `precision` digits after the point and no zeros at the end."""
    sign, digits, exponent = _digits(value, kind)
    behind = max(0, len(digits) - 1 - exponent)
    if precision is not None and behind > precision:
        text = f"{abs(value):.{precision}f}"
        return sign + (text.rstrip("0") if "." in text else text + ".")
    if exponent < 0:
        return sign + "0." + "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 1, "0")
    return sign + digits[: exponent + 1] + "." + digits[exponent + 1 :]


def _scientific(value, kind, precision):
    sign, digits, exponent = _digits(value, kind)
    if len(digits) - 1 > precision:
        mantissa, _, power = f"{abs(value):.{precision}e}".partition("e")
        exponent = int(power)
        mantissa = mantissa.rstrip("0") if "." in mantissa else mantissa + "."
    else:
        mantissa = digits[0] + "." + digits[1:]
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def scalar_text(value, kind):
    """`str` of one float."""
    if kind is F8 or value != value or math.isinf(value):
        return repr(float(value))
    size = abs(value)
    if size == 0 or 1e-4 <= size < _LIMITS[kind]:
        text = _positional(value, kind, None)
        return text + "0" if text.endswith(".") else text
    sign, digits, exponent = _digits(value, kind)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


_LIMITS = {F8: 1e8, F4: 1e6, F2: 1e3}


def _float_texts(values, kind, options):
    """Texts of one width for floats; unknown numbers are `?`."""
    precision = options["precision"]
    known = [v for v in values if type(v) is float and math.isfinite(v)]
    sizes = [abs(v) for v in known if v != 0]
    is_scientific = False
    if sizes:
        least, most = min(sizes), max(sizes)
        ratio = rounded([most / least if most / least < math.inf else math.inf], kind)[0]
        is_scientific = most >= _LIMITS[kind] or not options["suppress"] and (least < 0.0001 or ratio > 1000.0)
    left = right = 0
    if known and is_scientific:
        texts = [_scientific(v, kind, precision) for v in known]
        digits = max(len(text.partition("e")[0].partition(".")[2]) for text in texts)
        size = max(len(text.partition("e")[2]) for text in texts) - 1
        left, right = max(len(text.partition(".")[0]) for text in texts), size + 2 + digits
    elif known:
        texts = [_positional(v, kind, precision).partition(".") for v in known]
        left, right = max(len(text[0]) for text in texts), max(len(text[2]) for text in texts)

    def text_of(value):
        if not (type(value) is float and math.isfinite(value)):
            return ("?" if type(value) is UnknownNumber else str(value)).rjust(left + right + 1)
        if is_scientific:
            # All numbers have as many digits as the longest, and these are the digits of the number itself.
            mantissa, _, power = f"{value:.{digits}e}".partition("e")
            mantissa = mantissa if "." in mantissa else mantissa + "."
            return f"{mantissa}e{power[0]}{power[1:].zfill(size)}".rjust(left + 1 + right)
        whole, _, part = _positional(value, kind, precision).partition(".")
        return whole.rjust(left) + "." + part.ljust(right)

    others = [
        "?" if type(v) is UnknownNumber else "-inf" if v == -math.inf else "inf" for v in values if v not in known
    ]
    # Room for the signs of all numbers that are not finite.
    left = max([left, *(len(text) - right - 1 for text in others)])
    return list(map(text_of, values))


def _texts(values, kind, is_one, options):
    if kind.kind == "f":
        if NearNumber in map(type, values):
            low = _float_texts([v.low if type(v) is NearNumber else v for v in values], kind, options)
            high = _float_texts([v.high if type(v) is NearNumber else v for v in values], kind, options)
            return [a if a.strip() == b.strip() else "?".rjust(len(a)) for a, b in zip(low, high)]
        return _float_texts(values, kind, options)
    if kind.kind == "U":
        return [repr(str(value)) if type(value) is not UnknownNumber else "?" for value in values]
    texts = [str(value) for value in values]
    if kind.kind == "b":
        # A text is as wide as " True" unless the array has no dimension.
        return texts if is_one or texts.count("?") == len(texts) else [text.rjust(5) for text in texts]
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _shown(array, edge):
    """The elements that a shortened text shows, and how many there are along each axis."""
    axes = [range(size) if size <= 2 * edge else [*range(edge), *range(size - edge, size)] for size in array.shape]
    values, found = array._all(), [0]
    for axis, stride in zip(axes, strides_of(array.shape)):
        found = [place + at * stride for place in found for at in axis]
    return [values[place] for place in found], [len(axis) for axis in axes]


@offered
def array2string(
    a, max_line_width=None, precision=None, suppress_small=None, separator=" ", prefix="", *, threshold=None, suffix=""
):
    given = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small, "threshold": threshold}
    options = {**_OPTIONS, **{name: value for name, value in given.items() if value is not None}}
    options["linewidth"] -= len(suffix)
    if a.size == 0:
        return "[]"
    is_short, edge = a.size > options["threshold"], options["edgeitems"]
    values, counts = _shown(a, edge) if is_short else (a._all(), list(a.shape))
    texts = iter(_texts(values, a.dtype, a.ndim == 0, options))
    if a.ndim == 0:
        return next(texts)

    def part(axis, indent, width):
        size, left = a.shape[axis], a.ndim - axis
        is_cut = is_short and 2 * edge < size
        inner = indent + " "
        if left == 1:
            room = width - max(len(separator.rstrip()), 1)
            text, line = "", indent
            words = [next(texts) for _ in range(counts[axis])]
            if is_cut:
                words.insert(edge, "...")
            for at, word in enumerate(words):
                if len(line) + len(word) > room and len(line) > len(indent):
                    text += line.rstrip() + "\n"
                    line = indent
                line += word + (separator if at < len(words) - 1 else "")
            text += line
        else:
            text, between = "", separator.rstrip() + "\n" * (left - 1)
            for at in range(counts[axis]):
                if is_cut and at == edge:
                    text += indent + "..." + between
                text += indent + part(axis + 1, inner, width - 1) + (between if at != counts[axis] - 1 else "")
        return "[" + text[len(indent) :] + "]"

    return part(0, " " + " " * len(prefix), options["linewidth"])


def array_repr(a):
    prefix, is_short = "array(", a.size > _OPTIONS["threshold"]
    text = array2string(a, separator=", ", prefix=prefix, suffix=")") if a.size or a.shape == (0,) else "[]"
    extras = []
    if a.size == 0 and a.shape != (0,) or is_short:
        extras.append(f"shape={a.shape}")
    if a.dtype not in (F8, I8, B1) or a.size == 0:
        extras.append("dtype=" + (f"'{a.dtype}'" if a.dtype.kind == "U" else a.dtype.name))
    if not extras:
        return prefix + text + ")"
    extra = ", ".join(extras) + ")"
    whole = prefix + text + ","
    last = len(whole) - (whole.rfind("\n") + 1)
    return whole + (" " if last + len(extra) + 1 <= _OPTIONS["linewidth"] else "\n" + " " * len(prefix)) + extra
