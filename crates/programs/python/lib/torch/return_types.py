"""The named tuples that some operators return."""

from _torch import named_tuple as _named_tuple
from _torch import register as _register


def _make(name, fields):
    fields = fields.split()
    result = _named_tuple(f"torch.return_types.{name}", fields)

    def represent(self):
        lines = [f"{field}={value!r}" for field, value in zip(fields, self)]
        return f"torch.return_types.{name}(\n" + ",\n".join(lines) + ")"

    result.__repr__ = represent
    return result


_TABLE = {
    name: _make(name, "values indices")
    for name in ("max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin")
}
_TABLE["aminmax"] = _make("aminmax", "min max")
_FIELDS = {
    "frexp": "mantissa exponent",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "qr": "Q R",
    "svd": "U S V",
    "slogdet": "sign logabsdet",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
}
globals().update({name: _make(name, fields) for name, fields in _FIELDS.items()})
globals().update(_TABLE)
# The overloads that take `out=` have separate types.
globals().update(
    {
        f"{name}_out": _make(f"{name}_out", " ".join(made.__match_args__))
        for name, made in list(globals().items())
        if name[0] != "_" and isinstance(made, type) and name != "histogramdd"
    }
)
all_return_types = [made for name, made in list(globals().items()) if name[0] != "_" and isinstance(made, type)]
_register("return_types", _TABLE)
