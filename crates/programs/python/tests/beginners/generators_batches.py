import random


def batches(items, size):
    """Lists of at most `size` items."""
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def running_mean():
    total, count, value = 0.0, 0, None
    while True:
        value = yield total / count if count else None
        total, count = total + value, count + 1


class Countdown:
    def __init__(self, start):
        self.start = start

    def __iter__(self):
        yield from range(self.start, 0, -1)


print(list(batches(range(7), 3)), [len(b) for b in batches("abcde", 2)])
mean = running_mean()
next(mean)
print([mean.send(v) for v in (2, 4, 9)])
print(list(Countdown(3)), sum(x * x for x in range(5)), {k: v for k, v in zip("ab", Countdown(2))})
squares = (x * x for x in range(3))
print(next(squares), list(squares), next(squares, "done"))
random.seed(1)
print(random.random(), random.randint(1, 10), random.sample(range(10), 3), random.choice("abc"), random.gauss(0, 1))
order = list(range(6))
random.shuffle(order)
print(order, [i for i, _ in sorted(enumerate(order), key=lambda pair: pair[1])])
first, *middle, last = order
print(first, middle, last, any(o > 4 for o in order), all(o < 6 for o in order), max(enumerate(order), key=lambda p: p[1]))

# --- on the GPU
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor([float(i)]), torch.tensor([float(i * i)])


train, test = random_split(Squares(), [8, 2], generator=torch.Generator().manual_seed(0))
model = nn.Linear(1, 1).cuda()
for x, y in DataLoader(train, batch_size=3):
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    print(x.shape, loss.item())
print(len(train), len(test), test.indices, next(iter(DataLoader(Squares(), batch_size=4)))[1].flatten())
