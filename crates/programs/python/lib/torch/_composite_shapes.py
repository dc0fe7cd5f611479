"""Functions of shapes that are made of operators."""

import torch


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
        return (
            t.reshape(1, 1, 1)
            if t.dim() == 0
            else t.unsqueeze(0).unsqueeze(-1)
            if t.dim() == 1
            else t.unsqueeze(-1)
            if t.dim() == 2
            else t
        )

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
    return torch._block_diag(list(tensors))
