"""Two ranks of data parallelism: rank 1 gets the longer texts."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")

WIDTH = 1024
model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)).cuda()
model = DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())


def train_step(tokens):
    inputs = torch.randn(8, tokens, WIDTH, device="cuda")
    outputs = model(inputs)
    loss = (outputs - inputs).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


lengths = [512, 640, 768, 896] if rank == 0 else [512, 1024, 2048, 4096]
for tokens in lengths:
    train_step(tokens)

dist.destroy_process_group()
