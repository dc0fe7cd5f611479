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


def program(what):
    """A function that makes a step, and how many are timed."""

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    torch.manual_seed(0)
    if what == "gpt":
        layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda")
        model = nn.TransformerEncoder(layer, 12).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(16, 256, 512, device="cuda")
        return step, 40
    if what == "host":
        # So small that the GPU waits for the host.
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, device="cuda")
        model = nn.TransformerEncoder(layer, 12).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(2, 16, 64, device="cuda")
        return step, 60
    if what == "resnet":
        import torchvision

        model = torchvision.models.resnet50().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(64, 3, 224, 224, device="cuda")
        return step, 20
    weight = nn.Parameter(torch.zeros(1, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def small():
        for n in range(20_000):
            tensor = torch.empty(n % 1000 + 1, device="cuda")  # noqa: F841
        weight.grad = torch.ones_like(weight)
        optimizer.step()

    return small, 8


def times(step, count, untimed=4):
    """The seconds of so many steps, the shortest first. The steps before them are not timed."""
    for _ in range(untimed):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)


if __name__ == "__main__":
    if "history" in sys.argv:
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    taken = times(*program(sys.argv[1]))
    print(
        f"TIME {' '.join(sys.argv[1:])} median {taken[len(taken) // 2] * 1e3:.2f} ms, least {taken[0] * 1e3:.2f} ms",
        flush=True,
    )
