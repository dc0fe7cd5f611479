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
