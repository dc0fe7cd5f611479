"""Sparse tensors of coordinates: their parts, and how they are made."""

from _torch import operator as _operator

METHODS = (
    "_indices _values _nnz indices values is_coalesced sparse_dim dense_dim to_dense to_sparse to_sparse_coo"
).split()

_make = _operator("_sparse_coo_tensor")
_dense = _operator("_to_dense")


def _parts(tensor, name):
    parts = tensor._sparse_parts()
    if parts is None:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got Strided")
    return parts


def _indices(self):
    return _parts(self, "_indices")[0]


def _values(self):
    return _parts(self, "_values")[1]


def _nnz(self):
    return _parts(self, "_nnz")[1].shape[0]


def indices(self):
    made, _, coalesced = _parts(self, "indices")
    if not coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return made


def values(self):
    if not self.is_sparse:
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    _, made, coalesced = _parts(self, "values")
    if not coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return made


def is_coalesced(self):
    return _parts(self, "is_coalesced")[2]


def sparse_dim(self):
    return self._indices().shape[0] if self.is_sparse else 0


def dense_dim(self):
    return self._values().dim() - 1 if self.is_sparse else self.dim()


def to_dense(self, dtype=None, *, masked_grad=None):
    made = _dense(self) if self.is_sparse else self
    return made if dtype is None else made.to(dtype)


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    import torch

    if self.is_sparse:
        return self
    if layout not in (None, torch.sparse_coo) or sparse_dim not in (None, self.dim()) or dense_dim or not self.dim():
        raise NotImplementedError("to_sparse is modeled with the layout torch.sparse_coo and all dimensions sparse")
    found = self.nonzero().transpose(1, 0)
    places = found.clone(memory_format=torch.contiguous_format)
    chosen = self[tuple(places.unbind(0))].clone()
    return _make(places, chosen, list(self.shape), True)


to_sparse_coo = to_sparse


def sparse_coo_tensor(
    indices,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    import torch

    if values is None:
        raise NotImplementedError("torch.sparse_coo_tensor of a size alone is not modeled: make indices and values")
    if requires_grad or check_invariants:
        raise NotImplementedError("requires_grad and check_invariants of torch.sparse_coo_tensor are not modeled")
    values = torch.as_tensor(values, dtype=dtype, device=device)
    indices = torch.as_tensor(indices, dtype=torch.int64, device=values.device)
    return _make(indices, values, list(size if size is not None else _least_size(indices, values)), bool(is_coalesced))


def _least_size(indices, values):
    """The size that the largest indices imply."""
    rows = indices.tolist() if indices.is_cpu else None
    if rows is None or indices._known_values() is None:
        raise NotImplementedError("torch.sparse_coo_tensor needs its size here: the largest index is not known")
    return [max(row, default=-1) + 1 for row in rows] + list(values.shape[1:])
