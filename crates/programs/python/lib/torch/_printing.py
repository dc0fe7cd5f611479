"""How tensors print: values of the host where they are known, shapes elsewhere."""

import math

_DEFAULTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES = {"default": {}, "short": {"precision": 2, "edgeitems": 2}, "full": {"threshold": math.inf}}
_options = dict(_DEFAULTS)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    if profile is not None:
        _options.update({**_DEFAULTS, **_PROFILES[profile]})
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def _is_unknown(value):
    return getattr(type(value), "is_unknown", False)


class _Formatter:
    """The format of all numbers that are shown (`torch._tensor_str._Formatter`)."""

    def __init__(self, values, is_float):
        self.is_float, self.width = is_float, 1
        self.is_integral = self.is_scientific = False
        known = [v for v in values if not _is_unknown(v)]
        if not is_float:
            self.width = max((len(str(v)) for v in known), default=1)
            return
        finite = [v for v in known if v and math.isfinite(v)]
        if not finite:
            self.is_integral = True
            return
        most, least = max(map(abs, finite)), min(map(abs, finite))
        self.is_integral = all(v == math.ceil(v) for v in finite)
        self.is_scientific = most / least > 1000.0 or most > 1.0e8 or (least < 1.0e-4 and not self.is_integral)
        if _options["sci_mode"] is not None:
            self.is_scientific = _options["sci_mode"]
        self.width = max(len(self._text(v)) for v in finite)

    def _text(self, value):
        if _is_unknown(value):
            return "?"
        if not self.is_float:
            return str(value)
        if self.is_scientific:
            return f"{value:.{_options['precision']}e}"
        if self.is_integral:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{_options['precision']}f}"

    def text(self, value):
        return self._text(value).rjust(self.width)


def _shown(values, shape, is_short):
    """The values that are shown, as nested lists; `None` stands for what is left out."""
    if not shape:
        return values[0]
    edge, step = _options["edgeitems"], len(values) // shape[0] if shape[0] else 0
    rows = list(range(shape[0]))
    if is_short and shape[0] > 2 * edge:
        rows = [*rows[:edge], None, *rows[-edge:]]
    return [None if row is None else _shown(values[row * step : (row + 1) * step], shape[1:], is_short) for row in rows]


def _leaves(shown):
    if isinstance(shown, list):
        for part in shown:
            yield from _leaves(part)
    elif shown is not None:
        yield shown


def _nested(shown, depth, indent, formatter):
    if not depth:
        return formatter.text(shown)
    if depth == 1:
        texts = [" ..." if part is None else formatter.text(part) for part in shown]
        per_line = max(1, (_options["linewidth"] - indent) // (formatter.width + 2))
        lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)] or [[]]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    parts = ["..." if part is None else _nested(part, depth - 1, indent + 1, formatter) for part in shown]
    return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"


def _body(values, tensor, indent):
    shape = tuple(tensor.shape)
    if not values:
        return "[]"
    shown = _shown(values, shape, len(values) > _options["threshold"])
    formatter = _Formatter(list(_leaves(shown)), tensor.dtype.is_floating_point)
    return _nested(shown, len(shape), indent, formatter)


def _with_suffixes(text, suffixes, indent):
    """The text with its suffixes on the last line. A suffix that does not fit begins a line."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def text(tensor, indent=7):
    import torch
    from torch._tensor import _note_placeholders

    if tensor.is_sparse:
        return _sparse_text(tensor)
    _note_placeholders(tensor)
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    suffix = []
    values = tensor._known_values() if not tensor.is_cuda else None
    if tensor.is_cuda:
        suffix.append(f"device='{tensor.device}'")
    if values is None:
        from _host import note

        brief = "; printing takes a few KiB of a GPU for a moment, which are not counted" if tensor.is_cuda else ""
        note(f"the values of this tensor are not computed here; its shape is printed{brief}")
        body = "..."
        suffix.append(f"size={tuple(tensor.shape)}")
    else:
        body = _body(values, tensor, indent)
    if not values and values is not None and tuple(tensor.shape) != (0,):
        suffix.append(f"size={tuple(tensor.shape)}")
    usual = (torch.get_default_dtype(), torch.int64, torch.bool)
    if tensor.dtype not in usual or (values is not None and not values and tensor.dtype != torch.get_default_dtype()):
        suffix.append(f"dtype={tensor.dtype}")
    node = tensor._node()
    name = node and node.name()
    if name is not None:
        suffix.append(f"grad_fn=<{name}>")
    elif tensor.requires_grad:
        suffix.append("requires_grad=True")
    made = _with_suffixes("tensor(" + body, suffix, indent)
    return "Parameter containing:\n" + made if is_parameter else made


def _sparse_text(tensor):
    parts = [f"indices={text(tensor._indices(), 22)}", f"values={text(tensor._values(), 21)}"]
    if tensor.is_cuda:
        parts.append(f"device='{tensor.device}'")
    parts += [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}", "layout=torch.sparse_coo"]
    return "tensor(" + ",\n       ".join(parts[:2]) + ",\n       " + ", ".join(parts[2:]) + ")"
