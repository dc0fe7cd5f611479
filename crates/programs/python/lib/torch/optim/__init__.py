"""`torch.optim`."""

from torch.optim.optimizer import Optimizer
from torch.optim.algorithms import SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta
from torch.optim.variants import ASGD, Adafactor, Adamax, NAdam, RAdam, Rprop
from torch.optim.lbfgs import LBFGS
from torch.optim._muon import Muon
from torch.optim.sparse_adam import SparseAdam
from torch.optim import lr_scheduler, optimizer, swa_utils
from torch.optim import algorithms as _algorithms, variants as _variants
from torch._aliases import alias as _alias

# `from torch.optim.adam import Adam`, by the files that PyTorch has them in.
_alias(__name__, ("sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta"), _algorithms)
_alias(__name__, ("asgd", "_adafactor", "adamax", "nadam", "radam", "rprop"), _variants)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.optim", name)
