"""Functions of linear algebra that are made of operators."""

import torch


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


def matrix_power(input, n):
    return torch.linalg.matrix_power(input, n)


def matrix_exp(input):
    return torch.linalg.matrix_exp(input)


def qr(input, some=True):
    return torch.return_types.qr(torch.linalg.qr(input, "reduced" if some else "complete"))


def svd(input, some=True, compute_uv=True):
    U, S, Vh = torch.linalg.svd(input, full_matrices=not some)
    return torch.return_types.svd((U, S, Vh.mT))


def svd_lowrank(A, q=6, niter=2, M=None):
    *batch, m, n = A.shape
    made = torch._decompositions.decomposed(
        "svd_lowrank", [A], ((*batch, m, q), None), ((*batch, q), None), ((*batch, n, q), None)
    )
    return made


def pca_lowrank(A, q=None, center=True, niter=2):
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A if not center else A - A.mean(dim=-2, keepdim=True), q, niter)
