"""A segment is cut into blocks, and two free blocks side by side become one again.

The first of seven programs about memory that is free and cannot be used. They follow the essay "When does
fragmentation occur in the CUDA caching allocator?" of PyTorch's developers (June 2026), which has the reasons:
https://github.com/pytorch/devlogs/blob/main/content/eager/2026-06-01-cuda-caching-allocator.md

Run each twice: without settings, and with expandable_segments:True.
"""

import torch

MiB = 2**20
pool = torch.cuda.MemPool()


def take(count, mib):
    """Allocates `count` tensors of `mib` MiB in the pool."""
    with torch.cuda.use_mem_pool(pool):
        return [torch.empty(mib * MiB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def show(moment):
    """Prints the blocks of the pool's segments, in the order of their addresses."""
    print(moment)
    for segment in torch.cuda.memory_snapshot(pool.id):
        blocks = [f"{block['size'] // MiB} {block['state']}" for block in segment["blocks"]]
        print(f"    {segment['total_size'] // MiB} MiB: {', '.join(blocks)}")


tensors = take(1, 48)
show("a tensor of 48 MiB")
tensors.clear()
show("it is gone, its segment stays")

tensors = take(2, 24)
show("two tensors of 24 MiB share the segment")
del tensors[0]
show("the first is gone, and its neighbor is in use")
tensors.clear()
show("both are gone: one block again")
