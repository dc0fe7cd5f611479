"""`torch.utils`."""
from torch.utils import data, checkpoint, hooks
from torch.utils import _pytree
