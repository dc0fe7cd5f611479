#!/usr/bin/env python3
"""What it costs to be watched: the time of a step, the median and the least of several.

python scripts/watch_speed.py gpt                          # or host (the GPU waits), resnet, small (20,000 tensors)
blockyard watch -- python scripts/watch_speed.py gpt
python scripts/watch_speed.py gpt history                  # under PyTorch's own recording with Python stacks
"""

import sys
import time

import torch
from torch import nn

what = sys.argv[1]
if "history" in sys.argv:
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
torch.manual_seed(0)


def step():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


if what == "gpt":
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda")
    model = nn.TransformerEncoder(layer, 12).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 256, 512, device="cuda")
    steps = 40
elif what == "host":
    # So small that the GPU waits for the host.
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, device="cuda")
    model = nn.TransformerEncoder(layer, 12).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(2, 16, 64, device="cuda")
    steps = 60
elif what == "resnet":
    import torchvision

    model = torchvision.models.resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(64, 3, 224, 224, device="cuda")
    steps = 20
else:
    weight = nn.Parameter(torch.zeros(1, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step():
        for n in range(20_000):
            tensor = torch.empty(n % 1000 + 1, device="cuda")
        weight.grad = torch.ones_like(weight)
        optimizer.step()

    steps = 8
for _ in range(4):
    step()
torch.cuda.synchronize()
times = []
for _ in range(steps):
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    times.append(time.perf_counter() - start)
times.sort()
print(
    f"TIME {' '.join(sys.argv[1:])} median {times[len(times) // 2] * 1e3:.2f} ms, least {times[0] * 1e3:.2f} ms",
    flush=True,
)
