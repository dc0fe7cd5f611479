"""`torch.types`."""

import torch

Device = torch.device | str | int | None
Number = int | float | bool

from torch import _names

__getattr__ = _names.refuses(__name__)

from torch._tensor import UntypedStorage as Storage
