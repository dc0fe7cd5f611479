"""`text % values` with unknown numbers."""

from _torch import TensorBase, register

from torch._unknown import UnknownNumber


def _percent(text, values):
    """`text % values`, where a value may be an unknown number."""
    import re

    left = list(values) if isinstance(values, tuple) else [values]

    def take():
        if not left:
            raise TypeError("not enough arguments for format string")
        return left.pop(0)

    def one(found):
        name, flags, width, precision, kind = found.groups("")
        if kind == "%":
            return "%"
        if width == "*":
            width = str(take())
        value = values[name[1:-1]] if name else take()
        if kind in "rsa":
            value, kind = (str if kind == "s" else repr)(value), "s"
        elif isinstance(value, TensorBase):
            value = value.item()
        if isinstance(value, UnknownNumber):
            return "?".ljust(int(width or 0)) if "-" in flags else "?".rjust(int(width or 0))
        if hasattr(type(value), "is_near"):
            text = value._ends(lambda end: ("%" + flags + width + precision + kind) % float(end))
            return text or "?".rjust(int(width or 0))
        return ("%" + flags + width + precision + kind) % (value,)

    made = re.sub(r"%(\(\w+\))?([#0\- +]*)(\*|\d+)?(\.\d+)?[hlL]?([a-zA-Z%])", one, text)
    if left and not isinstance(values, dict):
        raise TypeError("not all arguments converted during string formatting")
    return made


register("percent", _percent)
