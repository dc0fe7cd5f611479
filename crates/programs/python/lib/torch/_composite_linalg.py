"""Functions of linear algebra that are made of operators."""

import torch


def native_norm(input, p=2):
    return torch.norm(input, p)


def frobenius_norm(input, dim=None, keepdim=False):
    return torch.norm(input, 2, dim, keepdim) if dim is not None else torch.norm(input)


def nuclear_norm(input, keepdim=False):
    return torch.linalg.svdvals(input).sum(-1, keepdim)


def pinverse(input, rcond=1e-15):
    return torch.linalg.pinv(input)


def slogdet(input):
    return torch.linalg.slogdet(input)


def logdet(input):
    return torch.linalg.slogdet(input).logabsdet


def det(input):
    return torch.linalg.det(input)


def inverse(input):
    return torch.linalg.inv(input)


def cholesky(input, upper=False):
    return torch.linalg.cholesky(input, upper=upper)


def cholesky_inverse(L, upper=False):
    return torch._decompositions.decomposed("cholesky_inverse", [L], (L.shape, None))[0]


def cholesky_solve(B, L, upper=False):
    return torch._decompositions.decomposed("cholesky_solve", [B, L], (B.shape, None))[0]


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    return torch.return_types.triangular_solve((torch.linalg.solve_triangular(A, b, upper=upper), A.clone()))


def matrix_power(input, n):
    return torch.linalg.matrix_power(input, n)


def matrix_exp(input):
    return torch.linalg.matrix_exp(input)


def qr(input, some=True):
    return torch.return_types.qr(torch.linalg.qr(input, "reduced" if some else "complete"))


def svd(input, some=True, compute_uv=True):
    U, S, Vh = torch.linalg.svd(input, full_matrices=not some)
    return torch.return_types.svd((U, S, Vh.mT))


def geqrf(input):
    *batch, m, n = input.shape
    return torch.return_types.geqrf(
        torch._decompositions.decomposed("geqrf", [input], (input.shape, None), ((*batch, min(m, n)), None))
    )


def orgqr(input, tau):
    return torch.linalg.householder_product(input, tau)


def ormqr(input, tau, other, left=True, transpose=False):
    return torch._decompositions.decomposed("ormqr", [input, tau, other], (other.shape, None))[0]


def lu(input, pivot=True, get_infos=False, out=None):
    LU, pivots, info = torch.linalg.lu_factor_ex(input, pivot=pivot)
    return (LU, pivots, info) if get_infos else (LU, pivots)


def lu_solve(b, LU_data, LU_pivots):
    return torch.linalg.lu_solve(LU_data, LU_pivots, b)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    return torch.return_types.lu_unpack(torch.linalg.lu(LU_data))


def svd_lowrank(A, q=6, niter=2, M=None):
    *batch, m, n = A.shape
    made = torch._decompositions.decomposed(
        "svd_lowrank", [A], ((*batch, m, q), None), ((*batch, q), None), ((*batch, n, q), None)
    )
    return made


def pca_lowrank(A, q=None, center=True, niter=2):
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A if not center else A - A.mean(dim=-2, keepdim=True), q, niter)
