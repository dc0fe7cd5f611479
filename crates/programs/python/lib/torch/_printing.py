"""How tensors print: values of the host where they are known, shapes elsewhere."""


def _number(value, is_float, width_of=None):
    from torch._tensor import UnknownNumber

    if isinstance(value, UnknownNumber):
        return "?"
    if isinstance(value, bool):
        return "True" if value else "False"
    if not is_float:
        return str(value)
    return f"{value:.4f}" if value != int(value) else f"{int(value)}."


def _column(values, is_float):
    """All numbers in one format, as wide as the widest."""
    from torch._tensor import UnknownNumber

    known = [
        v for v in values if not isinstance(v, UnknownNumber) and v == v and v not in (float("inf"), -float("inf"))
    ]
    if not is_float or any(isinstance(v, bool) for v in values):
        texts = [_number(v, False) for v in values]
    elif all(v == int(v) for v in known):
        nonzero = [abs(v) for v in known if v]
        if nonzero and max(nonzero) / min(nonzero) > 1000.0 or nonzero and max(nonzero) > 1e8:
            texts = ["?" if isinstance(v, UnknownNumber) else f"{v:.4e}" for v in values]
        else:
            texts = [
                "?" if isinstance(v, UnknownNumber) else f"{v:.0f}." if v == v and abs(v) != float("inf") else str(v)
                for v in values
            ]
    else:
        nonzero = [abs(v) for v in known if v]
        scientific = max(nonzero) / min(nonzero) > 1000.0 or max(nonzero) > 1e8 or min(nonzero) < 1e-4
        texts = ["?" if isinstance(v, UnknownNumber) else f"{v:.4e}" if scientific else f"{v:.4f}" for v in values]
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _nested(texts, shape, indent):
    if not shape:
        return texts[0].strip()
    if len(shape) == 1:
        shown = texts if len(texts) <= 1000 else texts[:3] + [" ..."] + texts[-3:]
        per_line = max(1, (80 - indent) // (len(texts[0]) + 2)) if texts else 1
        lines = [shown[i : i + per_line] for i in range(0, len(shown), per_line)] or [[]]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    step = len(texts) // shape[0] if shape[0] else 0
    parts = [_nested(texts[i * step : (i + 1) * step], shape[1:], indent + 1) for i in range(shape[0])]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def text(tensor):
    import torch
    from torch._tensor import UnknownNumber, _note_placeholders

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

        note("the values of this tensor are not computed here; its shape is printed")
        body = "..."
        suffix.append(f"size={tuple(tensor.shape)}")
    else:
        body = _nested(_column(values, tensor.dtype.is_floating_point), tuple(tensor.shape), 7) if values else "[]"
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
    made = "tensor(" + ", ".join([body] + suffix) + ")"
    return "Parameter containing:\n" + made if is_parameter else made


def _sparse_text(tensor):
    parts = [f"indices={text(tensor._indices())}", f"values={text(tensor._values())}"]
    if tensor.is_cuda:
        parts.append(f"device='{tensor.device}'")
    parts += [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}", "layout=torch.sparse_coo"]
    return "tensor(" + ",\n       ".join(parts[:2]) + ",\n       " + ", ".join(parts[2:]) + ")"
