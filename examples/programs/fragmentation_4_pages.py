"""With expandable_segments:True a segment grows by pages of 20 MiB, as far as the next tensor needs.

What a page has left serves the next tensor. Without the setting each tensor of 12 MiB has its own segment.
"""

import torch

MiB = 2**20
pool = torch.cuda.MemPool()

tensors = []
for count in range(1, 11):
    with torch.cuda.use_mem_pool(pool):
        tensors.append(torch.empty(12 * MiB, dtype=torch.uint8, device="cuda"))
    segments = torch.cuda.memory_snapshot(pool.id)
    reserved = sum(segment["total_size"] for segment in segments)
    used = sum(segment["allocated_size"] for segment in segments)
    print(f"{count} tensors, {len(segments)} segments: {used // MiB} of {reserved // MiB} MiB in use")
