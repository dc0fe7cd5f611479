"""Operators that ATen composes of other operators, in ATen's order."""

from _refused import Missing as _Missing

import torch
from torch._composite_linalg import (
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    det,
    frobenius_norm,
    inverse,
    logdet,
    matrix_exp,
    matrix_power,
    nuclear_norm,
    pca_lowrank,
    pinverse,
    qr,
    slogdet,
    svd,
    svd_lowrank,
)
from torch._composite_modes import (
    are_deterministic_algorithms_enabled,
    compiled_with_cxx11_abi,
    cond,
    get_autocast_cpu_dtype,
    get_deterministic_debug_mode,
    get_device_module,
    get_num_interop_threads,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_ipu_enabled,
    is_autocast_xla_enabled,
    is_deterministic,
    is_deterministic_algorithms_warn_only_enabled,
    is_vulkan_available,
    is_warn_always_enabled,
    set_anomaly_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
    set_flush_denormal,
    set_warn_always,
    sym_float,
    sym_int,
)
from torch._composite_shapes import (
    _both_indices,
    _several,
    atleast_3d,
    block_diag,
    cartesian_prod,
    column_stack,
    diag,
    dstack,
    fliplr,
    flipud,
    hstack,
    row_stack,
    tensor_split,
    tensordot,
    tril_indices,
    triu_indices,
    vstack,
)
from torch._composite_windows import _bartlett, _blackman, _hamming, _hann, _kaiser, _tail, _windowed


def can_cast(from_, to):
    rank = {"bool": 0, "u": 1, "i": 1, "f": 2, "c": 3}

    def kind(dtype):
        name = str(dtype).partition(".")[2]
        return rank.get(name) if name == "bool" else rank["f" if name.startswith("bf") else name[0]]

    return kind(from_) <= kind(to) and not (
        kind(from_) == 1 and str(to) == "torch.uint8" and str(from_) != "torch.uint8"
    )


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
    found = indices.unsqueeze(-1).floor_divide(torch.tensor(coefs, device=indices.device)) % torch.tensor(
        shape, device=indices.device
    )
    return found.unbind(-1)


def cross(input, other, dim=None):
    if dim is None:
        dim = next((i for i, size in enumerate(input.shape) if size == 3), -1)
    return torch.linalg.cross(input, other, dim=dim)


def set_deterministic_debug_mode(mode):
    pass


def set_num_interop_threads(n):
    pass


def _pieces(name, dim_of):
    def split(input, indices_or_sections):
        if input.dim() < (3 if name == "dsplit" else 2 if name == "vsplit" else 1):
            raise RuntimeError(
                f"torch.{name} requires a tensor with more dimensions, but got a tensor with {input.dim()} dimensions!"
            )
        dim = dim_of(input)
        if isinstance(indices_or_sections, int) and input.size(dim) % indices_or_sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.size(dim)} is not "
                f"divisible by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, dim)

    split.__name__ = name
    return split


hsplit, vsplit, dsplit = (
    _pieces("hsplit", lambda t: 0 if t.dim() == 1 else 1),
    _pieces("vsplit", lambda t: 0),
    _pieces("dsplit", lambda t: 2),
)


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
        raise NotImplementedError(
            "complex numbers are not modeled here: keep two real numbers in the last dimension, or run the program with "
            "`blockyard dry-run`"
        )
    return input


real = conj = conj_physical = conj_physical_ = resolve_conj = resolve_neg = _itself


def get_device(input):
    return input.get_device()


def fill(input, value):
    if isinstance(value, torch.Tensor):
        raise NotImplementedError("torch.fill is modeled for numbers; use full_like")
    return input.clone().fill_(value)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    if not isinstance(elements, torch.Tensor):
        elements = torch.tensor(elements, device=test_elements.device)
    if not isinstance(test_elements, torch.Tensor):
        found = torch.eq(elements, test_elements)
        return found.logical_not_() if invert else found
    if test_elements.numel() >= int(10.0 * elements.numel() ** 0.145):
        torch._torch_memory.note_estimate(
            "isin", "many elements are sorted, which was not recorded; they are compared here"
        )
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
    torch._torch_memory.note_estimate(
        "nanquantile", "which elements are numbers depends on values; all of them are taken"
    )
    return torch.quantile(input, q, dim, keepdim, interpolation=interpolation)


def native_channel_shuffle(input, groups):
    b, c = input.shape[:2]
    if c % groups:
        raise RuntimeError("Number of channels must be divisible by groups")
    return input.view(b, groups, c // groups, -1).permute(0, 2, 1, 3).contiguous().reshape(input.shape)


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
        return (
            torch.empty(size[0], dtype=input.dtype, device=input.device)
            if isinstance(size[0], torch.Size)
            else size[0].detach()
        )
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
        raise RuntimeError(
            f"the base given to float_power_ has dtype {str(input.dtype)[6:].capitalize()} but the operation's result requires dtype Double"
        )
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
    raise RuntimeError(
        "Trying to differentiate through a stochastic function; use torch.distributions and a loss of log_prob"
    )


def _copies():
    """`view_copy` and its like: a view that is copied."""

    def of_one(name):
        def function(*args, **kwargs):
            view = getattr(torch.Tensor, name)(*args, **kwargs)
            return view.clone(memory_format=torch.contiguous_format)

        return function

    def of_several(name):
        def function(*args, **kwargs):
            return tuple(
                view.clone(memory_format=torch.contiguous_format)
                for view in getattr(torch.Tensor, name)(*args, **kwargs)
            )

        return function

    for name in (
        "as_strided",
        "detach",
        "diagonal",
        "expand",
        "narrow",
        "permute",
        "select",
        "squeeze",
        "t",
        "transpose",
        "unfold",
        "unsqueeze",
        "view",
    ):
        globals()[name + "_copy"] = of_one(name)
    for name in ("split", "split_with_sizes", "unbind"):
        globals()[name + "_copy"] = of_several(name)


_copies()


def alias_copy(input):
    return input.clone(memory_format=torch.contiguous_format)


def slice_copy(input, dim=0, start=None, end=None, step=1):
    return input[(slice(None),) * dim + (slice(start, end, step),)].clone(memory_format=torch.contiguous_format)


hamming_window, hann_window, bartlett_window, blackman_window, kaiser_window = (
    _windowed(f"{make.__name__[1:]}_window", make) for make in (_hamming, _hann, _bartlett, _blackman, _kaiser)
)
# Other names of operators.
OTHER_NAMES = {
    "subtract": "sub",
    "not_equal": "ne",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "absolute": "abs",
    "negative": "neg",
    "arctan": "atan",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan2": "atan2",
    "moveaxis": "movedim",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "concat": "cat",
    "concatenate": "cat",
    "clip": "clamp",
    "fix": "trunc",
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctanh": "atanh",
}


# In place they have the same other names.
OTHER_NAMES |= {name + "_": other + "_" for name, other in OTHER_NAMES.items()}


# Functions above that are methods of tensors too.
METHODS = """diag tensor_split fliplr flipud det logdet svd cross fill_diagonal_ diagflat positive hsplit vsplit dsplit unsafe_split unsafe_split_with_sizes
unsafe_chunk adjoint argwhere isreal is_same_size is_distributed is_conj is_neg conj conj_physical conj_physical_ resolve_conj resolve_neg pinverse slogdet
inverse cholesky cholesky_inverse cholesky_solve matrix_power matrix_exp qr nanquantile nanmean new
new_empty_strided narrow_copy sum_to_size float_power_ ldexp_ resize_ resize_as_ reinforce""".split()
