"""What it costs to follow values: `blockyard dry-run --quiet scripts/dry_run_cost.py`.

Each program is called with values followed and with values not followed, in turns, in one process in which kernels do nothing. Printed are
for each the microseconds of the processor's time for a call (all threads together), followed and not followed, and the ratio of the two:
medians of 15 turns, or of `--turns N`. Bytes are unknown, or known, or both as in a program. `--numbers` prints those of all turns as JSON.
Further arguments are parts of names: others are left out.
"""

import argparse
import ctypes
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

MIN_SECONDS = 0.02
standin = ctypes.PyDLL("libblockyard_standin.so")


def step(wide, layers):
    """Makes a training step of a small transformer: forward, cross entropy, backward, AdamW."""

    def make():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(wide, wide // 16, 4 * wide, dropout=0.0, batch_first=True)
        body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        model = nn.Sequential(nn.Embedding(256, wide), body, nn.Linear(wide, 256)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        ids = torch.randint(0, 256, (4, 33)).cuda()

        def act():
            loss = functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        act()
        return act

    return make


def adamw(wide):
    """Makes a step of AdamW alone, over eight matrices."""

    def make():
        weights = [nn.Parameter(torch.ones(wide, wide).cuda()) for _ in range(8)]
        for weight in weights:
            weight.grad = torch.ones(wide, wide).cuda()
        optimizer = torch.optim.AdamW(weights)
        optimizer.step()
        return optimizer.step

    return make


# Bytes that the host wrote are known up to 1 MiB; what `empty` gives is not.
def numbers(is_known, *sizes):
    return torch.ones(sizes).cuda() if is_known else torch.empty(sizes, device="cuda")


def over(act, *sizes):
    """Makes a call over floating-point tensors of these sizes, and places 0 to 7."""

    def make(is_known):
        places = torch.arange(8).cuda() if is_known else torch.empty(8, dtype=torch.long, device="cuda")
        tensors = [numbers(is_known, *size) for size in sizes]
        return lambda: act(*tensors, places)

    return make


SQUARE = (8, 8)
OPERATORS = {
    "a + b": over(lambda a, b, i: a + b, SQUARE, SQUARE),
    "a * 2": over(lambda a, i: a * 2, SQUARE),
    "a += b": over(lambda a, b, i: a.add_(b), SQUARE, SQUARE),
    "relu": over(lambda a, i: functional.relu(a), SQUARE),
    "gelu": over(lambda a, i: functional.gelu(a), SQUARE),
    "a > 0": over(lambda a, i: a > 0, SQUARE),
    "where": over(lambda a, b, i: torch.where(a > 0, a, b), SQUARE, SQUARE),
    "to(bfloat16)": over(lambda a, i: a.to(torch.bfloat16), SQUARE),
    "copy_": over(lambda a, b, i: a.copy_(b), SQUARE, SQUARE),
    "cat": over(lambda a, b, i: torch.cat([a, b]), SQUARE, SQUARE),
    "a @ b": over(lambda a, b, i: a @ b, SQUARE, SQUARE),
    "linear": over(lambda a, w, b, i: functional.linear(a, w, b), SQUARE, SQUARE, (8,)),
    "sum": over(lambda a, i: a.sum(), SQUARE),
    "max": over(lambda a, i: a.max(), SQUARE),
    "softmax": over(lambda a, i: a.softmax(-1), SQUARE),
    "layer_norm": over(lambda a, i: functional.layer_norm(a, (8,)), SQUARE),
    "a[i]": over(lambda a, i: a[i], SQUARE),
    "gather": over(lambda a, i: a.flatten().gather(0, i), SQUARE),
    "embedding": over(lambda a, i: functional.embedding(i, a), SQUARE),
    "a[1:3]": over(lambda a, i: a[1:3], SQUARE),
    "view": over(lambda a, i: a.view(64), SQUARE),
    "transpose": over(lambda a, i: a.transpose(0, 1), SQUARE),
    "empty_like": over(lambda a, i: torch.empty_like(a), SQUARE),
    "zeros_like": over(lambda a, i: torch.zeros_like(a), SQUARE),
}
# What people feel comes first. In the larger model's step most operators have more than 1 MiB of arguments, so that they are not computed;
# in the smaller one's nearly all are.
PROGRAMS = {
    "training step, transformer of 4 layers, 512 wide": step(512, 4),
    "training step, transformer of 2 layers, 32 wide": step(32, 2),
    "AdamW, 8 matrices, 1024 wide": adamw(1024),
    "AdamW, 8 matrices, 16 wide": adamw(16),
    **{f"{name}, unknown": (lambda make=make: make(False)) for name, make in OPERATORS.items()},
    **{f"{name}, known": (lambda make=make: make(True)) for name, make in OPERATORS.items()},
}


def spent(act, count):
    begin = time.process_time()
    for _ in range(count):
        act()
    return (time.process_time() - begin) / count * 1e6


def turn(make, count, is_followed):
    if is_followed:
        standin.blockyard_values_resume()
    else:
        standin.blockyard_values_stop()
    # Made in each turn: what is known is forgotten where values are not followed.
    act = make()
    spent(act, 1)
    return spent(act, count)


def measure(name, make, turns):
    """Microseconds of a call in each turn, with values followed and not followed."""
    count = max(2, round(MIN_SECONDS * 1e6 / turn(make, 3, True)))
    found = [(turn(make, count, False), turn(make, count, True)) for _ in range(turns)]
    alone, followed = zip(*found)
    return {"name": name, "followed": followed, "alone": alone}


def ratio(cost):
    return statistics.median(cost["followed"]) / statistics.median(cost["alone"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the names of what is measured; without any, all")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--numbers", action="store_true")
    options = parser.parse_args()
    costs = []
    for name, make in PROGRAMS.items():
        if options.names and not any(text in name for text in options.names):
            continue
        cost = measure(name, make, options.turns)
        costs.append(cost)
        if not options.numbers:
            followed, alone = statistics.median(cost["followed"]), statistics.median(cost["alone"])
            print(f"{name}: {followed:.1f} and {alone:.1f}, {ratio(cost):.2f} times", flush=True)
    if options.numbers:
        print(json.dumps(costs))
        return
    for kind in ("unknown", "known"):
        ratios = [ratio(cost) for cost in costs if cost["name"].endswith(", " + kind)]
        if ratios:
            print(f"over {kind} bytes: {statistics.median(ratios):.2f} times in the median, {max(ratios):.2f} at most")


main()
