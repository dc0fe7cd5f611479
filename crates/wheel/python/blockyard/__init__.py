"""PyTorch's CUDA caching allocator, rebuilt to the byte."""

from blockyard._native import BlockyardError

__all__ = ["BlockyardError"]
