"""`torch.backends`: switches."""


class _Backend:
    def __init__(self, **flags):
        self.__dict__.update(flags)

    def is_available(self):
        return True

    def flags(self, **kwargs):
        from contextlib import nullcontext
        return nullcontext()

    def version(self):
        return 91900


class _Cudnn(_Backend):
    def __setattr__(self, name, value):
        if name == "benchmark" and value:
            from _host import note
            note("cudnn.benchmark measures engines on the GPU: which one runs is not known here, so the recorded default is taken")
        self.__dict__[name] = value


cudnn = _Cudnn(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
mps = _Backend()
mps.is_available = mps.is_built = lambda: False
mkldnn = _Backend(enabled=True)
mha = _Backend()


class _Cuda(_Backend):
    def enable_flash_sdp(self, enabled):
        pass

    enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp

    def flash_sdp_enabled(self):
        return True

    mem_efficient_sdp_enabled = math_sdp_enabled = cudnn_sdp_enabled = is_built = flash_sdp_enabled

    def preferred_linalg_library(self, backend=None):
        return "default"


cuda = _Cuda(matmul=_Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True))
openmp = mkl = _Backend()
