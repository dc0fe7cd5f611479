"""The scale of a loss in mixed precision; gradients are assumed to be finite."""

import torch


class _PerDevice:
    """Copies of a tensor, one for each device that asks."""

    def __init__(self, master):
        self.master = master
        self._per_device_tensors = {}

    def get(self, device):
        found = self._per_device_tensors.get(device)
        if found is None:
            found = self.master.to(device=device, non_blocking=True, copy=True)
            self._per_device_tensors[device] = found
        return found


class GradScaler:
    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device, self._enabled = device, enabled
        self._init_scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._scale = self._growth_tracker = None
        self._states = {}

    def _state(self, optimizer):
        return self._states.setdefault(id(optimizer), {"stage": "ready", "found_inf_per_device": {}})

    def _make_scale(self, device):
        self._scale = torch.full((), self._init_scale, dtype=torch.float32, device=device)
        self._growth_tracker = torch.full((), 0, dtype=torch.int32, device=device)

    def scale(self, outputs):
        if not self._enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            if self._scale is None:
                self._make_scale(outputs.device)
            return outputs * self._scale.to(device=outputs.device, non_blocking=True)
        stash = []

        def apply_scale(value):
            if isinstance(value, torch.Tensor):
                if not stash:
                    if self._scale is None:
                        self._make_scale(value.device)
                    stash.append(_PerDevice(self._scale))
                return value * stash[0].get(value.device)
            return type(value)(map(apply_scale, value))

        return apply_scale(outputs)

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        per_device_inv_scale = _PerDevice(inv_scale)
        per_device_found_inf = _PerDevice(found_inf)
        grads_by_kind = {}
        with torch.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not allow_fp16 and param.grad.dtype == torch.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    grad = param.grad
                    if grad.is_sparse:
                        if grad.dtype == torch.float16:
                            param.grad = grad = grad.coalesce()
                        grad = grad._values()
                    grads_by_kind.setdefault(grad.device, {}).setdefault(grad.dtype, []).append(grad)
            for device, by_dtype in grads_by_kind.items():
                for grads in by_dtype.values():
                    torch._amp_foreach_non_finite_check_and_unscale_(
                        grads, per_device_found_inf.get(device), per_device_inv_scale.get(device)
                    )
        return per_device_found_inf._per_device_tensors

    def unscale_(self, optimizer):
        if not self._enabled:
            return
        state = self._state(optimizer)
        if state["stage"] == "unscaled":
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] == "stepped":
            raise RuntimeError("unscale_() is being called after step().")
        if self._scale is None:
            raise AssertionError(
                "Attempted unscale_ but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        inv_scale = self._scale.double().reciprocal().float()
        found_inf = torch.full((), 0.0, dtype=torch.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = "unscaled"

    def step(self, optimizer, *args, **kwargs):
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._state(optimizer)
        if state["stage"] == "stepped":
            raise RuntimeError("step() has already been called since the last update().")
        if any(group.get("fused") for group in optimizer.param_groups):
            return self._step_fused(optimizer, state, args, kwargs)
        if state["stage"] == "ready":
            self.unscale_(optimizer)
        result = optimizer.step(*args, **kwargs)
        state["stage"] = "stepped"
        return result

    def _step_fused(self, optimizer, state, args, kwargs):
        """Fused optimizers unscale in their kernel; before it the gradients are only looked through."""
        if self._scale is None:
            raise AssertionError(
                "Attempted _check_inf_per_device but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        if state["stage"] == "ready":
            inv_scale = torch.full((), 1.0, dtype=torch.float32, device=self._scale.device)
            found_inf = torch.full((), 0.0, dtype=torch.float32, device=self._scale.device)
            state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, True)
            del inv_scale, found_inf
        scale = self._scale
        found_inf = sum([found.to(scale.device, non_blocking=True) for found in state["found_inf_per_device"].values()])
        optimizer.grad_scale = None if state["stage"] == "unscaled" else scale * getattr(optimizer, "grad_scale", 1)
        optimizer.found_inf = found_inf
        result = optimizer.step(*args, **kwargs)
        state["stage"] = "stepped"
        del optimizer.grad_scale, optimizer.found_inf
        return result

    def update(self, new_scale=None):
        if not self._enabled:
            return
        _scale, _growth_tracker = self._scale, self._growth_tracker
        if new_scale is not None:
            if isinstance(new_scale, float):
                self._scale.fill_(new_scale)
            else:
                self._scale.copy_(new_scale)
        else:
            found_infs = [
                found_inf.to(device=_scale.device, non_blocking=True)
                for state in self._states.values()
                for found_inf in state["found_inf_per_device"].values()
            ]
            if not found_infs:
                raise AssertionError("No inf checks were recorded prior to update.")
            found_inf_combined = found_infs[0]
            if len(found_infs) > 1:
                for i in range(1, len(found_infs)):
                    found_inf_combined += found_infs[i]
            torch._amp_update_scale_(
                _scale,
                _growth_tracker,
                found_inf_combined,
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._states = {}

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def is_enabled(self):
        return self._enabled

    def get_growth_factor(self):
        return self._growth_factor

    def state_dict(self):
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": 0,
        }

    def load_state_dict(self, state_dict):
        if self._enabled:
            self._init_scale = state_dict["scale"]
