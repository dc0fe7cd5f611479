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
    return torch._block_diag(list(tensors))


def chain_matmul(*matrices, out=None):
    matrices = _several(matrices)
    if any(t.dim() != 2 for t in matrices):
        raise RuntimeError("chain_matmul(): expected tensors of 2 dimensions")
    return matrices[0].clone() if len(matrices) == 1 else torch.linalg.multi_dot(matrices)


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


def _pieces(name, dim_of):
    def split(input, indices_or_sections):
        if input.dim() < (3 if name == "dsplit" else 2 if name == "vsplit" else 1):
            raise RuntimeError(f"torch.{name} requires a tensor with more dimensions, but got a tensor with {input.dim()} dimensions!")
        dim = dim_of(input)
        if isinstance(indices_or_sections, int) and input.size(dim) % indices_or_sections:
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.size(dim)} is not "
                               f"divisible by the split_size {indices_or_sections}!")
        return tensor_split(input, indices_or_sections, dim)
    split.__name__ = name
    return split


hsplit, vsplit, dsplit = (_pieces("hsplit", lambda t: 0 if t.dim() == 1 else 1), _pieces("vsplit", lambda t: 0), _pieces("dsplit", lambda t: 2))


def unsafe_split(input, split_size, dim=0):
    return input.split(split_size, dim)


unsafe_split_with_sizes = unsafe_split


def unsafe_chunk(input, chunks, dim=0):
    return input.chunk(chunks, dim)


def adjoint(input):
    return input.mT


def argwhere(input):
    return torch.nonzero(input)


def isreal(input):
    return torch.ones_like(input, dtype=torch.bool, memory_format=torch.preserve_format)


def is_same_size(input, other):
    return input.shape == other.shape


def is_signed(input):
    return input.is_signed()


def is_inference(input):
    return input.is_inference()


def is_distributed(input):
    return False


is_conj = is_neg = is_distributed


def _itself(input):
    """What complex numbers would change; real ones are as they are."""
    if input.is_complex():
        raise NotImplementedError("complex numbers are not modeled here: keep two real numbers in the last dimension, or run the program with "
                                  "`blockyard dry-run`")
    return input


real = conj = conj_physical = conj_physical_ = resolve_conj = resolve_neg = _itself


def get_device(input):
    return input.get_device()


def fill(input, value):
    if isinstance(value, torch.Tensor):
        raise NotImplementedError("torch.fill is modeled for numbers; use full_like")
    return input.clone().fill_(value)


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
    return torch.return_types.geqrf(torch._decompositions.decomposed("geqrf", [input], (input.shape, None), ((*batch, min(m, n)), None)))


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
    made = torch._decompositions.decomposed("svd_lowrank", [A], ((*batch, m, q), None), ((*batch, q), None), ((*batch, n, q), None))
    return made


def pca_lowrank(A, q=None, center=True, niter=2):
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A if not center else A - A.mean(dim=-2, keepdim=True), q, niter)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    if not isinstance(elements, torch.Tensor):
        elements = torch.tensor(elements, device=test_elements.device)
    if not isinstance(test_elements, torch.Tensor):
        found = torch.eq(elements, test_elements)
        return found.logical_not_() if invert else found
    if test_elements.numel() >= int(10.0 * elements.numel() ** 0.145):
        torch._torch_memory.mark_estimated("isin", "many elements are sorted, which was not recorded; they are compared here")
    result = torch.empty_like(elements, dtype=torch.bool, memory_format=torch.contiguous_format)
    tested = test_elements.view([1] * elements.dim() + [-1])
    with torch.no_grad():
        each = elements.unsqueeze(-1).ne(tested) if invert else elements.unsqueeze(-1).eq(tested)
        found = each.all(-1) if invert else each.any(-1)
        result.copy_(found)
        # What C++ computes on the way dies last to first.
        del found
        del each
    return result


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    torch._torch_memory.mark_estimated("nanquantile", "which elements are numbers depends on values; all of them are taken")
    return torch.quantile(input, q, dim, keepdim, interpolation=interpolation)


def channel_shuffle(input, groups):
    b, c, *rest = input.shape
    if c % groups:
        raise RuntimeError("Number of channels must be divisible by groups")
    return input.reshape(b, groups, c // groups, *rest).permute(0, 2, 1, *range(3, 3 + len(rest))).contiguous().reshape(input.shape)


native_channel_shuffle = channel_shuffle


def adaptive_max_pool1d(input, output_size):
    return torch.nn.functional.adaptive_max_pool1d(input, output_size, True)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    need = 1 + sum((s - 1) * t for s, t in zip(size, stride)) if 0 not in tuple(size) else 0
    made = torch.empty(need, dtype=dtype, device=device, pin_memory=pin_memory).as_strided(size, stride).detach()
    return made.requires_grad_() if requires_grad else made


def empty_permuted(size, physical_layout, **options):
    back = [physical_layout.index(d) for d in range(len(size))]
    return torch.empty([size[d] for d in physical_layout], **options).permute(back)


def new(input, *size, device=None):
    if len(size) == 1 and isinstance(size[0], (torch.Size, torch.Tensor)):
        return torch.empty(size[0], dtype=input.dtype, device=input.device) if isinstance(size[0], torch.Size) else size[0].detach()
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        return torch.tensor(size[0], dtype=input.dtype, device=input.device)
    return torch.empty(size or 0, dtype=input.dtype, device=input.device)


def new_empty_strided(input, size, stride, dtype=None, device=None, **options):
    return empty_strided(size, stride, dtype=dtype or input.dtype, device=device or input.device, **options)


def sum_to_size(input, *size):
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    lead = input.dim() - len(size)
    dims = [*range(lead), *(d for d in range(lead, input.dim()) if size[d - lead] == 1 and input.shape[d] != 1)]
    made = input.sum(dims, True) if dims else input
    return made.view(size) if lead else made


def float_power_(input, exponent):
    if input.dtype != torch.float64:
        raise RuntimeError(f"the base given to float_power_ has dtype {str(input.dtype)[6:].capitalize()} but the operation's result requires dtype Double")
    return input.pow_(exponent)


def ldexp_(input, other):
    return input.mul_(torch.pow(2.0, other))


def resize_(input, *sizes, memory_format=None):
    sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    strides, need = [], 1
    for size in reversed(sizes):
        strides.insert(0, need)
        need *= size
    if input.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if need * input.element_size() > input.untyped_storage().nbytes():
        input.untyped_storage().resize_(need * input.element_size())
    input._set_geometry(list(sizes), strides, None)
    return input


def resize_as_(input, other, memory_format=None):
    return resize_(input, other.shape)


def reinforce(input, reward):
    raise RuntimeError("Trying to differentiate through a stochastic function; use torch.distributions and a loss of log_prob")


def _copies():
    """`view_copy` and its like: a view that is copied."""
    def of_one(name):
        def function(*args, **kwargs):
            view = getattr(torch.Tensor, name)(*args, **kwargs)
            return view.clone(memory_format=torch.contiguous_format)
        return function

    def of_several(name):
        def function(*args, **kwargs):
            return tuple(view.clone(memory_format=torch.contiguous_format) for view in getattr(torch.Tensor, name)(*args, **kwargs))
        return function
    for name in ("as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "squeeze", "t", "transpose", "unfold", "unsqueeze",
                 "view"):
        globals()[name + "_copy"] = of_one(name)
    for name in ("split", "split_with_sizes", "unbind"):
        globals()[name + "_copy"] = of_several(name)


_copies()


def alias_copy(input):
    return input.clone(memory_format=torch.contiguous_format)


def slice_copy(input, dim=0, start=None, end=None, step=1):
    return input[(slice(None),) * dim + (slice(start, end, step),)].clone(memory_format=torch.contiguous_format)


def _tail(window, periodic):
    return window.narrow(0, 0, window.numel() - 1) if periodic else window


def _windowed(name, make):
    def function(window_length, periodic=True, *args, dtype=None, layout=None, device=None, requires_grad=False, **kwargs):
        dtype = dtype or torch.get_default_dtype()
        if window_length <= 1:
            return torch.ones(window_length, dtype=dtype, device=device, requires_grad=requires_grad)
        with torch.no_grad():
            length = window_length + bool(periodic)
            made = _tail(make(torch.arange(length, dtype=dtype, device=device), length, *args, **kwargs), periodic)
        return made.requires_grad_() if requires_grad else made
    function.__name__ = name
    return function


def _hamming(window, length, alpha=0.54, beta=0.46):
    return window.mul_(torch.pi * 2.0 / (length - 1)).cos_().mul_(-beta).add_(alpha)


def _hann(window, length):
    return _hamming(window, length, 0.5, 0.5)


def _bartlett(window, length):
    window.mul_(2.0 / (length - 1))
    half = ((length - 1) >> 1) + 1
    window.narrow(0, half, length - half).mul_(-1).add_(2)
    return window


def _blackman(window, length):
    # What C++ computes on the way lives to the end of the statement.
    window.mul_(torch.pi / (length - 1))
    right = window.mul(2).cos_().mul_(0.5)
    left = window.mul(4).cos_().mul_(0.08)
    difference = left - right
    result = difference + 0.42
    del difference, left, right
    return result


def _kaiser(window, length, beta=12.0):
    return torch.empty_like(window)


hamming_window, hann_window, bartlett_window, blackman_window, kaiser_window = (
    _windowed(f"{make.__name__[1:]}_window", make) for make in (_hamming, _hann, _bartlett, _blackman, _kaiser))


def sym_max(a, b):
    return max(a, b)


def sym_min(a, b):
    return min(a, b)


def sym_sum(args):
    return sum(args)


def sym_not(a):
    return not a


def sym_ite(b, t, f):
    return t if b else f


sym_int, sym_float = int, float


def sym_sqrt(a):
    return a ** 0.5


def get_num_interop_threads():
    return 8


def get_deterministic_debug_mode():
    return 0


is_deterministic_algorithms_warn_only_enabled = is_vulkan_available = is_anomaly_enabled = is_deterministic
is_autocast_cpu_enabled = is_autocast_ipu_enabled = is_autocast_xla_enabled = is_warn_always_enabled = is_deterministic


def is_autocast_cache_enabled():
    return True


is_anomaly_check_nan_enabled = compiled_with_cxx11_abi = is_autocast_cache_enabled


def set_anomaly_enabled(mode, check_nan=True):
    pass


set_warn_always = set_flush_denormal = set_anomaly_enabled


def get_autocast_cpu_dtype():
    return torch.bfloat16


set_autocast_enabled, set_autocast_dtype, set_autocast_gpu_dtype, set_autocast_cache_enabled = (
    _Missing(f"torch.set_autocast_{name}", "use `with torch.autocast(\"cuda\")`") for name in ("enabled", "dtype", "gpu_dtype", "cache_enabled"))


def get_device_module(device=None):
    return torch.cuda


def cond(pred, true_fn, false_fn, operands=()):
    torch._torch_memory.mark_estimated("torch.cond", "both branches of torch.cond are traced by a compiler; one runs here")
    return (true_fn if pred else false_fn)(*operands)


# Other names of operators.
OTHER_NAMES = {"subtract": "sub", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "multiply": "mul",
               "divide": "div", "true_divide": "div", "absolute": "abs", "negative": "neg", "arctan": "atan", "arccos": "acos",
               "arcsin": "asin", "arctan2": "atan2", "moveaxis": "movedim", "swapaxes": "transpose", "swapdims": "transpose",
               "concat": "cat", "concatenate": "cat", "clip": "clamp", "fix": "trunc",
               "arccosh": "acosh", "arcsinh": "asinh", "arctanh": "atanh"}
# In place they have the same other names.
OTHER_NAMES |= {name + "_": other + "_" for name, other in OTHER_NAMES.items()}
# Functions above that are methods of tensors too.
METHODS = """diag tensor_split fliplr flipud det logdet svd cross fill_diagonal_ diagflat positive hsplit vsplit dsplit unsafe_split unsafe_split_with_sizes
unsafe_chunk adjoint argwhere isreal is_same_size is_distributed is_conj is_neg conj conj_physical conj_physical_ resolve_conj resolve_neg pinverse slogdet
inverse cholesky cholesky_inverse cholesky_solve triangular_solve matrix_power matrix_exp qr geqrf orgqr ormqr lu lu_solve nanquantile nanmean vdot new
new_empty_strided narrow_copy sum_to_size float_power_ ldexp_ resize_ resize_as_ reinforce""".split()
