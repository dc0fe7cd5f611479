"""Names of PyTorch that are not modeled, and what to use instead."""

_ADVICE = {
    "distributed": "it needs several processes; run one process of the program",
    "multiprocessing": "a program here is one process; leave out the workers",
    "fx": "graphs of programs are not traced here; call the module itself",
    "jit": "call the module itself",
    "export": "call the module itself",
    "onnx": "files are not written here; leave the export out",
    "hub": "there is no network here; write the module out",
    "save": "files are not written here; keep the state in a variable",
    "load": "there are no files here; start from a fresh module",
    "linalg": "of torch.linalg only norms are modeled",
    "fft": "Fourier transforms are not modeled; put a tensor of the result's shape in their place",
    "sparse": "sparse tensors are not modeled; use dense ones",
    "quantization": "quantized tensors are not modeled",
    "ao": "quantized tensors are not modeled",
    "functional": "use torch.autograd.grad", "forward_ad": "use torch.autograd.grad", "gradcheck": "values are not computed here",
    "futures": "a program here is one process",
    "cond": "use an if", "while_loop": "use a while",
    "view_as_complex": "complex numbers are not modeled; keep two real numbers in the last dimension",
    "view_as_real": "complex numbers are not modeled; keep two real numbers in the last dimension",
    "polar": "complex numbers are not modeled; use cos and sin", "complex": "complex numbers are not modeled; use two tensors",
    "EmbeddingBag": "use Embedding and a mean over the bag", "SparseAdam": "use torch.optim.Adam",
    "xpu": "the device is CUDA", "mps": "the device is CUDA", "mtia": "the device is CUDA",
    "func": "function transforms are not modeled; use torch.autograd.grad",
    "vmap": "function transforms are not modeled; write the loop or the batch dimension out",
    "masked": "masked tensors are not modeled; use torch.where", "package": "files are not written here",
    "sparse_coo_tensor": "sparse tensors are not modeled; use dense ones", "sparse_csr_tensor": "sparse tensors are not modeled; use dense ones",
    "_inductor": "nothing is compiled here; call the module itself", "_export": "call the module itself", "_logging": "print",
    "_C": "these are PyTorch's own insides; use the public function", "_functorch": "function transforms are not modeled; use torch.autograd.grad",
    "prune": "write the mask out as a tensor of its own", "swap_tensors": "assign the tensors anew",
    "nested": "nested tensors are not modeled; pad the batch",
    "CTCLoss": "how its memory depends on the lengths was not recorded; use cross_entropy over the same logits",
    "ctc_loss": "how its memory depends on the lengths was not recorded; use cross_entropy over the same logits",
    "affine_grid": "sampling by a grid was not recorded; use interpolate to the same size",
    "grid_sample": "sampling by a grid was not recorded; use interpolate to the same size",
    "Unfold": "blocks of images were not recorded; use Tensor.unfold twice, or a convolution",
    "Fold": "blocks of images were not recorded; use a transposed convolution",
}
TENSOR_METHODS = set("""
addbmm addr align_to allclose angle arccos arccosh arcsin arctan as_strided_scatter asin bincount cauchy_ cholesky
cholesky_inverse cholesky_solve col_indices conj_physical corrcoef cov cross cummax cummin deg2rad dequantize det diag_embed
diagonal_scatter diff digamma dist dsplit eigh erfinv exponential_ fix float_power fmax fmin frexp gcd geometric_ geqrf
heaviside histc histogram hsplit hypot i0 igamma index_fill index_reduce inner inverse isin isclose istft kron lcm
ldexp lgamma log_normal_ logaddexp logdet logit lu lu_solve masked_scatter matrix_exp matrix_power mode
multinomial mvlgamma nanmean nanmedian nanquantile nansum nextafter orgqr ormqr pinverse polygamma put_ qr rad2deg
random_ ravel renorm resolve_conj rot90 scatter_reduce sinc sinh slogdet smm sspaddmm stft svd swapaxes take
take_along_dim tensor_split to_dense to_mkldnn to_sparse trapz triangular_solve addmm_ clamp_max_ clip_ coalesce fill_diagonal_ imag map_ masked_scatter_ nan_to_num_ real
resize_ resize_as_ scatter_reduce_ set_ tril_ triu_ index_fill_ register_forward_hook unique_consecutive vdot vsplit xlogy
""".split())


# What stands for itself until it is used, so that `from torch import vmap` passes.
STAND_INS = {"fx", "export", "sparse", "quantization", "ao", "nested", "masked", "vmap", "cond", "while_loop", "xpu", "mps", "mtia", "package",
             "sparse_coo_tensor", "sparse_csr_tensor", "_inductor", "_C", "_export", "_functorch", "_logging"}


def advice_or_none(name):
    return _ADVICE.get(name)


def advice(name):
    text = _ADVICE.get(name)
    return f": {text}" if text else ""


def refuse(package, name):
    """The error for a name that a package of PyTorch may have and this one has not."""
    raise AttributeError(f"{package}.{name} is not modeled here{advice(name)}")
