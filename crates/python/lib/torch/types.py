"""`torch.types`."""

import torch

Device = torch.device | str | int | None
Number = int | float | bool
