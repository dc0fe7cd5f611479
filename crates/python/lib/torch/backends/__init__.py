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
            note("cudnn.deterministic may choose other engines than the recorded ones, whose workspaces are taken here")
        if name == "benchmark" and value:
            from _host import note
            note("cudnn.benchmark measures engines on the GPU: which one runs is not known here, so the recorded default is taken")
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


cuda = _Cuda("cuda", matmul=_Backend("cuda.matmul", allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True))
openmp, mkl = _Backend("openmp"), _Backend("mkl")


def _as_modules():
    import sys
    for name in ("cudnn", "cuda", "mps", "mkldnn", "openmp", "mkl"):
        sys.modules[f"torch.backends.{name}"] = globals()[name]


_as_modules()
