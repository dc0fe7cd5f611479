"""`torch.nn.utils.stateless`."""

from torch.func import functional_call
