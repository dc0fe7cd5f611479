"""`torch.special`: other names of operators."""

__path__ = []  # Modules below are found, and refused in a sentence.

import torch

_NAMES = {"expit": "sigmoid", "logit": "logit", "erf": "erf", "erfc": "erfc", "softmax": "softmax", "log_softmax": "log_softmax", "exp2": "exp2",
          "expm1": "expm1", "log1p": "log1p", "logsumexp": "logsumexp", "round": "round", "gammaln": "lgamma", "digamma": "digamma",
          "xlogy": "xlogy", "xlog1py": "special_xlog1py"}


def __getattr__(name):
    if name in _NAMES:
        return getattr(torch, _NAMES[name])
    if name.startswith("__"):
        raise AttributeError(name)
    from _torch import operator
    made = operator("special_" + name) or (getattr(torch, name) if name in ("polygamma", "i0", "erfinv", "sinc") else None)
    if made is not None:
        return made
    from torch import _names
    _names.refuse("torch.special", name)
