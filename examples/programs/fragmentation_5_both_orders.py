"""Small tensors first or large ones first: with expandable_segments:True both orders take the same memory.

Once everything is free, an expandable segment is one free block, however it was cut before.
"""

import torch

MiB = 2**20


def take(pool, count, mib):
    """Allocates `count` tensors of `mib` MiB in the pool."""
    with torch.cuda.use_mem_pool(pool):
        return [torch.empty(mib * MiB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def show(pool, moment):
    """Prints what the pool reserves, and the largest of its free blocks."""
    segments = torch.cuda.memory_snapshot(pool.id)
    reserved = sum(segment["total_size"] for segment in segments)
    blocks = [block for segment in segments for block in segment["blocks"]]
    free = [block["size"] for block in blocks if block["state"] == "inactive"]
    print(f"    {moment}: {reserved // MiB} MiB reserved, largest free block {max(free, default=0) // MiB} MiB")


for order in [(6, 24), (3, 48)], [(3, 48), (6, 24)]:
    pool = torch.cuda.MemPool()
    print("then".join(f" {count} of {mib} MiB " for count, mib in order).strip())
    for count, mib in order:
        tensors = take(pool, count, mib)
        show(pool, f"{count} of {mib} MiB")
        tensors.clear()
        show(pool, "none")
    # The pool's memory goes with the pool.
    del pool
    print("    without the pool:", torch.cuda.memory_reserved() // MiB, "MiB reserved")
