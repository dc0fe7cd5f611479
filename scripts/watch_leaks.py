#!/usr/bin/env python3
"""Trains until memory runs out or 4,000 steps are made, with the leak or the fragmentation of a seed.

    blockyard watch -- python scripts/watch_leaks.py SEED leak       # or frag

The step of the forecast is compared with the step in which the program runs out of memory (docs/watch.md).
"""

import random
import sys

import torch
from torch import nn

seed, kind = int(sys.argv[1]), sys.argv[2]
r = random.Random(f"{kind}{seed}")
torch.manual_seed(seed)
limit = r.choice([1.0, 1.5, 2.0, 3.0]) * 2**30
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(limit / total)
width, depth, batch = r.choice([128, 256, 384, 512]), r.randint(2, 6), r.choice([16, 64, 200, 512])
layers = []
for _ in range(depth):
    layers += [nn.Linear(width, width), nn.GELU()]
model = nn.Sequential(*layers, nn.Linear(width, 10)).cuda()
optimizer = r.choice([torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])(model.parameters(), lr=1e-3)
kept, cache = [], {}
size = r.randint(100_000, 6_000_000)
history = torch.zeros(1, width, device="cuda")


def leak(step, out, loss, x):
    global history
    if kind == "leak":
        how = seed % 5
        if how == 0:
            kept.append(loss)  # with its graph
        elif how == 1:
            kept.append(x.clone())
            kept.append(out.detach().clone())
        elif how == 2:
            cache[step] = torch.empty(size, device="cuda")
        elif how == 3:
            kept.append(torch.empty(size // 3, device="cuda"))
            cache[step] = torch.empty(size // 7, device="cuda", dtype=torch.half)
        else:
            kept.append(out)
            kept.append(torch.empty(size // 2, device="cuda"))
    else:
        how = seed % 3
        if how == 0:  # temporary tensors that grow evenly, with something kept behind each
            big = torch.empty(2**20 * 4 + step * 65536 * (1 + seed % 4), device="cuda")
            kept.append(torch.empty(300_000, device="cuda"))
            del big
        elif how == 1:  # a history that is joined anew
            history = torch.cat([history, torch.zeros(64 * (1 + seed), width, device="cuda")])
        else:  # two sizes, of which one stays
            big = torch.empty(7_000_000, device="cuda")
            kept.append(torch.empty(size // 8, device="cuda"))
            other = torch.empty(5_500_000, device="cuda")
            kept.append(torch.empty(size // 16, device="cuda"))
            del big, other


for step in range(1, 4000):
    x = torch.randn(batch, width, device="cuda")
    optimizer.zero_grad(set_to_none=True)
    try:
        out = model(x)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        leak(step, out, loss, x)
    except torch.OutOfMemoryError:
        print(f"PROGRAM fails in step {step}", flush=True)
        break
    del out, loss, x
