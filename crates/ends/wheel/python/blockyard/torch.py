"""Blockyard's allocator inside PyTorch.

Call `enable()` before the first CUDA tensor. PyTorch refuses statistics, snapshots and recordings under an allocator that is
not its own; the functions here give them, with PyTorch's names and meanings.

    import blockyard.torch
    blockyard.torch.enable()
    with blockyard.torch.record("run.jsonl.gz"):
        train()
    print(blockyard.torch.memory_summary())
"""

from blockyard._on_oom import on_oom
from blockyard._plugin import *  # noqa: F403
from blockyard._plugin import __all__ as _of_plugin

__all__ = sorted([*_of_plugin, "on_oom"])
