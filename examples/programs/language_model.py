import math
import torch
import torch.nn as nn
import torch.nn.functional as F

def mem(tag):
    print(f"{tag:12s} {torch.cuda.memory_allocated():>12,d} {torch.cuda.max_memory_allocated():>12,d} {torch.cuda.memory_reserved():>12,d}")

class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = torch.tril(torch.ones(t, t, device=x.device)).view(1, 1, t, t)
        att = att.masked_fill(mask == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.proj(y)

class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

class LM(nn.Module):
    def __init__(self, vocab=8000, dim=256, heads=8, layers=3, context=128):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(context, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx):
        t = idx.shape[1]
        x = self.tok(idx) + self.pos(torch.arange(t, device=idx.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))

torch.manual_seed(0)
model = LM().to("cuda")
mem("model")
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
for step in range(3):
    opt.zero_grad(set_to_none=True)
    for micro in range(2):
        idx = torch.randint(0, 8000, (8, 128), device="cuda")
        logits = model(idx)
        mem("forward")
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), idx.view(-1)) / 2
        loss.backward()
        mem("backward")
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    mem(f"step {step}")
