"""What it costs to follow values: `blockyard dry-run --quiet scripts/dry_run_cost.py`.

Each operator is called with values followed, then with values not followed, in one process. Printed are microseconds of the
processor's time for a call, and the difference: medians of 25 runs of 400 calls.
"""

import ctypes
import statistics
import time

import torch

known, unknown = torch.arange(64, device="cuda"), torch.empty(64, device="cuda")
OPERATORS = {
    "add, known": lambda: known + known,
    "add, unknown": lambda: unknown + unknown,
    "max, known": lambda: known.max(),
    "max, unknown": lambda: unknown.max(),
    "index, known": lambda: known[known],
    "view, known": lambda: known.view(8, 8),
    "view, unknown": lambda: unknown.view(8, 8),
}


def cost(act):
    runs = []
    for _ in range(26):
        begin = time.thread_time()
        for _ in range(400):
            act()
        runs.append((time.thread_time() - begin) / 400 * 1e6)
    return statistics.median(runs[1:])


followed = {name: cost(act) for name, act in OPERATORS.items()}
ctypes.PyDLL("libblockyard_standin.so").blockyard_values_stop()
for name, act in OPERATORS.items():
    alone = cost(act)
    print(f"{name}: {followed[name]:.1f} and {alone:.1f}, {followed[name] - alone:.1f} more")
