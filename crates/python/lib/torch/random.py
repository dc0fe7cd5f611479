"""`torch.random`."""
from contextlib import contextmanager
import torch
from torch import Generator, manual_seed, seed, initial_seed, get_rng_state, set_rng_state, default_generator


@contextmanager
def fork_rng(devices=None, enabled=True, **kwargs):
    yield
