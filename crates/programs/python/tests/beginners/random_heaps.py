import bisect
import heapq
import math
import random
import statistics
from decimal import Decimal
from fractions import Fraction

random.seed(0)
samples = [round(random.uniform(0, 10), 2) for _ in range(8)]
print(samples, heapq.nsmallest(3, samples), heapq.nlargest(2, samples))
heap = []
for priority, name in ((3, "c"), (1, "a"), (2, "b")):
    heapq.heappush(heap, (priority, name))
print([heapq.heappop(heap) for _ in range(3)])
ordered = sorted(samples)
bisect.insort(ordered, 5.0)
print(ordered, bisect.bisect(ordered, 5.0), statistics.fmean(samples), statistics.quantiles(samples, n=4))
print(math.sqrt(2), math.factorial(10), math.gcd(12, 18), math.isclose(0.1 + 0.2, 0.3), math.ceil(2.1), math.log2(8), math.comb(5, 2))
print(0.1 + 0.2, Decimal("0.1") + Decimal("0.2"), Fraction(1, 3) + Fraction(1, 6), round(2.5), round(-1.567, 2), 7 // -2, 7 % -2)
print(random.choices(["a", "b"], weights=[9, 1], k=5), random.randrange(0, 100, 5), random.betavariate(1, 2) < 1)
print(statistics.mode([1, 2, 2, 3]), divmod(17, 5), abs(-3.5), pow(3, 4, 5), int("ff", 16), bin(10), 1e3, float("inf") > 1)
matrix = [[1, 2], [3, 4]]
print([list(row) for row in zip(*matrix)], sum(map(sum, matrix)), [[sum(a * b for a, b in zip(r, c)) for c in zip(*matrix)] for r in matrix])

# --- on the GPU
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1)).cuda()
x = torch.tensor(samples, device="cuda").unsqueeze(0)
scores = [model(x + i).item() for i in range(3)]
print(scores, statistics.fmean([1.0, 2.0]), sum(scores) / 3, math.sqrt(scores[0]), math.isnan(scores[0]), round(scores[1], 2))
print(torch.rand(3), torch.cuda.memory_allocated())
