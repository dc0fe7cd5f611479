"""`torch.linalg`: norms and products as PyTorch computes them, decompositions by the sizes of their results."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _torch import operator as _operator

import torch
from torch import return_types as _types
from torch._decompositions import decomposed as _decomposed
from torch._decompositions import square as _square


class LinAlgError(RuntimeError):
    pass


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return _operator("linalg_vector_norm")(x, ord, [dim] if isinstance(dim, int) else dim, keepdim)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    if (
        isinstance(ord, str)
        and ord == "nuc"
        or (
            ord is not None
            and ord != "fro"
            and (isinstance(dim, (tuple, list)) and len(dim) == 2 or dim is None and A.dim() == 2)
        )
    ):
        return matrix_norm(A, ord, dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord in (None, "fro") else ord, dim, keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    if ord == "fro":
        return vector_norm(A, 2, list(dim), keepdim)
    first, second = (d % A.dim() for d in dim)
    if ord in ("nuc", 2, -2):
        moved = A.movedim((first, second), (-2, -1))
        values = svdvals(moved)
        found = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord > 0 else values.amin(-1)
        return (
            found.reshape([1 if d in (first, second) else size for d, size in enumerate(A.shape)]) if keepdim else found
        )
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) == float("inf"):
        first, second = second, first
    if not keepdim and second > first:
        second -= 1
    sums = vector_norm(A, 1, [first], keepdim)
    return sums.amax(second, keepdim) if ord > 0 else sums.amin(second, keepdim)


def matmul(input, other):
    return torch.matmul(input, other)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    return A.diagonal(offset, dim1, dim2)


def vecdot(x, y, *, dim=-1):
    if x.dim() == 1 and y.dim() == 1:
        return torch.dot(x, y)
    return x.mul(y).sum(dim)


def matrix_power(A, n):
    _square(A, "matrix_power")
    if n == 0:
        return A.clone(memory_format=torch.contiguous_format).copy_(
            torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        )
    if n == 1:
        return A.clone()
    if n == -1:
        return inv(A)
    base = inv(A) if n < 0 else A
    n = abs(n)
    if n == 2:
        return torch.matmul(base, base)
    if n == 3:
        return torch.matmul(torch.matmul(base, base), base)
    z = result = None
    while n > 0:
        n, bit = divmod(n, 2)
        z = base if z is None else torch.matmul(z, z)
        if bit:
            result = z if result is None else torch.matmul(result, z)
    return result


_int = torch.int32


def cholesky_ex(input, *, upper=False, check_errors=False):
    return _types.linalg_cholesky_ex(
        _decomposed("linalg.cholesky", [input], (input.shape, None), (_square(input, "cholesky"), _int))
    )


def cholesky(input, *, upper=False):
    return cholesky_ex(input).L


def inv_ex(A, *, check_errors=False):
    return _types.linalg_inv_ex(_decomposed("linalg.inv", [A], (A.shape, None), (_square(A, "inv"), _int)))


def inv(A):
    return inv_ex(A).inverse


def det(A):
    return _decomposed("linalg.det", [A], (_square(A, "det"), None))[0]


def slogdet(A):
    batch = _square(A, "slogdet")
    return _types.linalg_slogdet(_decomposed("linalg.slogdet", [A], (batch, None), (batch, None)))


def qr(A, mode="reduced"):
    *batch, m, n = A.shape
    k = min(m, n)
    columns, rows = (k, k) if mode != "complete" else (m, m)
    return _types.linalg_qr(
        _decomposed("linalg.qr", [A], ((*batch, m, columns) if mode != "r" else (0,), None), ((*batch, rows, n), None))
    )


def eigh(A, UPLO="L"):
    batch = _square(A, "eigh")
    return _types.linalg_eigh(_decomposed("linalg.eigh", [A], ((*batch, A.shape[-1]), None), (A.shape, None)))


def eigvalsh(A, UPLO="L"):
    return _decomposed("linalg.eigvalsh", [A], ((*_square(A, "eigvalsh"), A.shape[-1]), None))[0]


def svd(A, full_matrices=True, *, driver=None):
    *batch, m, n = A.shape
    k = min(m, n)
    return _types.linalg_svd(
        _decomposed(
            "linalg.svd",
            [A],
            ((*batch, m, m if full_matrices else k), None),
            ((*batch, k), None),
            ((*batch, n if full_matrices else k, n), None),
        )
    )


def svdvals(A, *, driver=None):
    *batch, m, n = A.shape
    return _decomposed("linalg.svdvals", [A], ((*batch, min(m, n)), None))[0]


def cond(A, p=None):
    if p in (None, 2, -2):
        values = svdvals(A)
        return values[..., 0] / values[..., -1] if p != -2 else values[..., -1] / values[..., 0]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(A, *, tol=None, atol=None, rtol=None, hermitian=False):
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    largest = values.amax(-1, True)
    limit = largest * (rtol if rtol is not None else torch.finfo(A.dtype).eps * max(A.shape[-2:]))
    return (values > limit).sum(-1)


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    *batch, m, n = A.shape
    return _decomposed("linalg.pinv", [A], ((*batch, n, m), None))[0]


def _right_side(A, B, left):
    """The shape of a solution."""
    batch = _square(A, "solve")
    if left and B.dim() == 1 or B.dim() == A.dim() - 1 and B.shape == A.shape[:-1]:
        return torch.broadcast_shapes(batch, B.shape[:-1]) + B.shape[-1:]
    return torch.broadcast_shapes(batch, B.shape[:-2]) + B.shape[-2:]


def solve_ex(A, B, *, left=True, check_errors=False):
    return _types.linalg_solve_ex(
        _decomposed("linalg.solve", [A, B], (_right_side(A, B, left), None), (A.shape[:-2], _int))
    )


def solve(A, B, *, left=True):
    return solve_ex(A, B, left=left).result


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    return _decomposed("linalg.solve_triangular", [A, B], (_right_side(A, B, left), None))[0]


def lstsq(A, B, rcond=None, *, driver=None):
    *batch, m, n = A.shape
    columns = () if B.dim() == 1 else B.shape[-1:]
    made = _decomposed(
        "linalg.lstsq", [A, B], ((*batch, n, *columns), None), ((0,), None), ((0,), torch.int64), ((0,), None)
    )
    return _types.linalg_lstsq(made)


def matrix_exp(A):
    _square(A, "matrix_exp")
    return _decomposed("linalg.matrix_exp", [A], (A.shape, None))[0]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    made = _operator("linalg_" + name)
    if made is None:
        from torch import _names

        _names.refuse("torch.linalg", name)
    return made
