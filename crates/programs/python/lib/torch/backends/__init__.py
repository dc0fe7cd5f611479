"""`torch.backends`: switches."""

import contextlib

import _torch_memory as _memory


class _Backend:
    def __init__(self, _name, **flags):
        self.__dict__.update(flags, _name=_name)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        from torch import _names

        _names.refuse(f"torch.backends.{self._name}", name)

    def is_available(self):
        return True

    def flags(self, **kwargs):
        from contextlib import nullcontext

        return nullcontext()

    def version(self):
        return 91900


_KERNEL = "is not modeled here: the kernel of an operator is the one that PyTorch chooses by default"


class _Cudnn(_Backend):
    def __setattr__(self, name, value):
        if name == "enabled" and not value:
            raise NotImplementedError("torch.backends.cudnn.enabled = False " + _KERNEL)
        if name == "deterministic" and value:
            from _host import note

            note("cudnn.deterministic may choose other engines than the recorded engines, whose workspaces count here")
        if name == "benchmark" and value:
            from _host import note

            note(
                "cudnn.benchmark measures engines on the GPU: the chosen engine is not known here, and the recorded default is assumed"
            )
        self.__dict__[name] = value
        if name in ("benchmark", "deterministic"):
            import _torch_memory

            _torch_memory.set_engines(bool(self.__dict__.get("benchmark")), bool(self.__dict__.get("deterministic")))


cudnn = _Cudnn("cudnn", enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
mps = _Backend("mps")
mps.is_available = mps.is_built = lambda: False
mkldnn = _Backend("mkldnn", enabled=True)
mha = _Backend("mha")


class _Cuda(_Backend):
    cufft_plan_cache = None

    def _enable(place):
        def enable(self, enabled):
            kernels = list(_memory.attention_kernels())
            kernels[place] = bool(enabled)
            _memory.set_attention_kernels(kernels)

        return enable

    def _enabled(place):
        return lambda self: _memory.attention_kernels()[place]

    enable_math_sdp, enable_flash_sdp, enable_mem_efficient_sdp, enable_cudnn_sdp = map(_enable, range(4))
    math_sdp_enabled, flash_sdp_enabled, mem_efficient_sdp_enabled, cudnn_sdp_enabled = map(_enabled, range(4))

    def is_built(self):
        return True

    @contextlib.contextmanager
    def sdp_kernel(self, enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
        before = _memory.attention_kernels()
        _memory.set_attention_kernels([enable_math, enable_flash, enable_mem_efficient, enable_cudnn])
        try:
            yield {}
        finally:
            _memory.set_attention_kernels(before)

    def preferred_linalg_library(self, backend=None):
        return "default"

    preferred_blas_library = preferred_rocm_fa_library = preferred_linalg_library

    def is_flash_attention_available(self):
        return True

    def fp16_bf16_reduction_math_sdp_allowed(self):
        return False

    def allow_fp16_bf16_reduction_math_sdp(self, enabled):
        if enabled:
            raise NotImplementedError("torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True) " + _KERNEL)


cuda = _Cuda(
    "cuda",
    matmul=_Backend(
        "cuda.matmul",
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
    ),
)
openmp, mkl, cpu, opt_einsum = (
    _Backend("openmp"),
    _Backend("mkl", VERBOSE_OFF=0, VERBOSE_ON=1),
    _Backend("cpu"),
    _Backend("opt_einsum", enabled=True),
)
cusparselt, kleidiai, miopen, nnpack = (
    _Backend(_name, enabled=False) for _name in ("cusparselt", "kleidiai", "miopen", "nnpack")
)
cusparselt.is_available = kleidiai.is_available = miopen.is_available = lambda: False
cpu.get_cpu_capability = lambda: "AVX2"


def _as_modules():
    import sys

    for name in ("cudnn", "cuda", "mps", "mkldnn", "openmp", "mkl"):
        sys.modules[f"torch.backends.{name}"] = globals()[name]


_as_modules()
