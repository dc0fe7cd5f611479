"""Arrays and their numbers as text, as numpy prints them."""

import contextlib
import math

from torch._unknown import UnknownNumber

from numpy._near import NearNumber
from numpy._offers import refuse
from numpy._types import B1, F2, F4, F8, I8
from numpy._values import half, rounded

_OPTIONS = {
    "edgeitems": 3,
    "threshold": 1000,
    "floatmode": "maxprec",
    "precision": 8,
    "suppress": False,
    "linewidth": 75,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "formatter": None,
    "legacy": False,
    "override_repr": None,
}
_CHANGEABLE = (
    "edgeitems",
    "threshold",
    "precision",
    "suppress",
    "linewidth",
    "nanstr",
    "infstr",
    "floatmode",
    "formatter",
)
_KINDS = {"all": "fiubUO", "float_kind": "f", "float": "f", "int_kind": "iu", "int": "iu", "bool": "b", "str_kind": "U"}


def _checked(options):
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError(f"set_printoptions() got an unexpected keyword argument '{name}'")
        if value is not None and (name not in _CHANGEABLE or name == "floatmode" and value not in ("maxprec", "fixed")):
            refuse(f"set_printoptions with {name}={value!r}", "leave the argument out")
        if name == "formatter" and value is not None and not value.keys() <= _KINDS.keys():
            refuse("set_printoptions with this formatter", "name one of " + ", ".join(_KINDS))
    return {name: value for name, value in options.items() if value is not None or name == "formatter"}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None, nanstr=None, infstr=None, formatter=None, **others):  # fmt: skip
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth,
             "suppress": suppress, "nanstr": nanstr, "infstr": infstr, "formatter": formatter, **others}  # fmt: skip
    _OPTIONS.update(_checked(given))


def get_printoptions():
    return dict(_OPTIONS)


@contextlib.contextmanager
def printoptions(*args, **kwargs):
    before = dict(_OPTIONS)
    set_printoptions(*args, **kwargs)
    try:
        yield dict(_OPTIONS)
    finally:
        _OPTIONS.update(before)


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


def _positional(value, kind, precision, is_fixed=False):
    """A float without an exponent, with at most `precision` digits after the point and no zeros at the end."""
    sign, digits, exponent = _digits(value, kind)
    behind = max(0, len(digits) - 1 - exponent)
    if is_fixed or precision is not None and behind > precision:
        text = f"{abs(value):.{precision}f}"
        text = text if "." in text else text + "."
        return sign + (text if is_fixed else text.rstrip("0"))
    if exponent < 0:
        return sign + "0." + "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 1, "0")
    return sign + digits[: exponent + 1] + "." + digits[exponent + 1 :]


def _scientific(value, kind, precision, is_fixed=False):
    sign, digits, exponent = _digits(value, kind)
    if is_fixed or len(digits) - 1 > precision:
        mantissa, _, power = f"{abs(value):.{precision}e}".partition("e")
        exponent = int(power)
        mantissa = mantissa if is_fixed or "." not in mantissa else mantissa.rstrip("0")
        mantissa = mantissa if "." in mantissa else mantissa + "."
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
    precision, is_fixed = options["precision"], options["floatmode"] == "fixed"
    known = [v for v in values if type(v) is float and math.isfinite(v)]
    sizes = [abs(v) for v in known if v != 0]
    is_scientific = False
    if sizes:
        least, most = min(sizes), max(sizes)
        ratio = rounded([most / least if most / least < math.inf else math.inf], kind)[0]
        is_scientific = most >= _LIMITS[kind] or not options["suppress"] and (least < 0.0001 or ratio > 1000.0)
    left = right = 0
    make = None
    if known and is_scientific:
        texts = [_scientific(v, kind, precision, is_fixed) for v in known]
        digits = max(len(text.partition("e")[0].partition(".")[2]) for text in texts)
        size = max(len(text.partition("e")[2]) for text in texts) - 1
        left = max(len(text.partition(".")[0]) for text in texts)
        right = size + 2 + digits

        def make(value):
            # All numbers have as many digits as the longest, and these are the digits of the number itself.
            mantissa, _, power = f"{value:.{digits}e}".partition("e")
            mantissa = mantissa if "." in mantissa else mantissa + "."
            return f"{mantissa}e{power[0]}{power[1:].zfill(size)}".rjust(left + 1 + right)

    elif known:
        texts = [_positional(v, kind, precision, is_fixed).partition(".") for v in known]
        left, right = max(len(text[0]) for text in texts), max(len(text[2]) for text in texts)

        def make(value):
            whole, _, part = _positional(value, kind, precision, is_fixed).partition(".")
            return whole.rjust(left) + "." + part.ljust(right)

    others = [_special_text(v, options) for v in values if not (type(v) is float and math.isfinite(v))]
    if others:
        left = max(left, *(len(text) - right - 1 for text in others))
        if any(text not in ("?",) for text in others):
            # Room for the signs of all numbers that are not finite.
            negative = any(type(v) is float and v == -math.inf for v in values)
            left = max(left, len(options["nanstr"]) - right - 1, len(options["infstr"]) + negative - right - 1)
    width = left + right + 1
    return [
        make(v)
        if type(v) is float and math.isfinite(v)
        else _special_text(v, options).rjust(width if known or others else 0)
        for v in values
    ]


def _special_text(value, options):
    if type(value) is UnknownNumber:
        return "?"
    if value != value:
        return options["nanstr"]
    return ("-" if value < 0 else "") + options["infstr"]


def _texts(values, kind, options):
    formatter = options["formatter"]
    if formatter:
        chosen = next((formatter[name] for name in formatter if kind.kind in _KINDS[name]), None)
        if chosen is not None:
            return [value if type(value) is str else value for value in map(_by(chosen, kind), values)]
    if kind.kind == "f":
        if NearNumber in map(type, values):
            low = _float_texts([v.low if type(v) is NearNumber else v for v in values], kind, options)
            high = _float_texts([v.high if type(v) is NearNumber else v for v in values], kind, options)
            return [a if a.strip() == b.strip() else "?".rjust(len(a)) for a, b in zip(low, high)]
        return _float_texts(values, kind, options)
    if kind.kind == "O":
        return [
            f"list({value!r})"
            if isinstance(value, list)
            else repr(value)
            if not isinstance(value, str)
            else repr(value)
            for value in values
        ]
    if kind.kind == "U":
        return [repr(str(value)) if type(value) is not UnknownNumber else "?" for value in values]
    texts = [str(value) for value in values]
    if kind.kind == "b":
        # A text is as wide as " True" unless the array has no dimension.
        is_one = options.get("is_one") or texts.count("?") == len(texts)
        return texts if is_one else [text.rjust(5) for text in texts]
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _by(chosen, kind):
    from numpy._values import scalar

    return lambda value: chosen(scalar(value, kind))


def _ends_of(array, edge):
    """The elements that a shortened text shows, and their places along each axis."""
    axes = [range(size) if size <= 2 * edge else [*range(edge), *range(size - edge, size)] for size in array.shape]
    from numpy._shapes import strides_of

    values, strides = array._all(), strides_of(array.shape)
    places = [0]
    for axis, stride in zip(axes, strides):
        places = [place + at * stride for place in places for at in axis]
    return [values[place] for place in places], [len(axis) for axis in axes]


def array2string(a, max_line_width=None, precision=None, suppress_small=None, separator=" ", prefix="", *, formatter=None, threshold=None, edgeitems=None, floatmode=None, suffix=""):  # fmt: skip
    options = {**_OPTIONS}
    given = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small, "threshold": threshold, "edgeitems": edgeitems,
             "floatmode": floatmode, "formatter": formatter}  # fmt: skip
    options.update((name, value) for name, value in given.items() if value is not None)
    options["linewidth"] -= len(suffix)
    if a.size == 0:
        return "[]"
    is_short, edge = a.size > options["threshold"], options["edgeitems"]
    values, counts = _ends_of(a, edge) if is_short else (a._all(), list(a.shape))
    options["is_one"] = a.ndim == 0
    texts = iter(_texts(values, a.dtype, options))
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


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    if a.ndim == 0:
        return str(a[()])
    return array2string(a, max_line_width, precision, suppress_small, " ", "")


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    a = arr
    width = max_line_width or _OPTIONS["linewidth"]
    prefix, is_short = "array(", a.size > _OPTIONS["threshold"]
    text = (
        array2string(a, width, precision, suppress_small, ", ", prefix, suffix=")")
        if a.size or a.shape == (0,)
        else "[]"
    )
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
    return whole + (" " if last + len(extra) + 1 <= width else "\n" + " " * len(prefix)) + extra
