import itertools
import operator

grid = {"lr": [0.1, 0.01], "batch": [16, 32], "wd": [0]}
runs = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
for number, run in enumerate(runs, 1):
    print(number, run)
print(list(itertools.combinations("abc", 2)), list(itertools.permutations([1, 2, 3], 2))[:3])
print(list(itertools.chain.from_iterable([[1, 2], [3]])), list(itertools.accumulate([1, 2, 3, 4], operator.mul)))
print([(key, len(list(group))) for key, group in itertools.groupby("aabccc")])
print(list(itertools.islice(itertools.count(10, 5), 3)), list(itertools.zip_longest([1, 2], "a", fillvalue="-")))
print(list(itertools.takewhile(lambda x: x < 3, [1, 2, 3, 1])), list(itertools.starmap(pow, [(2, 3), (3, 2)])))
pairs = list(itertools.pairwise([1, 4, 9]))
print(pairs, [b - a for a, b in pairs], list(itertools.compress("abcd", [1, 0, 1, 0])))
cycle = itertools.cycle(["red", "green"])
print([next(cycle) for _ in range(5)])

# --- on the GPU
import torch
from torch import nn

best = None
for run in runs:
    torch.manual_seed(0)
    model = nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=run["lr"], weight_decay=run["wd"])
    x = torch.randn(run["batch"], 8, device="cuda")
    loss = model(x).abs().mean()
    loss.backward()
    optimizer.step()
    print(run, x.shape, loss.item())
print(torch.cuda.max_memory_allocated())
