"""`torch.cuda.amp`, under its older names."""

import torch._modes as _modes


class autocast(_modes.autocast):
    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)

    def clone(self):
        return self.__class__(self._enabled, self.fast_dtype, self._cache_enabled)


def GradScaler(init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
    from torch.amp.grad_scaler import GradScaler as Scaler

    return Scaler("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, **kwargs):
    return fwd if fwd is not None else (lambda f: f)


custom_bwd = custom_fwd
