"""`torch.optim`."""

from torch.optim.optimizer import Optimizer
from torch.optim.algorithms import SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta
from torch.optim.variants import ASGD, Adafactor, Adamax, NAdam, RAdam, Rprop
from torch.optim.lbfgs import LBFGS
from torch.optim import lr_scheduler, optimizer


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    from torch import _names
    if name in ("SparseAdam", "Muon"):
        raise NotImplementedError(f"torch.optim.{name} is not modeled here; use SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, NAdam, RAdam, Adamax, ASGD, Rprop, Adafactor or LBFGS")
    _names.refuse("torch.optim", name)
