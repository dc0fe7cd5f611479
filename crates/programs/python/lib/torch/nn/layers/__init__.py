"""The modules that compute."""

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.containers import ModuleList
from torch.nn.module import Module
from torch.nn.parameter import Parameter
from torch.nn.layers._made import _inplace, _join, _pair, _simple
from torch.nn.layers._linear import Bilinear, Flatten, Identity, Linear, NonDynamicallyQuantizableLinear, Unflatten
from torch.nn.layers._activation import *
from torch.nn.layers._activation import _Dropout
from torch.nn.layers._sparse import Embedding
from torch.nn.layers._conv import *
from torch.nn.layers._conv import _Conv, _ConvTranspose
from torch.nn.layers._norm import *
from torch.nn.layers._norm import _BatchNorm, _InstanceNorm, _NormBase
from torch.nn.layers._pool import *
from torch.nn.layers._loss import *
from torch.nn.layers._attention import MultiheadAttention
from torch.nn.layers._transformer import *
from torch.nn.layers._rnn import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNBase, RNNCell, RNNCellBase
from torch.nn.layers._parallel import DataParallel
