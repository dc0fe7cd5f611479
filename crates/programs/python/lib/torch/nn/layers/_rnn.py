"""Recurrent layers."""

import math

import torch
from torch.nn import init
from torch.nn.module import Module
from torch.nn.parameter import Parameter


class RNNBase(Module):
    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if proj_size:
            raise NotImplementedError("proj_size of nn.LSTM is not modeled here; put a Linear after the LSTM")
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        gates = {"LSTM": 4, "GRU": 3}.get(mode, 1) * hidden_size
        directions = 2 if bidirectional else 1
        self._flat_weights_names = []
        for layer in range(num_layers):
            for direction in range(directions):
                width = input_size if layer == 0 else hidden_size * directions
                suffix = "_reverse" if direction == 1 else ""
                shapes = [("weight_ih_l", (gates, width)), ("weight_hh_l", (gates, hidden_size))]
                if bias:
                    shapes += [("bias_ih_l", (gates,)), ("bias_hh_l", (gates,))]
                for name, shape in shapes:
                    full = f"{name}{layer}{suffix}"
                    setattr(self, full, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                    self._flat_weights_names.append(full)
        self.flatten_parameters()
        self.reset_parameters()

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -stdv, stdv)

    def flatten_parameters(self):
        weights = self._flat_weights
        if not all(w.is_cuda for w in weights):
            return
        mode = {"LSTM": 2, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 0}[self.mode]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(
                weights,
                4 if self.bias else 2,
                self.input_size,
                mode,
                self.hidden_size,
                self.proj_size,
                self.num_layers,
                self.batch_first,
                bool(self.bidirectional),
            )
        # All weights lie in one block now, which the operator has made.
        for weight in weights:
            weight._set_category("parameter")

    def _apply(self, fn, recurse=True):
        made = super()._apply(fn, recurse)
        self.flatten_parameters()
        return made

    def _zeros(self, input, batch):
        directions = 2 if self.bidirectional else 1
        shape = (
            (self.num_layers * directions, self.hidden_size)
            if batch is None
            else (self.num_layers * directions, batch, self.hidden_size)
        )
        return torch.zeros(*shape, dtype=input.dtype, device=input.device)

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)
        return hx.index_select(1, permutation)

    def _check_input(self, input, is_packed=False):
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not torch.is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        if is_packed and input.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _check_hidden(self, hx, batch):
        layers = self.num_layers * (2 if self.bidirectional else 1)
        names = ["hidden[0]", "hidden[1]"] if isinstance(hx, tuple) else ["hidden"]
        widths = (self.proj_size or self.hidden_size, self.hidden_size)
        for name, state, width in zip(names, hx if isinstance(hx, tuple) else [hx], widths):
            expected = (layers, batch, width)
            if state.shape != expected:
                raise RuntimeError(f"Expected {name} size {expected}, got {list(state.shape)}")

    def _run(self, *first, last=()):
        input, hidden = first[0], first[-1]
        for kind, tensors in (("hidden", hidden), ("parameter", self._flat_weights)):
            for tensor in tensors if isinstance(tensors, list) else [tensors]:
                if tensor.device != input.device:
                    raise RuntimeError(
                        f"Input and {kind} tensors are not at the same device, found input tensor at {input.device} and "
                        f"{kind} tensor at {tensor.device}"
                    )
        settings = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        return getattr(torch, self.mode.lower())(*first, self._flat_weights, *settings, *last)

    def _forward_packed(self, packed, hx):
        input, batch_sizes, sorted_indices, unsorted_indices = packed
        max_batch_size = int(batch_sizes[0])
        self._check_input(input, is_packed=True)
        if hx is None:
            hx = self._zeros(input, max_batch_size)
            if self.mode == "LSTM":
                hx = (hx, self._zeros(input, max_batch_size))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        result = self._run(input, batch_sizes, list(hx) if self.mode == "LSTM" else hx)
        output = result[0]
        hidden = tuple(result[1:]) if self.mode == "LSTM" else result[1]
        return type(packed)(output, batch_sizes, sorted_indices, unsorted_indices), self.permute_hidden(
            hidden, unsorted_indices
        )

    def forward(self, input, hx=None):
        if isinstance(input, tuple):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            name = self.mode.partition("_")[0]
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        self._check_input(input)
        is_batched = input.dim() == 3
        if is_batched and torch.is_tensor(hx) and hx.dim() != 3 and self.mode != "LSTM":
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
        batch = input.size(0) if self.batch_first else input.size(1)
        if self.mode == "LSTM":
            if hx is None:
                h_zeros = self._zeros(input, batch)
                c_zeros = self._zeros(input, batch)
                hx = (h_zeros, c_zeros)
            elif not is_batched:
                hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
            self._check_hidden(tuple(hx), batch)
            result = self._run(input, list(hx), last=(self.batch_first,))
            output, hidden = result[0], tuple(result[1:])
        else:
            if hx is None:
                hx = self._zeros(input, batch)
            elif not is_batched:
                hx = hx.unsqueeze(1)
            self._check_hidden(hx, batch)
            result = self._run(input, hx, last=(self.batch_first,))
            output, hidden = result[0], result[1]
        if not is_batched:
            output = output.squeeze(batch_dim)
            hidden = tuple(h.squeeze(1) for h in hidden) if isinstance(hidden, tuple) else hidden.squeeze(1)
        return output, hidden

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class LSTM(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)


class RNN(RNNBase):
    def __init__(self, *args, nonlinearity="tanh", **kwargs):
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__("RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU", *args, **kwargs)
        self.nonlinearity = nonlinearity


class RNNCellBase(Module):
    _gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = self._gates * hidden_size
        self.weight_ih = Parameter(torch.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((gates, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(torch.empty(gates, device=device, dtype=dtype))
            self.bias_hh = Parameter(torch.empty(gates, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        stdv = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -stdv, stdv)

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _state(self, input, hx):
        return (
            torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device) if hx is None else hx
        )


class RNNCell(RNNCellBase):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        function = torch.rnn_tanh_cell if self.nonlinearity == "tanh" else torch.rnn_relu_cell
        return function(input, self._state(input, hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class LSTMCell(RNNCellBase):
    _gates = 4

    def forward(self, input, hx=None):
        if hx is None:
            zeros = self._state(input, None)
            hx = (zeros, zeros)
        return torch.lstm_cell(input, list(hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(RNNCellBase):
    _gates = 3

    def forward(self, input, hx=None):
        return torch.gru_cell(input, self._state(input, hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
