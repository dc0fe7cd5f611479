"""A leak: the list of losses keeps the graph of each iteration, and with it the activations."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
losses = []


def train_step():
    inputs = torch.randn(2048, 1024, device="cuda")
    hidden = model(inputs)
    loss = (hidden - inputs).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss)  # `loss.item()` keeps a number only


for _ in range(60):
    train_step()
