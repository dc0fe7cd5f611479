"""Mistakes of beginners, each with the text of its error. `mistakes.txt` is what PyTorch 2.11 prints on the CPU."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

f, double, long = torch.ones, torch.double, torch.long


def wrong(name, call):
    try:
        call()
        print(name, "passes")
    except Exception as error:
        print(name, type(error).__name__, str(error).splitlines()[0])


# types
wrong("mm", lambda: torch.mm(f(2, 2), f(2, 2, dtype=double)))
wrong("bmm", lambda: torch.bmm(f(2, 2, 2), f(2, 2, 2, dtype=double)))
wrong("mv", lambda: torch.mv(f(2, 2), f(2, dtype=double)))
wrong("dot", lambda: torch.dot(f(2), f(2, dtype=double)))
wrong("linear", lambda: nn.Linear(2, 2)(f(2, 2, dtype=double)))
wrong("linear of three", lambda: nn.Linear(2, 2)(f(2, 2, 2, dtype=double)))
wrong("linear of integers", lambda: nn.Linear(2, 2)(f(2, 2, dtype=long)))
wrong("linear without bias", lambda: nn.Linear(2, 2, bias=False)(f(2, 2, dtype=double)))
wrong("scatter_add", lambda: torch.zeros(4).scatter_add_(0, torch.tensor([0, 1]), f(2, dtype=double)))
wrong("half in place", lambda: torch.arange(3).add_(0.5))
# recurrent layers
wrong("gru", lambda: nn.GRU(2, 2)(f(1, 1, 2, dtype=double)))
wrong("lstm", lambda: nn.LSTM(2, 2)(f(1, 1, 3)))
wrong("lstm of one", lambda: nn.LSTM(2, 2)(f(2)))
wrong("lstm hidden", lambda: nn.LSTM(2, 2)(f(1, 1, 2), (f(1, 2, 2), f(1, 1, 2))))
wrong("lstm cell state", lambda: nn.LSTM(2, 2)(f(1, 1, 2), (f(1, 1, 2), f(1, 2, 2))))
wrong("gru hidden", lambda: nn.GRU(4, 8, batch_first=True)(f(2, 3, 4), f(1, 3, 8)))
wrong("gru hidden of two", lambda: nn.GRU(2, 2)(f(1, 1, 2), f(2, 2)))
wrong("gru cell", lambda: nn.GRUCell(2, 2)(f(1, 3)))
wrong("lstm cell", lambda: nn.LSTMCell(2, 2)(f(1, 3)))
wrong("lstm cell hidden", lambda: nn.LSTMCell(2, 2)(f(1, 2), (f(1, 3), f(1, 3))))
print([tuple(t.shape) for t in nn.LSTMCell(4, 8)(f(2, 4))], tuple(nn.GRUCell(4, 8)(f(2, 4)).shape))
# losses
wrong("target size", lambda: F.cross_entropy(f(2, 5, 13), f(2, 5, dtype=long)))
wrong("target of images", lambda: F.cross_entropy(f(2, 3, 4, 4), f(2, 4, 5, dtype=long)))
wrong("target dimensions", lambda: F.cross_entropy(f(2, 3, 4, 4), f(2, 1, 4, 4, dtype=long)))
wrong("target of floats", lambda: F.cross_entropy(f(2, 3), f(2)))
wrong("target of int32", lambda: F.cross_entropy(f(2, 3), f(2, dtype=torch.int)))
wrong("target with a column", lambda: F.cross_entropy(f(2, 3), f(2, 1, dtype=long)))
wrong("target batch", lambda: F.cross_entropy(f(2, 3), f(3, dtype=long)))
wrong("target outside", lambda: F.cross_entropy(f(2, 2), torch.tensor([0, 2])))
wrong("target ignored", lambda: F.cross_entropy(f(2, 2), torch.tensor([0, 7]), ignore_index=7))
wrong("target missing", lambda: nn.CrossEntropyLoss()(f(2, 3)))
wrong("bce", lambda: F.binary_cross_entropy_with_logits(f(2, 3), f(2)))
# tensors
wrong("text", lambda: torch.tensor("a"))
wrong("texts", lambda: torch.tensor(["a"]))
wrong("object", lambda: torch.tensor([object()]))
wrong("none", lambda: torch.tensor(None))
wrong("ragged", lambda: torch.tensor([[1, 2], [3]]))
wrong("ragged number", lambda: torch.tensor([[1, 2], 3]))
wrong("ragged list", lambda: torch.tensor([1, [3]]))
wrong("to", lambda: f(2).to("gpu"))
wrong("device", lambda: f(2, device="gpu"))
wrong("array for a layer", lambda: nn.Linear(2, 2)(np.zeros(2)))
wrong("list for a layer", lambda: nn.Linear(2, 2)([1, 2]))
# indices
wrong("index", lambda: f(3)[torch.tensor([5])])
wrong("gather", lambda: f(3).gather(0, torch.tensor([5])))
wrong("scatter", lambda: f(3).scatter(0, torch.tensor([5]), 1.0))
wrong("one_hot", lambda: F.one_hot(torch.tensor([3]), 2))
wrong("embedding", lambda: nn.Embedding(10, 3)(torch.tensor([1, 2, 10])))
wrong("bincount", lambda: torch.bincount(torch.tensor([1, -1])))
wrong("einsum", lambda: torch.einsum("ij,jk->ik", f(2, 3), f(2, 3)))
wrong("masked_fill", lambda: f(200, 200).masked_fill(f(128, 128) == 0, 1.0))
wrong("attention", lambda: nn.MultiheadAttention(8, 2)(f(1, 3, 6), f(1, 3, 6), f(1, 3, 6)))
wrong("probabilities", lambda: torch.distributions.Categorical(probs=torch.tensor([-0.5, 1.5])))
print(torch.finfo(torch.float16), torch.finfo(torch.float64), torch.finfo(torch.bfloat16))
print(torch.finfo(torch.float32), torch.iinfo(torch.uint8), torch.iinfo(torch.int8))
wrong("integers with gradients", lambda: torch.tensor([1, 2], requires_grad=True))
wrong("int of two", lambda: int(f(2)))
wrong("bool of two", lambda: bool(f(2) > 0))
wrong("item of two", lambda: f(2).item())
wrong("mask subtracted", lambda: 1 - torch.tensor([True]))
wrong("masks subtracted", lambda: torch.tensor([True]) - torch.tensor([True]))
wrong("negative size", lambda: torch.zeros(-1))
# a student's hour on an H200
wrong("kernel", lambda: nn.Conv2d(1, 1, 5)(f(1, 1, 3, 3)))
wrong("pool", lambda: F.max_pool2d(f(1, 1, 1, 1), 2))
wrong("softmax of integers", lambda: F.softmax(torch.tensor([1, 2]), dim=0))
wrong("list of tensors", lambda: torch.tensor([f(2), f(2)]))
wrong("list of layers", lambda: nn.Sequential([nn.Linear(1, 1)]))
wrong("empty range", lambda: torch.randint(5, 2, (3,)))
wrong("plus text", lambda: f(2) + "a")
wrong("times list", lambda: f(2) * [1, 2])
wrong("gather of rows", lambda: f(2, 3).gather(1, torch.tensor([0, 1])))
wrong("one_hot of floats", lambda: F.one_hot(f(2)))
wrong("to a type", lambda: f(2).to("float32"))
wrong("mse", lambda: F.mse_loss(f(2, 3), f(3, 2)))
wrong("probability", lambda: F.binary_cross_entropy(f(2) * 2, f(2)))
wrong("gradients of integers", lambda: torch.tensor([1, 2]).requires_grad_())
with torch.inference_mode():
    made = f(2)
wrong("inference", lambda: (made * f(2).requires_grad_()).sum())
wrong("inference with gradients", lambda: made.requires_grad_())
print(made.is_inference(), made[:1].is_inference(), made.clone().is_inference(), f(2) == None)
low, high = torch.zeros(3), torch.full((3,), 2.0)
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
print(x.clamp(low, high).tolist(), torch.clamp(x, low + 1).tolist(), torch.clamp(x, max=high).grad_fn.name())
node = x.pow(2).sum().grad_fn
print(type(node).__name__, type(node.next_functions[0][0]).__name__, f"{torch.tensor(8.0)} {x[0, 1]:.1f}")
calls = []
first, second = nn.Linear(1, 1), nn.ReLU()
for layer in (first, second):
    layer.register_full_backward_hook(lambda layer, inputs, outputs: calls.append(type(layer).__name__))
second(first(f(1, 1))).sum().backward()
print(calls)
