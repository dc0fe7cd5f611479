"""Three tensors of 48 MiB, then six of 24 MiB: the same sizes in the other order, in half the memory.

A large segment can be cut for small tensors. So programs that record several CUDA graphs begin with the largest
batch.
"""

import collections

import torch

MiB = 2**20
pool = torch.cuda.MemPool()


def take(count, mib):
    """Allocates `count` tensors of `mib` MiB in the pool."""
    with torch.cuda.use_mem_pool(pool):
        return [torch.empty(mib * MiB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def show(moment):
    """Prints the bytes of the pool's segments, and which blocks they have; equal segments are one line."""
    segments = torch.cuda.memory_snapshot(pool.id)
    print(f"{moment}: {sum(segment['total_size'] for segment in segments) // MiB} MiB reserved")
    kinds = collections.Counter()
    for segment in segments:
        blocks = [f"{block['size'] // MiB} {block['state']}" for block in segment["blocks"]]
        kinds[segment["total_size"], ", ".join(blocks)] += 1
    for (size, blocks), count in sorted(kinds.items()):
        print(f"    {count} x {size // MiB} MiB: {blocks}")


large = take(3, 48)
show("three of 48 MiB")
large.clear()
show("none")
small = take(6, 24)
show("six of 24 MiB")
small.clear()
show("none")
