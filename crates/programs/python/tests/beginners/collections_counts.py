from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

words = "the cat sat on the mat the end".split()
counts = Counter(words)
print(counts.most_common(2), counts["dog"], sum(counts.values()))
print(Counter("aab") + Counter("abc"), Counter("aab") - Counter("ab"))
groups = defaultdict(list)
for word in words:
    groups[len(word)].append(word)
print(dict(groups))
Point = namedtuple("Point", "x y", defaults=[0])
p = Point(3)
print(p, p._asdict(), p._replace(y=5), p.x + p.y)
window = deque(maxlen=3)
for i in range(5):
    window.append(i)
print(window, sum(window) / len(window))
window.rotate(1)
print(list(window))
ordered = OrderedDict(a=1, b=2)
ordered.move_to_end("a")
print(list(ordered), ChainMap({"a": 1}, {"a": 2, "b": 3})["b"])

# --- on the GPU
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).cuda()
x, y = torch.randn(12, 4, device="cuda"), torch.randint(0, 3, (12,), device="cuda")
pred = model(x).argmax(dim=1)
correct = Counter((pred == y).tolist())
print(f"accuracy {correct[True] / len(y):.2%}")
print(Counter(pred.tolist()))
losses = deque(maxlen=2)
for _ in range(3):
    losses.append(nn.functional.cross_entropy(model(x), y).item())
print(losses, sum(losses) / len(losses))
