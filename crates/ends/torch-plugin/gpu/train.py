"""Trains a small model with random shapes under PyTorch's own allocator or Blockyard's, always with the same random numbers.

Usage: train.py MODEL ALLOCATOR FOLDER    (gpt2 or gnn; native, again or plugin; results go into the folder)

"again" is PyTorch's own allocator a second time: what differs there differs without Blockyard. Settings come from
PYTORCH_CUDA_ALLOC_CONF. The file of results has the losses, the peaks and every request.

PyTorch's autocast keeps the casts of weights until its end in a map by the address of the weight on the host, and frees them in
the order of that map, which is another one in each process. With CASTS=fresh it keeps none, and the requests repeat.
"""

import gc
import json
import os
import random
import sys
import time

MODEL, ALLOCATOR, FOLDER = sys.argv[1:4]
STEPS = int(os.environ.get("STEPS", "30"))
FRESH = os.environ.get("CASTS") == "fresh"
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import blockyard_torch as by  # noqa: E402

# When cycles are collected decides when tensors are freed, and differs with what else is loaded.
gc.disable()
torch.manual_seed(7)
numbers = random.Random(11)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / (width // self.heads) ** 0.5
        weights = self.drop(scores.masked_fill(mask[:length, :length], float("-inf")).softmax(dim=-1))
        x = x + self.drop(self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Gpt2(nn.Module):
    """GPT-2, smaller: 8 layers of 512, tied embeddings."""

    def __init__(self, vocabulary=50257, width=512, heads=8, layers=8, longest=512):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        self.register_buffer("mask", torch.ones(longest, longest, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, self.mask)
        return self.norm(x) @ self.tokens.weight.t()


class Gnn(nn.Module):
    """Messages along edges, added up at their ends."""

    def __init__(self, width=128, layers=4):
        super().__init__()
        self.first = nn.Linear(32, width)
        self.layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.last = nn.Linear(width, 10)

    def forward(self, features, source, target):
        count = features.shape[0]
        ones = torch.ones(target.shape[0], device=features.device)
        degree = torch.zeros(count, device=features.device).scatter_add_(0, target, ones).clamp(min=1)
        x = F.relu(self.first(features))
        for layer in self.layers:
            messages = x[source]
            total = torch.zeros(count, x.shape[1], device=x.device, dtype=messages.dtype)
            total = total.index_add(0, target, messages) / degree[:, None]
            x = F.relu(layer(torch.cat([x, total.to(x.dtype)], dim=1)))
        return self.last(x)


def gpt2_step(model, generator):
    batch, length = 8, numbers.randrange(48, 512)
    tokens = torch.randint(0, 50257, (batch, length + 1), generator=generator).cuda()
    with torch.autocast("cuda", dtype=torch.float16, cache_enabled=not FRESH):
        logits = model(tokens[:, :-1])
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


def gnn_step(model, generator):
    count = numbers.randrange(2000, 40000)
    edges = count * numbers.randrange(4, 16)
    source, target = torch.randint(0, count, (2, edges), generator=generator).cuda()
    features = torch.randn(count, 32, generator=generator).cuda()
    labels = torch.randint(0, 10, (count,), generator=generator).cuda()
    with torch.autocast("cuda", dtype=torch.float16, cache_enabled=not FRESH):
        return F.cross_entropy(model(features, source, target).float(), labels)


def train(mark):
    generator = torch.Generator().manual_seed(5)
    model, step = {"gpt2": (Gpt2, gpt2_step), "gnn": (Gnn, gnn_step)}[MODEL]
    model = model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scaler = torch.amp.GradScaler("cuda")
    losses = []
    for number in range(STEPS):
        loss = step(model, generator)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        del loss
        mark(f"step {number}")
        if number % 10 == 9:
            print(f"{MODEL} {ALLOCATOR}: step {number + 1} of {STEPS}, loss {losses[-1]:.6f}", flush=True)
        if number == STEPS // 2:
            # Halfway the cache goes, as in programs that switch between training and validation.
            torch.cuda.empty_cache()
    return losses


def requests(trace):
    """Every allocation and free, in order: positive sizes are allocated, negative ones are freed."""
    signs = {"alloc": 1, "free_requested": -1}
    return [signs[entry["action"]] * entry["size"] for entry in trace if entry["action"] in signs]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    setting = "expandable" if "expandable" in conf else "default"
    name = f"{MODEL}-{setting}-{'fresh-' if FRESH else ''}{ALLOCATOR}"
    result = {"model": MODEL, "allocator": ALLOCATOR, "conf": conf, "steps": STEPS, "fresh": FRESH}
    begun = time.time()
    if ALLOCATOR == "plugin":
        result["hooks"] = by.enable()
        by.record_memory_history()
        with by.record(os.path.join(FOLDER, f"{name}.jsonl.gz"), name=name) as recording:
            losses = train(recording.mark)
            torch.cuda.synchronize()
            stats = by.memory_stats()
        by.snapshot(os.path.join(FOLDER, f"{name}.pickle"))
        trace = by.memory_snapshot()["device_traces"][0]
    else:
        torch.cuda.memory._record_memory_history(context=None, stacks="python")
        losses = train(lambda label: None)
        torch.cuda.synchronize()
        stats = dict(torch.cuda.memory_stats())
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
    result.update(
        seconds=round(time.time() - begun, 2),
        losses=[loss.hex() for loss in losses],
        last_loss=losses[-1],
        peak_allocated=stats["allocated_bytes.all.peak"],
        peak_reserved=stats["reserved_bytes.all.peak"],
        stats=stats,
        requests=requests(trace),
        torch=torch.__version__,
        device=torch.cuda.get_device_name(),
    )
    with open(os.path.join(FOLDER, f"{name}.json"), "w") as file:
        json.dump(result, file)
    print(
        f"{name}: last loss {losses[-1]:.6f}, peak allocated {result['peak_allocated']:,}, "
        f"peak reserved {result['peak_reserved']:,}, {len(result['requests']):,} requests, {result['seconds']} s",
        flush=True,
    )


main()
