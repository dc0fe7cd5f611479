"""How tensors of known values print. `printed.txt` is what PyTorch 2.11 prints on the CPU."""

import torch

inf, nan = float("inf"), float("nan")
print(torch.ones(40, 40), torch.arange(2000), torch.zeros(11, 2, 50))
print(torch.full((4, 4), -inf).triu(1), torch.tensor([nan, inf, -1.5]), torch.tensor([2.0, inf]))
print(torch.tensor([1.0, 65504.0, 70000.0, 1e-8, 0.1], dtype=torch.float16))
print(torch.tensor([1.0, 65504.0, 0.1, 1e-3], dtype=torch.bfloat16), torch.tensor(0.1).half().item())
print(torch.tensor([1e-5, 1.0]), torch.tensor([123456.0, 1.5]), torch.tensor([[1e-3]]), torch.tensor(1e-9))
print(torch.zeros(2, 3, dtype=torch.int8), torch.ones(30, requires_grad=True))
torch.set_printoptions(precision=8)
print(torch.tensor([1 / 3], dtype=torch.float64))
torch.set_printoptions(threshold=5, edgeitems=2, sci_mode=False)
print(torch.arange(12.0).reshape(2, 6) / 10000)
torch.set_printoptions(profile="default")
print(torch.tensor([1 / 3]))
# Values that are known stay exact, and others are never shown.
t = torch.arange(12).reshape(3, 4)
print(t.sum(1), t.max(dim=1), t.argmin(), (t > 5).sum(), (t > 5).any(0), t.float().mean(0), t.float().sum())
print(torch.eye(3), torch.tril(torch.ones(3, 3)), torch.tensor([True, False]) & torch.tensor([True, True]))
print(torch.nn.functional.one_hot(torch.tensor([0, 2]), 3), torch.zeros(2).masked_fill(torch.tensor([True, False]), 9))
print(torch.unique(torch.tensor([3, 1, 3]), return_counts=True, return_inverse=True))
print(torch.maximum(torch.tensor([1.0, nan]), torch.tensor([2.0, 1.0])), torch.tensor([-1.5, 2.5]).round())
