"""What expandable_segments:True does not help against: a tensor that stays between two free blocks.

Two blocks of 24 MiB are free, and a tensor of 48 MiB does not fit into them. Where everything between is free, it
does.
"""

import torch

MiB = 2**20
pool = torch.cuda.MemPool()


def take(count, mib):
    """Allocates `count` tensors of `mib` MiB in the pool."""
    with torch.cuda.use_mem_pool(pool):
        return [torch.empty(mib * MiB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def show(moment):
    """Prints what the pool reserves and uses, and the sizes of its free blocks."""
    segments = torch.cuda.memory_snapshot(pool.id)
    reserved = sum(segment["total_size"] for segment in segments)
    used = sum(segment["allocated_size"] for segment in segments)
    blocks = [block for segment in segments for block in segment["blocks"]]
    free = sorted(block["size"] // MiB for block in blocks if block["state"] == "inactive")
    print(f"{moment}: {used // MiB} of {reserved // MiB} MiB in use, free blocks {free}")


tensors = take(4, 24)
show("four of 24 MiB")
kept = tensors[1::2]
tensors.clear()
show("the second and the fourth stay")
large = take(1, 48)
show("and one of 48 MiB")

large.clear()
kept.clear()
show("none")
large = take(1, 48)
show("one of 48 MiB")
