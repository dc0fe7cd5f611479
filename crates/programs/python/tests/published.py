# What published tutorials use, on the host; `published.txt` is what CPython 3.11 with PyTorch 2.11 prints.
import ast
import timeit
import unicodedata

import torch
import torch.functional  # Another name of some functions.

a = torch.ones(3, requires_grad=True)
b = (a * 2 + 1).sum()
c = b.grad_fn.next_functions
print(b.grad_fn.name(), c[0][0].name(), c[0][1], [edge[0] and edge[0].name() for edge in c[0][0].next_functions])
print(c[0][0].next_functions[0][0].next_functions[0][0].name(), a.grad_fn, a.sum(0).grad_fn.name(), a.sum(0, keepdim=True).grad_fn.name())
print([unicodedata.normalize("NFD", word) for word in ("Ślusàrski", "O'Néàl", "plain")])
print("".join(letter for letter in unicodedata.normalize("NFD", "Ślusàrski") if unicodedata.category(letter) != "Mn"))
print(unicodedata.normalize("NFC", "e\u0301"), [unicodedata.category(letter) for letter in "aA1 -_.,+é"])
print(ast.literal_eval("[1, -2.5e-3, 'it\\'s', (3,), {'a': None, \"b\": {1}}, True, 0x10]"), ast.literal_eval("()"))
for text in ("name", "1 + x", "[1 2]", "__import__('os')"):
    try:
        print(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        print("refused")
count: list = []
timeit.timeit(lambda: count.append(1), number=3)
print(len(count), len(timeit.repeat("count.append(1)", globals=globals(), number=2, repeat=3)), len(count))
x = torch.zeros(2, 2)
print(torch.matmul(torch.ones(2, 3), torch.ones(3, 2), out=x) is x, torch.LongTensor([1, 2]), torch.FloatTensor(2, 3).shape)
print(torch.IntTensor([3]).type(), isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), x.type(torch.DoubleTensor).dtype)
with torch.device("meta"):
    print(torch.zeros(3).device)
print(torch.zeros(3).device, torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride())
print(torch.normal(torch.zeros(2, 3), 0.1).shape, torch.normal(0.0, torch.ones(4)).shape, torch.normal(0.0, 1.0, (5,)).shape)
print(torch.det(torch.rand(3, 3)).shape, torch.cross(torch.rand(4, 3), torch.rand(4, 3), dim=1).shape, [tuple(t.shape) for t in torch.svd(torch.rand(4, 3))])
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

net = torch.nn.Linear(3, 2)
other = {"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}
print(functional_call(net, other, torch.ones(4, 3)).shape, net.weight is not other["weight"], functional_call(net, ({"bias": torch.ones(2)}, {"weight": torch.zeros(2, 3)}), (torch.ones(1, 3),)).shape)
w = torch.nn.Parameter(torch.ones(5))
for search in (None, "strong_wolfe"):
    calls = []
    lbfgs = torch.optim.LBFGS([w], lr=0.01, max_iter=4, line_search_fn=search)

    def closure():
        calls.append(1)
        lbfgs.zero_grad()
        loss = (w ** 4).sum()
        loss.backward()
        return loss

    lbfgs.step(closure)
    if search is None:
        lbfgs.step(closure)
        print(len(calls), len(lbfgs.state[w]["old_dirs"]))
    print(sorted(lbfgs.state[w]), lbfgs.state[w]["n_iter"] > 1)
cuda = torch.backends.cuda
with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
    print(cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled(), cuda.cudnn_sdp_enabled())
print(cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), SDPBackend.MATH.name)
