"""Names of PyTorch that are not modeled, and what to use instead."""

_DRY_RUN = "`blockyard dry-run PROGRAM` runs the program with PyTorch's own code"
_COMPLEX = f"complex numbers are not modeled; keep two real numbers in the last dimension, or {_DRY_RUN}"
_QUANTIZED = f"quantized tensors are not modeled; keep floating-point ones, or {_DRY_RUN}"
_SPARSE = f"of sparse tensors only gradients are modeled; use dense ones, or {_DRY_RUN}"
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
    "fft": f"Fourier transforms are not modeled; put a tensor of the result's shape in their place, or {_DRY_RUN}",
    "distributions": f"write its density out with operators, or {_DRY_RUN}",
    "overrides": f"operators are not intercepted here; {_DRY_RUN}",
    "bottleneck": "no time is measured here; leave it out",
    "flop_counter": f"operations are not counted here; {_DRY_RUN}",
    "cpp_extension": "no native code runs here; use operators of torch",
    "model_zoo": "there is no network here; start from a fresh module",
    "flex_attention": "use torch.nn.functional.scaled_dot_product_attention with a mask",
    "sparse": _SPARSE,
    "quantization": _QUANTIZED,
    "ao": _QUANTIZED,
    "forward_ad": "use torch.autograd.grad",
    "futures": "a program here is one process; call the function itself",
    "while_loop": "use a while",
    "view_as_complex": _COMPLEX,
    "view_as_real": _COMPLEX,
    "polar": _COMPLEX,
    "complex": _COMPLEX,
    "complex32": _COMPLEX,
    "chalf": _COMPLEX,
    "cdouble": _COMPLEX,
    "eig": _COMPLEX,
    "eigvals": _COMPLEX,
    "lobpcg": "use torch.linalg.eigh",
    "xpu": "the device here is a GPU of CUDA; write cuda",
    "mps": "the device here is a GPU of CUDA; write cuda",
    "mtia": "the device here is a GPU of CUDA; write cuda",
    "masked": "masked tensors are not modeled; use torch.where",
    "package": "files are not written here; leave it out",
    "sparse_csr_tensor": _SPARSE,
    "_inductor": "nothing is compiled here; call the module itself",
    "_export": "call the module itself",
    "_logging": "print",
    "_C": "these are PyTorch's own insides; use the public function",
    "_functorch": "function transforms are not modeled; use torch.autograd.grad",
    "swap_tensors": "assign the tensors again",
    "nested": "nested tensors are not modeled; pad the batch",
    "CUDAGraph": "run the work without a graph",
    "graph": "run the work without a graph",
    "make_graphed_callables": "run the work without a graph",
    "DistributedDataParallel": "it needs several processes; use the module itself",
    "DistributedSampler": "it needs several processes; use RandomSampler",
    "stft": f"Fourier transforms are not modeled; put a tensor of the result's shape in their place, or {_DRY_RUN}",
    "istft": f"Fourier transforms are not modeled; put a tensor of the result's shape in their place, or {_DRY_RUN}",
    "quantize_per_tensor": _QUANTIZED,
    "range": "use torch.arange",
    "from_dlpack": "make the tensor with torch",
    "from_file": "there are no files here; make the tensor with torch",
    "frombuffer": "make the tensor with torch",
    "list_gpu_processes": "a program here is one process, and no other one is known; print torch.cuda.memory_summary()",
    "CUDAPluggableAllocator": "the allocator is PyTorch's own; leave it out",
    "change_current_allocator": "the allocator is PyTorch's own; leave it out",
    "temperature": "there is no GPU that could be asked; leave it out",
    "power_draw": "there is no GPU that could be asked; leave it out",
    "clock_rate": "there is no GPU that could be asked; leave it out",
    "device_memory_used": "use torch.cuda.memory_allocated()",
    "imag": _COMPLEX,
    "allow_mutation_on_saved_tensors": "clone the tensor before it is changed",
}
# Refused when it is used and not when it is imported, so that `from torch import fft` passes.
REFUSED_WHEN_USED = {
    "fft",
    "hub",
    "onnx",
    "futures",
    "signal",
    "overrides",
    "fx",
    "export",
    "sparse",
    "quantization",
    "ao",
    "nested",
    "masked",
    "while_loop",
    "xpu",
    "mps",
    "mtia",
    "package",
    "sparse_csr_tensor",
    "_inductor",
    "_C",
    "_export",
    "_functorch",
    "_logging",
}

_QUANTIZED_BEGINNINGS = (
    "q_",
    "qint",
    "quint",
    "QInt",
    "QUInt",
    "quantize",
    "fbgemm_",
    "fake_quant",
    "dequant",
    "int_repr",
    "per_",
)


def _advice_or_none(name):
    found = _ADVICE.get(name)
    if found is None and (name.startswith(_QUANTIZED_BEGINNINGS) or "qparams" in name or name == "qscheme"):
        return _QUANTIZED
    if found is None and (
        "sparse" in name
        or name
        in (
            "spmm",
            "smm",
            "hspmm",
            "sspaddmm",
            "saddmm",
            "dsmm",
            "hsmm",
            "coalesce",
            "indices",
            "values",
            "crow_indices",
            "col_indices",
            "ccol_indices",
            "row_indices",
        )
    ):
        return _SPARSE
    return found


def advice(path):
    """What to use instead of a name: what is said of it, or else of a package that it is in."""
    found = (_advice_or_none(part) for part in reversed(path.split(".")))
    return next(filter(None, found), _DRY_RUN)


def is_public(package, name):
    """Whether PyTorch's module or class of this name has that public name."""
    from torch._public import NAMES

    return name in NAMES.get(package, "").split()


def is_module(path):
    """Whether PyTorch has a module of this name, or may have one: the modules of packages that are not modeled are not known."""
    from torch._public import MODULES, NAMES

    package, _, name = path.rpartition(".")
    return name.startswith("_") or name in MODULES.get(package, "").split() or package not in NAMES


def refuse(package, name):
    """The error for a name that a package of PyTorch has and this package lacks, or that PyTorch lacks too."""
    if name in _ADVICE or is_public(package, name) or package == "torch._dynamo":
        raise AttributeError(f"{package}.{name} is not modeled here: {advice(f'{package}.{name}')}")
    raise AttributeError(f"module '{package}' has no attribute '{name}'")


def refuses(package):
    """The `__getattr__` of a module of this name."""

    def get(name):
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(package, name)

    return get


def complete(modules):
    """Makes every module of `torch` refuse the names that only PyTorch has, also where they are imported."""
    for name, module in list(modules.items()):
        if name.startswith("torch.") and module.__dict__.get("__name__") == name:
            own = module.__dict__
            own.setdefault("__getattr__", refuses(name))
            # With a path, `from torch.cuda.memory import name` asks the finder of `_refused` before it fails.
            own.setdefault("__path__", [])


def refused_method(name):
    """A method of tensors that is refused when a program looks it up."""

    def refuse(self):
        raise AttributeError(f"Tensor.{name} is not modeled here: {advice(name)}")

    return property(refuse)
