"""`torch.nn.utils.parametrizations`: weights with a given norm."""

from _refused import Missing as _Missing

import torch
from torch.nn import functional as _F
from torch.nn.module import Module as _Module
from torch.nn.utils import parametrize

orthogonal = _Missing(
    "torch.nn.utils.parametrizations.orthogonal", "matrices are not decomposed here; leave the parametrization out"
)


class _WeightNorm(_Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return torch._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        weight_g = torch.norm_except_dim(weight, 2, self.dim)
        weight_v = weight
        return weight_g, weight_v


def weight_norm(module, name="weight", dim=0):
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    return module


def _write_normalized(weight_mat, vector, eps, out):
    """`normalize(mv(...), out=out)`: the product dies before its norm, and what is written into `out` takes no memory."""
    product = torch.mv(weight_mat, vector)
    denom = product.norm(2.0, 0, keepdim=True).clamp_min_(eps).expand_as(product)
    out.mul_(1)
    del product
    del denom
    return out


class _SpectralNorm(_Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim if dim >= 0 else dim + ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            weight_mat = self._reshape_weight_to_matrix(weight)
            h, w = weight_mat.size()
            u = weight_mat.new_empty(h).normal_(0, 1)
            v = weight_mat.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", _F.normalize(u, dim=0, eps=self.eps))
            self.register_buffer("_v", _F.normalize(v, dim=0, eps=self.eps))
            self._power_method(weight_mat, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    @torch.no_grad()
    def _power_method(self, weight_mat, n_power_iterations):
        for _ in range(n_power_iterations):
            self._u = _write_normalized(weight_mat, self._v, self.eps, self._u)
            self._v = _write_normalized(weight_mat.mT, self._u, self.eps, self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return _F.normalize(weight, dim=0, eps=self.eps)
        weight_mat = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(weight_mat, self.n_power_iterations)
        u = self._u.clone(memory_format=torch.contiguous_format)
        v = self._v.clone(memory_format=torch.contiguous_format)
        sigma = torch.vdot(u, torch.mv(weight_mat, v))
        return weight / sigma

    def right_inverse(self, value):
        return value


def _dimension(module, dim):
    if dim is not None:
        return dim
    nn = torch.nn
    return 1 if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)) else 0


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    parametrize.register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, _dimension(module, dim), eps)
    )
    return module
