"""Operators that ATen makes of others, in its order."""

import torch
from _refused import Missing as _Missing


def _several(tensors):
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


def hstack(tensors):
    tensors = [torch.atleast_1d(t) for t in tensors]
    return torch.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):
    return torch.cat([torch.atleast_2d(t) for t in tensors], 0)


row_stack = vstack


def dstack(tensors):
    return torch.cat([atleast_3d(t) for t in tensors], 2)


def column_stack(tensors):
    return hstack([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in tensors])


def atleast_3d(*tensors):
    def one(t):
        return (t.reshape(1, 1, 1) if t.dim() == 0 else t.unsqueeze(0).unsqueeze(-1) if t.dim() == 1 else
                t.unsqueeze(-1) if t.dim() == 2 else t)
    found = tuple(map(one, _several(tensors)))
    return found[0] if len(found) == 1 else found


def fliplr(input):
    return input.flip(1)


def flipud(input):
    return input.flip(0)


def diag(input, diagonal=0):
    return torch.diag_embed(input, diagonal) if input.dim() == 1 else input.diagonal(diagonal).clone()


def tensor_split(input, indices_or_sections, dim=0):
    size = input.size(dim)
    if isinstance(indices_or_sections, int):
        least, more = divmod(size, indices_or_sections)
        ends, at = [], 0
        for i in range(indices_or_sections - 1):
            at += least + (i < more)
            ends.append(at)
    else:
        ends = [min(max(i + size if i < 0 else i, 0), size) for i in indices_or_sections]
    bounds = [0, *ends, size]
    return tuple(input.narrow(dim, begin, max(end - begin, 0)) for begin, end in zip(bounds, bounds[1:]))


def _both_indices(row, col, offset, is_upper, dtype, device):
    pairs = [(i, j) for i in range(row) for j in range(col) if (j - i >= offset if is_upper else j - i <= offset)]
    made = torch.empty((2, len(pairs)), dtype=dtype or torch.long, device=device)
    if made.is_cpu and len(pairs) <= 32768:
        made._set_values([i for i, _ in pairs] + [j for _, j in pairs])
    return made


def tril_indices(row, col, offset=0, *, dtype=None, device="cpu", layout=None):
    return _both_indices(row, col, offset, False, dtype, device)


def triu_indices(row, col, offset=0, *, dtype=None, device="cpu", layout=None):
    return _both_indices(row, col, offset, True, dtype, device)


def can_cast(from_, to):
    rank = {"bool": 0, "u": 1, "i": 1, "f": 2, "c": 3}

    def kind(dtype):
        name = str(dtype).partition(".")[2]
        return rank.get(name) if name == "bool" else rank["f" if name.startswith("bf") else name[0]]
    return kind(from_) <= kind(to) and not (kind(from_) == 1 and str(to) == "torch.uint8" and str(from_) != "torch.uint8")


def tensordot(a, b, dims=2, out=None):
    if isinstance(dims, torch.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    else:
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    return torch._tensordot(a, b, dims_a, dims_b)


def cartesian_prod(*tensors):
    if len(tensors) == 1:
        return tensors[0]
    return torch.stack([t.flatten() for t in torch.meshgrid(*tensors, indexing="ij")], 1)


def block_diag(*tensors):
    tensors = [torch.atleast_2d(t) for t in tensors]
    result = torch.zeros((sum(t.shape[0] for t in tensors), sum(t.shape[1] for t in tensors)), dtype=tensors[0].dtype,
                         device=tensors[0].device)
    row = column = 0
    for t in tensors:
        result[row:row + t.shape[0], column:column + t.shape[1]].copy_(t)
        row, column = row + t.shape[0], column + t.shape[1]
    return result


def chain_matmul(*matrices, out=None):
    matrices = _several(matrices)
    if any(t.dim() != 2 for t in matrices):
        raise RuntimeError("chain_matmul(): expected tensors of 2 dimensions")
    return matrices[0].clone() if len(matrices) == 1 else torch.linalg.multi_dot(matrices)


def _of_the_host(name, *tensors):
    if any(isinstance(t, torch.Tensor) and t.is_cuda for t in tensors):
        raise NotImplementedError(f"torch.{name} is modeled for tensors of the host only; put a tensor of the result's shape in its place")


def det(A):
    _of_the_host("det", A)
    return A.diagonal(0, -2, -1).sum(-1)


logdet = det


def svd(input, some=True, compute_uv=True):
    _of_the_host("svd", input)
    *batch, rows, columns = input.shape
    least = min(rows, columns)
    sizes = ((rows, least if some else rows), (least,), (columns, least if some else columns))
    return torch.return_types.svd(torch.empty(*batch, *size, dtype=input.dtype) for size in sizes)


def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        factor = torch.isnan(input.detach()).logical_not_().sum()
        return torch.nansum(input).div(factor)
    factor = torch.isnan(input.detach()).logical_not_().sum(dim, keepdim)
    return torch.nansum(input, dim, keepdim).div(factor)


def vdot(input, other):
    return torch.dot(input, other)


def diagflat(input, offset=0):
    return input.contiguous().view(-1).diag(offset)


def positive(input):
    if input.dtype == torch.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def fill_diagonal_(input, fill_value, wrap=False):
    dims, shape, strides = input.dim(), input.shape, input.stride()
    if dims < 2:
        raise RuntimeError("dimensions must larger than 1")
    if dims > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    height, width, step = shape[0], shape[1], sum(strides)
    count, start = min(height, width), input.storage_offset()
    input.as_strided((count,), (step,), start).fill_(fill_value)
    if wrap and dims == 2 and height > width + 1:
        count = (height * width + width) // (width + 1) - count
        input.as_strided((count,), (step,), start + strides[0] * (width + 1)).fill_(fill_value)
    return input


def combinations(input, r=2, with_replacement=False):
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return torch.empty(0, dtype=input.dtype, device=input.device)
    num_elements = input.numel()
    grids = torch.meshgrid(*[input] * r, indexing="ij")
    mask = _combinations_mask(input.numel(), r, with_replacement, input.device)
    return torch.stack([t.masked_select(mask) for t in grids], 1)


def _combinations_mask(n, r, with_replacement, device):
    range_ = torch.arange(n, device=device)
    index_grids = torch.meshgrid(*[range_] * r, indexing="ij")
    mask = torch.full([n] * r, True, dtype=torch.bool, device=device)
    for i in range(r - 1):
        mask *= index_grids[i] <= index_grids[i + 1] if with_replacement else index_grids[i] < index_grids[i + 1]
    return mask


def unravel_index(indices, shape):
    shape = [shape] if isinstance(shape, int) else list(shape)
    if not isinstance(indices, torch.Tensor) or indices.dtype.is_floating_point:
        raise TypeError("expected 'indices' to be an integer tensor")
    coefs = [1]
    for size in reversed(shape[1:]):
        coefs.insert(0, coefs[0] * size)
    found = indices.unsqueeze(-1).floor_divide(torch.tensor(coefs, device=indices.device)) % torch.tensor(shape, device=indices.device)
    return found.unbind(-1)


def cross(input, other, dim=None):
    if dim is None:
        dim = next((i for i, size in enumerate(input.shape) if size == 3), -1)
    return torch.linalg.cross(input, other, dim=dim)


def is_deterministic(*args):
    return False


are_deterministic_algorithms_enabled = is_deterministic


def set_deterministic_debug_mode(mode):
    pass


def set_num_interop_threads(n):
    pass


# Other names of operators.
OTHER_NAMES = {"subtract": "sub", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "multiply": "mul",
               "divide": "div", "true_divide": "div", "absolute": "abs", "negative": "neg", "arctan": "atan", "arccos": "acos",
               "arcsin": "asin", "arctan2": "atan2", "moveaxis": "movedim", "swapaxes": "transpose", "swapdims": "transpose",
               "concat": "cat", "concatenate": "cat", "clip": "clamp", "inverse": "linalg_inv", "det": "linalg_det", "fix": "trunc"}
