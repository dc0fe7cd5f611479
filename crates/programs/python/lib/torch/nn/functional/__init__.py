"""`torch.nn.functional`."""

import math
from _torch import operator as _operator
import torch
from torch.nn.functional._operators import *
from torch.nn.functional._activations import *
from torch.nn.functional._embeddings import embedding, embedding_bag, one_hot
from torch.nn.functional._norms import *
from torch.nn.functional._pools import *
from torch.nn.functional._losses import *
from torch.nn.functional._attention import *
from torch.nn.functional._attention import _canonical_mask, _in_projection_packed, _native_multi_head_attention


def has_torch_function(*args):
    return False


has_torch_function_unary = has_torch_function_variadic = has_torch_function


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    made = _operator(name)
    if made is None:
        from torch import _names

        _names.refuse("torch.nn.functional", name)
    return made
