"""The training of the lesson "Where training's memory goes": what PyTorch holds at the end of each card.

gpt.py KIND BLOCKS HEADS TEXTS, where KIND is float32, bfloat16, autocast, checkpoint or parts. Each line of the
output has a place, the bytes that the tensors ask for, the allocated bytes, and the peak of these.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

TOKENS = 8192


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def heads(self, joined):
        texts, length, _ = joined.shape
        return joined.view(texts, length, 3, self.width // 64, 64).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        q, k, v = self.heads(self.qkv(F.rms_norm(x, (self.width,))))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(F.rms_norm(x, (self.width,)))))


class GPT(nn.Module):
    def __init__(self, layers, heads, has_checkpoints):
        super().__init__()
        self.has_checkpoints = has_checkpoints
        self.table = nn.Embedding(TOKENS, 64 * heads)
        self.blocks = nn.ModuleList([Block(64 * heads) for _ in range(layers)])
        self.head = nn.Linear(64 * heads, TOKENS, bias=False)

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.has_checkpoints else block(x)
        return self.head(F.rms_norm(x, x.shape[-1:]))


def say(place):
    requested = torch.cuda.memory_stats()["requested_bytes.all.current"]
    print(place, requested, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())


kind, (layers, heads, texts) = sys.argv[1], map(int, sys.argv[2:5])
model = GPT(layers, heads, kind == "checkpoint")
model = model.to(torch.bfloat16 if kind == "bfloat16" else torch.float32).cuda()
say("parameters")
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
parts = 2 if kind == "parts" else 1
for step in range(2):
    for part in range(parts):
        tokens = torch.randint(TOKENS, (texts, 256), device="cuda")
        targets = torch.randint(TOKENS, (texts, 256), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=kind == "autocast"):
            logits = model(tokens)
            if step + part == 0:
                say("forward")
            loss = F.cross_entropy(logits.view(-1, TOKENS), targets.view(-1))
        loss.backward()
        say(f"backward-{step + 1}-{part + 1}")
    optimizer.step()
    say(f"step-{step + 1}")
    optimizer.zero_grad()
