#!/usr/bin/env python3
"""Twelve steps with a CUDA graph, a memory pool, four threads or torch.compile, to be watched.

    blockyard watch --check -- python scripts/watch_kinds.py graph       # or plain, pool, threads, compile

`--check` compares what was seen with PyTorch's own snapshot after each step (docs/watch.md).
"""

import sys
import threading

import torch
from torch import nn

kind = sys.argv[1]
torch.manual_seed(0)
model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(512, 512), nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(64, 512, device="cuda")
if kind == "compile":
    model = torch.compile(model, mode="reduce-overhead")
stop = threading.Event()


def work(seed):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        n = 0
        while not stop.is_set():
            kept = torch.empty((seed * 7919 + n * 131) % 3_000_000 + 1, device="cuda", dtype=torch.uint8)
            n += 1
            if n % 50 == 0:
                stop.wait(0.001)
                del kept


threads = []
if kind == "threads":
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
graph = None
if kind == "graph":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).square().mean().backward()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = model(x).square().mean()
        loss.backward()
pool = torch.cuda.MemPool() if kind == "pool" else None
for _ in range(12):
    if graph is not None:
        graph.replay()
    else:
        optimizer.zero_grad()
        if pool is not None:
            with torch.cuda.use_mem_pool(pool):
                y = model(x)
        else:
            y = model(x)
        y.square().mean().backward()
    optimizer.step()
stop.set()
for thread in threads:
    thread.join()
print("done", kind)
