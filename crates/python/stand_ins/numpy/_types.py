"""Types of elements."""


class dtype:
    def __init__(self, name, kind=None, itemsize=None):
        known = name if isinstance(name, dtype) else of(name) if kind is None else None
        self.name, self.kind, self.itemsize = (
            (known.name, known.kind, known.itemsize) if known is not None else (name, kind, itemsize)
        )

    def __call__(self, value=0):
        return float(value) if self.kind == "f" else bool(value) if self.kind == "b" else int(value)

    def __eq__(self, other):
        try:
            return self.name == of(other).name
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"dtype('{self.name}')"

    def __str__(self):
        return self.name

    type = property(lambda self: self)


_ALL = [
    dtype(*row)
    for row in (
        ("float64", "f", 8),
        ("float32", "f", 4),
        ("float16", "f", 2),
        ("int64", "i", 8),
        ("int32", "i", 4),
        ("int16", "i", 2),
        ("int8", "i", 1),
        ("uint8", "u", 1),
        ("uint16", "u", 2),
        ("uint32", "u", 4),
        ("uint64", "u", 8),
        ("bool", "b", 1),
        ("object", "O", 8),
        ("complex64", "c", 8),
        ("complex128", "c", 16),
    )
]
_BY_NAME = {kind.name: kind for kind in _ALL}
(
    float64,
    float32,
    float16,
    int64,
    int32,
    int16,
    int8,
    uint8,
    uint16,
    uint32,
    uint64,
    bool_,
    object_,
    complex64,
    complex128,
) = _ALL


def of(value):
    if isinstance(value, dtype):
        return value
    found = (
        {float: float64, int: int64, bool: bool_, object: object_, complex: complex128, None: float64}.get(value)
        if not isinstance(value, str)
        else _BY_NAME.get({"float": "float64", "int": "int64"}.get(value, value))
    )
    if found is None:
        raise TypeError(f"data type {value!r} not understood")
    return found


def wider(a, b):
    order = "bui?fcO"
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    first, second = sorted((a, b), key=lambda kind: order.index(kind.kind))
    if second.kind == "f" and first.kind in "ui" and first.itemsize >= 4:
        return float64
    return second
