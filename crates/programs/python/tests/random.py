# Random numbers of the host, as PyTorch 2.11 on a CPU printed them (random.txt).
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, RandomSampler, SubsetRandomSampler, TensorDataset, random_split
torch.manual_seed(7)
print(torch.randint(0, 100, (5,)).tolist(), torch.randperm(7).tolist(), torch.rand(3).tolist(), torch.randn(5).tolist(), torch.randint(0, 100, (2,)).tolist())
for name, draw in (("linear", lambda: nn.Linear(10, 20)), ("conv", lambda: nn.Conv2d(3, 8, 3)), ("embedding", lambda: nn.Embedding(11, 7)),
                   ("lstm", lambda: nn.LSTM(5, 6, 2)), ("norm", lambda: nn.Sequential(nn.LayerNorm(5), nn.BatchNorm1d(5))),
                   ("attention", lambda: nn.MultiheadAttention(8, 2)), ("encoder", lambda: nn.TransformerEncoderLayer(8, 2, 16)),
                   ("xavier", lambda: nn.init.xavier_normal_(torch.empty(5, 7))), ("kaiming", lambda: nn.init.kaiming_normal_(torch.empty(4, 4))),
                   ("seventeen", lambda: torch.randn(17)), ("three", lambda: torch.randn(3)), ("wide", lambda: torch.randint(0, 2 ** 33, (3,))),
                   ("double", lambda: torch.rand(3, dtype=torch.float64)), ("doubles", lambda: torch.randn(20, dtype=torch.float64)),
                   ("many", lambda: torch.randn(100000)), ("like", lambda: torch.rand_like(torch.empty(9)))):
    torch.manual_seed(7); draw(); print(name, torch.randint(0, 1000000, (3,)).tolist())
print(torch.randint(0, 2 ** 28, (2,)).tolist(), torch.randint(0, 2 ** 28 - 1, (2,)).tolist(), torch.randint(5, (2, 2)).tolist())
print(torch.randn(2, 3).tolist(), torch.normal(2.0, 3.0, (2,)).tolist(), torch.rand(2, dtype=torch.float64).tolist())
data = TensorDataset(torch.arange(10))
torch.manual_seed(3)
loader = DataLoader(data, batch_size=4, shuffle=True)
print([b[0].tolist() for b in loader], [b[0].tolist() for b in loader], torch.randint(0, 1000, (3,)).tolist())
torch.manual_seed(3)
print([b[0].tolist() for b in DataLoader(data, batch_size=4)], torch.randint(0, 1000, (3,)).tolist())
g = torch.Generator()
print(g.initial_seed(), torch.rand(2, generator=g).tolist())
g.manual_seed(5)
print(torch.randperm(6, generator=g).tolist(), torch.rand(2, generator=g).tolist(), torch.initial_seed())
print([b[0].tolist() for b in DataLoader(data, batch_size=5, shuffle=True, generator=g)], torch.randint(0, 1000, (3,)).tolist())
torch.manual_seed(3)
a, b = random_split(range(10), [7, 3])
print(a.indices, b.indices, list(RandomSampler(range(5), replacement=True, num_samples=7)), list(SubsetRandomSampler([1, 3, 5, 7])))
